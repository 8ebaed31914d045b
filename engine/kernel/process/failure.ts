import { Fault, isFault } from './error-codes.ts'
import type { Logger } from './log.ts'

/**
 * Shown to users instead of the message of an internal error, which may quote data and does not
 * help them.
 */
export const INTERNAL_ERROR = 'internal error; the log shows its stack'

/** One line for users: the message of a Fault, or INTERNAL_ERROR. */
export function failureText(error: unknown): string {
  return error instanceof Fault ? error.message : INTERNAL_ERROR
}

/** JavaScript and Node throw these for wrong code. Failures of systems have other classes. */
const CODE_ERRORS = [TypeError, RangeError, ReferenceError, SyntaxError, URIError, EvalError]

/**
 * Call in a `catch` that expects the failures of a system, such as a lost connection: an error in
 * the code is none of them, and is thrown on, to be logged with its stack.
 *
 * @throws the error itself, if wrong code threw it.
 */
export function assertExpected(error: unknown): asserts error is Error {
  if (!isExpected(error)) throw error
}

/** False if wrong code threw it. */
export function isExpected(error: unknown): error is Error {
  return error instanceof Error && !CODE_ERRORS.some((kind) => error instanceof kind)
}

export interface FailureEntry {
  /** Additional fields of the log entry. */
  readonly fields?: Readonly<Record<string, unknown>>
  /** Level for a Fault. Default: `error`. */
  readonly level?: 'warn' | 'error'
}

/**
 * Logs an error after which the program continues. A Fault is expected: its message becomes
 * `reason`. Any other error is internal: it is always logged at level error, with its stack in
 * `err`, so that it can be fixed.
 */
export function logFailure(
  log: Logger,
  error: unknown,
  message: string,
  { fields = {}, level = 'error' }: FailureEntry = {},
): void {
  // Not an error: a primary without brokers changes nothing, and continues when they are back.
  if (isFault(error, 'NOT_PRIMARY')) log.warn({ ...fields, reason: error.message }, message)
  else if (error instanceof Fault) log[level]({ ...fields, reason: error.message }, message)
  else log.error({ ...fields, err: error }, message)
}

const TEXTS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EDQUOT: 'the disk quota is used up',
  EISDIR: 'is a directory',
  ENOENT: 'no such file or directory',
  ENOSPC: 'no space left on the disk',
  ENOTDIR: 'a part of the path is not a directory',
  EROFS: 'the file system is read-only',
}

/** One phrase for users. The text of Node names a system call and repeats the path. */
export function systemErrorText(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return TEXTS[code ?? ''] ?? code ?? message
}
