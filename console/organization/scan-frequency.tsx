import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { nextScanMs } from '../../engine/scan/periods.ts'
import { SCAN_FREQUENCIES, type ScanFrequency } from '../../engine/store/organizations.ts'
import type { Scan } from '../../engine/store/scans.ts'
import { CSV_ROWS_MAX, CsvLink } from '../design/list.tsx'
import { Card, countText, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn, timeColumn } from '../design/table.tsx'
import { redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'

interface ScanFrequencyProps {
  readonly frequency: ScanFrequency
  readonly nextScanMs: number
  /** Newest first. */
  readonly scans: readonly Scan[]
  readonly nowMs: number
  readonly maySet: boolean
  readonly mayScan: boolean
  readonly done: string
}

const ABOUT: Readonly<Record<ScanFrequency, readonly [name: string, about: string]>> = {
  hourly: ['Hourly', 'New platforms appear within an hour.'],
  daily: ['Daily', 'The default.'],
  weekly: ['Weekly', 'For a quiet network.'],
}

function ScanFrequencyPage(props: ScanFrequencyProps) {
  const { frequency, nextScanMs, scans, nowMs, maySet, mayScan, done } = props
  return (
    <>
      <PageHead
        title="Scan Frequency"
        about={
          <>
            Next scan <Time ms={nextScanMs} nowMs={nowMs} />, earlier once 5,000 events wait
          </>
        }
      >
        {scans.length > 0 && <CsvLink path="/scan-frequency" />}
        {mayScan && (
          <form method="post" action="/scan">
            <button type="submit">Scan now</button>
          </form>
        )}
      </PageHead>
      {done === 'set' && <Notice title={`Scans run ${ABOUT[frequency][0].toLowerCase()} from now on`} />}
      <Card title="How often findings are updated">
        <form class="stack" method="post" action="/scan-frequency">
          <fieldset disabled={!maySet}>
            <legend class="visually-hidden">Scan frequency</legend>
            {SCAN_FREQUENCIES.map((each) => (
              <label class="check" key={each}>
                <input type="radio" name="frequency" value={each} checked={each === frequency} />
                <span>
                  {ABOUT[each][0]} <span class="muted">{ABOUT[each][1]}</span>
                </span>
              </label>
            ))}
          </fieldset>
          {maySet ? (
            <div>
              <button class="first" type="submit">
                Save
              </button>
            </div>
          ) : (
            <p class="small muted">An admin of the organization can change it.</p>
          )}
        </form>
      </Card>
      <Card
        title="Last scans"
        note={scans.length === 0 ? undefined : `the last ${scans.length}`}
        bare={scans.length > 0}
      >
        {scans.length === 0 ? (
          <p class="muted">No scan has run yet. The first one follows the first events.</p>
        ) : (
          <Table id="scans" label="Last scans" columns={scanColumns(nowMs)} rows={scans} />
        )}
      </Card>
    </>
  )
}

const TRIGGERS: Readonly<Record<Scan['trigger'], string>> = {
  schedule: 'schedule',
  first: 'first events',
  buffer: 'many events',
  expiry: 'an expired decision',
  administrator: 'an admin',
}

function scanColumns(nowMs: number): readonly Column<Scan>[] {
  return [
    timeColumn('time', 'Requested', nowMs, ({ requestedAtMs }) => requestedAtMs),
    {
      id: 'status',
      name: 'Status',
      cell: ({ status, failure }) => (
        <>
          <Tag tone={status === 'completed' ? 'good' : status === 'failed' ? 'bad' : 'plain'}>{status}</Tag>
          {failure !== '' && <p class="small muted">{failure}</p>}
        </>
      ),
      csv: ({ status }) => status,
    },
    { id: 'failure', name: 'Failure', csv: ({ failure }) => failure },
    { ...textColumn('trigger', 'Started by', ({ trigger }: Scan) => TRIGGERS[trigger]), wide: true },
    { ...countColumn('events', 'Events', ({ eventsAdded }: Scan) => eventsAdded), wide: true },
    {
      id: 'platforms',
      name: 'AI platforms',
      cell: ({ status, summary }) => (status === 'completed' ? countText(summary.platformsDiscovered) : ''),
      csv: ({ status, summary }) => (status === 'completed' ? summary.platformsDiscovered : ''),
      number: true,
      wide: true,
    },
    {
      id: 'ai-capable',
      name: 'AI-capable',
      csv: ({ status, summary }) => (status === 'completed' ? summary.aiCapableCount : ''),
    },
    {
      id: 'risk',
      name: 'Risk',
      cell: ({ status, summary }) => (status === 'completed' ? summary.overallRiskScore : ''),
      csv: ({ status, summary }) => (status === 'completed' ? summary.overallRiskScore : ''),
      number: true,
    },
  ]
}

const SCAN_FREQUENCY_PATH = '/scan-frequency'
const SCANS_SHOWN = 20

export const SCAN_FREQUENCY_ROUTES: readonly Route[] = [
  page(SCAN_FREQUENCY_PATH, 'organization.read', (visit) => {
    const { site, organization, nowMs, request } = visit
    const content = ScanFrequencyPage({
      frequency: organization.scanFrequency,
      nextScanMs: nextScanMs(organization, nowMs),
      scans: site.store.scans.newest(organization.id, SCANS_SHOWN),
      nowMs,
      maySet: visit.may('organization.set'),
      mayScan: visit.may('scan.request'),
      done: request.query.get('done') ?? '',
    })
    return visit.page('Scan Frequency', SCAN_FREQUENCY_PATH, content)
  }),
  csvFile({
    path: SCAN_FREQUENCY_PATH,
    access: 'organization.read',
    columns: ({ nowMs }) => scanColumns(nowMs),
    rows: ({ site, organization }) => site.store.scans.newest(organization.id, CSV_ROWS_MAX + 1),
  }),
  form(SCAN_FREQUENCY_PATH, 'organization.set', async (visit) => {
    const named = visit.request.fields.text('frequency')
    const scanFrequency = SCAN_FREQUENCIES.find((each) => each === named)
    if (scanFrequency === undefined) {
      throw new Fault(
        'USAGE',
        `Scan frequency: expected ${SCAN_FREQUENCIES.join(', ')}, found ${JSON.stringify(named)}`,
      )
    }
    await visit.change('organization.set', { scanFrequency })
    return redirect(`${SCAN_FREQUENCY_PATH}?done=set`)
  }),
]
