import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { HIDDEN_COUNTER_NAMES } from '../../engine/kernel/event/coverage-report.ts'
import { coverageJson } from '../../engine/scan/coverage.ts'
import { frames } from '../captures/parties.ts'
import { counters } from '../support/coverage.ts'
import { ipFrame, udp } from '../support/packets.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import { type CapturedFrame, pcapFile } from '../support/packets-pcap.ts'
import { TcpStream } from '../support/packets-tcp-stream.ts'
import { clientHello, encryptedClientHello, tlsRecords } from '../support/packets-tls.ts'
import { type Running, run, start } from '../support/programs.ts'
import { organizationWithToken, SYSLOG_ON_LOOPBACK, SyslogService } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'

/** The expected counters, from the capture's builder. */
const COLLECTED = counters({
  ...{ packets: 19, packets_truncated: 1, names: 5, names_matched: 1 },
  ...{ hellos_named: 2, hellos_ech: 1, hellos_unnamed: 1, dot_sessions: 1, doh_sessions: 1 },
})

/**
 * Two queries, connections that hide something, and a packet that the capture truncated.
 * `clientPort` makes captures differ.
 */
function capture(clientPort: number): Buffer {
  const question = (name: string) =>
    ipFrame(
      { source: '10.0.0.7', destination: '192.0.2.53' },
      udp({ sourcePort: clientPort, destinationPort: 53 }, dnsQuery([name])),
    )
  const hellos = [
    {
      hello: clientHello({ serverName: 'public.example.org', moreExtensions: [encryptedClientHello()] }),
      serverPort: 443,
    },
    { hello: clientHello({}), serverPort: 443 },
    { hello: clientHello({ serverName: 'resolver.example.org' }), serverPort: 853 },
    { hello: clientHello({ serverName: 'dns.google' }), serverPort: 443 },
  ]
  const streams = hellos.map(({ hello, serverPort }, index) => {
    return new TcpStream({ clientPort: clientPort + 1 + index, serverPort }, tlsRecords(hello))
  })
  const packets = [
    question('claude.ai'),
    question('www.example.org'),
    ...streams.flatMap((stream) => [...stream.open(), stream.send()]),
  ]
  const cut = question('cut.example.org')
  const all: Omit<CapturedFrame, 'timeMs'>[] = [
    ...frames(packets).map(({ bytes }) => ({ bytes })),
    { bytes: cut.subarray(0, 30), originalBytes: cut.length },
  ]
  return pcapFile(all.map((frame, index) => ({ ...frame, timeMs: Date.UTC(2026, 10, 20) + index })))
}

t.test('a sensor reports its coverage once, over each transport', async (t) => {
  const service = await SyslogService.start(t, SYSLOG_ON_LOOPBACK)
  const file = (name: string, clientPort: number): string => {
    const path = join(service.directory, name)
    writeFileSync(path, capture(clientPort))
    return path
  }
  const of = (organizationId: string) => service.withStore((store) => store.coverage.sumSince(organizationId, 0))
  const reading = (path: string, token: string, ...transport: string[]) =>
    run('collector', ['--read', path, '--outbox', `${path}.outbox`, '--endpoint', 'localhost', ...transport], {
      SVC_TOKEN: token,
      SERVICE_CA_FILE: service.certificateFile,
    })
  const https = ['--https-port', String(service.service.ingestPort)]

  const first = file('first.pcap', 50_000)
  for (const times of ['once', 'again, without counting anything twice']) {
    const { status, stderr } = await reading(first, service.token, ...https)
    t.equal(status, 0, stderr)
    t.notMatch(stderr, /do not balance/)
    t.same(of(service.organizationId), { sensors: 1, days: 1, counters: COLLECTED }, times)
  }
  const second = await reading(file('second.pcap', 51_000), service.token, ...https)
  t.equal(second.status, 0, second.stderr)
  t.match(of(service.organizationId), { sensors: 2, counters: { packets: 38, hellos_ech: 2, dot_sessions: 2 } })
  t.same(coverageJson(of(service.organizationId)), {
    sensors: 2,
    names_seen: 10,
    hidden: { ech: 2, encrypted_dns: 4, no_name: 2, tunnels: 0, incomplete: 0, undecodable: 2, packets_lost: 0 },
    kinds: Object.fromEntries(HIDDEN_COUNTER_NAMES.map((name) => [name, 0])),
    // 8 / (8 + 8) x 36 / 38
    visible_share: 0.4737,
  })
  t.match(await service.metrics(), new Map([['posture_ingest_coverage_reports_total{outcome="accepted"}', 2]]))

  for (const [index, protocol] of (['tls', 'tcp', 'udp'] as const).entries()) {
    const { token, organizationId } = await organizationWithToken(service.data, `By-${protocol}`, 'sensor')
    const transport = ['--no-https', '--syslog-protocol', protocol, '--syslog-port', String(service.port(protocol))]
    const path = file(`${protocol}.pcap`, 52_000 + index * 1000)
    const { status, stderr } = await reading(path, token, ...transport)
    t.equal(status, 0, stderr)
    // The accounting has one event and one report.
    t.match(await service.settled(protocol, 2), { received: 2, stored: 1, skipped: 1, rejected: 0, unknown: 0 })
    await until('stored', () => of(organizationId).sensors === 1 || undefined)
    t.same(of(organizationId), { sensors: 1, days: 1, counters: COLLECTED }, protocol)
  }
  t.match(of(service.organizationId), { sensors: 2 }, 'each organization has its own')

  const wrongToken = await reading(file('third.pcap', 55_000), `svc_mt_${'0'.repeat(48)}`, ...https)
  t.equal(wrongToken.status, 5, wrongToken.stderr)
  t.match(wrongToken.stderr, /TOKEN_REFUSED/)
})

t.test('an unavailable service delays the end of a run without matches by only a few seconds', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'empty.pcap')
  writeFileSync(path, pcapFile([]))
  const startMs = performance.now()
  const collector: Running = start(
    'collector',
    ['--read', path, '--outbox', join(directory, 'outbox'), '--endpoint', '127.0.0.1', '--https-port', '1'],
    { SVC_TOKEN: `svc_mt_${'0'.repeat(48)}` },
  )
  t.match(await collector.ended, { status: 0 })
  t.ok(performance.now() - startMs < 9000)
})
