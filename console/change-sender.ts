import { type Deferred, deferred } from '../engine/kernel/process/deferred.ts'
import { Fault, type PlainFault } from '../engine/kernel/process/error-codes.ts'
import type {
  AccountCommandName,
  AccountParameters,
  AccountResult,
  CommandName,
  CommandParameters,
  CommandResult,
} from './commands.ts'

/** A change that the console's thread sends to the writing thread. */
export type ChangeRequest =
  | {
      readonly kind: 'change'
      readonly id: number
      readonly command: CommandName
      readonly organizationId: string
      readonly memberName: string
      readonly parameters: unknown
    }
  | {
      readonly kind: 'account'
      readonly id: number
      readonly command: AccountCommandName
      readonly parameters: unknown
    }

/** The result of a change. The writing thread logs a failure that is not a Fault. */
export type ChangeOutcome =
  | { readonly kind: 'changed'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'refused'; readonly id: number; readonly fault: PlainFault | undefined }

/** Maximum number of pending changes. Further forms are answered with 503. */
const WAITING_MAX = 1000

/** Too many requests are pending. */
export class OverloadError extends Error {
  override readonly name = 'OverloadError'
}

/** Sends changes to the writing thread, and waits for their outcomes. */
export class ChangeSender {
  readonly #send: (request: ChangeRequest) => void
  readonly #waiting = new Map<number, Deferred<unknown>>()
  #id = 0

  constructor(send: (request: ChangeRequest) => void) {
    this.#send = send
  }

  /**
   * Makes a change as a member of an organization. @throws Fault of the use case; OverloadError.
   */
  async make<N extends CommandName>(
    command: N,
    by: { readonly organizationId: string; readonly memberName: string },
    parameters: CommandParameters<N>,
  ): Promise<CommandResult<N>> {
    const id = this.#nextId()
    return (await this.#ask({ kind: 'change', id, command, ...by, parameters })) as CommandResult<N>
  }

  /** Makes a change of users and sessions. @throws Fault, OverloadError. */
  async account<N extends AccountCommandName>(command: N, parameters: AccountParameters<N>): Promise<AccountResult<N>> {
    const id = this.#nextId()
    return (await this.#ask({ kind: 'account', id, command, parameters })) as AccountResult<N>
  }

  /** Receives an outcome from the writing thread. */
  settle(outcome: ChangeOutcome): void {
    const waiting = this.#waiting.get(outcome.id)
    this.#waiting.delete(outcome.id)
    if (outcome.kind === 'changed') waiting?.resolve(outcome.result)
    else waiting?.reject(outcome.fault ? new Fault(outcome.fault.code, outcome.fault.message) : new Error('internal'))
  }

  #nextId(): number {
    return ++this.#id
  }

  #ask(request: ChangeRequest): Promise<unknown> {
    if (this.#waiting.size >= WAITING_MAX) throw new OverloadError('too many changes wait')
    const waiting = deferred<unknown>()
    this.#waiting.set(request.id, waiting)
    this.#send(request)
    return waiting.promise
  }
}
