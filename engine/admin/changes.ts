import type { Clock } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import type { AuditDetails } from '../store/audit-log.ts'
import { ROLES, type Role } from '../store/members.ts'
import { NAME_BYTES_MAX } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { ACTIONS, type Action, REMOVALS } from './actions.ts'

/** Who makes a change: whoever can write the data directory, by the name of the system's user; or a member of the organization. */
export interface Actor {
  readonly kind: 'operator' | 'member'
  readonly name: string
}

/** What a change did. */
export interface Changed<T> {
  readonly organizationId: string
  /** What was changed, as people name it. */
  readonly subject: string
  readonly details?: AuditDetails
  readonly result: T
}

/** How every change of an organization's data is made: by someone who may, in one transaction, and with an entry in the audit log. */
export class Changes {
  readonly store: Store
  readonly clock: Clock
  readonly #actor: Actor

  constructor(store: Store, clock: Clock, actor: Actor) {
    this.store = store
    this.clock = clock
    this.#actor = actor
  }

  /**
   * Runs `work`, which reads and writes, as one transaction. `organizationId` is undefined where the organization is only made.
   *
   * @throws Fault NOT_ALLOWED where the actor may not, STORE_FULL, and what `work` throws: then nothing was changed.
   */
  make<T>(action: Action, organizationId: string | undefined, work: () => Changed<T>): T {
    const { environment, auditLog } = this.store
    const transaction = (): T => {
      const actor = this.#allowed(action, organizationId)
      const changed = work()
      auditLog.append({
        organizationId: changed.organizationId,
        timeMs: this.clock.nowMs(),
        actor,
        action,
        subject: changed.subject,
        details: changed.details ?? {},
      })
      return changed.result
    }
    return REMOVALS.has(action) ? environment.shrink(transaction) : environment.write(transaction)
  }

  /** @throws Fault NOT_ALLOWED where the actor is a member. */
  assertOperator(action: Action): void {
    if (this.#actor.kind === 'operator') return
    throw new Fault('NOT_ALLOWED', `${action} is for the operator of the service only`)
  }

  /** Appends an entry to an audit log, inside a transaction of the caller, for a change that concerns several organizations. */
  note(action: Action, organizationId: string, subject: string): void {
    const actor = `${this.#actor.kind} ${this.#actor.name}`
    this.store.auditLog.append({ organizationId, timeMs: this.clock.nowMs(), actor, action, subject, details: {} })
  }

  /** Who makes the change, as the audit log names him. @throws Fault NOT_ALLOWED. */
  #allowed(action: Action, organizationId: string | undefined): string {
    if (this.#actor.kind === 'operator') return `operator ${this.#actor.name}`
    const needed = ACTIONS[action]
    const { name } = this.#actor
    const member = organizationId === undefined ? undefined : this.store.members.get(organizationId, name)
    if (member === undefined) throw new Fault('NOT_ALLOWED', `${name} is not a member of the organization`)
    if (needed === 'operator') throw new Fault('NOT_ALLOWED', `${action} is for the operator of the service only`)
    if (!mayDo(member.role, action)) {
      throw new Fault('NOT_ALLOWED', `${name} is ${article(member.role)} ${member.role}; ${action} needs ${needed}`)
    }
    return `member ${member.name}`
  }
}

/** Whether a member of this role may do it. */
export function mayDo(role: Role, action: Action): boolean {
  const needed = ACTIONS[action]
  return needed !== 'operator' && ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

function article(word: string): string {
  return /^[aeiou]/.test(word) ? 'an' : 'a'
}

/** Control characters, those that change the direction of text or join it unseen, and ends of lines. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/** Texts that people give are shown in tables and logs: one line, and no longer than an index takes. @throws Fault USAGE. */
export function checkText(what: string, text: string): void {
  const bytes = Buffer.byteLength(text.toLowerCase())
  if (bytes >= 1 && bytes <= NAME_BYTES_MAX && text.trim() === text && !UNSEEN.test(text)) return
  throw new Fault(
    'USAGE',
    `${what}: expected one line of 1 to ${NAME_BYTES_MAX} bytes without blanks around it or characters that do not show, found ${bytes} bytes`,
  )
}
