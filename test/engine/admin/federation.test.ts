import t from 'tap'
import { secretHash } from '../../../console/sign-in/secrets.ts'
import { Accounts, type LinkUse, type SignInBrowser } from '../../../engine/admin/accounts.ts'
import type { Administration } from '../../../engine/admin/administration.ts'
import type { AskedProvider, FederatedClaims } from '../../../engine/admin/federation.ts'
import { REMOVED_MEMBER_IDENTITIES_MAX } from '../../../engine/admin/members.ts'
import { signInSettings } from '../../../engine/admin/sign-in.ts'
import type { Organization } from '../../../engine/store/organizations.ts'
import type { Store } from '../../../engine/store/store.ts'
import { acmeSite } from '../../support/acme-site.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, type openStore } from '../../support/store.ts'

const ISSUER = 'https://login.example'
const SECRET = { keyId: '', sealed: '' }
const ADA = 'ada@acme.example'

type Test = Parameters<typeof openStore>[0]

function setUp(t: Test) {
  const opened = acmeSite(t)
  const { store, clock, organization, administration } = opened
  const accounts = new Accounts(store, clock)
  setProvider(administration, organization)
  administration.members.add(organization, 'olga', 'owner')
  return { ...opened, organization, administration, accounts }
}

function setProvider({ signIn }: Administration, organization: Organization, clientId = 'console'): void {
  const settings = { name: 'Okta', issuer: ISSUER, clientId, scopes: 'openid', nameClaim: 'email' }
  const all = { ...settings, groupsClaim: 'groups', groups: [], defaultRole: 'member' }
  signIn.set(organization, signInSettings.parse(all), SECRET)
}

function claimsOf(organization: Organization, subject = 'ada', name = ADA): FederatedClaims {
  return { organizationId: organization.id, issuer: ISSUER, clientId: 'console', subject, name, groups: [] }
}

function browserAt({ organizationId, issuer, clientId }: AskedProvider): SignInBrowser {
  const provider = { organizationId, issuer, clientId, authenticatedAtMs: 0 }
  const sessionHash = 'ab'.repeat(32)
  return { sessionHash, endedHash: '', browserHash: '', address: '', browser: '', organizationId, provider }
}

/** Runs `other` once, when the transaction of this number has ended, as another process could. */
function afterTransaction({ environment }: Store, number: number, other: () => void): void {
  const write = environment.write.bind(environment)
  let depth = 0
  let ended = 0
  environment.write = (work) => {
    depth++
    try {
      return write(work)
    } finally {
      depth--
      if (depth === 0 && ++ended === number) other()
    }
  }
}

for (const change of ['removed', 'replaced'] as const) {
  for (const number of [1, 2]) {
    t.test(`settings that are ${change} after transaction ${number} of a sign-in leave no session`, async (t) => {
      const { store, organization, administration, accounts } = setUp(t)
      const claims = claimsOf(organization)
      afterTransaction(store, number, () => {
        if (change === 'removed') administration.signIn.remove(organization)
        else setProvider(administration, organization, 'another')
      })
      const signIn = (): unknown => accounts.signIn(accounts.federation.signIn(claims).userId, browserAt(claims))
      if (number === 1) t.throws(signIn, { code: 'CONFLICT', message: /changed meanwhile/ })
      else signIn()
      t.same(store.sessions.all(), [])
      t.match(
        store.auditLog.ofOrganization(organization.id).at(-1)?.action,
        /^sign-in\./,
        'no change by the provider follows',
      )
    })
  }
}

t.test('a member who is removed during a sign-in gets no session, whatever else the user belongs to', async (t) => {
  const opened = setUp(t)
  const { store, organization, administration, accounts, clock } = opened
  const globex = makeOrganization(opened, 'Globex')
  const claims = claimsOf(organization)
  const { userId } = accounts.federation.signIn(claims)
  store.environment.write(() =>
    store.members.put({ organizationId: globex.id, name: ADA, role: 'owner', createdAtMs: clock.nowMs(), userId }),
  )
  administration.members.remove(organization, ADA)
  t.throws(() => accounts.signIn(userId, browserAt(claims)), { code: 'NOT_FOUND', message: /no longer a member/ })
  t.same(store.sessions.all(), [])
})

t.test('a member who is removed, added and removed again stays the same person at the provider', async (t) => {
  const { store, organization, administration, accounts } = setUp(t)
  const { members } = administration
  accounts.federation.signIn(claimsOf(organization))
  members.remove(organization, ADA)
  members.add(organization, ADA, 'viewer')
  members.setRole(organization, ADA, 'member')
  members.remove(organization, ADA)
  const refused = { code: 'NOT_ALLOWED', message: /was removed/ }
  t.throws(() => accounts.federation.signIn(claimsOf(organization, 'ada', 'lovelace')), refused, 'by another name')
  members.allow(organization, ADA)
  t.ok(accounts.federation.signIn(claimsOf(organization, 'ada', 'lovelace')))
  t.same(store.removedMembers.ofOrganization(organization.id), [])
})

/** What the holder of an invitation sends. */
function acceptance(secret: string): LinkUse {
  return { linkHash: secretHash(secret), userId: '', userName: '', passwordHash: 'x', organization: undefined }
}

const STEPS = ['remove', 'add', 'accept', 'connect', 'sign in', 'allow'] as const

/** A member, and the accounts at the provider that were this member at its last removals. */
class MemberModel {
  readonly removed = new Set<string>()
  readonly #name: string
  readonly #setUp: ReturnType<typeof setUp>
  #connected: readonly string[] = []
  #subjects = 0

  constructor(name: string, all: ReturnType<typeof setUp>) {
    this.#name = name
    this.#setUp = all
  }

  /** Takes a step if it is possible. */
  take(step: (typeof STEPS)[number]): void {
    const { store, organization, administration, accounts } = this.#setUp
    const name = this.#name
    const { members } = administration
    const member = store.members.get({ organizationId: organization.id, name })
    const isRemoved = store.removedMembers.get({ organizationId: organization.id, name }) !== undefined
    const claims = claimsOf(organization, `${name} ${this.#subjects}`, name)
    if (step === 'remove' && member !== undefined) {
      members.remove(organization, name)
      for (const subject of this.#connected) this.removed.add(subject)
      this.#connected = []
    }
    if (step === 'add' && member === undefined) members.add(organization, name, 'member')
    if (step === 'allow' && isRemoved) {
      members.allow(organization, name)
      this.removed.clear()
    }
    if (step === 'accept' && member !== undefined && member.userId === undefined) {
      accounts.useLink(acceptance(administration.accountLinks.invite(organization, name).secret))
    }
    if (step === 'connect' && member?.userId !== undefined) {
      accounts.federation.connect(claims, member.userId)
      this.#connect(claims.subject)
    }
    if (step === 'sign in' && member === undefined && !isRemoved) {
      accounts.federation.signIn(claims)
      this.#connect(claims.subject)
    }
  }

  #connect(subject: string): void {
    this.#connected = [subject]
    this.#subjects++
  }
}

t.test('whatever happens between removals, nobody comes back by the provider until an owner allows it', async (t) => {
  const all = setUp(t)
  let run = 0
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...STEPS), { maxLength: 15 }), (steps) => {
      const name = `member ${++run}`
      const model = new MemberModel(name, all)
      for (const step of [...steps, 'remove'] as const) model.take(step)
      for (const subject of model.removed) {
        const other = claimsOf(all.organization, subject, `${name} by another name`)
        t.throws(() => all.accounts.federation.signIn(other), { code: 'NOT_ALLOWED' }, subject)
      }
    }),
    { numRuns: 60 },
  )
})

t.test('of the accounts of one removed member, the newest are kept', async (t) => {
  const all = setUp(t)
  const { store, organization } = all
  const model = new MemberModel(ADA, all)
  const count = REMOVED_MEMBER_IDENTITIES_MAX + 2
  for (let cycle = 0; cycle < count; cycle++) {
    for (const step of ['add', 'accept', 'connect', 'remove'] as const) model.take(step)
  }
  const subjects = store.removedMembers
    .get({ organizationId: organization.id, name: ADA })
    ?.identities.map(({ subject }) => subject)
  t.same(
    subjects,
    Array.from({ length: REMOVED_MEMBER_IDENTITIES_MAX }, (_, index) => `${ADA} ${index + 2}`),
  )
})
