import { z } from 'zod'
import { nextScanMs } from '../../engine/scan/periods.ts'
import { SCAN_FREQUENCIES, type ScanFrequency } from '../../engine/store/organizations.ts'
import type { Scan } from '../../engine/store/scans.ts'
import { ActionButton, FieldError } from '../design/form.tsx'
import { CSV_ROWS_MAX, CsvLink } from '../design/list.tsx'
import { Card, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, countColumn, csvOnly, Table, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const ABOUT: Readonly<Record<ScanFrequency, readonly [name: string, about: string]>> = {
  hourly: ['Hourly', 'New platforms appear within an hour.'],
  daily: ['Daily', 'The default.'],
  weekly: ['Weekly', 'For a quiet network.'],
}

function ScanFrequencyPage({ visit, form }: { readonly visit: Visit; readonly form: FormState }) {
  const { organization, site, nowMs } = visit
  const scans = site.store.scans.newest(organization.id, SCANS_SHOWN)
  const maySet = visit.may('organization.set')
  return (
    <>
      <PageHead
        title="Scan Frequency"
        about={
          <>
            Next scan <Time ms={nextScanMs(organization, nowMs)} nowMs={nowMs} />, earlier once 5,000 events wait
          </>
        }
      >
        {scans.length > 0 && <CsvLink path={PATH} />}
        {visit.may('scan.request') && <ActionButton action="/scan">Scan now</ActionButton>}
      </PageHead>
      <Card title="How often findings are updated">
        <form class="stack" method="post" action={PATH}>
          <FieldError id="frequency-error" error={form.errors['frequency']} />
          <fieldset disabled={!maySet}>
            <legend class="visually-hidden">Scan frequency</legend>
            {SCAN_FREQUENCIES.map((each) => (
              <label class="check" key={each}>
                <input type="radio" name="frequency" value={each} checked={each === organization.scanFrequency} />
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
          <Table visit={visit} id="scans" label="Last scans" columns={COLUMNS} rows={scans} />
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

/** A figure of a completed scan. */
function figure(id: string, name: string, of: (summary: Scan['summary']) => number): Column<Scan> {
  const text = ({ status, summary }: Scan): string | number => (status === 'completed' ? of(summary) : '')
  return { id, name, cell: text, csv: text, number: true }
}

const COLUMNS: readonly Column<Scan>[] = [
  timeColumn('time', 'Requested', ({ requestedAtMs }) => requestedAtMs),
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
  { ...figure('platforms', 'AI platforms', (summary) => summary.platformsDiscovered), wide: true },
  csvOnly(figure('ai-capable', 'AI-capable', (summary) => summary.aiCapableCount)),
  figure('risk', 'Risk', (summary) => summary.overallRiskScore),
]

const PATH = '/scan-frequency'
const SCANS_SHOWN = 20
const frequency = z
  .object({ frequency: z.enum(SCAN_FREQUENCIES, `Scan frequency: expected ${SCAN_FREQUENCIES.join(', ')}`) })
  .transform(({ frequency: scanFrequency }) => ({ scanFrequency }))

export const SCAN_FREQUENCY_ROUTES: readonly Route[] = [
  page(PATH, 'organization.read', (visit) => scanFrequencyPage(visit, EMPTY_FORM)),
  csvFile(PATH, 'organization.read', COLUMNS, ({ site, organization }) =>
    site.store.scans.newest(organization.id, CSV_ROWS_MAX + 1),
  ),
  changeForm(PATH, 'organization.set', (_, visit) => visit.read(frequency), `${PATH}?done=set`, {
    again: scanFrequencyPage,
  }),
]

function scanFrequencyPage(visit: Visit, form: FormState): Answer {
  const name = ABOUT[visit.organization.scanFrequency][0].toLowerCase()
  return visit.page('Scan Frequency', PATH, ScanFrequencyPage({ visit, form }), {
    form,
    done: { set: `Scans run ${name} from now on` },
  })
}
