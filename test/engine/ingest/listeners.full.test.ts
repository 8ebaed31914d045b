import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { SYSLOG_OFF, start, startService } from '../../support/programs.ts'
import { proxyHeader, type Sender, sendTcp, sendTls, sendUdp } from '../../support/syslog-sender.ts'
import {
  metricsOf,
  organizationWithToken,
  rfc5424,
  SYSLOG_ON_LOOPBACK,
  SyslogService,
  squid,
} from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

const MATCHING = squid('claude.ai')
t.test('5,000 connections from many addresses all deliver a message', async (t) => {
  const service = await SyslogService.start(t)
  const COUNT = 5000
  const senders: Sender[] = []
  while (senders.length < COUNT) {
    const some = Array.from({ length: 250 }, (_, index) =>
      sendTcp(t, service.port('tcp'), { localAddress: `127.0.0.${1 + ((senders.length + index) % 200)}` }),
    )
    senders.push(...(await Promise.all(some)))
  }
  await until(
    'all open',
    async () => (await service.metrics()).get('posture_ingest_connections') === COUNT || undefined,
  )
  const message = rfc5424(service.token, MATCHING)
  for (const { send } of senders) send(`${message}\n`)
  t.match(await service.settled('tcp', COUNT), { stored: COUNT })
  // The rows are written once a second.
  await until('every message in the row of its source', async () => {
    const rows = await service.admin('ingest', 'sources', '--org', 'Acme')
    const messages = rows.reduce((sum, row) => sum + Number(row['messages']), 0)
    return (rows.length === 200 && messages === COUNT) || undefined
  })
  for (const { socket } of senders) socket.destroy()
  await until('all closed', async () => (await service.metrics()).get('posture_ingest_connections') === 0 || undefined)
})

t.test('TLS 1.2 and 1.3 are accepted, 1.1 is not', async (t) => {
  const service = await SyslogService.start(t)
  const caFile = service.certificateFile
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const sender = await sendTls(t, service.port('tls'), { caFile, version })
    t.equal(sender.socket.getProtocol(), version)
    sender.send(`${rfc5424(service.token, MATCHING)}\n`)
  }
  t.match(await service.settled('tls', 2), { stored: 2 })
  await t.rejects(sendTls(t, service.port('tls'), { caFile, version: 'TLSv1.1' }), /alert|protocol|version/i)
  await until('counted', async () => {
    return (
      (await service.metrics()).get('posture_ingest_connections_closed_total{listener="tls",reason="tls"}') === 1 ||
      undefined
    )
  })
})

t.test("the PROXY protocol gives the client's address", async (t) => {
  const service = await SyslogService.start(t, [...SYSLOG_ON_LOOPBACK, '--proxy-protocol'])
  const message = Buffer.from(`${rfc5424(service.token, MATCHING)}\n`)
  const address = async (expected: string): Promise<unknown> =>
    until(`a source ${expected}`, async () =>
      (await service.admin('ingest', 'sources', '--org', 'Acme')).find(({ address }) => address === expected),
    )
  const rows: { name: string; header: Buffer; shown: string }[] = [
    { name: 'IPv4', header: proxyHeader('203.0.113.7'), shown: '203.0.113.7' },
    { name: 'IPv6', header: proxyHeader('2001:db8:0:0:0:0:0:7'), shown: '2001:db8::7' },
    { name: 'an IPv4-mapped address', header: proxyHeader('0:0:0:0:0:ffff:c633:6407'), shown: '198.51.100.7' },
    { name: "the balancer's own connection", header: proxyHeader('203.0.113.8', 0), shown: '127.0.0.1' },
  ]
  let sent = 0
  for (const { name, header, shown } of rows) {
    const together = await sendTcp(t, service.port('tcp'))
    together.send(Buffer.concat([header, message]))
    const apart = await sendTcp(t, service.port('tcp'))
    for (const byte of header) apart.send(Uint8Array.of(byte))
    apart.send(message)
    sent += 2
    t.match(await service.settled('tcp', sent), { stored: sent }, name)
    t.match(await address(shown), { listener: 'tcp' }, `${name} is shown in sources`)
  }
  const tls = await sendTls(t, service.port('tls'), {
    caFile: service.certificateFile,
    before: proxyHeader('203.0.113.99'),
  })
  tls.send(message)
  t.match(await service.settled('tls', 1), { stored: 1 }, 'before TLS')
  t.match(await address('203.0.113.99'), { listener: 'tls' })

  for (const [name, bytes] of [
    ['a message without a header', message],
    ['version 1', Buffer.from('PROXY TCP4 203.0.113.7 203.0.113.8 1 2\r\n')],
    ['a signature that goes wrong', Buffer.from('\r\n\r\n\0\r\nQUIX\n')],
  ] as const) {
    const sender = await sendTcp(t, service.port('tcp'))
    sender.send(bytes)
    await sender.closed
    t.pass(`${name} ends the connection`)
  }
  t.equal((await service.metrics()).get('posture_ingest_connections_closed_total{listener="tcp",reason="proxy"}'), 3)
  t.match(await service.counts('tcp'), { received: sent })

  const plain = await SyslogService.start(t, SYSLOG_ON_LOOPBACK, service.directory, join(service.directory, 'plain'))
  const sender = await sendTcp(t, plain.port('tcp'))
  sender.send(
    Buffer.concat([proxyHeader('203.0.113.7'), Buffer.from(rfc5424(plain.token, MATCHING)), Buffer.from('\n')]),
  )
  await until('what is no header is a message', async () => (await plain.counts('tcp')).received > 0 || undefined)
  t.match(await plain.admin('ingest', 'sources'), [], 'its address is not used')
})

t.test('IPv4 and IPv6 share one listener', async (t) => {
  const service = await SyslogService.start(t, [
    '--syslog-tls',
    '[::]:0',
    '--syslog-tcp',
    '[::]:0',
    '--syslog-udp',
    '[::]:0',
  ])
  const message = `${rfc5424(service.token, MATCHING)}\n`
  for (const host of ['127.0.0.1', '::1']) {
    ;(await sendTcp(t, service.port('tcp'), { host })).send(message)
    ;(await sendTls(t, service.port('tls'), { host, caFile: service.certificateFile })).send(message)
    await sendUdp(service.port('udp'), [message], host)
  }
  for (const kind of ['tls', 'tcp', 'udp'] as const) t.match(await service.settled(kind, 2), { stored: 2 }, kind)
  const sources = await until('sources', async () => {
    const rows = await service.admin('ingest', 'sources', '--org', 'Acme')
    return rows.length === 6 ? rows : undefined
  })
  t.same(sources.map(({ listener, address }) => `${listener} ${address}`).sort(), [
    'tcp 127.0.0.1',
    'tcp ::1',
    'tls 127.0.0.1',
    'tls ::1',
    'udp 127.0.0.1',
    'udp ::1',
  ])
})

t.test('a kind may have several listeners or none', async (t) => {
  const several = await SyslogService.start(t, ['--syslog-tcp', '127.0.0.1:0,127.0.0.2:0'])
  t.same(
    several.service.syslog.map(({ kind, address }) => `${kind} ${address}`),
    ['tcp 127.0.0.1', 'tcp 127.0.0.2'],
  )
  const off = await startService(join(t.testdir(), 'off'), SYSLOG_OFF)
  t.teardown(() => off.child.kill('SIGKILL'))
  t.same(off.syslog, [])
  t.equal((await metricsOf(off.metricsPort)).get('posture_ingest_connections'), undefined)
})

t.test('an unavailable port is one error line that names the setting', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  const datagrams = createSocket('udp4')
  await new Promise<void>((resolve) => datagrams.bind(0, '127.0.0.1', resolve))
  t.teardown(() => datagrams.close())
  const unprivileged = [
    // tap's hooks write files as the user that started the tests.
    ...['env', '-u', 'NODE_OPTIONS'],
    'setpriv',
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    '--bounding-set=-all',
    '--inh-caps=-all',
  ]
  const rows: Readonly<Record<string, readonly [args: string[], code: string, through?: string[]]>> = {
    'in use, TCP': [['--syslog-tcp', `127.0.0.1:${port}`], 'PORT_TAKEN'],
    'in use, TLS': [['--syslog-tls', `127.0.0.1:${port}`], 'PORT_TAKEN'],
    'in use, UDP': [['--syslog-udp', `127.0.0.1:${datagrams.address().port}`], 'PORT_TAKEN'],
    'not permitted, TCP': [['--syslog-tcp', '127.0.0.1:514'], 'PORT_DENIED', unprivileged],
    'not permitted, TLS': [['--syslog-tls', '127.0.0.1:514'], 'PORT_DENIED', unprivileged],
    'not permitted, UDP': [['--syslog-udp', '127.0.0.1:514'], 'PORT_DENIED', unprivileged],
    'no such address': [['--syslog-udp', '203.0.113.1:0'], 'PORT_DENIED'],
  }
  for (const [name, [args, code, through]] of Object.entries(rows)) {
    const data = join(t.testdir(), 'data')
    mkdirSync(data)
    // Root refuses a directory in which others can write.
    if (through !== undefined) chmodSync(data, 0o777)
    const ports = [
      '--api-port',
      '0',
      '--console-port',
      'off',
      '--ingest-port',
      '0',
      '--metrics-port',
      '0',
      ...SYSLOG_OFF,
    ]
    const loopback = ['--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1']
    const { status, stderr } = await start('service', ['--data-dir', data, ...loopback, ...ports, ...args], {}, through)
      .ended
    const last = stderr.trim().split('\n').at(-1) ?? ''
    t.not(status, 0, name)
    t.match(last, new RegExp(`^posture-service: ${code} ${args[0]} `), `${name}: ${stderr}`)
  }
})

t.test("above a token's rate, TCP waits, UDP is counted, and nothing is lost", async (t) => {
  const RATE = 100
  const COUNT = 350
  const service = await SyslogService.start(t, [...SYSLOG_ON_LOOPBACK, '--token-max-messages-per-second', String(RATE)])
  const { token: other } = await organizationWithToken(service.data, 'Other', 'others')
  const [tcp, tls, free] = await Promise.all([
    sendTcp(t, service.port('tcp')),
    sendTls(t, service.port('tls'), { caFile: service.certificateFile }),
    sendTls(t, service.port('tls'), { caFile: service.certificateFile }),
  ])
  // By the clock of the allowance, which can be set forward.
  const startMs = Date.now()
  tcp.send(`${rfc5424(service.token, MATCHING)}\n`.repeat(COUNT - 150))
  tls.send(`${rfc5424(service.token, MATCHING)}\n`.repeat(150))
  tcp.socket.end()
  free.send(`${rfc5424(other, MATCHING)}\n`.repeat(50))
  const first = await until('the other token', async () => {
    const stored = (await service.metrics()).get(tokenMetric(await idOf(service, 'Other'), 'others'))
    return stored === 50 ? Date.now() - startMs : undefined
  })
  t.match(await service.settled('tcp', COUNT - 150), { stored: COUNT - 150 })
  t.match(await service.settled('tls', 200), { stored: 200 })
  const seconds = (Date.now() - startMs) / 1000
  // The allowance is per calendar second: 350 messages need four, two of them whole.
  t.ok(seconds >= Math.ceil(COUNT / RATE) - 2, `it took ${seconds} s`)
  t.ok(first < seconds * 1000, `the other token waited ${first} ms`)
  await sendUdp(service.port('udp'), new Array(RATE * 5).fill(rfc5424(service.token, MATCHING)))
  await until('each datagram is counted', async () => {
    const metrics = await service.metrics()
    const lost =
      (metrics.get('posture_ingest_datagrams_dropped_total{place="service"}') ?? 0) +
      (metrics.get('posture_ingest_datagrams_dropped_total{place="kernel"}') ?? 0)
    const { received, stored } = await service.counts('udp')
    return (lost > 0 && received + lost === RATE * 5 && stored === received) || undefined
  })
})

function tokenMetric(organization: string, label: string): string {
  return `posture_ingest_token_messages_total{organization="${organization}",token_label="${label}",outcome="stored"}`
}

async function idOf(service: SyslogService, name: string): Promise<string> {
  const rows = await service.admin('organization', 'list')
  return String(rows.find((row) => row['name'] === name)?.['id'])
}
