import { DECIDED_PLATFORMS_MAX } from '../../engine/limits.ts'
import { sorted, sortingOf } from '../design/table.tsx'
import { EMPTY_FORM, FORM_FIELDS_MAX, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ConfirmDecision } from '../pages/confirm-decision.tsx'
import { PLATFORMS_SORTING, Platforms, platformColumns } from '../pages/platforms.tsx'
import { DecisionsByName, termsByName, undoOf } from '../views/decisions.ts'
import { platformsView } from '../views/platforms.ts'
import { csvFile } from './csv.ts'
import { DECISION_ACTIONS, DECISION_WORDS, type DecisionWord, DONE, readTerms } from './decision-form.ts'
import { refusedForm } from './refused-form.ts'

const VERBS: Readonly<Record<DecisionWord, string>> = {
  approve: 'Approve',
  reject: 'Reject',
  withdraw: 'Withdraw the decisions about',
}

/** A decision about more platforms than this is confirmed. */
const UNCONFIRMED_MAX = 20
/** A form with as many platforms as can have a decision. */
const SELECTION_FORM = { bodyBytesMax: 256 * 1024, fieldsMax: FORM_FIELDS_MAX + DECIDED_PLATFORMS_MAX }

export const DISCOVERY_ROUTES: readonly Route[] = [
  page('/platforms', 'discovery.read', (visit) => platformsPage(visit, EMPTY_FORM, 200)),
  csvFile({
    path: '/platforms',
    access: 'discovery.read',
    columns: (visit) => platformColumns(visit.nowMs, termsByName(visit)),
    rows: (visit) => {
      const columns = platformColumns(visit.nowMs)
      return sorted(platformsView(visit).rows, columns, sortingOf(columns, visit.request.query, PLATFORMS_SORTING))
    },
  }),
  form('/decisions/undo', 'approval.undo', undo),
  ...DECISION_WORDS.map((word) =>
    form(`/decisions/${word}`, DECISION_ACTIONS[word], (visit) => decideAll(visit, word), SELECTION_FORM),
  ),
]

/** Undoes the last decisions of the member, and returns to the page of the form. */
async function undo(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  await visit.change('approval.undo', { decidedAtMs: Number(fields.text('at')) })
  const from = fields.text('from')
  const to = from === 'overview' ? '/overview' : from === '' ? '/platforms' : `/platforms/${encodeURIComponent(from)}`
  return redirect(`${to}?done=undone`)
}

/** Decides about the selected platforms. The query has the filters of the page. */
async function decideAll(visit: Visit, word: DecisionWord): Promise<Answer> {
  const { fields, query } = visit.request
  const refused = (message: string): Answer => platformsPage(visit, { values: fields, errors: { '': message } }, 400)
  const selected = selectedIds(visit)
  if (selected === undefined) return refused('A selected platform is no longer in the registry. Select again')
  if (selected.all.length === 0) return refused('Select at least one platform')
  const platforms = word === 'withdraw' ? selected.decided : selected.all
  if (platforms.length === 0) return refused('There is no decision about the selected platforms')
  if (platforms.length > UNCONFIRMED_MAX && fields.text('confirmed') === '') {
    const filters = filtersOf(query)
    const kept = fields.without()
    const action = `/decisions/${word}?${filters}`
    const what = `${VERBS[word]} ${platforms.length} platforms`
    const content = ConfirmDecision({ action, what, kept, back: `/platforms?${filters}` })
    return visit.page('Platforms', '/platforms', content)
  }
  try {
    if (word === 'withdraw') await visit.change('approval.remove', { platforms })
    else {
      const read = readTerms(fields, visit.nowMs)
      if ('state' in read) return platformsPage(visit, read.state, 400)
      await visit.change(DECISION_ACTIONS[word], { platforms, ...read.terms })
    }
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return platformsPage(visit, state, status)
  }
  if (query.get('from') === 'overview') return redirect(`/overview?done=${DONE[word]}`)
  const to = filtersOf(query)
  to.set('done', DONE[word])
  to.set('count', String(platforms.length))
  return redirect(`/platforms?${to}`)
}

/** The ids of the selected platforms, and those with a decision. undefined if one is unknown. */
function selectedIds(visit: Visit): { readonly all: string[]; readonly decided: string[] } | undefined {
  const decisions = visit.site.store.environment.read(() => new DecisionsByName(visit))
  const all = new Set<string>()
  const decided = new Set<string>()
  for (const name of visit.request.fields.all('platform')) {
    const platform = decisions.get(name)
    if (platform === undefined) return undefined
    all.add(platform.id)
    if (platform.state !== 'waiting') decided.add(platform.id)
  }
  return { all: [...all], decided: [...decided] }
}

function platformsPage(visit: Visit, state: FormState, status: number): Answer {
  const { nowMs, request, site } = visit
  const sorting = sortingOf(platformColumns(nowMs), request.query, PLATFORMS_SORTING)
  const content = Platforms({
    view: site.store.environment.read(() => platformsView(visit)),
    sorting,
    query: filtersOf(request.query),
    nowMs,
    form: state,
    mayDecide: visit.may('approval.add'),
    undo: site.store.environment.read(() => undoOf(visit)),
    done: request.query.get('done') ?? '',
    doneCount: Math.max(0, Math.trunc(Number(request.query.get('count'))) || 0),
  })
  return visit.page('Platforms', '/platforms', content, { status })
}

/** The query without the result of a change, for links. */
function filtersOf(query: URLSearchParams): URLSearchParams {
  const filters = new URLSearchParams(query)
  filters.delete('done')
  filters.delete('count')
  return filters
}
