import { HOUR_MS } from '../kernel/process/clock.ts'
import type { StoredSensor } from './coverage.ts'
import type { StoredSource } from './sources.ts'

/** A sender or sensor without activity for this long is silent. */
const SILENT_MS = HOUR_MS

export const SENSOR_STATES = ['reporting', 'silent', 'stopped'] as const
export type SensorState = (typeof SENSOR_STATES)[number]

function isSilent(lastSeenMs: number, nowMs: number): boolean {
  return nowMs - lastSeenMs > SILENT_MS
}

/** A file is read once, so nothing is expected of it later. */
export function isSourceSilent(
  { listener, lastSeenMs }: Pick<StoredSource, 'listener' | 'lastSeenMs'>,
  nowMs: number,
): boolean {
  return listener !== 'file' && isSilent(lastSeenMs, nowMs)
}

/** A sensor that stopped normally has reported that, so it is not silent. */
export function sensorState({ ended, heardMs }: StoredSensor, nowMs: number): SensorState {
  if (ended) return 'stopped'
  return isSilent(heardMs, nowMs) ? 'silent' : 'reporting'
}
