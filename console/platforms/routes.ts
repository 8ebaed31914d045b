import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { DECIDED_PLATFORMS_MAX } from '../../engine/limits.ts'
import { DAY_COLUMNS } from '../design/chart.tsx'
import { type Column, sorted, sortingOf } from '../design/table.tsx'
import { EMPTY_FORM, FORM_FIELDS_MAX, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile, csvTable } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ConfirmDecision, DECISION_ACTIONS, DECISION_WORDS, type DecisionWord, DONE, readTerms } from './decision.tsx'
import { DecisionsByName, termsByName, undoOf } from './decisions.ts'
import { PLATFORMS_SORTING, Platforms, platformColumns, platformsView } from './list.tsx'
import { MANAGER_ROUTES } from './managers.tsx'
import { NAME_COLUMNS, Platform, RISK_COLUMNS, riskTerms } from './platform.tsx'
import { type PlatformFinding, type PlatformView, platformView } from './read-platform.ts'

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

export const PLATFORM_ROUTES: readonly Route[] = [
  ...MANAGER_ROUTES,
  page('/platforms/:name', 'discovery.read', (visit, { name }) => platformPage(visit, name, EMPTY_FORM, 200)),
  file('risk', RISK_COLUMNS, riskTerms),
  file('names', NAME_COLUMNS, (_, { names }) => names),
  file('days', DAY_COLUMNS, (_, { timeline }) => timeline),
  ...DECISION_WORDS.map((word) =>
    form(`/platforms/:name/${word}`, DECISION_ACTIONS[word], (visit, { name }) => decide(visit, name, word)),
  ),
]

/** A table of the page as a CSV file, empty if the last scan did not find the platform. */
function file<Row>(
  table: string,
  columns: readonly Column<Row>[],
  rowsOf: (view: PlatformView, finding: PlatformFinding) => readonly Row[],
): Route {
  return page(`/platforms/:name/${table}.csv`, 'discovery.read', (visit, { name }) => {
    const view = viewOf(visit, name)
    const rows = view.finding === undefined ? [] : rowsOf(view, view.finding)
    return csvTable(`platform-${table}`, columns, rows)
  })
}

/** @throws Fault NOT_FOUND. */
function viewOf(visit: Visit, name: string): PlatformView {
  const view = visit.site.store.environment.read(() => platformView(visit, name))
  if (view !== undefined) return view
  throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the last scan or in the registry`)
}

async function decide(visit: Visit, name: string, word: DecisionWord): Promise<Answer> {
  const platform = visit.site.store.environment.read(() => new DecisionsByName(visit).get(name))
  if (platform === undefined) throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the registry`)
  const platforms = [platform.id]
  if (word === 'withdraw') await visit.change('approval.remove', { platforms })
  else {
    const { fields } = visit.request
    const read = readTerms(fields, visit.nowMs)
    if ('state' in read) return platformPage(visit, name, read.state, 400)
    try {
      await visit.change(DECISION_ACTIONS[word], { platforms, ...read.terms })
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return platformPage(visit, name, state, status)
    }
  }
  return redirect(`/platforms/${encodeURIComponent(name)}?done=${DONE[word]}`)
}

function platformPage(visit: Visit, name: string, state: FormState, status: number): Answer {
  const view = viewOf(visit, name)
  const content = Platform({
    view,
    form: state,
    nowMs: visit.nowMs,
    mayDecide: visit.may('approval.add'),
    mayWithdraw: visit.may('approval.remove'),
    mayReadClients: visit.may('client.read'),
    undo: visit.site.store.environment.read(() => undoOf(visit)),
    done: visit.request.query.get('done') ?? '',
  })
  return visit.page(name, '/platforms', content, { status })
}
