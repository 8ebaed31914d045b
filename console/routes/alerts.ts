import { ruleRows } from '../../engine/admin/alert-rows.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { ALERTS_MAX } from '../../engine/limits.ts'
import { ALERT_RULES, type AlertRule } from '../../engine/store/alerts.ts'
import { paged } from '../design/paged.ts'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { AlertRules, RULE_COLUMNS } from '../pages/alert-rules.tsx'
import { ALERTS_PATH, Alerts, alertColumns, CHANNELS_PATH, DEAD_LETTERS_PATH, RULES_PATH } from '../pages/alerts.tsx'
import { DeadLetters, deadLetterColumns } from '../pages/dead-letters.tsx'
import { deadLetterRows } from '../views/alert-channels.ts'
import { alertsView, allAlertRows } from '../views/alerts.ts'
import { csvFile } from './csv.ts'
import { refusedForm } from './refused-form.ts'

export const ALERT_ROUTES: readonly Route[] = [
  page(ALERTS_PATH, 'alert.read', (visit) => {
    const { nowMs, request } = visit
    const mayAdd = visit.may('alert-channel.add')
    return visit.page('Alerts', ALERTS_PATH, Alerts({ view: alertsView(visit), query: request.query, nowMs, mayAdd }))
  }),
  csvFile({
    path: ALERTS_PATH,
    access: 'alert.read',
    columns: ({ nowMs }) => alertColumns(nowMs),
    rows: (visit) => allAlertRows(visit, ALERTS_MAX),
  }),
  page(RULES_PATH, 'alert.read', (visit) => rulesPage(visit, EMPTY_FORM, '', 200)),
  csvFile({
    path: RULES_PATH,
    access: 'alert.read',
    columns: () => RULE_COLUMNS,
    rows: ({ site, organization }) => ruleRows(site.store, organization.id),
  }),
  form(`${RULES_PATH}/:rule`, 'alert-rule.set', (visit, { rule }) => setThreshold(visit, ruleOf(rule))),
  form(`${RULES_PATH}/:rule/mute`, 'alert-rule.mute', async (visit, { rule }) => {
    await visit.change('alert-rule.mute', { rule: ruleOf(rule) })
    return redirect(`${RULES_PATH}?done=muted`)
  }),
  form(`${RULES_PATH}/:rule/unmute`, 'alert-rule.unmute', async (visit, { rule }) => {
    await visit.change('alert-rule.unmute', { rule: ruleOf(rule) })
    return redirect(`${RULES_PATH}?done=unmuted`)
  }),
  page(DEAD_LETTERS_PATH, 'alert.read', (visit) => {
    const { nowMs, request } = visit
    const content = DeadLetters({
      rows: paged(deadLetterRows(visit), request.query),
      query: request.query,
      nowMs,
      mayRetry: visit.may('alert.retry'),
      mayDiscard: visit.may('alert.discard'),
      done: request.query.get('done') ?? '',
    })
    return visit.page('Dead letters', ALERTS_PATH, content)
  }),
  csvFile({
    path: DEAD_LETTERS_PATH,
    access: 'alert.read',
    columns: ({ nowMs }) => deadLetterColumns(nowMs),
    rows: deadLetterRows,
  }),
  form(`${CHANNELS_PATH}/:id/retry`, 'alert.retry', async (visit, { id }) => {
    await visit.change('alert.retry', { channelId: id, sequence: sequenceOf(visit) })
    return redirect(`${DEAD_LETTERS_PATH}?done=queued`)
  }),
  form(`${CHANNELS_PATH}/:id/discard`, 'alert.discard', async (visit, { id }) => {
    await visit.change('alert.discard', { channelId: id, sequence: sequenceOf(visit) })
    return redirect(`${DEAD_LETTERS_PATH}?done=deleted`)
  }),
]

/** @throws Fault NOT_FOUND. */
function ruleOf(name: string): AlertRule {
  const rule = ALERT_RULES.find((each) => each === name)
  if (rule === undefined) throw new Fault('NOT_FOUND', `No alert rule ${JSON.stringify(name)}`)
  return rule
}

/** The number of a dead letter in the form. undefined: all of the channel. @throws Fault USAGE. */
function sequenceOf({ request }: Visit): number | undefined {
  const text = request.fields.text('number')
  if (text === '') return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new Fault('USAGE', 'Expected the number of a dead letter')
}

async function setThreshold(visit: Visit, rule: AlertRule): Promise<Answer> {
  const { fields } = visit.request
  const text = fields.text('threshold').trim()
  try {
    if (!/^\d{0,15}$/.test(text)) throw new Fault('USAGE', `threshold of ${rule}: expected a whole number`)
    await visit.change('alert-rule.set', { rule, threshold: text === '' ? undefined : Number(text) })
    return redirect(`${RULES_PATH}?done=set`)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return rulesPage(visit, state, rule, status)
  }
}

function rulesPage(visit: Visit, state: FormState, typed: string, status: number): Answer {
  const { site, organization, request } = visit
  const content = AlertRules({
    rows: site.store.environment.read(() => ruleRows(site.store, organization.id)),
    form: state,
    typed,
    maySet: visit.may('alert-rule.set'),
    mayMute: visit.may('alert-rule.mute'),
    done: request.query.get('done') ?? '',
  })
  return visit.page('Alert rules', ALERTS_PATH, content, { status })
}
