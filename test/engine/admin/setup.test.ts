import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Reach, readyLines } from '../../../engine/admin/setup.ts'
import { admin, REPOSITORY, runAdmin } from '../../support/programs.ts'

const TOKEN = `svc_mt_${'a1'.repeat(24)}`
const REACH: Reach = {
  ...{ host: 'posture.example.com', apiPort: 8443, ingestPort: 9443, syslogPort: 6514 },
  ...{ fingerprint: 'AB:CD', certificateFile: '/data/tls/certificate.pem' },
}

/** A sample that tests send messages with, as an installation fills it in; without comments. */
function sample(name: string): string[] {
  const text = readFileSync(join(REPOSITORY, 'deploy/forwarders', name), 'utf8')
    .replaceAll('MONITORING_TOKEN', TOKEN)
    .replaceAll('INGEST_HOST', REACH.host)
    .replaceAll('INGEST_PORT', `${REACH.syslogPort}`)
    .replaceAll('CA_FILE', '/etc/posture-ca.pem')
    .replaceAll('BUFFER_DIRECTORY', '/var/lib/syslog-ng/posture')
  // One of them is an option of rsyslog.
  return text
    .replaceAll('Driver/etc/posture-ca.pem', 'DriverCAFile')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
}

t.test('the lines for syslog daemons are those of the samples that are tested with them', async (t) => {
  const { rsyslog, syslogNg } = readyLines(TOKEN, REACH)
  t.same(rsyslog.steps[0]?.lines, sample('rsyslog/service-tls.conf'))
  t.same(syslogNg.steps[0]?.lines, sample('syslog-ng/service-tls.conf'))
})

t.test('no command has a secret in it', async (t) => {
  const { collector, curl } = readyLines(TOKEN, REACH)
  const lines = [...collector.steps, ...curl.steps].flatMap((step) => step.lines)
  t.notMatch(lines.join('\n'), /svc_/)
  t.ok(lines.includes('SVC_FINGERPRINT=AB:CD'))
  t.notOk(lines.some((line) => line.startsWith('HTTPS_PORT')))
  const other = readyLines(TOKEN, { ...REACH, ingestPort: 1234, fingerprint: '', certificateFile: '' })
  const settings = other.collector.steps.flatMap((step) => step.lines)
  t.ok(settings.includes('HTTPS_PORT=1234'))
  t.notOk(settings.some((line) => line.startsWith('SVC_FINGERPRINT')))
  t.notMatch(other.curl.steps.flatMap((step) => step.lines).join('\n'), /--cacert/)
})

t.test('setup creates what is missing, and nothing where it cannot wait', async (t) => {
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
