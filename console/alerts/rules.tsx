import { type RuleRow, ruleRows } from '../../engine/admin/alert-rows.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { ALERT_RULES, type AlertRule } from '../../engine/store/alerts.ts'
import { ActionButton, FormError } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { countText, PageHead, Tag } from '../design/parts.tsx'
import { type Column, csvOnly, Table, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ALERTS_PATH, AlertTabs, RULES_PATH, SeverityTag } from './alerts.tsx'

const DONE: Readonly<Record<string, string>> = {
  set: 'The threshold is saved. The next evaluation uses it',
  muted: 'The rule is muted. What happens from now on is never reported',
  unmuted: 'The rule is active again',
}

/** What raises alerts. `typed` is the rule whose threshold was typed. */
function AlertRules({
  visit,
  form,
  typed,
}: {
  readonly visit: Visit
  readonly form: FormState
  readonly typed: string
}) {
  const { site, organization } = visit
  const rows = ruleRows(site.store, organization.id)
  const threshold: Column<RuleRow> = {
    id: 'set-threshold',
    name: 'Threshold',
    cell: (row) =>
      visit.may('alert-rule.set') ? (
        <ThresholdForm row={row} typed={row.rule === typed ? form : undefined} />
      ) : (
        thresholdText(row)
      ),
  }
  return (
    <>
      <PageHead title="Alert rules" about="What raises alerts of this organization">
        <CsvLink path={RULES_PATH} />
      </PageHead>
      <AlertTabs here={RULES_PATH} />
      <FormError form={form} />
      <div class="card">
        <Table visit={visit} id="rules" label="Alert rules" columns={[...COLUMNS, threshold, MUTE]} rows={rows} />
      </div>
      <p class="small muted">
        An empty threshold restores the default. A muted rule writes no <a href={ALERTS_PATH}>alerts</a>.
      </p>
    </>
  )
}

const stateOf = ({ isMuted }: RuleRow): string => (isMuted ? 'muted' : 'active')

const COLUMNS: readonly Column<RuleRow>[] = [
  {
    ...textColumn('rule', 'Rule', ({ rule }: RuleRow) => rule),
    cell: ({ rule, about }) => (
      <>
        <strong class="mono break">{rule}</strong>
        <p class="small muted">{about}</p>
      </>
    ),
  },
  { id: 'about', name: 'Raises an alert if', csv: ({ about }) => about },
  { ...textColumn('severity', 'Severity', ({ severity }: RuleRow) => severity), cell: SeverityTag, wide: true },
  {
    ...textColumn('state', 'State', stateOf),
    cell: (row) => <Tag tone={row.isMuted ? 'warn' : 'good'}>{stateOf(row)}</Tag>,
    // The button says the same.
    wide: true,
  },
  csvOnly(textColumn('threshold', 'Threshold', ({ thresholdInForce }) => String(thresholdInForce ?? ''))),
  csvOnly(textColumn('unit', 'Unit', ({ threshold }) => threshold?.unit ?? '')),
]

function thresholdText({ threshold, thresholdInForce = 0 }: RuleRow): string {
  return threshold === undefined ? '' : `${countText(thresholdInForce)} ${threshold.unit}`.trim()
}

function ThresholdForm({ row, typed }: { readonly row: RuleRow; readonly typed: FormState | undefined }) {
  const { rule, threshold, thresholdInForce, isDefault } = row
  if (threshold === undefined) return null
  const { about, min, max, unit, byDefault } = threshold
  const note = `${unit}${isDefault ? '' : ` (default ${countText(byDefault)})`}`.trim()
  return (
    <form class="inline threshold" method="post" action={`${RULES_PATH}/${rule}`}>
      <input
        name="threshold"
        type="number"
        min={min}
        max={max}
        value={typed?.values.text('threshold') ?? String(thresholdInForce)}
        placeholder={String(byDefault)}
        aria-label={`${about}: threshold of ${rule}${unit === '' ? '' : ` in ${unit}`}`}
        aria-invalid={typed === undefined ? undefined : 'true'}
      />
      {note !== '' && <span class="small muted">{note}</span>}
      <button type="submit" aria-label={`Save the threshold of ${rule}`}>
        Save
      </button>
    </form>
  )
}

const MUTE: Column<RuleRow> = {
  id: 'mute',
  name: 'Mute',
  action: 'alert-rule.mute',
  quiet: true,
  cell: ({ rule, isMuted }) => {
    const verb = isMuted ? 'Unmute' : 'Mute'
    return (
      <ActionButton action={`${RULES_PATH}/${rule}/${verb.toLowerCase()}`} look="quiet" label={`${verb} ${rule}`}>
        {verb}
      </ActionButton>
    )
  },
}

export const RULE_ROUTES: readonly Route[] = [
  page(RULES_PATH, 'alert.read', (visit) => rulesPage(visit, EMPTY_FORM, '')),
  csvFile(RULES_PATH, 'alert.read', COLUMNS, ({ site, organization }) => ruleRows(site.store, organization.id)),
  changeForm(
    `${RULES_PATH}/:rule`,
    'alert-rule.set',
    ({ rule }, visit) => ({ rule: ruleOf(rule), threshold: thresholdOf(visit, rule) }),
    `${RULES_PATH}?done=set`,
    { again: (visit, form, { rule }) => rulesPage(visit, form, rule) },
  ),
  changeForm(
    `${RULES_PATH}/:rule/mute`,
    'alert-rule.mute',
    ({ rule }) => ({ rule: ruleOf(rule) }),
    `${RULES_PATH}?done=muted`,
  ),
  changeForm(
    `${RULES_PATH}/:rule/unmute`,
    'alert-rule.unmute',
    ({ rule }) => ({ rule: ruleOf(rule) }),
    `${RULES_PATH}?done=unmuted`,
  ),
]

/** @throws Fault NOT_FOUND. */
function ruleOf(name: string): AlertRule {
  const rule = ALERT_RULES.find((each) => each === name)
  if (rule === undefined) throw new Fault('NOT_FOUND', `No alert rule ${JSON.stringify(name)}`)
  return rule
}

/** undefined: the default. @throws Fault USAGE. */
function thresholdOf({ request }: Visit, rule: string): number | undefined {
  const text = request.fields.text('threshold').trim()
  if (!/^\d{0,15}$/.test(text)) throw new Fault('USAGE', `threshold of ${rule}: expected a whole number`)
  return text === '' ? undefined : Number(text)
}

function rulesPage(visit: Visit, form: FormState, typed: string): Answer {
  return visit.page('Alert rules', ALERTS_PATH, AlertRules({ visit, form, typed }), { form, done: DONE })
}
