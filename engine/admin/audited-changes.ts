import { type Clock, HOUR_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { AuditDetails } from '../store/audit-log.ts'
import { ROLES, type Role } from '../store/members.ts'
import { NAME_BYTES_MAX } from '../store/organizations.ts'
import { SERVICE_WIDE } from '../store/own-platforms.ts'
import type { Store } from '../store/store.ts'
import type { User } from '../store/users.ts'
import { ACTIONS, type Action, ALLOWED_WHEN_FULL } from './actions.ts'

/**
 * The author of a change: the operator, that is, anyone with write access to the data directory, by
 * system user name; or a member of the organization.
 */
export interface Actor {
  readonly kind: 'operator' | 'member'
  readonly name: string
}

/** Last entries that are searched for an earlier reading. */
const READS_COMPARED_MAX = 1000

/** The result of a change. */
export interface Changed<T> {
  readonly organizationId: string
  /** The changed object, by its display name. */
  readonly subject: string
  readonly details?: AuditDetails
  readonly result: T
}

/**
 * Changes of organizations' data by an actor: authorized, in one transaction, and with an audit log
 * entry. Each subclass has the changes of one subject.
 */
export class AuditedChanges {
  protected readonly store: Store
  protected readonly clock: Clock
  protected readonly actor: Actor

  constructor(store: Store, clock: Clock, actor: Actor) {
    this.store = store
    this.clock = clock
    this.actor = actor
  }

  /**
   * Runs `work` in one transaction, with the actor's name for records. `organizationId` is
   * undefined when creating an organization. `afterAudit` runs in the same transaction, when the
   * entry is in the audit log.
   *
   * @throws Fault NOT_ALLOWED, STORE_FULL, and whatever `work` throws; then nothing was changed
   */
  protected audited<T>(
    action: Action,
    organizationId: string | undefined,
    work: (actor: string) => Changed<T>,
    afterAudit: (result: T) => void = () => {},
  ): T {
    const { environment, auditLog } = this.store
    const transaction = (): T => {
      const isService = organizationId === undefined || organizationId === SERVICE_WIDE
      if (!isService && !this.store.organizations.exists(organizationId)) {
        throw new Fault('NOT_FOUND', 'the organization was removed meanwhile')
      }
      const actor = this.#allowed(action, organizationId)
      const changed = work(actor)
      auditLog.append({
        organizationId: changed.organizationId,
        timeMs: this.clock.nowMs(),
        actor,
        action,
        subject: changed.subject,
        details: changed.details ?? {},
      })
      afterAudit(changed.result)
      return changed.result
    }
    return ALLOWED_WHEN_FULL.has(action) ? environment.shrink(transaction) : environment.write(transaction)
  }

  /**
   * Records that the actor reads something about people: one entry per actor, subject and hour, so
   * that readers do not displace changes in the audit log. `subjectNow` is called again in the
   * transaction that writes the entry.
   *
   * @throws Fault NOT_ALLOWED
   */
  protected auditedRead(
    action: 'client.read',
    organizationId: string,
    subjectNow: () => string,
    details: AuditDetails = {},
  ): void {
    const actor = this.#allowed(action, organizationId)
    const hourMs = Math.floor(this.clock.nowMs() / HOUR_MS) * HOUR_MS
    const { auditLog } = this.store
    const subject = subjectNow()
    const isRecorded = auditLog
      .before(organizationId, auditLog.lastSequence(organizationId) + 1, READS_COMPARED_MAX)
      .some((entry) => {
        return entry.timeMs >= hourMs && entry.action === action && entry.subject === subject && entry.actor === actor
      })
    if (isRecorded) return
    this.audited(action, organizationId, () => ({ organizationId, subject: subjectNow(), details, result: undefined }))
  }

  protected get isOperator(): boolean {
    return this.actor.kind === 'operator'
  }

  /** @throws Fault NOT_ALLOWED where the actor is a member. */
  protected assertOperator(action: Action): void {
    if (this.isOperator) return
    throw new Fault('NOT_ALLOWED', `${action} is for the operator of the service only`)
  }

  /**
   * Appends an entry to an audit log, inside a transaction of the caller, for a change that
   * concerns several organizations.
   */
  protected noteIn(action: Action, organizationId: string, subject: string, details: AuditDetails = {}): void {
    const actor = `${this.actor.kind} ${this.actor.name}`
    this.store.auditLog.append({ organizationId, timeMs: this.clock.nowMs(), actor, action, subject, details })
  }

  /** Returns the actor's name for the audit log. @throws Fault NOT_ALLOWED. */
  #allowed(action: Action, organizationId: string | undefined): string {
    if (this.actor.kind === 'operator') return `operator ${this.actor.name}`
    const needed = ACTIONS[action]
    const { name } = this.actor
    if (needed === 'operator') throw new Fault('NOT_ALLOWED', `${action} is for the operator of the service only`)
    const member = organizationId === undefined ? undefined : this.store.members.get({ organizationId, name })
    if (member === undefined) throw new Fault('NOT_ALLOWED', `${name} is not a member of the organization`)
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

/**
 * Control characters, invisible format characters (including text direction), and line separators.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/**
 * Names and labels appear in tables and logs: one line, short enough for an index key. @throws
 * Fault USAGE.
 */
export function checkText(what: string, text: string, bytesMax = NAME_BYTES_MAX): void {
  const bytes = Buffer.byteLength(text.toLowerCase())
  if (bytes >= 1 && bytes <= bytesMax && text.trim() === text && !INVISIBLE.test(text)) return
  throw new Fault(
    'USAGE',
    `${what}: expected one line of 1 to ${bytesMax} bytes without surrounding blanks or invisible characters, found ${bytes} bytes`,
  )
}

/** Maximum number of names in the subject of an audit entry. */
const NAMES_LISTED_MAX = 20

/** Names for the subject of an audit entry: `a, b and 3 more`. */
export function listText(names: readonly string[]): string {
  const listed = names.slice(0, NAMES_LISTED_MAX).join(', ')
  const others = names.length - NAMES_LISTED_MAX
  return others > 0 ? `${listed} and ${others} more` : listed
}

/**
 * Appends an entry about a user's own change to the audit log of each organization of the user,
 * inside a transaction of the caller.
 *
 * @param only the one organization that a session of an identity provider reaches
 */
export function noteEverywhere(
  store: Store,
  clock: Clock,
  action: Action,
  user: User,
  details: AuditDetails,
  only?: string,
): void {
  for (const { organizationId, name } of store.members.ofUser(user.id)) {
    if (only !== undefined && organizationId !== only) continue
    const actor = `member ${name}`
    store.auditLog.append({ organizationId, timeMs: clock.nowMs(), actor, action, subject: name, details })
  }
}

/** What was done with the store of all organizations at once. */
interface StoreAction {
  readonly action: Action
  readonly actor: Actor
  readonly timeMs: number
  /** The file that it was done with. */
  readonly subject: string
}

/** Writes an entry into the audit log of every organization. Inside a transaction of the caller. */
export function auditForAll(store: Store, { action, actor, timeMs, subject }: StoreAction): void {
  for (const organizationId of store.organizations.ids()) {
    store.auditLog.append({ organizationId, timeMs, actor: nameOf(actor), action, subject, details: {} })
  }
}

/** As the audit log names the operator or a member. */
export function nameOf({ kind, name }: Actor): string {
  return `${kind} ${name}`
}

/** Minimum length of an abbreviated id: up to the first hyphen. */
const PREFIX_CHARACTERS_MIN = 8
const UUID_CHARACTERS = 36

/** Finds an element by id or id prefix. @throws Fault USAGE, NOT_FOUND, CONFLICT. */
export function byIdPrefix<T extends { readonly id: string }>(all: readonly T[], given: string, what: string): T {
  const prefix = given.toLowerCase()
  if (!/^[0-9a-f-]+$/.test(prefix) || prefix.length < PREFIX_CHARACTERS_MIN || prefix.length > UUID_CHARACTERS) {
    throw new Fault(
      'USAGE',
      `${what} ${JSON.stringify(given)}: expected its id, or at least the first ${PREFIX_CHARACTERS_MIN} characters of it`,
    )
  }
  const [found, ...others] = all.filter(({ id }) => id.startsWith(prefix))
  if (found === undefined)
    throw new Fault('NOT_FOUND', `no ${what} ${JSON.stringify(given)}; posture-admin ${what} list shows all`)
  if (others.length === 0) return found
  throw new Fault('CONFLICT', `${others.length + 1} ${what}s begin with ${given}. Give more characters of the id`)
}
