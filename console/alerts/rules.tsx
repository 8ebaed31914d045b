import type { RuleRow } from '../../engine/admin/alert-rows.ts'
import { FormError } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { countText, Notice, PageHead, Tag } from '../design/parts.tsx'
import { type Column, csvOnly, Table, textColumn } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import { ALERTS_PATH, AlertTabs, RULES_PATH, SeverityTag } from './alerts.tsx'

interface AlertRulesProps {
  readonly rows: readonly RuleRow[]
  readonly form: FormState
  /** The rule whose threshold was typed; '' if none. */
  readonly typed: string
  readonly maySet: boolean
  readonly mayMute: boolean
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  set: 'The threshold is saved. The next evaluation uses it',
  muted: 'The rule is muted. What happens from now on is never reported',
  unmuted: 'The rule is active again',
}

/** What raises alerts. */
export function AlertRules(props: AlertRulesProps) {
  const { rows, form, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead title="Alert rules" about="What raises alerts of this organization">
        <CsvLink path={RULES_PATH} />
      </PageHead>
      <AlertTabs here={RULES_PATH} />
      {title !== undefined && <Notice title={title} />}
      <FormError form={form} />
      <div class="card">
        <Table id="rules" label="Alert rules" columns={columns(props)} rows={rows} />
      </div>
      <p class="small muted">
        An empty threshold restores the default. A muted rule writes no <a href={ALERTS_PATH}>alerts</a>.
      </p>
    </>
  )
}

const stateOf = ({ isMuted }: RuleRow): string => (isMuted ? 'muted' : 'active')

export const RULE_COLUMNS: readonly Column<RuleRow>[] = [
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

function columns({ form, typed, maySet, mayMute }: AlertRulesProps): readonly Column<RuleRow>[] {
  return [
    ...RULE_COLUMNS,
    {
      id: 'set-threshold',
      name: 'Threshold',
      cell: (row) =>
        maySet ? <ThresholdForm row={row} typed={row.rule === typed ? form : undefined} /> : thresholdText(row),
    },
    ...(mayMute ? [MUTE] : []),
  ]
}

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
  cell: ({ rule, isMuted }) => (
    <form method="post" action={`${RULES_PATH}/${rule}/${isMuted ? 'unmute' : 'mute'}`}>
      <button class="quiet" type="submit" aria-label={`${isMuted ? 'Unmute' : 'Mute'} ${rule}`}>
        {isMuted ? 'Unmute' : 'Mute'}
      </button>
    </form>
  ),
  quiet: true,
}
