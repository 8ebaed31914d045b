import { percentText } from '../../engine/export/report/text.ts'
import { countColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { Empty, lastDays, PageHead } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { SensorRow, SensorsView } from '../views/sources.ts'
import { HiddenTraffic } from './coverage.tsx'
import { SensorTag } from './source-state.tsx'

export function sensorColumns(nowMs: number): readonly Column<SensorRow>[] {
  return [
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
    { ...timeColumn('heard', 'Last report', nowMs, ({ heardMs }: SensorRow) => heardMs), wide: true },
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
}

const ROWS_MAX = 200

export interface SensorsProps {
  readonly view: SensorsView
  readonly nowMs: number
  readonly mayReadTokens: boolean
}

export function Sensors({ view, nowMs, mayReadTokens }: SensorsProps) {
  const { rows, coverage, windowDays } = view
  if (rows.length === 0) {
    return (
      <>
        <PageHead title="Sensors" />
        <Empty title="No sensor has reported yet">
          <p class="muted">
            A collector reports what it saw and what it could not see. Start one with a monitoring token. Log senders do
            not appear here.
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
  const { visible_share: share } = coverage
  return (
    <>
      <PageHead
        title="Sensors"
        about={
          share === null
            ? `No report in the ${lastDays(windowDays)}`
            : `${percentText(share)} of the traffic was seen in the ${lastDays(windowDays)}`
        }
      >
        <CsvLink path="/sensors" />
      </PageHead>
      <div class="card">
        <Table id="sensors" label="Sensors" columns={sensorColumns(nowMs)} rows={rows.slice(0, ROWS_MAX)} />
      </div>
      {coverage.sensors > 0 && <HiddenTraffic coverage={coverage} />}
    </>
  )
}
