import { Fault } from '../../engine/process/error-codes.ts'
import { nextScanMs } from '../../engine/scan/period.ts'
import { SCAN_FREQUENCIES } from '../../engine/store/organizations.ts'
import { CSV_ROWS_MAX } from '../design/csv-link.tsx'
import { redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import { ScanFrequencyPage, scanColumns } from '../pages/scan-frequency.tsx'
import { csvFile } from './csv.ts'

const PATH = '/scan-frequency'
const SCANS_SHOWN = 20

export const SCAN_FREQUENCY_ROUTES: readonly Route[] = [
  page(PATH, 'organization.read', (visit) => {
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
    return visit.page('Scan Frequency', PATH, content)
  }),
  csvFile({
    path: PATH,
    access: 'organization.read',
    columns: ({ nowMs }) => scanColumns(nowMs),
    rows: ({ site, organization }) => site.store.scans.newest(organization.id, CSV_ROWS_MAX + 1),
  }),
  form(PATH, 'organization.set', async (visit) => {
    const named = visit.request.fields.text('frequency')
    const scanFrequency = SCAN_FREQUENCIES.find((each) => each === named)
    if (scanFrequency === undefined) {
      throw new Fault(
        'USAGE',
        `Scan frequency: expected ${SCAN_FREQUENCIES.join(', ')}, found ${JSON.stringify(named)}`,
      )
    }
    await visit.change('organization.set', { scanFrequency })
    return redirect(`${PATH}?done=set`)
  }),
]
