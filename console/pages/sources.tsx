import { percentText } from '../../engine/export/report/text.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { countColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countText, Empty, PageHead, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { SourceRow } from '../views/sources.ts'
import { LISTENER_NAMES } from './listeners.ts'
import { formatText, SourceState } from './source-state.tsx'

const SAMPLES_MAX = 20

export function sourceColumns(nowMs: number): readonly Column<SourceRow>[] {
  return [
    {
      id: 'sender',
      name: 'Sender',
      cell: ({ sender, address, listener, node, tokenLabel, framing }) => (
        <>
          <strong>{sender}</strong>
          <p class="small muted break">
            {LISTENER_NAMES[listener] ?? listener}
            {address !== sender && address !== 'other' && ` from ${address}`}
            {node !== '' && ` at ${node}`}
            {tokenLabel !== '' && ` · ${tokenLabel}`}
          </p>
          {framing !== '' && <p class="small break">{framing}</p>}
        </>
      ),
      csv: ({ sender }) => sender,
    },
    { id: 'address', name: 'Address', csv: ({ address }) => address },
    { id: 'transport', name: 'Transport', csv: ({ listener }) => listener },
    { id: 'token', name: 'Token', csv: ({ tokenLabel }) => tokenLabel },
    { id: 'framing', name: 'Framing', csv: ({ framing }) => framing },
    {
      id: 'format',
      name: 'Format',
      cell: (source) => (source.format === '' ? <span class="muted">{formatText(source)}</span> : source.format),
      csv: ({ format }) => format,
      wide: true,
    },
    { ...countColumn('messages', 'Messages', ({ messages }: SourceRow) => messages), wide: true },
    { ...countColumn('stored', 'AI matches', ({ stored }: SourceRow) => stored), wide: true },
    {
      id: 'understood',
      name: 'Understood',
      cell: ({ understood }) => percentText(understood),
      csv: ({ understood }) => understood,
      number: true,
      wide: true,
    },
    {
      id: 'seen',
      name: 'Last message',
      cell: (source) => (
        <>
          <SourceState source={source} />
          <p class="small muted">
            <Time ms={source.lastSeenMs} nowMs={nowMs} />
          </p>
        </>
      ),
      csv: ({ lastSeenMs }) => isoSeconds(lastSeenMs),
    },
  ]
}

export interface SourcesProps {
  readonly sources: Paged<SourceRow>
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly mayReadTokens: boolean
}

export function Sources({ sources, query, nowMs, mayReadTokens }: SourcesProps) {
  const { rows, total } = sources
  if (total === 0) {
    return (
      <>
        <PageHead title="Sources" />
        <Empty title="No message has arrived yet">
          <p class="muted">
            Run a collector with a monitoring token, or send the syslog of a firewall, proxy or DNS server to this
            service.
          </p>
          {mayReadTokens && (
            <a class="button first" href="/setup-guide">
              Setup
            </a>
          )}
        </Empty>
      </>
    )
  }
  const samples = rows.filter(({ sample }) => sample !== '').slice(0, SAMPLES_MAX)
  return (
    <>
      <PageHead title="Sources" about="Everything that sends events or logs to this organization">
        <CsvLink path="/sources" />
      </PageHead>
      <Card title="Senders" note={`${countText(total)}, most recently active first`} bare>
        <Table id="sources" label="Sources" columns={sourceColumns(nowMs)} rows={rows} stacked />
      </Card>
      <NumberedPages of={sources} query={query} />
      {samples.length > 0 && (
        <Card title="Messages that were not understood" note="the last of each sender, redacted">
          <ul class="lines">
            {samples.map(({ sender, listener, tokenLabel, notUnderstood, messages, sample }) => (
              <li key={`${listener} ${tokenLabel} ${sender}`} class="sample">
                <div>
                  <strong>{sender}</strong>
                  <span class="small muted">
                    {' '}
                    {countText(notUnderstood)} of {countText(messages)}
                  </span>
                </div>
                <pre>{sample}</pre>
              </li>
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}
