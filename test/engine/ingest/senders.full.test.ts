import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { REPOSITORY, run as runProgram } from '../../support/programs.ts'
import { rsyslog } from '../../support/rsyslog.ts'
import { type Counts, rfc5424, SyslogService, squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

const run = promisify(execFile)
const LINE_MATCHING = 'claude.ai'
const LINE_OTHER = 'www.example.com'

type Kind = 'tls' | 'tcp' | 'udp'

/** Checks the service's counters and accounting of one listener. */
async function checkCounters(t: Test, service: SyslogService, kind: Kind, expected: Partial<Counts>): Promise<void> {
  const messages = expected.received ?? 0
  const counts = await service.settled(kind, messages)
  t.match(counts, expected, 'counters')
  // The rows are written once a second.
  const row = await until('counters', async () => {
    const rows = await service.admin('ingest', 'counters')
    return rows.find((row) => row['listener'] === kind && row['messages'] === messages && row['in_progress'] === 0)
  })
  const { received: _received, noDomain, outsideDedupWindow, ...same } = counts
  t.match(row, { ...same, no_domain: noDomain, outside_dedup_window: outsideDedupWindow }, 'counters')
}

function lines(count: number): string[] {
  return Array.from({ length: count }, (_, index) => squid(index % 2 === 0 ? LINE_MATCHING : LINE_OTHER))
}

/** Runs `logger` once, which sends each line of a file as a message. */
async function logger(service: SyslogService, args: readonly string[], texts: readonly string[]): Promise<void> {
  const file = join(service.directory, 'logger-lines')
  writeFileSync(file, `${texts.join('\n')}\n`)
  await run('logger', ['--server', '127.0.0.1', '--file', file, ...args], { timeout: 30_000 })
}

const sd = (token: string): string[] => ['--sd-id', 'svc@00000', '--sd-param', `key="${token}"`]

t.test('messages of logger arrive', async (t) => {
  type Row = readonly [Kind, args: (token: string) => string[], bound?: true]
  const rows: Readonly<Record<string, Row>> = {
    'RFC 5424 over UDP': ['udp', (token) => ['--udp', '--rfc5424', ...sd(token)]],
    'RFC 5424 over TCP, lines': ['tcp', (token) => ['--tcp', '--rfc5424', ...sd(token)]],
    'RFC 5424 over TCP, octet counting': ['tcp', (token) => ['--tcp', '--rfc5424', '--octet-count', ...sd(token)]],
    'RFC 5424 without time and host': ['udp', (token) => ['--udp', '--rfc5424=notime,nohost,notq', ...sd(token)]],
    'RFC 3164 over UDP, from a bound address': ['udp', () => ['--udp', '--rfc3164'], true],
    'RFC 3164 over TCP, to a bound port': ['tcp', () => ['--tcp', '--rfc3164', '--id=77'], true],
    'RFC 3164 over TCP, octet counting': ['tcp', () => ['--tcp', '--rfc3164', '--octet-count'], true],
  }
  const service = await SyslogService.start(t)
  const [token] = await service.admin('token', 'list', '--org', 'Acme')
  const sent = { udp: 0, tcp: 0, tls: 0 }
  for (const [name, [kind, args, bound]] of Object.entries(rows)) {
    await t.test(name, async (t) => {
      if (bound === true) {
        const to = kind === 'udp' ? ['--address', '127.0.0.1'] : ['--port', String(service.port('tcp'))]
        await service.admin('token', 'bind', String(token?.['id']), '--org', 'Acme', ...to)
        // The service's view of bindings may be a second old.
        await new Promise((resolve) => setTimeout(resolve, 1100))
      }
      await logger(service, ['--port', String(service.port(kind)), ...args(service.token)], lines(20))
      sent[kind] += 20
      const half = sent[kind] / 2
      await checkCounters(t, service, kind, { received: sent[kind], stored: half, unmatched: half })
    })
  }
  const sources = await service.admin('ingest', 'sources', '--org', 'Acme')
  t.match(
    sources.filter(({ listener }) => listener === 'tcp')[0],
    { address: '127.0.0.1', token_label: 'devices', format: 'proxy-native', unparsed: 0 },
    'sources show it',
  )
  t.equal(
    sources.reduce((sum, { messages }) => sum + Number(messages), 0),
    sent.tcp + sent.udp,
  )
  t.same(service.stored().get(LINE_MATCHING), (sent.tcp + sent.udp) / 2, 'the right ones are in the buffer')
  t.same([...service.stored().keys()], [LINE_MATCHING])
})

t.test('messages of loggen arrive', async (t) => {
  const service = await SyslogService.start(t)
  const sdata = `[svc@00000 key="${service.token}"]`
  type Row = readonly [Kind, args: string[], count: number, outcome: keyof Counts]
  const rows: Readonly<Record<string, Row>> = {
    'its own text over TCP, octet counting': [
      'tcp',
      ['--inet', '--stream', '--syslog-proto', '--sdata', sdata],
      2000,
      'unknown',
    ],
    'over TCP in lines, ten connections': [
      'tcp',
      ['--inet', '--stream', '--syslog-proto', '--no-framing', '--active-connections', '10', '--sdata', sdata],
      500,
      'unknown',
    ],
    'over TLS, octet counting': ['tls', ['--use-ssl', '--syslog-proto', '--sdata', sdata], 2000, 'unknown'],
    'over UDP': ['udp', ['--inet', '--dgram', '--syslog-proto', '--no-framing', '--sdata', sdata], 500, 'unknown'],
    'over UDP, with a length before each datagram, which no RFC defines': [
      'udp',
      ['--inet', '--dgram', '--syslog-proto', '--sdata', sdata],
      500,
      'unknown',
    ],
    'without a token': ['tcp', ['--inet', '--stream'], 300, 'unauthorized'],
  }
  // openssl never reads. With TLS 1.3, the server's session tickets are then unread when openssl
  // closes. The kernel resets the connection, and data in flight is lost. TLS 1.2 sends the tickets
  // in the handshake.
  const settings = join(service.directory, 'openssl.conf')
  writeFileSync(
    settings,
    'openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = limits\n[limits]\nMaxProtocol = TLSv1.2\n',
  )
  const options = { timeout: 50_000, env: { ...process.env, OPENSSL_CONF: settings } }
  const sums = new Map<string, number>()
  const add = (key: string, count: number): number => {
    sums.set(key, (sums.get(key) ?? 0) + count)
    return sums.get(key) ?? 0
  }
  for (const [name, [kind, args, count, outcome]] of Object.entries(rows)) {
    await t.test(name, async (t) => {
      const target = ['--quiet', '--number', String(count), '--rate', '20000', '--interval', '30', '127.0.0.1']
      await run('loggen', [...args, ...target, String(service.port(kind))], options)
      const connections = args.includes('--active-connections') ? 10 : 1
      const received = add(kind, count * connections)
      await checkCounters(t, service, kind, { received, [outcome]: add(`${kind} ${outcome}`, count * connections) })
    })
  }

  await t.test('lines of a file arrive over each transport', async (t) => {
    const file = join(service.directory, 'loggen-lines')
    writeFileSync(
      file,
      `${lines(500)
        .map((line) => rfc5424(service.token, line))
        .join('\n')}\n`,
    )
    for (const [kind, transport] of [
      ['tcp', ['--inet', '--stream']],
      ['udp', ['--inet', '--dgram']],
      ['tls', ['--use-ssl']],
    ] as const) {
      const args = [...transport, '--read-file', file, '--dont-parse', '--number', '500', '--rate', '20000']
      const target = ['--interval', '30', '--quiet', '127.0.0.1', String(service.port(kind))]
      await run('loggen', [...args, ...target], options)
      await checkCounters(t, service, kind, { received: add(kind, 500), stored: 250, unmatched: 250 })
    }
    t.equal(service.stored().get(LINE_MATCHING), 750)
  })
})

t.test('lines of openssl s_client arrive over TLS', async (t) => {
  const service = await SyslogService.start(t)
  const args = ['s_client', '-quiet', '-no_ign_eof', '-verify_return_error', '-CAfile', service.certificateFile]
  const client = spawn('openssl', [...args, '-connect', `127.0.0.1:${service.port('tls')}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  t.teardown(() => client.kill('SIGKILL'))
  for (const line of lines(100)) client.stdin.write(`${rfc5424(service.token, line)}\n`)
  await checkCounters(t, service, 'tls', { received: 100, stored: 50, unmatched: 50 })
  client.stdin.end()
  await once(client, 'exit')
})

/** Lines as a device sends them to its relay: RFC 3164, without a token. */
function deviceLines(file: string, count: number): void {
  writeFileSync(
    file,
    `${lines(count)
      .map((line) => `<134>Nov 20 09:15:02 proxy-1 squid[4711]: ${line}`)
      .join('\n')}\n`,
  )
}

t.test('syslog-ng reads a file and forwards it with the token', async (t) => {
  const service = await SyslogService.start(t)
  for (const kind of ['tls', 'tcp', 'udp'] as const) {
    await t.test(`over ${kind}`, async (t) => {
      const directory = t.testdir()
      const input = join(directory, 'input')
      deviceLines(input, 400)
      const tls = kind === 'tls' ? `tls(ca-file("${service.certificateFile}") peer-verify(required-trusted))` : ''
      const target = `syslog("127.0.0.1" port(${service.port(kind)}) transport("${kind}") ${tls})`
      const configuration = join(directory, 'syslog-ng.conf')
      writeFileSync(
        configuration,
        `@version: 3.35
options { keep-hostname(yes); use-dns(no); dns-cache(no); };
source device { file("${input}" follow-freq(1)); };
rewrite token { set("${service.token}" value(".SDATA.svc@00000.key")); };
destination service { ${target}; };
log { source(device); rewrite(token); destination(service); };
`,
      )
      const files = ['-f', configuration, '-R', join(directory, 'persist'), '-c', join(directory, 'control')]
      const child = spawn('syslog-ng', ['-F', '--no-caps', ...files, '-p', join(directory, 'pid')], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let output = ''
      child.stderr.on('data', (chunk) => {
        output += chunk
      })
      t.teardown(async () => {
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
      })
      try {
        await checkCounters(t, service, kind, { received: 400, stored: 200, unmatched: 200 })
      } catch (error) {
        throw new Error(`${(error as Error).message}\n${output}`)
      }
    })
  }
  t.same(service.stored(), new Map([[LINE_MATCHING, 600]]))
})

t.test('rsyslog reads a file and forwards it with the token', async (t) => {
  const service = await SyslogService.start(t)
  for (const kind of ['tls', 'tcp', 'udp'] as const) {
    await t.test(`over ${kind}`, async (t) => {
      const directory = t.testdir()
      const input = join(directory, 'input')
      writeFileSync(input, `${lines(400).join('\n')}\n`)
      const tls =
        'StreamDriver="gtls" StreamDriverMode="1" StreamDriverAuthMode="x509/name" StreamDriverPermittedPeers="localhost"'
      const transport = {
        tls: `protocol="tcp" TCP_Framing="octet-counted" ${tls}`,
        tcp: 'protocol="tcp" TCP_Framing="octet-counted"',
        udp: 'protocol="udp"',
      }[kind]
      const template = `<%PRI%>1 %TIMESTAMP:::date-rfc3339% %HOSTNAME% squid - - [svc@00000 key=\\"${service.token}\\"] %msg%`
      const { output } = await rsyslog(t, directory, {
        caFile: service.certificateFile,
        configuration: `module(load="imfile")
template(name="service" type="string" string="${template}")
input(type="imfile" file="${input}" tag="squid:" facility="local0" severity="info")
action(type="omfwd" target="127.0.0.1" port="${service.port(kind)}" template="service" ${transport})
`,
      })
      try {
        await checkCounters(t, service, kind, { received: 400, stored: 200, unmatched: 200 })
      } catch (error) {
        throw new Error(`${(error as Error).message}\n${output.text}`)
      }
    })
  }
  t.same(service.stored(), new Map([[LINE_MATCHING, 600]]))
})

t.test('each event of our collector counts once, over syslog and HTTPS at the same time', async (t) => {
  const service = await SyslogService.start(t)
  const capture = join(REPOSITORY, 'test/captures/demo/input.pcap')
  let before = 0
  let storedBySyslog = 0
  for (const kind of ['tls', 'tcp', 'udp'] as const) {
    await t.test(`over ${kind}`, async (t) => {
      const outbox = join(t.testdir(), 'outbox')
      const target = ['--endpoint', 'localhost', '--service-ca-file', service.certificateFile]
      const transports = ['--https-port', String(service.service.ingestPort), '--syslog', '--syslog-protocol', kind]
      const args = ['--read', capture, '--outbox', outbox, ...target, ...transports]
      const { status, stderr } = await runProgram('collector', [...args, '--syslog-port', String(service.port(kind))], {
        SVC_TOKEN: service.token,
      })
      t.equal(status, 0, stderr)
      const events = Number(/"events":(\d+),/.exec(stderr)?.[1])
      t.ok(events > 50, stderr)
      const bySyslog = await service.settled(kind, events)
      const byHttps = await service.settled('https', before + events)
      t.equal(bySyslog.stored + bySyslog.duplicate, events, 'each is known by syslog')
      before += events
      storedBySyslog += bySyslog.stored
      t.equal(storedBySyslog + byHttps.stored, before, 'each is stored once')
    })
  }
})
