import { createHash, randomBytes } from 'node:crypto'
import { type Clock, HOUR_MS, MINUTE_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { ACCOUNT_LINKS_MAX } from '../limits.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import type { AccountLink, AccountLinkKind } from '../store/users.ts'
import { AuditedChanges } from './audited-changes.ts'

/** How long each kind of link can be used. */
const VALID_MS: Readonly<Record<AccountLinkKind, number>> = {
  setup: 30 * MINUTE_MS,
  password: 30 * MINUTE_MS,
  invitation: 48 * HOUR_MS,
}
const SECRET_BYTES = 32

/** A new link. The secret is nowhere else. */
export interface NewAccountLink {
  readonly secret: string
  readonly expiresAtMs: number
}

/** Links that let people become users of the console, or set their password. */
export class AccountLinkChanges extends AuditedChanges {
  /**
   * A link whose holder becomes an owner: of this organization, or of one that the holder then
   * creates.
   *
   * @throws Fault NOT_ALLOWED, CONFLICT where too many links wait.
   */
  setup(organization: Organization | undefined): NewAccountLink {
    const { store, clock } = this
    if (organization === undefined) {
      this.assertOperator('setup-link.create')
      return store.environment.write(() => addLink(store, clock, { kind: 'setup', organizationId: '', name: '' }))
    }
    const { id: organizationId, name: subject } = organization
    return this.audited('setup-link.create', organizationId, () => {
      const result = addLink(store, clock, { kind: 'setup', organizationId, name: '' })
      return { organizationId, subject, result }
    })
  }

  /**
   * A link whose holder becomes the user of a member.
   *
   * @throws Fault NOT_FOUND, NOT_ALLOWED, CONFLICT where the member has a user already, or too many
   *   links wait.
   */
  invite(organization: Organization, memberName: string): NewAccountLink {
    const { store, clock } = this
    const organizationId = organization.id
    return this.audited('member.invite', organizationId, () => {
      const member = store.members.get({ organizationId, name: memberName })
      if (member === undefined) {
        throw new Fault('NOT_FOUND', `${organization.name} has no member ${JSON.stringify(memberName)}`)
      }
      if (member.userId !== undefined) throw new Fault('CONFLICT', `${member.name} can sign in already`)
      const { name } = member
      store.accountLinks.removeInvitation(organizationId, name)
      const result = addLink(store, clock, { kind: 'invitation', organizationId, name })
      return { organizationId, subject: name, result }
    })
  }

  /**
   * Makes the link of an invitation invalid. The member keeps the role, and can be invited again.
   *
   * @throws Fault NOT_FOUND, NOT_ALLOWED.
   */
  withdraw(organization: Organization, memberName: string): void {
    const { store } = this
    const organizationId = organization.id
    this.audited('invitation.withdraw', organizationId, () => {
      // Names differ in case only for people.
      const name = store.members.get({ organizationId, name: memberName })?.name ?? memberName
      if (store.accountLinks.removeInvitation(organizationId, name) === undefined) {
        throw new Fault('NOT_FOUND', `${JSON.stringify(memberName)} has no invitation in ${organization.name}`)
      }
      return { organizationId, subject: name, result: undefined }
    })
  }

  /**
   * A link that sets the password of a user, for the operator. @throws Fault NOT_FOUND, CONFLICT.
   */
  password(userName: string): NewAccountLink {
    const { store, clock } = this
    this.assertOperator('password-link.create')
    return store.environment.write(() => {
      const user = store.users.byName(userName)
      if (user === undefined) throw new Fault('NOT_FOUND', `no user ${JSON.stringify(userName)}`)
      for (const { organizationId } of store.members.ofUser(user.id)) {
        this.noteIn('password-link.create', organizationId, user.name)
      }
      return addLink(store, clock, { kind: 'password', organizationId: '', name: user.name })
    })
  }
}

/** Inside a transaction of the caller. */
function addLink(
  store: Store,
  clock: Clock,
  about: Pick<AccountLink, 'kind' | 'organizationId' | 'name'>,
): NewAccountLink {
  const createdAtMs = clock.nowMs()
  const links = store.accountLinks.all()
  for (const link of links) if (link.expiresAtMs <= createdAtMs) store.accountLinks.remove(link)
  if (links.filter(({ expiresAtMs }) => expiresAtMs > createdAtMs).length >= ACCOUNT_LINKS_MAX) {
    throw new Fault('CONFLICT', `${ACCOUNT_LINKS_MAX} links wait to be used; wait until some have expired`)
  }
  const secret = randomBytes(SECRET_BYTES).toString('hex')
  const expiresAtMs = createdAtMs + VALID_MS[about.kind]
  store.accountLinks.put({ ...about, hash: linkHash(secret).toString('hex'), createdAtMs, expiresAtMs })
  return { secret, expiresAtMs }
}

export function linkHash(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

/**
 * The address of a link. The secret is in the fragment, which browsers send to no server, so it is
 * in no log.
 */
export function linkUrl(origin: string, secret: string): string {
  return `${origin}/setup#${secret}`
}
