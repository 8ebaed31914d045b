import { z } from 'zod'
import type { DecisionTerms } from '../../engine/admin/approvals.ts'
import { utcTimeMs } from '../../engine/kernel/process/duration.ts'
import { DECISION_NOTE_BYTES_MAX } from '../../engine/limits.ts'
import { NAME_BYTES_MAX } from '../../engine/store/organizations.ts'
import { type FormFields, type FormState, readForm } from '../form.ts'

/** The decisions that forms make, by the last part of their path. */
export const DECISION_ACTIONS = {
  approve: 'approval.add',
  reject: 'approval.reject',
  withdraw: 'approval.remove',
} as const
export type DecisionWord = keyof typeof DECISION_ACTIONS
export const DECISION_WORDS = Object.keys(DECISION_ACTIONS) as DecisionWord[]

/** The state after each, for the notice of the next page. */
export const DONE: Readonly<Record<DecisionWord, string>> = {
  approve: 'approved',
  reject: 'rejected',
  withdraw: 'withdrawn',
}

const line = (bytesMax: number) =>
  z
    .string()
    .trim()
    .default('')
    .refine((text) => Buffer.byteLength(text) <= bytesMax, `At most ${bytesMax} bytes`)

/** The use case refuses times that have passed. */
const schema = z.object({
  note: line(DECISION_NOTE_BYTES_MAX),
  owner: line(NAME_BYTES_MAX),
  plan: line(NAME_BYTES_MAX),
  expires: z
    .string()
    .trim()
    .default('')
    .refine((text) => text === '' || utcTimeMs(text) !== undefined, 'Enter a day such as 2027-03-31'),
})

/** The terms of a decision in a form, or the form with its errors. */
export function readTerms(
  fields: FormFields,
  nowMs: number,
): { readonly terms: DecisionTerms } | { readonly state: FormState } {
  const read = readForm(schema, fields)
  if ('state' in read) return read
  const { expires, ...terms } = read.data
  if (expires === '') return { terms }
  const expiresAtMs = utcTimeMs(expires) ?? 0
  if (expiresAtMs > nowMs) return { terms: { ...terms, expiresAtMs } }
  return { state: { values: fields, errors: { expires: 'This day has begun already. Enter a later one' } } }
}
