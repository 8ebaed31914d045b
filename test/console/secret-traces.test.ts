import { randomBytes } from 'node:crypto'
import { createWriteStream, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import t from 'tap'
import { Browser } from '../support/console.ts'
import { crawl } from '../support/console-crawl.ts'
import { type Answer, type AskServer, httpsClient } from '../support/https.ts'
import { admin, startService } from '../support/programs.ts'

/** A secret of this run, and the number of responses that contain it. */
interface Secret {
  readonly value: string
  readonly responses: number
}

/** By name. */
type Secrets = Map<string, Secret>

interface Sent {
  readonly request: string
  readonly answer: Answer
}

/** Remembers each answer, and the cookies of each as secrets. */
function recorded(ask: AskServer, sent: Sent[], secrets: Secrets): AskServer {
  return async (path, options = {}) => {
    const answer = await ask(path, options)
    const request = `${options.method ?? 'GET'} ${path}`
    sent.push({ request, answer })
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^__Host-(session|browser)=([\w-]{43});/.exec(line) ?? []
      if (name !== '') secrets.set(`${name} of ${request} ${sent.length}`, { value, responses: 1 })
    }
    return answer
  }
}

/** How a secret could be written: as text, and as the bytes that the text encodes. */
function formsOf(secret: string): Buffer[] {
  const digits = /[0-9a-f]{32,}$/.exec(secret)?.[0]
  const isBase64 = /^[\w-]{43}$/.test(secret)
  return [
    Buffer.from(secret),
    ...(digits === undefined ? [] : [Buffer.from(digits), Buffer.from(digits, 'hex')]),
    ...(isBase64 ? [Buffer.from(secret, 'base64url')] : []),
    Buffer.from(encodeURIComponent(secret).replaceAll('%20', '+')),
  ]
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
}

t.test('each secret is in exactly one response, and in no log, metric or file', async (t) => {
  const folder = t.testdir()
  const directory = join(folder, 'service')
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const verbose = ['--log-level', 'DEBUG', '--access-log-max-per-second', '1000']
  const service = await startService(directory, ['--ingest-port', 'off', ...verbose])
  const log = createWriteStream(join(folder, 'service.log'))
  const origin = `https://localhost:${service.consolePort}`
  const links = ['--console-origin', origin, ...data]
  const certificate = join(directory, 'tls/certificate.pem')
  const client = httpsClient(service.consolePort, certificate)
  const api = httpsClient(service.apiPort, certificate)
  const secrets: Secrets = new Map()
  const sent: Sent[] = []
  const ask = recorded(client.ask, sent, secrets)
  const secret = (name: string, value: unknown, responses: number): string => {
    t.ok(typeof value === 'string' && value.length >= 12, name)
    secrets.set(name, { value: String(value), responses })
    return String(value)
  }
  const browser = (): Browser => new Browser({ ask }, origin)
  const fragmentOf = (row: Readonly<Record<string, unknown>> | undefined) => String(row?.['url']).split('#')[1]

  const password = secret('password', 'violet harbor 71 lanterns', 0)
  const setup = secret('setup secret', fragmentOf((await admin('setup-link', ...links))[0]), 1)
  const owner = browser()
  t.equal((await owner.get('/setup')).status, 200)
  t.equal((await owner.post('/setup', { secret: setup })).status, 200)
  const account = { secret: setup, name: 'ada', password, repeated: password }
  t.equal((await owner.post('/setup/account', account)).status, 303)
  const typo = secret('wrong password', 'violet harbor 71 lanternz', 0)
  t.equal((await browser().post('/sign-in', { name: 'ada', password: typo })).status, 403)
  // The form shows its name again.
  const misplaced = secret('password in the field of the name', 'amber quarry 20 pelicans', 1)
  t.equal((await browser().post('/sign-in', { name: misplaced, password })).status, 403)

  const keyPage = await owner.submit('/api-keys', { label: 'grafana', scopes: ['discovery:read'] })
  const key = secret('API key', /svc_pk_[0-9a-f]{64}/.exec(keyPage.text)?.[0], 1)
  const tokenPage = await owner.submit('/monitoring-tokens', { label: 'fw-01' }, { 'accept-encoding': 'gzip' })
  secret('monitoring token', /svc_mt_[0-9a-f]{48}/.exec(tokenPage.text)?.[0], 1)
  t.equal((await api.ask('/api/v1/discovery', { headers: { 'x-api-key': key } })).status, 200)
  const wrongKey = secret(
    'mistyped API key',
    key.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    0,
  )
  t.equal((await api.ask('/api/v1/discovery', { headers: { 'x-api-key': wrongKey } })).status, 401)

  const keyPath = /\/api-keys\/[^"/]+\/rotate/.exec((await owner.get('/api-keys')).text)?.[0] ?? ''
  const rotatedPage = await owner.submit(keyPath, { grace: '0' })
  const rotated = secret('rotated API key', /svc_pk_[0-9a-f]{64}/.exec(rotatedPage.text)?.[0], 1)
  t.equal((await api.ask('/api/v1/discovery', { headers: { 'x-api-key': rotated } })).status, 200)
  const setupToken = await owner.submit('/setup-guide', { label: 'fw-02' })
  secret('monitoring token of Setup', /svc_mt_[0-9a-f]{48}/.exec(setupToken.text)?.[0], 1)

  const clientSecret = secret('client secret', randomBytes(24).toString('hex'), 0)
  // The service does not connect to its own machine, so neither the check nor the test of the
  // settings reaches a provider. Their errors are in the log.
  const provider = { name: 'Okta', issuer: 'https://127.0.0.1:1', clientId: 'console', scopes: 'openid', clientSecret }
  const claims = { nameClaim: 'email', groupsClaim: 'groups', defaultRole: 'viewer' }
  const settings = (more: Readonly<Record<string, string>>) =>
    owner.post('/sign-in-settings', { ...provider, ...claims, ...more })
  t.match(await settings({ issuer: 'no URL' }), { status: 400, text: /Expected a URL/ })
  t.match(await settings({}), { status: 400, text: /is on this machine or in a local or private network/ })
  t.equal((await settings({ unchecked: 'yes' })).status, 303)
  t.match((await owner.submit('/sign-in-settings/test')).text, /The provider cannot be used/)
  t.match((await owner.get('/sign-in-settings')).text, /Okta/)
  t.equal((await browser().post('/sign-in/provider')).status, 502)
  const replaced = secret('client secret of the command line', randomBytes(24).toString('hex'), 0)
  const secretFile = join(folder, 'client-secret')
  writeFileSync(secretFile, replaced, { mode: 0o600 })
  await admin('sign-in', 'set', '--client-secret-file', secretFile, '--org', 'Acme', ...data)
  rmSync(secretFile)

  const hooks = randomBytes(18).toString('hex')
  const channel = { severityMin: 'low', url: `https://chat.invalid/${secret('URL of a chat', hooks, 0)}` }
  const addChannel = (more: Readonly<Record<string, string>>) =>
    owner.post('/alerts/channels/new', { ...channel, ...more })
  t.match(await addChannel({ kind: 'slack', name: 'chat', ca: 'no PEM' }), { status: 400, text: /in PEM/ })
  t.equal((await addChannel({ kind: 'slack', name: 'chat' })).status, 303)
  const hookPage = await owner.submit('/alerts/channels/new', { ...channel, kind: 'webhook', name: 'soc' })
  secret('signing secret', /whsec_[A-Za-z0-9+/=]+/.exec(hookPage.text)?.[0], 1)
  const mail = { kind: 'smtp', name: 'mail', host: 'mail.invalid', from: 'a@acme.example', user: 'posture' }
  const mailPassword = secret('password of the mail server', randomBytes(18).toString('hex'), 0)
  t.match(await addChannel({ ...mail, password: mailPassword }), { status: 400, text: /A receiver is required/ })
  t.equal((await addChannel({ ...mail, password: mailPassword, to: 'b@acme.example' })).status, 303)
  const channels = await owner.get('/alerts/channels')
  for (const [, path = ''] of channels.text.matchAll(/action="([^"]+\/test)"/g)) {
    t.match((await owner.submit(path)).text, /did not get the test message/)
  }
  const linkPage = await owner.submit('/block-lists', { label: 'firewall', blocks: 'rejected', risk: '0' })
  const link = secret('secret of a block list', /svc_bl_[0-9a-f]{48}/.exec(linkPage.text)?.[0], 1)
  const listPath = /\/blocklist\/[0-9a-f-]{36}\.edl/.exec(linkPage.text)?.[0] ?? ''
  const authorization = `Basic ${Buffer.from(`firewall:${link}`).toString('base64')}`
  t.equal((await browser().get(listPath, { authorization })).status, 200)

  await admin('member', 'add', 'vic', '--role', 'viewer', '--org', 'Acme', ...data)
  const invitations = await admin('member', 'invite', 'vic', '--org', 'Acme', ...links)
  const invitation = secret('invitation', fragmentOf(invitations[0]), 0)
  const second = secret('second password', 'amber quarry 19 pelicans', 0)
  const invited = { secret: invitation, password: second, repeated: second }
  t.equal((await browser().post('/setup/account', invited)).status, 303)
  const changed = secret('changed password', 'crimson orchard 5 lighthouses', 0)
  const change = { current: password, password: changed, repeated: changed }
  t.equal((await owner.post('/account/password', change)).status, 303)
  const reset = secret('password link', fragmentOf((await admin('password-link', 'vic', ...links))[0]), 1)
  t.equal((await browser().post('/setup', { secret: reset })).status, 200)
  t.equal((await browser().post('/sign-in', { name: 'ada', password: changed })).status, 303)
  await crawl(owner)
  const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text()
  await client.close()
  await api.close()
  service.child.kill('SIGTERM')
  const { status, stdout, stderr } = await service.ended
  t.equal(status, 0)
  log.end(stdout + stderr)
  await finished(log)

  t.match(metrics, /posture_console_password_checks_total\{result="wrong"\} 2\n/)
  t.match(metrics, /posture_console_password_checks_total\{result="correct"\} 2\n/)
  t.match(metrics, /posture_console_changes_total\{command="session\.create",result="changed"\} 3\n/)
  t.match(metrics, /posture_console_changes_total\{command="api-key\.create",result="changed"\} 1\n/)
  t.match(metrics, /posture_console_provider_requests_total\{result="refused"\} [1-9]/)
  t.match(metrics, /posture_console_answers_total\{status="303"\} \d/)
  t.match(metrics, /posture_console_sessions 3\n/)
  t.match(metrics, /posture_console_pages_total [1-9]/)

  const files = [...filesIn(directory), join(folder, 'service.log')].map((path) => [path, readFileSync(path)] as const)
  t.ok(files.some(([path, bytes]) => path.endsWith('service.log') && bytes.includes('console listens')))
  t.ok(files.some(([path, bytes]) => path.endsWith('data.mdb') && bytes.includes('grafana')))
  for (const [name, { value, responses }] of secrets) {
    for (const form of formsOf(value)) {
      for (const [path, bytes] of files) t.notOk(bytes.includes(form), `${name} in ${path}`)
      t.notOk(metrics.includes(form.toString()), `${name} in the metrics`)
    }
    const shown = sent.filter(({ answer }) => `${JSON.stringify(answer.headers)}${answer.text}`.includes(value))
    t.equal(shown.length, responses, `${name} in responses`)
    for (const { request, answer } of shown) {
      t.match(answer.headers, { 'cache-control': 'no-store', 'content-encoding': undefined }, `${name}: ${request}`)
    }
  }
})
