import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import t from 'tap'
import { type Reach, readyLines, setUp } from '../../../engine/admin/setup.ts'
import { provideCertificate, type TlsFiles } from '../../../engine/http/certificate.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { listenOn } from '../../support/free-port.ts'
import { admin, REPOSITORY, runAdmin } from '../../support/programs.ts'

const TOKEN = `svc_mt_${'a1'.repeat(24)}`
const REACH: Reach = {
  ...{ host: 'posture.example.com', apiPort: 8443, ingestPort: 9443, syslogPort: 6514 },
  ...{ pin: 'sha256-key:abcd', certificateFile: '/data/tls/certificate.pem' },
}

/** A sample that tests send messages with, as an installation fills it in; without comments. */
function sample(name: string): string[] {
  const text = readFileSync(join(REPOSITORY, 'deploy/forwarders', name), 'utf8')
    .replaceAll('MONITORING_TOKEN', TOKEN)
    .replaceAll('INGEST_HOST', REACH.host)
    .replaceAll('INGEST_PORT', `${REACH.syslogPort}`)
    .replaceAll('CA_FILE', '/etc/posture-ca.pem')
    .replaceAll('RELAY_ADDRESS', '0.0.0.0')
    .replaceAll('RELAY_PORT', '514')
    .replaceAll('BUFFER_DIRECTORY', '/var/lib/syslog-ng/posture')
  // One of them is an option of rsyslog.
  return text
    .replaceAll('Driver/etc/posture-ca.pem', 'DriverCAFile')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
}

t.test('the lines for syslog daemons are those of the samples that are tested with them', async (t) => {
  const { rsyslog, syslogNg } = readyLines(TOKEN, REACH)
  const lines = ({ steps }: typeof rsyslog, file: string): unknown =>
    steps.find(({ what }) => what.includes(file))?.lines
  t.same(lines(rsyslog, '60-posture.conf'), sample('rsyslog/service-tls.conf'))
  t.same(lines(rsyslog, '61-posture-devices.conf'), sample('rsyslog/devices.conf'))
  const ofSyslogNg = [...sample('syslog-ng/service-tls.conf'), ...sample('syslog-ng/devices.conf')]
  t.same(lines(syslogNg, '60-posture.conf'), ofSyslogNg)
})

t.test('the lines create and copy the files that they name, and restart the daemon', async (t) => {
  const { rsyslog, syslogNg, curl } = readyLines(TOKEN, REACH)
  const copies = 'sudo install --mode 644 /data/tls/certificate.pem /etc/posture-ca.pem'
  for (const { title, steps } of [rsyslog, syslogNg, curl]) t.same(steps[0]?.lines, [copies], title)
  const ofCurl = curl.steps.flatMap(({ lines }) => lines)
  t.match(ofCurl.at(-1), /--cacert \/etc\/posture-ca\.pem/, 'the file may be read by other users')
  t.same(rsyslog.steps.at(-1)?.lines, ['sudo rsyslogd -N1', 'sudo systemctl restart rsyslog'])
  t.same(syslogNg.steps.at(-1)?.lines, ['sudo syslog-ng --syntax-only', 'sudo systemctl restart syslog-ng'])
  const creates = 'sudo install --directory --mode 700 /var/lib/syslog-ng/posture'
  t.ok(syslogNg.steps.some(({ lines }) => lines.includes(creates)))
  const other = readyLines(TOKEN, { ...REACH, certificateFile: '' })
  t.match(other.syslogNg.steps[1]?.what, /^Copy the service's CA certificate to \/etc\/posture-ca\.pem/)
})

t.test('at a limit nothing is created', async (t) => {
  const site = acmeSite(t)
  const { organization: acme, administration } = site
  for (;;) {
    try {
      administration.apiKeys.create(acme, 'key', ['discovery:read'])
    } catch {
      break
    }
  }
  const request = { name: 'Acme', domain: 'acme.example', label: 'setup', scopes: ['discovery:read'] } as const
  const tokens = (): number => site.store.monitoringTokens.ofOrganization(acme.id).length
  const before = tokens()
  t.throws(() => setUp(administration, site.store, request), { code: 'CONFLICT' })
  t.equal(tokens(), before)
  t.notOk(site.store.auditLog.ofOrganization(acme.id).some(({ action }) => action === 'token.generate'))
})

t.test('no command has a secret in it', async (t) => {
  const { collector, curl } = readyLines(TOKEN, REACH)
  const lines = [...collector.steps, ...curl.steps].flatMap((step) => step.lines)
  t.notMatch(lines.join('\n'), /svc_/)
  t.ok(lines.includes('SERVICE_FINGERPRINT=sha256-key:abcd'))
  t.notOk(lines.some((line) => line.startsWith('HTTPS_PORT')))
  const other = readyLines(TOKEN, { ...REACH, ingestPort: 1234, pin: '', certificateFile: '' })
  const settings = other.collector.steps.flatMap((step) => step.lines)
  t.ok(settings.includes('HTTPS_PORT=1234'))
  t.notOk(settings.some((line) => line.startsWith('SERVICE_FINGERPRINT')))
  t.notMatch(other.curl.steps.flatMap((step) => step.lines).join('\n'), /--cacert/)
})

t.test('setup creates what is missing, and nothing if it cannot wait for events', async (t) => {
  const data = ['--data-dir', join(t.testdir(), 'service')]
  for (const [words, status, stderr] of [
    [['setup', ...data], 4, /SERVICE_UNREACHABLE .*; start it first, or set --no-wait$/m],
    [['setup', '--no-wait', ...data], 2, /USAGE --org and --domain are required/],
    [['setup', '--no-wait', '--org', 'Acme', ...data], 2, /USAGE --org and --domain are required/],
    [['setup', '--no-wait', '--api-port', '0', ...data], 2, /expected a whole number from 1 to 65535/],
  ] as const) {
    t.match(await runAdmin([...words]), { status, stderr }, words.join(' '))
  }
  t.same(await admin('organization', 'list', ...data), [])
  const first = [
    'setup',
    '--no-wait',
    '--org',
    'Acme',
    '--domain',
    'acme.example',
    '--endpoint',
    'example.com',
    ...data,
  ]
  const [made] = await admin(...first)
  t.match(made, { organization: 'Acme', created: true, key: /^svc_pk_[0-9a-f]{64}$/, token: /^svc_mt_[0-9a-f]{48}$/ })
  t.match(JSON.stringify(made?.['collector']), /"SVC_ENDPOINT=example.com"/)
  const [again] = await admin('setup', '--no-wait', '--org', 'acme', '--label', 'second', ...data)
  t.match(again, { organization: 'Acme', organization_id: made?.['organization_id'], created: false })
  t.match(await admin('key', 'list', ...data), [{ scopes: ['discovery:read'] }, { scopes: ['discovery:read'] }])
  t.same((await admin('token', 'list', ...data)).map(({ label }) => label).sort(), ['second', 'setup'])
})

t.test('the certificate is printed only if a listener presents it', async (t) => {
  const directory = join(t.testdir(), 'service')
  const data = ['--data-dir', directory]
  const setup = async (port: number, label: string, ...more: string[]): Promise<string> => {
    const words = ['setup', '--no-wait', '--org', 'Acme', '--domain', 'acme.example', '--label', label]
    const ports = ['--endpoint', '127.0.0.1', '--ingest-port', `${port}`, '--api-port', '1', '--syslog-port', '1']
    return JSON.stringify(await admin(...words, ...ports, ...more, ...data))
  }
  const files = await provideCertificate(join(directory, 'tls'), undefined)
  const others = await provideCertificate(join(directory, 'other'), undefined)
  const listen = async ({ keyFile, certificateFile }: TlsFiles): Promise<number> => {
    const server = createServer({ key: readFileSync(keyFile), cert: readFileSync(certificateFile) })
    return await listenOn(t, server)
  }
  t.match(await setup(await listen(files), 'a'), `SERVICE_FINGERPRINT=${files.pin}`)
  t.notMatch(await setup(await listen(others), 'b'), /SERVICE_FINGERPRINT|certificate\.pem/, 'another certificate')
  t.notMatch(await setup(1, 'c'), /SERVICE_FINGERPRINT|certificate\.pem/, 'no listener')

  const named = await setup(1, 'd', '--tls-name', 'relay.example', '--tls-name', '192.0.2.7')
  t.match(named, `SERVICE_FINGERPRINT=${files.pin}`, 'the names are those of the service')
  t.match(named, 'SVC_ENDPOINT=127.0.0.1')
  const started = await provideCertificate(join(directory, 'tls'), undefined)
  t.equal(started.made, false, 'a service that starts without TLS_NAMES keeps them')
  const certificate = new X509Certificate(readFileSync(started.certificateFile))
  t.ok(certificate.checkHost('relay.example') && certificate.checkIP('192.0.2.7'))
})
