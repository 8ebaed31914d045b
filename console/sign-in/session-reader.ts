import { isSessionOver } from '../../engine/admin/accounts.ts'
import { BoundedMap } from '../../engine/kernel/process/bounded-map.ts'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import type { Member } from '../../engine/store/members.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import type { Store } from '../../engine/store/store.ts'
import type { Session, User } from '../../engine/store/users.ts'
import { secretHash } from './secrets.ts'

/** The time of a session's last request is stored at most this often. */
const USE_PRECISION_MS = MINUTE_MS
/** Maximum number of sessions whose last request is in memory, before it is stored. */
const REMEMBERED_MAX = 10_000

/** The signed-in user and the current organization. */
export interface Identity {
  readonly user: User
  readonly session: Session
  readonly member: Member
  readonly organization: Organization
  /** The user's organizations, ordered by name. */
  readonly organizations: readonly Organization[]
}

/** Identifies the user of a request, and records when each session was last used. */
export class SessionReader {
  readonly #store: Store
  readonly #noteUse: (hash: string, usedAtMs: number) => void
  /** By hash: the last request that this thread saw. The store gets it up to a minute later. */
  readonly #used = new BoundedMap<string, number>(REMEMBERED_MAX)

  constructor(store: Store, noteUse: (hash: string, usedAtMs: number) => void) {
    this.#store = store
    this.#noteUse = noteUse
  }

  /** Returns undefined if nobody is signed in. Call it inside Environment.read. */
  identify(cookie: string | undefined, nowMs: number): Identity | undefined {
    if (cookie === undefined || cookie === '') return undefined
    const session = this.#store.sessions.byHash(Buffer.from(secretHash(cookie), 'hex'))
    if (session === undefined) return undefined
    const usedAtMs = Math.max(session.usedAtMs, this.#used.get(session.hash) ?? 0)
    if (isSessionOver(session, usedAtMs, nowMs)) return undefined
    const identity = this.#identityOf(session)
    if (identity === undefined) return undefined
    this.#remember(session, nowMs)
    return identity
  }

  /** A user without a membership has no session. */
  #identityOf(session: Session): Identity | undefined {
    const store = this.#store
    const user = store.users.get(session.userId)
    if (user === undefined) return undefined
    const { providerOrganizationId: only } = session
    const members = store.members.ofUser(user.id).filter((each) => only === undefined || each.organizationId === only)
    const member = members.find(({ organizationId }) => organizationId === session.organizationId) ?? members[0]
    if (member === undefined) return undefined
    const organizations = members
      .map(({ organizationId }) => store.organizations.get(organizationId))
      .filter((each): each is Organization => each !== undefined)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    const organization = organizations.find(({ id }) => id === member.organizationId)
    return organization && { user, session, member, organization, organizations }
  }

  #remember(session: Session, nowMs: number): void {
    this.#used.set(session.hash, nowMs)
    if (nowMs - session.usedAtMs >= USE_PRECISION_MS) this.#noteUse(session.hash, nowMs)
  }
}
