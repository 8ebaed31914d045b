import { percentText } from '../../engine/export/report/text.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { HiddenTraffic } from '../design/coverage.tsx'
import { CsvLink, PagedTable } from '../design/list.tsx'
import { Card, countText, Empty, lastDays, PageHead, Tag, Time, type Tone } from '../design/parts.tsx'
import { type Column, countColumn, Table, timeColumn } from '../design/table.tsx'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { allSources, LISTENER_NAMES, type SensorRow, type SourceRow, sensorsView, sourcesView } from './read.ts'

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

const SAMPLES_MAX = 20

const COLUMNS: readonly Column<SourceRow>[] = [
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
    cell: (source, { nowMs }) => (
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

/** What a page without senders or sensors says. */
function Nothing({ visit, title, children }: { visit: Visit; title: string; children: string }) {
  return (
    <Empty title={title}>
      <p class="muted">{children}</p>
      {visit.may('token.read') && (
        <a class="button first" href="/setup-guide">
          Setup
        </a>
      )}
    </Empty>
  )
}

function Sources({ visit }: { readonly visit: Visit }) {
  const sources = sourcesView(visit)
  const samples = sources.rows.filter(({ sample }) => sample !== '').slice(0, SAMPLES_MAX)
  return (
    <>
      <PageHead title="Sources" about="Everything that sends events or logs to this organization">
        {sources.total > 0 && <CsvLink path="/sources" />}
      </PageHead>
      <PagedTable
        {...{
          visit,
          id: 'sources',
          label: 'Sources',
          title: 'Senders',
          columns: COLUMNS,
          rows: sources,
          stacked: true,
        }}
        note={`${countText(sources.total)}, most recently active first`}
        empty={
          <Nothing visit={visit} title="No message has arrived yet">
            Run a collector with a monitoring token, or send the syslog of a firewall, proxy or DNS server to this
            service.
          </Nothing>
        }
      />
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

const SENSOR_COLUMNS: readonly Column<SensorRow>[] = [
  {
    id: 'instance',
    name: 'Run of a sensor',
    cell: ({ instance }) => <span class="mono">{instance}</span>,
    csv: ({ instance }) => instance,
  },
  {
    id: 'state',
    name: 'State',
    cell: ({ state }) => <SensorTag state={state} />,
    csv: ({ state }) => state,
  },
  { ...timeColumn('heard', 'Last report', ({ heardMs }: SensorRow) => heardMs), wide: true },
  { ...countColumn('packets', 'Packets', ({ packets }: SensorRow) => packets), wide: true },
  {
    id: 'lost',
    name: 'Lost',
    cell: ({ packets, lost }) => percentText(lost === 0 ? 0 : lost / (packets + lost)),
    csv: ({ lost }) => lost,
    number: true,
    wide: true,
  },
  { ...countColumn('names', 'Names', ({ names }: SensorRow) => names), wide: true },
  countColumn('matched', 'Matches', ({ matched }) => matched),
  { id: 'registry', name: 'Registry', cell: ({ registry }) => registry, csv: ({ registry }) => registry, wide: true },
]

const ROWS_MAX = 200

function Sensors({ visit }: { readonly visit: Visit }) {
  const { rows, coverage } = sensorsView(visit)
  const days = lastDays(visit.organization.evidenceWindowDays)
  const { visible_share: share } = coverage
  if (rows.length === 0) {
    return (
      <>
        <PageHead title="Sensors" />
        <Nothing visit={visit} title="No sensor has reported yet">
          A collector reports what it saw and what it could not see. Start one with a monitoring token. Log senders do
          not appear here.
        </Nothing>
      </>
    )
  }
  return (
    <>
      <PageHead
        title="Sensors"
        about={
          share === null ? `No report in the ${days}` : `${percentText(share)} of the traffic was seen in the ${days}`
        }
      >
        <CsvLink path="/sensors" />
      </PageHead>
      <div class="card">
        <Table
          {...{ visit, id: 'sensors', label: 'Sensors', columns: SENSOR_COLUMNS }}
          rows={rows.slice(0, ROWS_MAX)}
        />
      </div>
      {coverage.sensors > 0 && <HiddenTraffic coverage={coverage} />}
    </>
  )
}

/** Sources and sensors: what arrives, and from where. */
export const SOURCES_ROUTES: readonly Route[] = [
  page('/sources', 'source.read', (visit) => visit.page('Sources', '/sources', Sources({ visit }))),
  csvFile('/sources', 'source.read', COLUMNS, allSources),
  page('/sensors', 'source.read', (visit) => visit.page('Sensors', '/sensors', Sensors({ visit }))),
  csvFile('/sensors', 'source.read', SENSOR_COLUMNS, (visit) => sensorsView(visit).rows),
]
