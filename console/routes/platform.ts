import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { DAY_COLUMNS } from '../design/chart.tsx'
import type { Column } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { NAME_COLUMNS, Platform, RISK_COLUMNS, riskTerms } from '../pages/platform.tsx'
import { DecisionsByName, undoOf } from '../views/decisions.ts'
import { type PlatformFinding, type PlatformView, platformView } from '../views/platform.ts'
import { csvTable } from './csv.ts'
import { DECISION_ACTIONS, DECISION_WORDS, type DecisionWord, DONE, readTerms } from './decision-form.ts'
import { refusedForm } from './refused-form.ts'

export const PLATFORM_ROUTES: readonly Route[] = [
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
