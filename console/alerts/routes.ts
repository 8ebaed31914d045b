import { ruleRows } from '../../engine/admin/alert-rows.ts'
import { checkedChannel, type GivenChannel, targetFault } from '../../engine/admin/alert-settings.ts'
import { sealedChannel } from '../../engine/admin/alerts.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import { ALERTS_MAX } from '../../engine/limits.ts'
import { groupNamesOf } from '../../engine/scan/group-use.ts'
import { ALERT_CHANNEL_KINDS, type AlertChannelKind } from '../../engine/store/alert-channels.ts'
import { ALERT_RULES, ALERT_SEVERITIES, type AlertRule } from '../../engine/store/alerts.ts'
import { isConfirmed } from '../confirmation.ts'
import { paged } from '../design/list.tsx'
import { EMPTY_FORM, FormFields, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  ALERTS_PATH,
  Alerts,
  alertColumns,
  alertsView,
  allAlertRows,
  CHANNELS_PATH,
  DEAD_LETTERS_PATH,
  RULES_PATH,
} from './alerts.tsx'
import { AlertChannels, type AlertChannelsProps, channelColumns, channelRows, deadLetterRows } from './channels.tsx'
import { DeadLetters, deadLetterColumns } from './dead-letters.tsx'
import { NewAlertChannel } from './new-channel.tsx'
import { AlertRules, RULE_COLUMNS } from './rules.tsx'

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

/** No page repeats their values. */
const SECRET_FIELDS = ['url', 'password']

export const ALERT_CHANNEL_ROUTES: readonly Route[] = [
  page(CHANNELS_PATH, 'alert.read', (visit) => channelsPage(visit, visit.shownOnce<Shown>() ?? {})),
  csvFile({
    path: CHANNELS_PATH,
    access: 'alert.read',
    columns: ({ nowMs }) => channelColumns(nowMs),
    rows: channelRows,
  }),
  page(`${CHANNELS_PATH}/new`, 'alert-channel.add', (visit) =>
    newPage(visit, kindOf(visit.request.query.get('kind') ?? ''), EMPTY_FORM, 200),
  ),
  // Asks for the confirmation first, because a secret would have to be typed again.
  form(
    `${CHANNELS_PATH}/open`,
    'alert-channel.add',
    ({ request }) => redirect(`${CHANNELS_PATH}/new?kind=${kindOf(request.fields.text('kind'))}`),
    { confirmed: true },
  ),
  form(`${CHANNELS_PATH}/new`, 'alert-channel.add', add, { confirmed: true, secretFields: SECRET_FIELDS }),
  form(`${CHANNELS_PATH}/:id/test`, 'alert-channel.test', test),
  form(
    `${CHANNELS_PATH}/:id/remove`,
    'alert-channel.remove',
    async (visit, { id }) => {
      try {
        await visit.change('alert-channel.remove', { id })
      } catch (error) {
        if (!isFault(error, 'CONFLICT')) throw error
        return channelsPage(visit, { result: { tone: 'bad', title: 'The channel stays', about: error.message } }, 409)
      }
      return redirect(`${CHANNELS_PATH}?done=removed`)
    },
    { confirmed: true },
  ),
]

function kindOf(text: string): AlertChannelKind {
  return ALERT_CHANNEL_KINDS.find((each) => each === text) ?? 'webhook'
}

/** The fields of the kind that have a value; the receivers of mail as a list. */
function givenChannel(kind: AlertChannelKind, fields: FormFields): GivenChannel {
  const { to = '', ...texts } = fields.toObject() as Record<string, string>
  const receivers = to.split(/[\s,]+/).filter((each) => each !== '')
  const given = Object.entries(texts).filter(([, text]) => text !== '')
  return { ...Object.fromEntries(given), ...(receivers.length > 0 ? { to: receivers } : {}), kind }
}

async function add(visit: Visit): Promise<Answer> {
  const { site, organization, request } = visit
  const { fields } = request
  const kind = kindOf(fields.text('kind'))
  const shown = new FormFields(fields.without(...SECRET_FIELDS))
  const again = (errors: FormState['errors'], status: number): Answer =>
    newPage(visit, kind, { values: shown, errors }, status)
  const severityMin = ALERT_SEVERITIES.find((each) => each === fields.text('severityMin'))
  const checked = checkedChannel(givenChannel(kind, fields))
  const errors: Record<string, string> = severityMin === undefined ? { severityMin: 'Choose a severity' } : {}
  if (checked.kind === 'invalid') for (const { name, message } of checked.faults) errors[name] ??= message
  if (checked.kind === 'invalid' || severityMin === undefined) return again(errors, 400)
  const { settings } = checked
  const refused = targetFault(settings, site.channelTests.allowed)
  if (refused !== undefined) return again({ [refused.name]: refused.message }, 400)
  const name = fields.text('name').trim()
  if (name === '') return again({ name: 'Enter a name' }, 400)
  const rules = ALERT_RULES.filter((rule) => fields.all('rules').includes(rule))
  const groups = fields.all('groups')
  const filter = { ...(rules.length > 0 && { rules }), ...(groups.length > 0 && { groups }) }
  const channel = { name, severityMin, ...filter, settings }
  try {
    await visit.change('alert-channel.add', sealedChannel(site.secrets, organization, channel))
  } catch (error) {
    if (isFault(error, 'SECRETS_KEY')) return again({ '': error.message }, 503)
    const { state, status } = refusedForm(error, shown)
    return newPage(visit, kind, state, status)
  }
  if (settings.kind !== 'webhook') return redirect(`${CHANNELS_PATH}?done=added`)
  return visit.redirectToShow(CHANNELS_PATH, { created: { name, secret: settings.secret } } satisfies Shown)
}

async function test(visit: Visit, { id }: { readonly id: string }): Promise<Answer> {
  const { site, organization } = visit
  // Counted before the change, so that what is refused is not in the audit log.
  const outcome = await site.channelTests.run(organization, () => visit.change('alert-channel.test', { id }))
  const { channel, sent } = outcome
  const result =
    sent.kind === 'delivered'
      ? {
          tone: 'good' as const,
          title: `Test message delivered to ${channel}`,
          about: `Answer: ${sent.answer || 'none'}`,
        }
      : { tone: 'bad' as const, title: `${channel} did not get the test message`, about: sent.why }
  return visit.redirectToShow(CHANNELS_PATH, { result } satisfies Shown)
}

type Shown = Partial<Pick<AlertChannelsProps, 'created' | 'result'>>

function channelsPage(visit: Visit, shown: Shown, status = 200): Answer {
  const { site, nowMs, request } = visit
  const content = AlertChannels({
    rows: site.store.environment.read(() => channelRows(visit)),
    nowMs,
    mayAdd: visit.may('alert-channel.add'),
    mayRemove: visit.may('alert-channel.remove'),
    mayTest: visit.may('alert-channel.test'),
    mayRetry: visit.may('alert.retry'),
    created: shown.created,
    result: shown.result,
    done: request.query.get('done') ?? '',
  })
  return visit.page('Alert channels', ALERTS_PATH, content, { status, showsSecret: shown.created !== undefined })
}

function newPage(visit: Visit, kind: AlertChannelKind, state: FormState, status: number): Answer {
  const { store } = visit.site
  const groups = store.environment.read(() => groupNamesOf(store, visit.organization))
  const content = NewAlertChannel({ kind, form: state, isOpen: isConfirmed(visit), groups })
  return visit.page('Add channel', ALERTS_PATH, content, { status })
}
