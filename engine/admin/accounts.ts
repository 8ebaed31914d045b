import { type Clock, DAY_MS, HOUR_MS, MINUTE_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { SESSIONS_PER_USER_MAX, TRUSTED_BROWSERS_MAX } from '../limits.ts'
import type { AuditDetails } from '../store/audit-log.ts'
import { newUuid } from '../store/keys.ts'
import type { Member } from '../store/members.ts'
import type { Store } from '../store/store.ts'
import type { AccountLink, Session, User } from '../store/users.ts'
import type { Action } from './actions.ts'
import { checkText, noteEverywhere } from './audited-changes.ts'
import { type AskedProvider, Federation } from './federation.ts'
import { putAllowed } from './members.ts'
import { domainOf } from './organizations.ts'
import { OwnPasskeys } from './passkeys.ts'

/**
 * A session ends this long after its last request, and this long after its sign-in whatever
 * happens.
 */
const SESSION_IDLE_MS = 30 * MINUTE_MS
const SESSION_TOTAL_MS = 12 * HOUR_MS
/** A browser that has not signed in for this long has no allowance of its own any more. */
const TRUSTED_BROWSER_MS = 90 * DAY_MS

export function isSessionOver({ createdAtMs }: Session, usedAtMs: number, nowMs: number): boolean {
  return nowMs - usedAtMs >= SESSION_IDLE_MS || nowMs - createdAtMs >= SESSION_TOTAL_MS
}

/** A browser in which someone signs in. Hashes are SHA-256 in hex of what is in its cookies. */
export interface SignInBrowser {
  readonly sessionHash: string
  /** The session that the browser had before, which ends; '' if none. */
  readonly endedHash: string
  /** '' for a sign-in with an identity provider. */
  readonly browserHash: string
  readonly address: string
  readonly browser: string
  /** The organization to show; '' for the one that the user saw last. */
  readonly organizationId: string
  /** For a sign-in with an identity provider. */
  readonly provider?: ProviderSignIn
}

/** A sign-in with the identity provider of an organization. */
export interface ProviderSignIn extends AskedProvider {
  /** When the user proved their identity to the provider; 0 if the provider does not say. */
  readonly authenticatedAtMs: number
}

/** The sessions of a user that a request may end. */
export interface SessionsOfUser {
  readonly userId: string
  /** Only those of this organization's identity provider. undefined: all. */
  readonly providerOrganizationId?: string | undefined
}

/** How the holder of a link becomes a user. */
export interface LinkUse {
  readonly linkHash: string
  /** The user who is signed in and takes the invitation; '' to create a user. */
  readonly userId: string
  /** Of a new user; for a setup link also the member's name. */
  readonly userName: string
  readonly passwordHash: string
  /** For a setup link without organization. */
  readonly organization: { readonly name: string; readonly domain: string } | undefined
}

/**
 * Changes of users and their sessions. Who makes them was proved before, by a password, a session
 * or a link. Each is one transaction with an entry in the audit log of each organization that it
 * concerns.
 */
export class Accounts {
  readonly passkeys: OwnPasskeys
  readonly federation: Federation
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.passkeys = new OwnPasskeys(store, clock)
    this.#store = store
    this.#clock = clock
    this.federation = new Federation(store, clock)
  }

  /** The link of this secret's hash, unless it was used or has expired. @throws Fault NOT_FOUND. */
  link(hash: string): AccountLink {
    const link = this.#store.accountLinks.byHash(Buffer.from(hash, 'hex'))
    if (link !== undefined && link.expiresAtMs > this.#clock.nowMs()) return link
    throw new Fault('NOT_FOUND', 'The link was used already, has expired or is incomplete. Ask for another')
  }

  /**
   * Uses a link, which then is gone: of two that use it at once, one succeeds.
   *
   * @returns the user who can sign in now, and the organization of the link; '' if it has none.
   * @throws Fault NOT_FOUND where the link is not valid, CONFLICT where the name is taken, USAGE.
   */
  useLink(use: LinkUse): { readonly userId: string; readonly organizationId: string } {
    return this.#store.environment.write(() => {
      const link = this.link(use.linkHash)
      this.#store.accountLinks.remove(link)
      if (link.kind === 'password') {
        return { userId: this.#replacePassword(link.name, use.passwordHash).id, organizationId: '' }
      }
      return link.kind === 'setup' ? this.#becomeOwner(link, use) : this.#acceptInvitation(link, use)
    })
  }

  #becomeOwner({ organizationId }: AccountLink, use: LinkUse) {
    const { organizations, members } = this.#store
    checkText('name', use.userName)
    const organization = organizationId === '' ? this.#createOrganization(use) : organizations.get(organizationId)
    if (organization === undefined) throw new Fault('NOT_FOUND', 'The organization no longer exists')
    const before = members.get({ organizationId: organization.id, name: use.userName })
    if (before?.userId !== undefined) throw new Fault('CONFLICT', `${before.name} can sign in already`)
    const user = this.#signedIn(use, organization.id) ?? this.#createUser(use.userName, use.passwordHash)
    const added = { organizationId: organization.id, name: user.name, createdAtMs: this.#clock.nowMs() }
    this.#putMember({ ...(before ?? added), role: 'owner', userId: user.id }, 'setup link')
    return { userId: user.id, organizationId: organization.id }
  }

  #createOrganization({ organization }: LinkUse) {
    const { name = '' } = organization ?? {}
    checkText('organization', name)
    const domain = domainOf(organization?.domain ?? '')
    const created = this.#store.organizations.create({ name, domain, plan: 'enterprise' }, this.#clock.nowMs())
    this.#note('organization.create', created.id, 'setup link', name, { domain })
    return created
  }

  #acceptInvitation({ organizationId, name }: AccountLink, use: LinkUse) {
    const member = this.#store.members.get({ organizationId, name })
    if (member === undefined || member.userId !== undefined) {
      throw new Fault('NOT_FOUND', 'The invitation is no longer valid. Ask for another')
    }
    const user = this.#signedIn(use, organizationId) ?? this.#createUser(name, use.passwordHash)
    this.#putMember({ ...member, userId: user.id }, `member ${name}`)
    return { userId: user.id, organizationId }
  }

  /** The user who takes the link as they are, without a new password. */
  #signedIn({ userId }: LinkUse, organizationId: string): User | undefined {
    const user = userId === '' ? undefined : this.#store.users.get(userId)
    if (user !== undefined && this.#store.members.ofUserIn(user.id, organizationId) !== undefined) {
      throw new Fault('CONFLICT', `${user.name} is a member of the organization already`)
    }
    return user
  }

  #putMember(member: Member, actor: string): void {
    putAllowed(this.#store, member)
    this.#note('member.accept', member.organizationId, actor, member.name, { role: member.role })
  }

  #createUser(name: string, passwordHash: string): User {
    const { users } = this.#store
    if (users.byName(name) !== undefined) {
      throw new Fault('CONFLICT', `A user named ${name} exists already. Sign in first, then open the link again`)
    }
    const user: User = { id: newUuid(), name, passwordHash, createdAtMs: this.#clock.nowMs(), browsers: [] }
    users.put(user)
    return user
  }

  #replacePassword(userName: string, passwordHash: string): User {
    const user = this.#store.users.byName(userName)
    if (user === undefined) throw new Fault('NOT_FOUND', 'The user no longer exists')
    return this.#storePassword(user, passwordHash, '')
  }

  /** Sets a password. All other sessions of the user end. @throws Fault NOT_FOUND. */
  setPassword(given: { readonly userId: string; readonly passwordHash: string; readonly keptHash: string }): void {
    this.#store.environment.write(() => {
      const user = this.#store.users.get(given.userId)
      if (user === undefined) throw new Fault('NOT_FOUND', 'The user no longer exists')
      this.#storePassword(user, given.passwordHash, given.keptHash)
    })
  }

  /**
   * Also forgets the browsers that the user trusted: one of them may be why the password changes.
   */
  #storePassword(user: User, passwordHash: string, keptHash: string): User {
    const { sessions, users } = this.#store
    const changed: User = { ...user, passwordHash, browsers: [] }
    users.put(changed)
    for (const session of sessions.ofUser(user.id)) if (session.hash !== keptHash) sessions.remove(session)
    this.#noteEverywhere('password.set', user, {})
    return changed
  }

  /**
   * Starts a session. The user's sessions that are over end, and beyond the limit those used
   * longest ago.
   *
   * @throws Fault NOT_FOUND where the user belongs to no organization, or not to that of the
   *   provider; CONFLICT where the settings of the provider changed meanwhile.
   */
  signIn(userId: string, from: SignInBrowser): Session {
    const { sessions, users, environment } = this.#store
    const nowMs = this.#clock.nowMs()
    return environment.write(() => {
      const user = users.get(userId)
      const before = sessions.ofUser(userId).sort((a, b) => b.usedAtMs - a.usedAtMs)
      const organizationId = this.#organizationFor(userId, [from.organizationId, before[0]?.organizationId ?? ''])
      if (user === undefined || organizationId === undefined) {
        throw new Fault('NOT_FOUND', 'You belong to no organization any more. Ask an owner to invite you')
      }
      const { sessionHash: hash, browserHash, address, browser } = from
      const { provider } = from
      if (provider !== undefined) this.federation.assertUnchanged(provider, userId)
      // Counted by provider, so that sign-ins there cannot end sessions of other organizations.
      let alike = 0
      for (const session of before) {
        const isAlike = session.providerOrganizationId === provider?.organizationId
        const isExtra = isAlike && ++alike >= SESSIONS_PER_USER_MAX
        if (isExtra || session.hash === from.endedHash || isSessionOver(session, session.usedAtMs, nowMs)) {
          sessions.remove(session)
        }
      }
      const confirmedAtMs = Math.min(nowMs, provider?.authenticatedAtMs ?? nowMs)
      const session: Session = {
        ...{ id: newUuid(), userId, hash, organizationId, address, browser },
        ...{ createdAtMs: nowMs, usedAtMs: nowMs, confirmedAtMs },
        ...(provider === undefined ? {} : { providerOrganizationId: provider.organizationId }),
      }
      sessions.put(session)
      if (provider === undefined) this.#trustBrowser(user, browserHash)
      this.#noteEverywhere('session.create', user, { address, browser }, provider?.organizationId)
      return session
    })
  }

  /** Only after a password: the allowance of a trusted browser is for passwords. */
  #trustBrowser(user: User, hash: string): void {
    const usedAtMs = this.#clock.nowMs()
    const others = user.browsers.filter((each) => each.hash !== hash && usedAtMs - each.usedAtMs < TRUSTED_BROWSER_MS)
    const browsers = [{ hash, usedAtMs }, ...others].slice(0, TRUSTED_BROWSERS_MAX)
    this.#store.users.put({ ...user, browsers })
  }

  /** The first of these that the user belongs to, or else the first by name. */
  #organizationFor(userId: string, wanted: readonly string[]): string | undefined {
    const { members, organizations } = this.#store
    const own = members.ofUser(userId).map(({ organizationId }) => organizationId)
    const nameOf = (id: string): string => organizations.get(id)?.name ?? ''
    return wanted.find((id) => own.includes(id)) ?? own.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))[0]
  }

  /**
   * After the user proved again who they are: the session goes on under another cookie value.
   * @throws Fault NOT_FOUND.
   */
  confirmSession(given: { readonly hash: string; readonly nextHash: string }): Session {
    const { sessions, environment } = this.#store
    return environment.write(() => {
      const session = sessions.byHash(Buffer.from(given.hash, 'hex'))
      if (session === undefined) throw new Fault('NOT_FOUND', 'The session has ended')
      const confirmed = { ...session, hash: given.nextHash, confirmedAtMs: this.#clock.nowMs() }
      sessions.put(confirmed)
      return confirmed
    })
  }

  /** Notes when sessions were used last. */
  noteUses(uses: readonly { readonly hash: string; readonly usedAtMs: number }[]): void {
    const { sessions, environment } = this.#store
    environment.write(() => {
      for (const { hash, usedAtMs } of uses) {
        const session = sessions.byHash(Buffer.from(hash, 'hex'))
        if (session !== undefined && usedAtMs > session.usedAtMs) sessions.put({ ...session, usedAtMs })
      }
    })
  }

  /** Shows another organization of the user in a session. */
  switchOrganization(given: { readonly hash: string; readonly organizationId: string }): void {
    const { sessions, members, environment } = this.#store
    environment.write(() => {
      const session = sessions.byHash(Buffer.from(given.hash, 'hex'))
      if (session === undefined || members.ofUserIn(session.userId, given.organizationId) === undefined) return
      sessions.put({ ...session, organizationId: given.organizationId })
    })
  }

  /** Ends one session of a user; a session that has ended already is no error. */
  endSession(given: SessionsOfUser & { readonly id: string }): void {
    this.#end(given, ({ id }) => id === given.id)
  }

  /** Ends all sessions of a user except one. */
  endOtherSessions(given: SessionsOfUser & { readonly keptId: string }): void {
    this.#end(given, ({ id }) => id !== given.keptId)
  }

  #end({ userId, providerOrganizationId: only }: SessionsOfUser, isEnding: (session: Session) => boolean): void {
    const { sessions, users, environment } = this.#store
    environment.shrink(() => {
      const reached = sessions
        .ofUser(userId)
        .filter((each) => only === undefined || each.providerOrganizationId === only)
      const ending = reached.filter(isEnding)
      for (const session of ending) sessions.remove(session)
      const user = users.get(userId)
      if (user !== undefined && ending.length > 0)
        this.#noteEverywhere('session.end', user, { sessions: ending.length }, only)
    })
  }

  #noteEverywhere(action: Action, user: User, details: AuditDetails, only?: string): void {
    noteEverywhere(this.#store, this.#clock, action, user, details, only)
  }

  #note(
    action: Action,
    organizationId: string,
    actor: string,
    subject: string,
    details: Readonly<Record<string, string | number>>,
  ): void {
    this.#store.auditLog.append({ organizationId, timeMs: this.#clock.nowMs(), actor, action, subject, details })
  }
}
