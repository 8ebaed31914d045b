import type { Fault, FaultCode } from '../../engine/process/error-codes.ts'
import type { CollectorSettings } from '../config.ts'

/** The steps in their order; each has a file of its name here. The settings are read before them. */
export const STEPS = ['interface', 'health', 'outbox', 'resolution', 'tls', 'token', 'syslog'] as const
export type StepName = (typeof STEPS)[number]

/** What is tried in a process: the settings only once more, where root looks for the user that it becomes. */
export type Tried = StepName | 'settings'

/** How a step ended. Lines without the name of the step, and without a secret; `remedy` is empty where nobody knows one. */
export type StepOutcome =
  | { readonly result: 'ok' | 'skipped'; readonly found: string }
  | { readonly result: 'failed'; readonly code: FaultCode; readonly found: string; readonly remedy: string }

/** A step. It throws what the part that it tries throws; a Fault becomes `failed`. */
export type Step = (settings: CollectorSettings) => StepOutcome | Promise<StepOutcome>

/** What the process of a step is told. By its channel: the token stands on no command line. */
export interface StepOrder {
  readonly step: Tried
  readonly settings: CollectorSettings
}

/** A Fault's line says what was found, which may be several things, and behind the last semicolon what to do. */
export function failedBy(fault: Fault): StepOutcome {
  const { code, message } = fault
  const at = message.lastIndexOf('; ')
  if (at === -1) return { result: 'failed', code, found: message, remedy: '' }
  return { result: 'failed', code, found: message.slice(0, at), remedy: message.slice(at + 2) }
}
