import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { PASSKEYS_PER_USER_MAX } from '../../../engine/limits.ts'
import { isSignedIn, PASSWORD, setUp } from '../../support/accounts.ts'
import {
  type Attestation,
  Authenticator,
  type CreationOptions,
  type Deviation,
  type RequestOptions,
} from '../../support/authenticator.ts'
import { serveConsole } from '../../support/console.ts'
import {
  addPasskey,
  ORIGIN,
  opens,
  optionsIn,
  servePasskeys,
  signInByPasskey,
  signInOptions,
  withPasskey,
} from '../../support/passkeys.ts'

const NAME = 'ada@acme.example'
const NOT_ACCEPTED = { status: 403, text: /The passkey is not accepted/ }

t.test('a passkey is added, signs in, is renamed and removed', async (t) => {
  const site = await servePasskeys(t)
  const owner = await setUp(site)
  t.match((await owner.get('/account')).text, /No passkey yet/)
  t.notMatch((await site.browser().get('/sign-in')).text, /passkey/, 'no user has one yet')
  const authenticator = new Authenticator(ORIGIN)
  const options = optionsIn<CreationOptions>(await owner.post('/account/passkeys/new'))
  const [user] = site.store.users.all()
  t.match(options, {
    rp: { id: 'posture.example' },
    user: { id: Buffer.from(String(user?.id.replaceAll('-', '')), 'hex').toString('base64url'), name: NAME },
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    attestation: 'none',
  })
  const added = await owner.post('/account/passkeys', { name: ' laptop ', passkey: authenticator.create(options) })
  t.match(added, { status: 303, headers: { location: '/account?done=passkey' } })
  t.match((await owner.get('/account')).text, /laptop <span class="tag">on one device/)
  const again = optionsIn<CreationOptions>(await owner.post('/account/passkeys/new'))
  t.match(again.excludeCredentials, [{ id: authenticator.credentialId, transports: ['internal'] }])

  const browser = site.browser()
  t.match(
    (await browser.get('/sign-in')).text,
    /autocomplete="username webauthn".*data-options-from="\/sign-in\/passkey"/s,
  )
  site.clock.add(MINUTE_MS)
  const signedIn = await signInByPasskey(browser, authenticator, {}, '/platforms?q=a')
  t.match(signedIn, { status: 303, headers: { location: '/platforms?q=a' } })
  t.ok(await isSignedIn(browser))
  const account = (await browser.get('/account')).text
  const [stored] = site.store.passkeys.ofUser(String(user?.id))
  t.match(stored, {
    name: 'laptop',
    counter: 1,
    usedAtMs: site.clock.nowMs(),
    isSynced: false,
    rpId: 'posture.example',
  })
  t.match(account, new RegExp(`action="/account/passkeys/${stored?.id}/remove"`))
  for (const [path, row] of [
    ['/passkeys.csv', { Passkey: 'laptop' }],
    ['/sessions.csv', { Address: '127.0.0.1' }],
  ] as const) {
    t.match(account, `href="${path}"`)
    t.match(await browser.rows(path), [row])
  }

  t.equal((await browser.post(`/account/passkeys/${stored?.id}/name`, { name: 'old laptop' })).status, 303)
  t.equal((await browser.post(`/account/passkeys/${stored?.id}/name`, { name: '\u202e' })).status, 400)
  t.match((await browser.get('/account')).text, 'old laptop')
  t.equal((await browser.post(`/account/passkeys/${stored?.id}/remove`)).status, 303)
  t.equal((await browser.post(`/account/passkeys/${stored?.id}/remove`)).status, 404)
  t.notOk(await opens(site, authenticator), 'a removed passkey does not sign in')
  const entries = site.store.auditLog.ofOrganization(site.organization.id)
  t.same(
    entries
      .filter(({ action }) => action.startsWith('passkey'))
      .map(({ actor, action, details }) => [actor, action, details]),
    [
      [`member ${NAME}`, 'passkey.add', { passkey: 'laptop', host: 'posture.example' }],
      [`member ${NAME}`, 'passkey.rename', { passkey: 'old laptop', was: 'laptop' }],
      [`member ${NAME}`, 'passkey.remove', { passkey: 'old laptop' }],
    ],
  )
})

/** Deviations that no registration and no sign-in accepts. */
const DEVIATIONS: readonly { readonly name: string; readonly deviation: Deviation }[] = [
  { name: 'another origin', deviation: { origin: 'https://posture.example.evil.example' } },
  { name: 'the same host with another port', deviation: { origin: 'https://posture.example:8444' } },
  { name: 'the same host by plain HTTP', deviation: { origin: 'http://posture.example' } },
  { name: 'another RP ID', deviation: { rpId: 'evil.example' } },
  { name: 'the parent domain as RP ID', deviation: { rpId: 'example' } },
  { name: 'a user who is not verified', deviation: { isUserVerified: false } },
  { name: 'a user who is not present', deviation: { isUserPresent: false } },
  { name: 'another ceremony', deviation: { type: 'payment.get' } },
  { name: 'a challenge that this console did not make', deviation: { challenge: 'A'.repeat(72) } },
  { name: 'no challenge', deviation: { challenge: '' } },
]

for (const { name, deviation } of DEVIATIONS) {
  t.test(`refused: ${name}`, async (t) => {
    const site = await servePasskeys(t)
    const { owner, authenticator } = await withPasskey(site)
    t.match(await addPasskey(owner, new Authenticator(ORIGIN), deviation), NOT_ACCEPTED)
    t.equal(site.store.passkeys.ofUser(String(site.store.users.all()[0]?.id)).length, 1)
    const browser = site.browser()
    t.match(await signInByPasskey(browser, authenticator, deviation), NOT_ACCEPTED)
    t.notOk(await isSignedIn(browser))
    t.ok(await opens(site, authenticator), 'the passkey itself works')
  })
}

t.test('a signature of another key is refused', async (t) => {
  const site = await servePasskeys(t)
  const { authenticator } = await withPasskey(site)
  const { credentialId } = authenticator
  const userHandle = String(JSON.parse(authenticator.get(await signInOptions(site.browser()))).response.userHandle)
  const forger = new Authenticator(ORIGIN)
  t.match(await signInByPasskey(site.browser(), forger, { credentialId, userHandle, counter: 9 }), NOT_ACCEPTED)
  t.ok(await opens(site, authenticator), 'which does not block the passkey')
})

t.test('a response is used once, within five minutes', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site, NAME, { isSynced: true })
  const passkey = authenticator.get(await signInOptions(site.browser()))
  const answers = await Promise.all([1, 2].map(() => site.browser().post('/sign-in/passkey', { passkey })))
  t.same(answers.map(({ status }) => status).toSorted(), [303, 403], 'one of two concurrent requests succeeds')
  t.match(await site.browser().post('/sign-in/passkey', { passkey }), NOT_ACCEPTED)

  const early = authenticator.get(await signInOptions(site.browser()))
  site.clock.add(5 * MINUTE_MS)
  t.match(await site.browser().post('/sign-in/passkey', { passkey: early }), {
    status: 403,
    text: /longer than five minutes/,
  })
  site.clock.add(-6 * MINUTE_MS)
  t.match(await site.browser().post('/sign-in/passkey', { passkey: early }), { status: 403 }, 'the clock was set back')

  const options = optionsIn<CreationOptions>(await owner.post('/account/passkeys/new'))
  const other = new Authenticator(ORIGIN)
  const fields = { name: 'phone', passkey: other.create(options) }
  t.equal((await owner.post('/account/passkeys', fields)).status, 303)
  t.match(await owner.post('/account/passkeys', fields), NOT_ACCEPTED, 'also a registration')
  const late = optionsIn<CreationOptions>(await owner.post('/account/passkeys/new'))
  site.clock.add(5 * MINUTE_MS)
  t.match(await owner.post('/account/passkeys', { name: 'key', passkey: new Authenticator(ORIGIN).create(late) }), {
    status: 403,
    text: /longer than five minutes.*value="key"/s,
  })
})

t.test('a challenge is bound to its purpose and its session', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  const other = site.browser()
  await other.post('/sign-in', { name: NAME, password: PASSWORD })
  const creation = optionsIn<CreationOptions>(await owner.post('/account/passkeys/new'))
  const made = { name: 'key', passkey: new Authenticator(ORIGIN).create(creation) }
  t.match(await other.post('/account/passkeys', made), NOT_ACCEPTED, 'another session of the same user')
  t.match(await signInByPasskey(site.browser(), authenticator, { challenge: creation.challenge }), NOT_ACCEPTED)
  t.equal((await owner.post('/account/passkeys', made)).status, 303, 'it was not used up')

  site.clock.add(10 * MINUTE_MS)
  const confirmation = optionsIn<RequestOptions>(await owner.post('/account/passkeys/new'))
  t.match(await signInByPasskey(site.browser(), authenticator, { challenge: confirmation.challenge }), NOT_ACCEPTED)
  const signIn = await signInOptions(owner)
  t.match(await owner.post('/account/passkeys/new', { 'confirm-passkey': authenticator.get(signIn) }), NOT_ACCEPTED)
})

t.test('a counter that goes back blocks the passkey', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  const browser = site.browser()
  t.equal((await signInByPasskey(browser, authenticator, { counter: 10 })).status, 303)
  t.match(await signInByPasskey(site.browser(), authenticator, { counter: 10 }), { status: 403, text: /is blocked/ })
  t.match(await signInByPasskey(site.browser(), authenticator, { counter: 11 }), { status: 403, text: /is blocked/ })
  t.match((await owner.get('/account')).text, /blocked: a copy may exist/)
  const entries = site.store.auditLog.ofOrganization(site.organization.id)
  t.match(
    entries.filter(({ action }) => action === 'passkey.block'),
    [{ actor: `member ${NAME}`, details: { passkey: 'laptop', counter: 10, stored: 10 } }],
    'one entry',
  )
  site.clock.add(10 * MINUTE_MS)
  t.notMatch((await owner.post('/account/passkeys/new')).text, /data-passkey/, 'it does not confirm a change either')
})

t.test('a synchronized passkey, which does not count, is used repeatedly', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site, NAME, { isSynced: true })
  for (let at = 0; at < 3; at++) t.ok(await opens(site, authenticator))
  t.match((await owner.get('/account')).text, /laptop <span class="tag">synced/)
})

t.test("another user's passkey, and a user handle of another user", async (t) => {
  const site = await servePasskeys(t)
  const ada = await withPasskey(site)
  const bob = await withPasskey(site, 'bob')
  site.clock.add(10 * MINUTE_MS)
  const asked = optionsIn<RequestOptions>(await ada.owner.post('/account/passkeys/new'))
  t.same(
    asked.allowCredentials.map(({ id }) => id),
    [ada.authenticator.credentialId],
  )
  const stolen = bob.authenticator.get(asked)
  t.match(await ada.owner.post('/account/passkeys/new', { 'confirm-passkey': stolen }), NOT_ACCEPTED)
  const [adaHandle, bobHandle] = ['ada@acme.example', 'bob'].map((name) => {
    const id = String(site.store.users.byName(name)?.id)
    return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
  })
  t.match(await signInByPasskey(site.browser(), bob.authenticator, { userHandle: String(adaHandle) }), NOT_ACCEPTED)
  t.match(await signInByPasskey(site.browser(), bob.authenticator, { userHandle: null }), NOT_ACCEPTED)
  t.equal((await signInByPasskey(site.browser(), bob.authenticator, { userHandle: String(bobHandle) })).status, 303)
  const bobs = site.store.passkeys.ofUser(String(site.store.users.byName('bob')?.id))
  site.clock.add(-10 * MINUTE_MS)
  t.equal((await ada.owner.post(`/account/passkeys/${bobs[0]?.id}/remove`)).status, 404)
  t.equal((await ada.owner.post(`/account/passkeys/${bobs[0]?.id}/name`, { name: 'mine' })).status, 404)
  t.match(site.store.passkeys.ofUser(String(site.store.users.byName('bob')?.id)), [{ name: 'laptop' }])
})

t.test('a credential is registered once, for one user', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  t.match(await addPasskey(owner, authenticator), { status: 409, text: /registered already/ })
  const bob = await setUp(site, 'bob')
  t.match(await addPasskey(bob, authenticator), { status: 409, text: /registered already/ })
})

t.test('a user has at most ten passkeys; a name is needed', async (t) => {
  const site = await servePasskeys(t)
  const owner = await setUp(site)
  t.match(await addPasskey(owner, new Authenticator(ORIGIN), {}, ' '), { status: 400, text: /Enter a name/ })
  const page = await owner.post('/account/passkeys/new')
  for (let at = 0; at < PASSKEYS_PER_USER_MAX; at++) {
    t.equal((await addPasskey(owner, new Authenticator(ORIGIN), {}, `key ${at}`)).status, 303)
  }
  const passkey = new Authenticator(ORIGIN).create(optionsIn(page))
  t.match(await owner.post('/account/passkeys', { name: 'more', passkey }), { status: 409, text: /Remove one first/ })
  const { text } = await owner.get('/account')
  t.match(text, /10 passkeys are the most/)
  t.notMatch(text, /Add a passkey/)
})

t.test('an attestation with a certificate is refused, also a valid one', async (t) => {
  const site = await servePasskeys(t)
  const owner = await setUp(site)
  const { key, certificate } = attestationCertificate(t.testdir())
  const x5c = [certificate]
  const byCertificate = (signed: Buffer): Attestation => [
    'packed',
    new Map<string, unknown>(Object.entries({ alg: -7, sig: sign('sha256', signed, key), x5c })),
  ]
  t.match(await addPasskey(owner, new Authenticator(ORIGIN), { attestation: byCertificate }), NOT_ACCEPTED)
  for (const format of ['tpm', 'apple', 'android-key', 'android-safetynet', 'fido-u2f', 'other']) {
    const attestation = (): Attestation => [format, new Map([['x5c', x5c]])]
    t.match(await addPasskey(owner, new Authenticator(ORIGIN), { attestation }), NOT_ACCEPTED, format)
  }
  const byItself = (signed: Buffer, passkey: KeyObject): Attestation => [
    'packed',
    new Map<string, unknown>(Object.entries({ alg: -7, sig: sign('sha256', signed, passkey) })),
  ]
  t.equal(
    (await addPasskey(owner, new Authenticator(ORIGIN), { attestation: byItself })).status,
    303,
    'without a certificate',
  )
})

/** A certificate of the form that WebAuthn §8.2.1 requires. */
function attestationCertificate(directory: string): { readonly key: KeyObject; readonly certificate: Buffer } {
  const [keyFile, file] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')]
  const subject = ['-subj', '/C=US/O=Acme/OU=Authenticator Attestation/CN=Acme']
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
  const form = ['-days', '2', '-addext', 'basicConstraints=critical,CA:FALSE', '-out', file]
  execFileSync('openssl', ['req', '-x509', ...newKey, ...subject, ...form], { stdio: 'ignore' })
  return { key: createPrivateKey(readFileSync(keyFile)), certificate: new X509Certificate(readFileSync(file)).raw }
}

t.test('five failures with one credential, known or not, and twenty from one network are the limit', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  const unknown = new Authenticator(ORIGIN)
  const statuses = async (of: Authenticator): Promise<number[]> => {
    const found: number[] = []
    for (let at = 0; at < 7; at++) {
      found.push((await signInByPasskey(site.browser(), of, { isUserVerified: false })).status)
    }
    return found
  }
  const known = await statuses(authenticator)
  t.same(known, [403, 403, 403, 403, 403, 429, 429])
  t.same(await statuses(unknown), known, 'an unknown credential gets the same answers')
  t.match(await signInByPasskey(site.browser(), authenticator), { status: 429, headers: { 'retry-after': '900' } })
  await owner.post('/sign-out')
  t.equal((await signInByPasskey(owner, authenticator)).status, 303, 'a browser that signed in before')
  t.equal(
    (await site.browser().post('/sign-in', { name: NAME, password: PASSWORD })).status,
    303,
    'the password still works',
  )
  for (let at = 0; at < 10; at++) await signInByPasskey(site.browser(), new Authenticator(ORIGIN))
  t.equal((await signInByPasskey(site.browser(), new Authenticator(ORIGIN))).status, 429, 'the network')
})

t.test('input that is not an authenticator response is refused', async (t) => {
  const site = await servePasskeys(t)
  const { authenticator } = await withPasskey(site)
  const valid = JSON.parse(authenticator.get(await signInOptions(site.browser())))
  const texts = [
    '',
    '{',
    'null',
    '[]',
    '{}',
    JSON.stringify({ ...valid, id: `${valid.id}=` }),
    JSON.stringify({ ...valid, rawId: 'other' }),
    JSON.stringify({ ...valid, response: { ...valid.response, clientDataJSON: 'eyJ' } }),
    JSON.stringify({ ...valid, response: { ...valid.response, clientDataJSON: 'x'.repeat(9000) } }),
    '['.repeat(20_000),
  ]
  for (const passkey of texts) {
    t.match(await site.browser().post('/sign-in/passkey', { passkey }), { status: /403|429/ }, passkey.slice(0, 60))
    site.clock.add(15 * MINUTE_MS)
  }
})

t.test('a passkey confirms a sensitive change, as a password does', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  t.equal((await owner.post('/account/passkeys/new')).status, 200)
  site.clock.add(10 * MINUTE_MS)
  const fields = { label: 'fw-01' }
  const asked = await owner.post('/monitoring-tokens', fields)
  t.match(asked, { status: 200, text: /Confirm your identity/ })
  t.match(
    asked.text,
    /name="confirm-password".*data-passkey="get".*name="label" value="fw-01".*name="confirm-passkey"/s,
  )
  const refused = await owner.post('/monitoring-tokens', { ...fields, 'confirm-passkey': 'x' })
  t.match(refused, NOT_ACCEPTED)
  const before = owner.cookies.get('__Host-session')
  const passkey = authenticator.get(optionsIn(refused))
  t.match(await owner.submit('/monitoring-tokens', { ...fields, 'confirm-passkey': passkey }), {
    status: 200,
    text: /svc_mt_[0-9a-f]{48}/,
  })
  t.not(owner.cookies.get('__Host-session'), before, 'the session continues with another cookie')
  t.equal((await owner.submit('/monitoring-tokens', { label: 'fw-02' })).status, 200, 'for ten minutes')
  site.clock.add(10 * MINUTE_MS)
  t.match(await owner.post('/monitoring-tokens', { ...fields, 'confirm-passkey': passkey }), { status: 403 }, 'once')
})

t.test('passkeys are hidden where they cannot work', async (t) => {
  const origins = ['', 'https://192.0.2.1:8444', 'https://[2001:db8::1]', 'http://posture.example']
  for (const origin of origins) {
    const site = await serveConsole(t, origin === '' ? {} : { origin })
    const owner = await setUp(site)
    t.notMatch((await owner.get('/account')).text, /[Pp]asskey/, origin)
    t.notMatch((await owner.get('/sign-in')).text, /[Pp]asskey/)
    for (const path of ['/account/passkeys/new', '/account/passkeys', '/sign-in/passkey']) {
      t.match(await owner.post(path, { name: 'one', passkey: '{}' }), { status: 404, text: /need --console-origin/ })
    }
    t.equal((await owner.get('/sign-in/passkey')).status, 404)
  }
})

t.test('passkeys of another host name are shown, so that they can be removed', async (t) => {
  const site = await servePasskeys(t)
  const { owner } = await withPasskey(site)
  const [user] = site.store.users.all()
  const [passkey] = site.store.passkeys.ofUser(String(user?.id))
  if (passkey === undefined) throw new Error('no passkey')
  site.store.environment.write(() => site.store.passkeys.put({ ...passkey, rpId: 'old.example' }))
  t.match((await owner.get('/account')).text, /only for old.example/)
  site.clock.add(10 * MINUTE_MS)
  t.notMatch((await owner.post('/account/passkeys/new')).text, /data-passkey/)
})

t.test('a user without a password adds no passkey', async (t) => {
  const site = await servePasskeys(t)
  const federated = site.signIn('fay', 'admin')
  t.notMatch((await federated.get('/account')).text, /[Pp]asskey/)
  const options = optionsIn<CreationOptions>(await federated.post('/account/passkeys/new'))
  const passkey = new Authenticator(ORIGIN).create(options)
  t.equal((await federated.post('/account/passkeys', { name: 'one', passkey })).status, 409)
})

t.test('a session of an identity provider neither adds, renames nor removes a passkey', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  const [user] = site.store.users.all()
  const [passkey] = site.store.passkeys.ofUser(String(user?.id))
  const page = await owner.post('/account/passkeys/new')
  const providerOrganizationId = site.organization.id
  site.store.environment.write(() => {
    for (const session of site.store.sessions.all()) site.store.sessions.put({ ...session, providerOrganizationId })
  })
  t.notMatch((await owner.get('/account')).text, /[Pp]asskey/)
  const made = { name: 'other', passkey: new Authenticator(ORIGIN).create(optionsIn(page)) }
  for (const path of ['new', `${passkey?.id}/name`, `${passkey?.id}/remove`]) {
    t.equal((await owner.post(`/account/passkeys/${path}`, made)).status, 403, path)
  }
  t.equal((await owner.post('/account/passkeys', made)).status, 403)
  t.match(site.store.passkeys.ofUser(String(user?.id)), [{ name: 'laptop' }])
  t.ok(await opens(site, authenticator))
})

t.test('only the operator can remove the last way to sign in', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  const [user] = site.store.users.all()
  if (user === undefined) throw new Error('no user')
  site.store.environment.write(() => site.store.users.put({ ...user, passwordHash: '' }))
  const [passkey] = site.store.passkeys.ofUser(user.id)
  const answer = await owner.post(`/account/passkeys/${passkey?.id}/remove`)
  t.match(answer, { status: 409, text: /could no longer sign in/ })
  t.ok(await opens(site, authenticator))
  const { passkeys } = new Administration(site.store, site.clock)
  t.match(passkeys.list(NAME), [{ name: 'laptop' }])
  passkeys.remove(NAME, String(passkey?.id.slice(0, 8)))
  t.notOk(await opens(site, authenticator))
  t.notOk(await isSignedIn(owner), 'all sessions have ended')
  const last = site.store.auditLog.ofOrganization(site.organization.id).at(-1)
  t.match(last, { actor: 'operator operator', action: 'passkey.remove', details: { passkey: 'laptop' } })
  t.throws(() => passkeys.list('nobody'), { code: 'NOT_FOUND' })
})

t.test('passkeys are removed with their user', async (t) => {
  const site = await servePasskeys(t)
  const { authenticator } = await withPasskey(site)
  new Administration(site.store, site.clock).members.remove(site.organization, NAME)
  t.ok(site.store.passkeys.isEmpty())
  t.equal(site.store.passkeys.byCredential(authenticator.credentialId), undefined)
})
