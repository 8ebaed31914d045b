import { DAY_MS, isoDay } from '../../engine/kernel/process/clock.ts'
import { DECISION_NOTE_BYTES_MAX } from '../../engine/limits.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { NAME_BYTES_MAX } from '../../engine/store/organizations.ts'
import type { FormState } from '../form.ts'
import { Field, Select } from './form.tsx'
import { countText, Notice, Tag, Time, type Tone } from './parts.tsx'

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

/** What the member decided last. */
export interface UndoView {
  readonly decidedAtMs: number
  /** Of the platforms; the id of one that left the registry. */
  readonly names: readonly string[]
}

/** Offers to undo the last decisions. `from` is the page that follows: `overview`, or a platform. */
export function Undo({ undo, from = '', nowMs }: { undo: UndoView | undefined; from?: string; nowMs: number }) {
  if (undo === undefined) return null
  const { decidedAtMs, names } = undo
  return (
    <form class="card undo" method="post" action="/decisions/undo">
      <p class="small">
        You decided about {namesText(names)} <Time ms={decidedAtMs} nowMs={nowMs} />. Undo works for ten minutes. It
        does not recall alerts that were sent, or block lists that devices fetched.
      </p>
      <input type="hidden" name="at" value={String(decidedAtMs)} />
      <input type="hidden" name="from" value={from} />
      <button type="submit">Undo</button>
    </form>
  )
}

const NAMES_SHOWN = 3

/** `Claude, DeepSeek, Kimi and 12 more` */
function namesText(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN).join(', ')
  return names.length <= NAMES_SHOWN ? shown : `${shown} and ${countText(names.length - NAMES_SHOWN)} more`
}

/** The notice after an undo. */
export function Undone({ done }: { readonly done: string }) {
  return done === 'undone' ? <Notice title="The decision is undone. The one before counts again" /> : null
}

interface TermsFieldsProps {
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
