import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { LiveState } from '../../collector/capture/live.ts'
import { ethernet, ipFrame, ipv4, ipv6, type NetworkPacket, tcp, udp, vlan } from '../support/packets.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import { framesAt, pcapFile } from '../support/packets-pcap.ts'
import { applicationData, clientHello, tlsRecords } from '../support/packets-tls.ts'
import { until } from '../support/wait.ts'

/**
 * Live capture between two ends of a veth pair in network namespaces. Requires root and iproute2.
 * The pcap addon in another process sends raw frames, so no addresses are needed.
 */
const canMakeNamespaces =
  process.getuid?.() === 0 && ['/sbin/ip', '/usr/sbin/ip', '/bin/ip'].some((path) => existsSync(path))
// On a developer's machine, the tests are skipped with this reason. In CI nothing is skipped: the
// tests run, and fail without root.
const skip = canMakeNamespaces || process.env['CI'] !== undefined ? false : 'needs root and iproute2'
const NAMESPACE = `spsobs${process.pid}`
const ip = (...words: string[]) => execFileSync('ip', words, { stdio: 'pipe' })
const inNamespace = (...words: string[]) => ['netns', 'exec', NAMESPACE, ...words]

/**
 * Runs in the namespace. Prints JSON lines: "ready", every name, the capture's state when it
 * changes, and at SIGTERM the counts. Between two SIGUSR2 signals it reads nothing from the
 * capture, so that the capture runs out of batches.
 */
const OBSERVER = `
  import { observe } from ${JSON.stringify(new URL('../../collector/pipeline/observe.js', import.meta.url).href)}
  import { TRIE } from ${JSON.stringify(new URL('./decode-frames.js', import.meta.url).href)}
  const { lanes, ...source } = JSON.parse(process.argv[1])
  let go, held
  process.on('SIGUSR2', () => { if (held) { go(); held = undefined } else held = new Promise((resolve) => { go = resolve }) })
  try {
    const observation = await observe(source, { trie: TRIE, lanes: lanes ?? 2, everyName: true,
      onNames: async (names, { framesDone }) => {
        await held
        for (const name of names) console.log(JSON.stringify({ ...name, framesDone }))
      } })
    console.log('ready')
    let reported = ''
    setInterval(() => {
      const { live } = observation
      const brief = JSON.stringify([live?.filter, live?.lost, live?.reopened])
      if (brief !== reported) console.log(JSON.stringify({ live }))
      reported = brief
    }, 50).unref()
    process.once('SIGTERM', () => observation.stop())
    const { damage } = await observation.done
    console.log(JSON.stringify({ counts: observation.counts, live: observation.live, damage: damage?.message }))
  } catch (error) {
    console.log(JSON.stringify({ code: error.code, message: error.message }))
  }`

const SENDER = `
  import { createRequire } from 'node:module'
  import { readFileSync } from 'node:fs'
  const { PcapSession } = createRequire(${JSON.stringify(import.meta.url)})('pcap/build/Release/pcap_binding.node')
  const session = new PcapSession()
  session.open_live(process.argv[1], '', 1 << 20, 65535, '', () => {}, false, 100, () => {}, false)
  const bytes = readFileSync(process.argv[2])
  // Little-endian records after a header of 24 bytes, as pcapFile() writes them.
  for (let at = 24; at < bytes.length; ) {
    const captured = bytes.readUInt32LE(at + 8)
    session.inject(Buffer.from(bytes.subarray(at + 16, at + 16 + captured)))
    at += 16 + captured
  }`

interface Line {
  readonly name?: string
  readonly framesDone?: number
  readonly code?: string
  readonly message?: string
  readonly damage?: string
  readonly counts?: { frames: number; names: number; classes: Record<string, number> }
  readonly live?: LiveState
}

const children: ChildProcess[] = []

/** An observer in the namespace, and its output so far. */
function observer(source: object) {
  const child = spawn(
    'ip',
    inNamespace(process.execPath, '--input-type=module', '-e', OBSERVER, JSON.stringify(source)),
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {},
    },
  )
  children.push(child)
  let rest = ''
  let ready = false
  const parsed: Line[] = []
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === 'ready') ready = true
      else parsed.push(JSON.parse(line) as Line)
    }
  })
  const watch = (what: string, holds: () => boolean) =>
    until(() => `${what}; last output of the observer: ${JSON.stringify(parsed.slice(-3))}`, holds)
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  return {
    lines: () => parsed,
    until: watch,
    exited,
    ready: () => watch('ready', () => ready),
    names: () => parsed.flatMap(({ name }) => name ?? []),
    live: () => parsed.findLast(({ live }) => live !== undefined)?.live,
    hold: () => child.kill('SIGUSR2'),
    stop: () => child.kill('SIGTERM'),
  }
}

const addresses = { source: '10.9.0.1', destination: '10.9.0.2' }
const addresses6 = { source: '2001:db8::1', destination: '2001:db8::2' }
const query = (name: string) => udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery([name]))
const hello = (name: string) =>
  tcp({ sourcePort: 50_001, destinationPort: 443 }, tlsRecords(clientHello({ serverName: name })))

t.before(() => {
  if (skip !== false) return
  ip('netns', 'add', NAMESPACE)
  // Disables IPv6, so that no neighbor discovery packets are captured.
  for (const which of ['all', 'default']) {
    ip(...inNamespace('sysctl', '-qw', `net.ipv6.conf.${which}.disable_ipv6=1`))
  }
  ip(...inNamespace('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'))
  ip(...inNamespace('ip', 'link', 'set', 'near', 'up'))
  ip(...inNamespace('ip', 'link', 'set', 'far', 'up'))
  ip(...inNamespace('ip', 'link', 'set', 'lo', 'up'))
})
t.teardown(() => {
  for (const child of children) child.kill('SIGKILL')
  if (skip === false) ip('netns', 'delete', NAMESPACE)
})

function send(path: string, from = 'near'): void {
  ip(...inNamespace(process.execPath, '--input-type=module', '-e', SENDER, from, path))
}

t.test('names arrive within a flush, and the kernel filters the other packets', { skip }, async (t) => {
  const long = tlsRecords(clientHello({ serverName: 'pq.claude.ai', serverNameLast: true, postQuantum: true }))
  const packets: NetworkPacket[] = [
    ipv4(addresses, query('claude.ai')),
    ipv4(addresses, hello('chatgpt.com')),
    ipv6(addresses6, query('six.example.org')),
    ipv6(addresses6, hello('six.claude.ai')),
    vlan(7, ipv4(addresses, query('tagged.example.org'))),
    vlan(5, vlan(6, vlan(7, ipv4(addresses, query('three-tags.example.org')))), 0x88a8),
    ipv4(addresses, tcp({ sourcePort: 50_002, destinationPort: 443, sequence: 1461 }, long.subarray(1460))),
    ipv4(addresses, tcp({ sourcePort: 50_002, destinationPort: 443 }, long.subarray(0, 1460))),
    ipv4(addresses, tcp({ sourcePort: 443, destinationPort: 50_001 }, applicationData(Buffer.alloc(500)))),
    ipv4(addresses, udp({ sourcePort: 50_003, destinationPort: 443 }, Buffer.alloc(1200, 0x40))),
    ipv4(addresses, tcp({ sourcePort: 50_001, destinationPort: 443 })),
    ipv4(addresses, udp({ sourcePort: 50_000, destinationPort: 5353 }, dnsQuery(['printer.local']))),
  ]
  const path = `${t.testdir({
    'sent.pcap': pcapFile(
      framesAt(
        0,
        packets.map((packet) => ethernet({}, packet)),
      ),
    ),
  })}/sent.pcap`
  const watching = observer({ kind: 'interface', name: 'far' })
  await watching.ready()
  send(path)
  await watching.until('seven names', () => watching.names().length >= 7)
  watching.stop()
  t.equal(await watching.exited, 0, 'the process ends by itself: the addon keeps nothing open')
  t.same(watching.names().sort(), [
    'chatgpt.com',
    'claude.ai',
    'pq.claude.ai',
    'six.claude.ai',
    'six.example.org',
    'tagged.example.org',
    'three-tags.example.org',
  ])
  const { counts, live } = watching.lines().at(-1) ?? {}
  t.equal(counts?.frames, 8, 'what a server sends, an ACK, QUIC after its handshake and mDNS stay in the kernel')
  t.match(live, { received: 8, taken: 8, seenByBoth: 0, dropped: { kernel: 0, pool: 0, unread: 0 }, filter: 'wide' })
})

// Linux drops packets on a veth when more than net.core.netdev_max_backlog (1,000) wait for a CPU.
// A burst is smaller, and the next one starts when the capture has seen it, so that a busy machine
// drops nothing.
const BURST_PACKETS = 900
const BURSTS = 20

t.test('bursts of queries arrive whole and in order', { skip }, async (t) => {
  const names = Array.from({ length: BURSTS * BURST_PACKETS }, (_query, index) => `n${index}.example.org`)
  const frames = names.map((name) => ipFrame(addresses, query(name)))
  const directory = t.testdir()
  const watching = observer({ kind: 'interface', name: 'far' })
  await watching.ready()
  for (let end = BURST_PACKETS; end <= names.length; end += BURST_PACKETS) {
    const path = join(directory, `${end}.pcap`)
    writeFileSync(path, pcapFile(framesAt(0, frames.slice(end - BURST_PACKETS, end))))
    send(path)
    await watching.until(`${end} names`, () => watching.names().length >= end)
  }
  watching.stop()
  t.equal(await watching.exited, 0)
  t.same(watching.names(), names)
  t.equal(watching.lines().at(-1)?.counts?.frames, names.length)
})

t.test('packets truncated by the snaplen are counted', { skip }, async (t) => {
  const path = `${t.testdir({ 'sent.pcap': pcapFile(framesAt(0, [ipFrame(addresses, query('claude.ai'))])) })}/sent.pcap`
  const watching = observer({
    kind: 'interface',
    name: 'far',
    snaplenBytes: 60,
    expression: 'udp port 53',
    promiscuous: true,
  })
  await watching.ready()
  send(path)
  await new Promise((resolve) => setTimeout(resolve, 400))
  watching.stop()
  await watching.exited
  t.match(watching.lines().at(-1)?.counts?.classes, { truncated: 1 })
})

/** Writes a capture file with queries for these names. */
function queriesFile(t: Test, names: readonly string[]): string {
  const frames = names.map((name) => ipFrame(addresses, query(name)))
  return `${t.testdir({ 'queries.pcap': pcapFile(framesAt(0, frames)) })}/queries.pcap`
}

const COUNTERS_BALANCE = (live: LiveState | undefined, frames: number | undefined) => {
  if (live === undefined) return 'no figures'
  const { received, taken, seenByBoth, skipped, dropped } = live
  const places = taken + seenByBoth + skipped + dropped.kernel + dropped.pool + dropped.unread
  return received === places && taken === frames ? 'balanced' : JSON.stringify({ live, frames })
}

t.test('the capture continues when the interface goes down and up', { skip }, async (t) => {
  const path = queriesFile(t, ['claude.ai'])
  const watching = observer({ kind: 'interface', name: 'far' })
  await watching.ready()
  ip(...inNamespace('ip', 'link', 'set', 'far', 'down'))
  await new Promise((resolve) => setTimeout(resolve, 300))
  ip(...inNamespace('ip', 'link', 'set', 'far', 'up'))
  send(path)
  await watching.until('a name', () => watching.names().length > 0)
  watching.stop()
  t.equal(await watching.exited, 0)
  t.match(watching.live(), { lost: '', reopened: 0 })
})

t.test('the capture resumes when the interface disappears and returns', { skip }, async (t) => {
  const path = queriesFile(t, ['claude.ai'])
  const pair = ['ip', 'link', 'add', 'gone0', 'type', 'veth', 'peer', 'name', 'near1']
  const appear = () => {
    ip(...inNamespace(...pair))
    for (const end of ['gone0', 'near1']) ip(...inNamespace('ip', 'link', 'set', end, 'up'))
  }
  appear()
  const watching = observer({ kind: 'interface', name: 'gone0', lanes: 0 })
  await watching.ready()
  ip(...inNamespace('ip', 'link', 'delete', 'gone0'))
  await watching.until('the loss', () => /^gone0: /.test(watching.live()?.lost ?? ''))
  appear()
  await watching.until('the return', () => watching.live()?.reopened === 1)
  t.equal(watching.live()?.lost, '')
  send(path, 'near1')
  await watching.until('a name', () => watching.names().length > 0)
  watching.stop()
  t.equal(await watching.exited, 0)
  t.equal(COUNTERS_BALANCE(watching.live(), watching.lines().at(-1)?.counts?.frames), 'balanced')
})

t.test('the filter narrows under load and widens afterwards', { skip }, async (t) => {
  const upload = ipFrame(addresses, tcp({ sourcePort: 50_004, destinationPort: 443 }, Buffer.alloc(900, 0x17)))
  const queries = Array.from({ length: 2000 }, (_name, index) => ipFrame(addresses, query(`n${index}.test`)))
  const dir = t.testdir({
    'upload.pcap': pcapFile(framesAt(0, [upload])),
    'hello.pcap': pcapFile(framesAt(0, [upload, ipFrame(addresses, hello('chatgpt.com')), upload])),
    'flood.pcap': pcapFile(framesAt(0, queries)),
  })
  // No batch is read, so they run out at once.
  const watching = observer({ kind: 'interface', name: 'far', lanes: 0, widenAfterSeconds: 3 })
  await watching.ready()
  watching.hold()
  const flooding = setInterval(() => send(`${dir}/flood.pcap`), 100)
  await watching.until('a narrow filter', () => watching.live()?.filter === 'narrow')
  clearInterval(flooding)
  watching.hold()
  send(`${dir}/hello.pcap`)
  await watching.until('the hello', () => watching.names().includes('chatgpt.com'))
  await watching.until('a wide filter', () => watching.live()?.filter === 'wide')
  send(`${dir}/upload.pcap`)
  await new Promise((resolve) => setTimeout(resolve, 400))
  watching.stop()
  t.equal(await watching.exited, 0)
  const { counts, live } = watching.lines().at(-1) ?? {}
  t.equal(counts?.classes['tcpOther'], 1, 'of three uploads, only the one after the pressure reached user space')
  t.equal(COUNTERS_BALANCE(live, counts?.frames), 'balanced')
  t.ok((live?.dropped.pool ?? 0) > 0)
})

t.test('any and lo can be captured, and show each packet once', { skip }, async (t) => {
  for (const name of ['any', 'lo']) {
    const watching = observer({ kind: 'interface', name, lanes: 0 })
    await watching.ready()
    ip(
      ...inNamespace(
        process.execPath,
        '-e',
        `const s = require('node:dgram').createSocket('udp4')
         s.send(Buffer.from('${dnsQuery(['claude.ai']).toString('hex')}', 'hex'), 53, '127.0.0.1', () => s.close())`,
      ),
    )
    await watching.until('a name', () => watching.names().length > 0)
    watching.stop()
    t.equal(await watching.exited, 0)
    t.same(watching.names(), ['claude.ai'])
    t.equal(COUNTERS_BALANCE(watching.live(), watching.lines().at(-1)?.counts?.frames), 'balanced')
  }
})

t.test('an interface that cannot be captured is one error line', { skip }, async (t) => {
  const rows: readonly { source: object; code: string; expected: RegExp }[] = [
    {
      source: { kind: 'interface', name: 'none0' },
      code: 'CAPTURE_DENIED',
      expected: /^none0: no such interface; available: .*far.*\(posture-collector --list-interfaces\)$/,
    },
    {
      source: { kind: 'interface', name: 'far', expression: 'udp prt 53' },
      code: 'USAGE',
      expected: /^--capture-filter: "udp prt 53": can't parse filter expression/,
    },
    {
      source: { kind: 'interface', name: 'far', expression: 'udp) or (tcp' },
      code: 'USAGE',
      expected: /^--capture-filter: "udp\) or \(tcp": unbalanced parentheses/,
    },
  ]
  for (const { source, code, expected } of rows) {
    const refused = observer(source)
    await refused.exited
    t.equal(refused.lines()[0]?.code, code)
    t.match(refused.lines()[0]?.message, expected)
  }
})
