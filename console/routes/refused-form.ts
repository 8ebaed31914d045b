import { Fault, type FaultCode } from '../../engine/kernel/process/error-codes.ts'
import type { FormFields, FormState } from '../form.ts'

/** Status by fault, for faults that invalid values of a form cause. */
const STATUS: Readonly<Partial<Record<FaultCode, number>>> = { USAGE: 400, CONFLICT: 409 }

/**
 * Returns the form with the error of a use case, so that the user types nothing twice.
 *
 * @throws any other error unchanged.
 */
export function refusedForm(
  error: unknown,
  values: FormFields,
): { readonly state: FormState; readonly status: number } {
  const status = error instanceof Fault ? STATUS[error.code] : undefined
  if (!(error instanceof Fault) || status === undefined) throw error
  return { state: { values, errors: { '': error.message } }, status }
}
