import { candidatesOf, type ShownCandidate } from '../../engine/admin/candidates.ts'
import { paged } from '../design/paged.ts'
import { redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { CandidatesPage, candidateColumns } from '../pages/candidates.tsx'
import { csvFile } from './csv.ts'

const PATH = '/candidates'

export const CANDIDATE_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => {
    const { query } = visit.request
    const doneName = query.get('name') ?? ''
    const { candidates, environment } = visit.site.store
    const done = environment.read(() => candidates.get(visit.organization.id, doneName))
    const content = CandidatesPage({
      candidates: paged(
        environment.read(() => candidatesView(visit)),
        query,
      ),
      query,
      nowMs: visit.nowMs,
      isDismissed: isDismissedList(query),
      mayAdd: visit.may('registry.add'),
      mayMark: visit.may('candidate.dismiss'),
      done: query.get('done') ?? '',
      doneName: (done?.dismissedAtMs ?? 0) > 0 ? doneName : '',
    })
    return visit.page('Candidates', PATH, content)
  }),
  csvFile({
    path: PATH,
    access: 'discovery.read',
    columns: ({ nowMs }) => candidateColumns(nowMs),
    rows: candidatesView,
  }),
  form(`${PATH}/:name/dismiss`, 'candidate.dismiss', async (visit, { name }) => {
    await visit.change('candidate.dismiss', { name })
    return redirect(`${PATH}?${new URLSearchParams({ done: 'dismissed', name })}`)
  }),
  form(`${PATH}/:name/restore`, 'candidate.restore', async (visit, { name }) => {
    await visit.change('candidate.restore', { name })
    return redirect(`${PATH}?show=dismissed&done=restored`)
  }),
]

/** The candidates of the organization, or those that were dismissed. */
function candidatesView({ site, organization, request }: Visit): readonly ShownCandidate[] {
  return candidatesOf(site.store, site.registry, organization.id, isDismissedList(request.query))
}

function isDismissedList(query: URLSearchParams): boolean {
  return query.get('show') === 'dismissed'
}
