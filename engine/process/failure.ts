import { Fault } from './error-codes.ts'
import type { Logger } from './log.ts'

/** What users read of a failure that is no Fault: its message may quote data, and does not help them. */
export const INTERNAL_ERROR = 'internal error; the log shows its stack'

/** One line for users: the message of a Fault; of anything else, that it is an internal error. */
export function failureText(error: unknown): string {
  return error instanceof Fault ? error.message : INTERNAL_ERROR
}

export interface FailureEntry {
  /** Fields of the log entry, in addition to the failure itself. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** Of the entry of a Fault: `error` where it is not given. */
  readonly level?: 'warn' | 'error'
}

/**
 * Logs a failure after which the program continues. A Fault is expected, so its message is the `reason`. Anything else is an internal error: it is
 * always logged at error level, as `err` with its stack, so that it can be found and fixed.
 */
export function logFailure(
  log: Logger,
  error: unknown,
  message: string,
  { fields = {}, level = 'error' }: FailureEntry = {},
): void {
  if (error instanceof Fault) log[level]({ ...fields, reason: error.message }, message)
  else log.error({ ...fields, err: error }, message)
}
