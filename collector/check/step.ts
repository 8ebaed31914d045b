import type { Fault, FaultCode } from '../../engine/kernel/process/error-codes.ts'
import type { CollectorSettings } from '../config.ts'

/**
 * The steps in order. Each has a file with its name in this folder. The settings are read before
 * the first step.
 */
export const STEPS = ['interface', 'health', 'outbox', 'resolution', 'tls', 'token', 'syslog'] as const
export type StepName = (typeof STEPS)[number]

/**
 * Checks that run in a process: the steps, and the settings again if root must check them as
 * another user.
 */
export type CheckName = StepName | 'settings'

/**
 * The outcome of a step. The texts contain neither the step's name nor a secret. `fix` is empty
 * if none is known.
 */
export type StepOutcome =
  | { readonly result: 'ok' | 'skipped'; readonly found: string }
  | { readonly result: 'failed'; readonly code: FaultCode; readonly found: string; readonly fix: string }

/** A step. It throws the errors of the code that it tests; a Fault becomes `failed`. */
export type Step = (settings: CollectorSettings) => StepOutcome | Promise<StepOutcome>

/** The order to a step's process, sent over IPC, so that the token is on no command line. */
export interface StepOrder {
  readonly step: CheckName
  readonly settings: CollectorSettings
}

/** Splits a Fault's message: the part after the last semicolon is the fix. */
export function failedBy(fault: Fault): StepOutcome {
  const { code, message } = fault
  const at = message.lastIndexOf('; ')
  if (at === -1) return { result: 'failed', code, found: message, fix: '' }
  return { result: 'failed', code, found: message.slice(0, at), fix: message.slice(at + 2) }
}
