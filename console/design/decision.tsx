import { DAY_MS, isoDay } from '../../engine/kernel/process/clock.ts'
import { DECISION_NOTE_BYTES_MAX } from '../../engine/limits.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { NAME_BYTES_MAX } from '../../engine/store/organizations.ts'
import type { FormState } from '../form.ts'
import { Field, Select } from './form.tsx'
import { Tag, type Tone } from './parts.tsx'

const TONES: Readonly<Record<DecisionState, Tone>> = {
  waiting: 'plain',
  approved: 'good',
  rejected: 'bad',
  expired: 'warn',
}

/** The state of a platform. Cells of long tables call it as a function. */
export function StateTag({ state }: { readonly state: DecisionState }) {
  return Tag({ tone: TONES[state], children: state })
}

export interface TermsFieldsProps {
  readonly form: FormState
  readonly nowMs: number
  readonly note?: string
  readonly owner?: string
  /** Plans that the registry knows. Empty: no field. */
  readonly plans?: readonly string[]
  readonly plan?: string
  /** 0: none. A time that has passed is not offered again. */
  readonly expiresAtMs?: number
}

/** The fields of an approval or a rejection. */
export function TermsFields({
  form,
  nowMs,
  note = '',
  owner = '',
  plans = [],
  plan = '',
  expiresAtMs = 0,
}: TermsFieldsProps) {
  return (
    <>
      <Field name="note" label="Note" form={form} value={note} maxLength={DECISION_NOTE_BYTES_MAX} hint="The reason" />
      <Field
        name="owner"
        label="Owner"
        form={form}
        value={owner}
        maxLength={NAME_BYTES_MAX}
        hint="Who is responsible for the use"
      />
      {plans.length > 0 && (
        <Select
          name="plan"
          label="Plan, if you approve"
          form={form}
          value={plan}
          options={[['', 'Any: the risk of the worst plan counts'], ...plans.map((each) => [each, each] as const)]}
        />
      )}
      <Field
        name="expires"
        label="Expires"
        form={form}
        type="date"
        value={expiresAtMs > nowMs ? isoDay(expiresAtMs) : ''}
        min={isoDay(nowMs + DAY_MS)}
        hint="At the beginning of this day (UTC) the platform waits for a decision again"
      />
    </>
  )
}
