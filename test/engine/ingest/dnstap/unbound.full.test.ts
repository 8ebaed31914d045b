import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { answersOf, check, start } from '../../../support/dns-programs.ts'
import { freePort } from '../../../support/free-port.ts'
import { REPOSITORY, SYSLOG_OFF } from '../../../support/programs.ts'
import { dataOf, SyslogService } from '../../../support/syslog-service.ts'
import { until } from '../../../support/wait.ts'

const LISTENERS = [...SYSLOG_OFF, '--dnstap-tls', '127.0.0.1:0', '--dnstap-tcp', '127.0.0.1:0']

for (const kind of ['tls', 'tcp'] as const) {
  t.test(`client queries of Unbound arrive by dnstap over ${kind}`, async (t) => {
    const directory = t.testdir()
    // The server drops root.
    for (let path = directory; path.startsWith(REPOSITORY); path = join(path, '..')) chmodSync(path, 0o755)
    const service = await SyslogService.start(t, LISTENERS, directory, dataOf(directory))
    const [token] = await service.admin('token', 'list', '--org', 'Acme')
    await service.admin('token', 'bind', String(token?.['id']), '--org', 'Acme', '--port', String(service.port(kind)))
    const port = await freePort()
    const config = join(directory, 'unbound.conf')
    writeFileSync(
      config,
      `server:
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  interface: 127.0.0.1@${port}
  access-control: 127.0.0.0/8 allow
  local-zone: "claude.ai." redirect
  local-data: "claude.ai. A 192.0.2.1"
  local-zone: "example.org." redirect
  local-data: "example.org. A 192.0.2.2"
dnstap:
  dnstap-enable: yes
  dnstap-bidirectional: yes
  dnstap-ip: "127.0.0.1@${service.port(kind)}"
  dnstap-tls: ${kind === 'tls' ? 'yes' : 'no'}
  ${kind === 'tls' ? `dnstap-tls-server-name: "localhost"\n  dnstap-tls-cert-bundle: "${service.certificateFile}"` : ''}
  dnstap-send-identity: yes
  dnstap-identity: "ns1.corp.example"
  dnstap-log-client-query-messages: yes
  dnstap-log-client-response-messages: yes
`,
    )
    t.match(check('usr/sbin/unbound-checkconf', [config]), /no errors/)
    const unbound = start(t, 'usr/sbin/unbound', ['-d', '-c', config])
    // Unbound keeps messages until it has many, or for a while.
    await answersOf(unbound, port, ['claude.ai', 'www.example.org', 'claude.ai'])
    await until('the queries', () => ((service.stored().get('claude.ai') ?? 0) >= 2 ? true : undefined))
    t.same([...service.stored().keys()], ['claude.ai'])
    t.match(await service.counts(kind), { unauthorized: 0, unknown: 0, rejected: 0, skipped: 1 }, unbound.output())
    const metrics = await service.metrics()
    t.equal(metrics.get('posture_ingest_dnstap_frames_total{kind="malformed"}'), 0)
    t.ok((metrics.get('posture_ingest_dnstap_frames_total{kind="other"}') ?? 0) >= 2, 'responses are counted')
    // The rows are written once a second.
    await until('the source', async () => {
      const sources = await service.admin('ingest', 'sources', '--org', 'Acme')
      return sources.some(({ host, format }) => host === 'ns1.corp.example' && format === 'sentences')
        ? true
        : undefined
    })
  })
}
