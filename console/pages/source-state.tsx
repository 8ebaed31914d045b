import { percentText } from '../../engine/export/report/text.ts'
import { Tag, type Tone } from '../design/parts.tsx'
import type { SensorRow, SourceRow } from '../views/sources.ts'

/** Below this share, the page suggests checking the format of a source. */
const UNDERSTOOD_MIN = 0.95

/** A source of events, such as a collector, has no log format. */
export function formatText({ format, notUnderstood }: SourceRow): string {
  if (format !== '') return format
  return notUnderstood === 0 ? 'events' : 'format not recognized'
}

export function SourceState({ source }: { readonly source: SourceRow }) {
  if (source.isSilent) return <Tag tone="bad">silent</Tag>
  if (source.understood < UNDERSTOOD_MIN) {
    return <Tag tone="warn">{percentText(1 - source.understood)} not understood</Tag>
  }
  return source.listener === 'file' ? <Tag>read once</Tag> : <Tag tone="good">receiving</Tag>
}

const TONES: Readonly<Record<SensorRow['state'], Tone>> = { reporting: 'good', silent: 'bad', stopped: 'plain' }

export function SensorTag({ state }: Pick<SensorRow, 'state'>) {
  return <Tag tone={TONES[state]}>{state}</Tag>
}
