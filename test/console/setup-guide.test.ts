import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { hostNameOf } from '../../console/sources/setup-guide.tsx'
import { provideCertificate } from '../../engine/http/certificate.ts'
import { keyPin } from '../../engine/kernel/process/key-pin.ts'
import { serveConsole } from '../support/console.ts'
import { makeOrganization } from '../support/store.ts'

const INGEST = { httpsPort: 9443, tlsPorts: [6514], plainPorts: [1514], certificateFile: '' }

t.test('an admin generates a token, and the page with the instructions contains it once', async (t) => {
  const site = await serveConsole(t, { ingest: INGEST })
  const admin = site.signIn('ada', 'admin')
  const first = await admin.get('/setup-guide')
  t.match(first.text, /Generate a monitoring token/)
  t.notMatch(first.text, /What will send/)
  t.match(await admin.submit('/setup-guide', { label: ' ' }), { status: 400, text: /Enter a label/ })
  const made = await admin.submit('/setup-guide', { label: 'branch' })
  const [token] = site.store.monitoringTokens.ofOrganization(site.organization.id)
  const raw = /<code id="secret">(svc_mt_[0-9a-f]{48})</.exec(made.text)?.[1] ?? ''
  t.match(raw, new RegExp(`^svc_mt_${token?.visible}`))
  t.match(made.text, `[svc@00000 key=\\&quot;${raw}\\&quot;]`, 'rsyslog sends it')
  t.notMatch(made.text, 'MONITORING_TOKEN')
  t.match(made.text, /udp:\/\/localhost:1514 logformat=squid/)
  t.match(made.text, `token bind ${token?.visible} --org Acme`)
  t.match(made.text, `href="/monitoring-tokens/${token?.id}/verify"`)
  const again = await admin.get(`/setup-guide?token=${token?.id}&sender=fortigate`)
  t.notMatch(again.text, raw)
  t.match(again.text, /MONITORING_TOKEN/)
  t.match(again.text, /<details[^>]* id="fortigate" open/)
})

t.test('a member chooses one of the tokens, and cannot generate one', async (t) => {
  const site = await serveConsole(t, { ingest: INGEST })
  const member = site.signIn('mia', 'member')
  t.match((await member.get('/setup-guide')).text, /Ask an admin of the organization/)
  await site.signIn('ada', 'admin').submit('/monitoring-tokens', { label: 'branch' })
  const { text } = await member.get('/setup-guide')
  t.match(text, /Use a token that you have.*branch/s)
  t.notMatch(text, /Generate a monitoring token/)
  t.equal((await member.submit('/setup-guide', { label: 'x' })).status, 403)
  const [token] = site.store.monitoringTokens.ofOrganization(site.organization.id)
  const other = site.signIn('olga', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await other.get(`/setup-guide?token=${token?.id}`)).text, /branch|What will send/)
})

t.test('a listener that is off is named with its setting', async (t) => {
  const site = await serveConsole(t)
  const { text } = await site.signIn('ada', 'admin').submit('/setup-guide', { label: 'branch' })
  for (const setting of ['INGEST_PORT=9443', 'SYSLOG_TLS=6514', 'SYSLOG_UDP=514']) t.match(text, setting)
})

t.test('the certificate is offered if it is self-signed, without the key in its file', async (t) => {
  // The console empties the folder of the test.
  const directory = mkdtempSync(join(tmpdir(), 'certificate-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const { keyFile, certificateFile } = await provideCertificate(join(directory, 'tls'), undefined)
  const [certificate, key] = [readFileSync(certificateFile, 'utf8'), readFileSync(keyFile, 'utf8')]
  const both = join(directory, 'both.pem')
  writeFileSync(both, `${certificate.trim()}\n${key}`)
  const site = await serveConsole(t, { ingest: { ...INGEST, certificateFile: both } })
  const admin = site.signIn('ada', 'admin')
  const { text } = await admin.submit('/setup-guide', { label: 'branch' })
  t.match(text, `SERVICE_FINGERPRINT=${keyPin(new X509Certificate(certificate))}`)
  const file = await admin.get('/setup-guide/certificate.pem')
  t.equal(file.text.trim(), certificate.trim())
  t.match(file.headers['content-disposition'], /attachment/)
})

t.test('without a certificate, none is offered', async (t) => {
  const site = await serveConsole(t, { ingest: INGEST })
  const admin = site.signIn('ada', 'admin')
  t.equal((await admin.get('/setup-guide/certificate.pem')).status, 404)
  t.notMatch((await admin.submit('/setup-guide', { label: 'branch' })).text, /SERVICE_FINGERPRINT|certificate\.pem/)
})

t.test('the instructions name the host in the address of the page', async (t) => {
  const site = await serveConsole(t, { ingest: INGEST, origin: 'https://posture.acme.example' })
  const { text } = await site.signIn('ada', 'admin').get('/setup-guide')
  t.match(text, /Generate a monitoring token/)
  const admin = site.signIn('ada', 'admin')
  const made = await admin.submit('/setup-guide', { label: 'branch' }, { origin: 'https://posture.acme.example' })
  t.match(made.text, /SVC_ENDPOINT=posture\.acme\.example\n/)
})

t.test('only a name or an address in the Host field reaches the instructions', async (t) => {
  for (const [origin, name] of [
    ['https://posture.acme.example:8444', 'posture.acme.example'],
    ['https://192.0.2.1:8444', '192.0.2.1'],
    ['https://[2001:db8::1]:8444', '2001:db8::1'],
    ['https://$(reboot)', ''],
    ['https://a"b', ''],
    ["https://a'b", ''],
    ['https://a`b`', ''],
    ['https://', ''],
    ['', ''],
  ] as const) {
    t.equal(hostNameOf(origin), name, origin)
  }
})
