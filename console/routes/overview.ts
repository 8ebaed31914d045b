import { DAY_COLUMNS } from '../design/chart.tsx'
import { redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import { Overview } from '../pages/overview.tsx'
import { dailyUse } from '../views/daily-use.ts'
import { undoOf } from '../views/decisions.ts'
import { overviewView } from '../views/overview.ts'
import { csvFile } from './csv.ts'

export const OVERVIEW_ROUTES: readonly Route[] = [
  page('/overview', 'discovery.read', (visit) => {
    const content = Overview({
      view: overviewView(visit),
      nowMs: visit.nowMs,
      mayDecide: visit.may('approval.add'),
      mayReadClients: visit.may('client.read'),
      mayScan: visit.may('scan.request'),
      mayReadTokens: visit.may('token.read'),
      undo: undoOf(visit),
      done: visit.request.query.get('done') ?? '',
    })
    return visit.page('Overview', '/overview', content)
  }),
  csvFile({
    path: '/overview/days',
    access: 'discovery.read',
    columns: () => DAY_COLUMNS,
    rows: dailyUse,
  }),
  form('/scan', 'scan.request', async (visit) => {
    await visit.change('scan.request', {})
    return redirect('/overview?done=scan')
  }),
]
