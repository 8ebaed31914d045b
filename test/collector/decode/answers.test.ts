import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CaptureFile } from '../../../collector/capture/capture-file.ts'
import { DNS_PORTS, TLS_PORTS } from '../../../collector/decode/ports.ts'
import { ANSWER_SECONDS_MAX, ANSWERS_MAX } from '../../../collector/limits.ts'
import { type ObservedName, observe } from '../../../collector/pipeline/observe.ts'
import { InlineObserver } from '../../../collector/pipeline/observe-inline.ts'
import { RESOLVERS } from '../../../collector/visibility.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { compileTrie } from '../../../registry/compile-trie.ts'
import { addressBytes, ethernet, ipv4, ipv6, type Transport, tcp, u16, udp } from '../../support/packets.ts'
import { type DnsRecord, dnsAnswer, dnsQuery, httpsRecord, wireName } from '../../support/packets-dns.ts'
import { pcapFile } from '../../support/packets-pcap.ts'
import { initialDatagrams } from '../../support/packets-quic.ts'
import { clientHello, encryptedClientHello, tlsRecords } from '../../support/packets-tls.ts'

const START_MS = Date.parse('2026-11-20T09:15:02Z')
const CLIENT = '10.0.0.7'
const CLIENT6 = '2001:db8::7'
const RESOLVER = '192.0.2.53'
const SERVER = '203.0.113.9'
const SERVER6 = '2001:db8:0:1::9'
const TRIE = compileTrie(loadCatalog().rules)

interface Step {
  readonly bytes: Buffer
  /** Seconds since the previous step. */
  readonly after?: number
}

function packet(source: string, destination: string, transport: Transport): Buffer {
  const network = source.includes(':')
    ? ipv6({ source, destination }, transport)
    : ipv4({ source, destination }, transport)
  return ethernet({}, network)
}

interface Answered {
  readonly client?: string
  readonly ttl?: number
  /** Names of CNAME records before the address. */
  readonly aliases?: readonly string[]
  readonly flags?: number
}

/** A response of the resolver with these records. */
function response(name: string, records: readonly DnsRecord[], options: Answered, type?: number): Step {
  const { client = CLIENT, flags = 0x8180 } = options
  const message = dnsAnswer(name, records, { flags, ...(type === undefined ? {} : { type }) })
  const resolver = client.includes(':') ? '2001:db8:53::1' : RESOLVER
  return { bytes: packet(resolver, client, udp({ sourcePort: 53, destinationPort: 50_000 }, message)) }
}

function answer(name: string, address = SERVER, options: Answered = {}): Step {
  const { ttl = 300, aliases = [] } = options
  const names = [name, ...aliases]
  const chain = aliases.map((alias, index) => {
    return { owner: wireName(names[index] ?? ''), type: 5, ttl, data: wireName(alias) }
  })
  const last = aliases.length === 0 ? {} : { owner: wireName(aliases.at(-1) ?? '') }
  const type = address.includes(':') ? 28 : 1
  return response(name, [...chain, { ...last, type, ttl, data: addressBytes(address) }], options, type)
}

const service = (name: string, parameters: Parameters<typeof httpsRecord>[0]): Step =>
  response(name, [httpsRecord(parameters)], {})

const ECH: readonly [number, Buffer] = [5, Buffer.alloc(60, 1)]

let nextPort = 40_000
function hello(
  fields: { serverName?: string; ech?: boolean; server?: string; client?: string; port?: number } = {},
): Step {
  const { serverName, ech = false, server = SERVER, client = CLIENT, port = 443 } = fields
  const bytes = clientHello({
    ...(serverName === undefined ? {} : { serverName }),
    ...(ech ? { moreExtensions: [encryptedClientHello()] } : {}),
  })
  return { bytes: packet(client, server, tcp({ sourcePort: nextPort++, destinationPort: port }, tlsRecords(bytes))) }
}

/** Q046, of Google's own QUIC. */
function quicOfUnknownVersion(): Step {
  const [bytes = Buffer.alloc(0)] = initialDatagrams(clientHello({ serverName: 'a.example' }), {
    ...{ dcid: Buffer.alloc(8, 7), datagrams: 1, version: 0x5130_3436 },
  })
  return { bytes: packet(CLIENT, SERVER, udp({ sourcePort: nextPort++, destinationPort: 443 }, bytes)) }
}

const query = (name: string): Step => ({
  bytes: packet(CLIENT, RESOLVER, udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery([name]))),
})
const later = (step: Step, seconds: number): Step => ({ ...step, after: seconds })

function captureOf(steps: readonly Step[]): Buffer {
  let timeMs = START_MS
  return pcapFile(
    steps.map(({ bytes, after = 0 }) => {
      timeMs += after * 1000 + 1
      return { bytes, timeMs }
    }),
  )
}

async function namesIn(t: Test, steps: readonly Step[]) {
  const path = join(t.testdir(), 'answers.pcap')
  writeFileSync(path, captureOf(steps))
  const names: ObservedName[] = []
  const { counts } = await new InlineObserver({
    ...{ trie: TRIE, resolvers: compileTrie(RESOLVERS), everyName: false },
    ...{ dnsPorts: DNS_PORTS, tlsPorts: TLS_PORTS, proxyPorts: [], loadBalancers: [] },
  }).observe(await CaptureFile.open(path), { onNames: (found) => names.push(...found) })
  return {
    path,
    counts,
    rows: names.map(({ method, name, client, server }) => `${method} ${name} ${client} ${server}`),
  }
}

const INFERRED = `tls_inferred claude.ai ${CLIENT} ${SERVER}`

const CASES: readonly { name: string; steps: readonly Step[]; rows?: readonly string[] }[] = [
  { name: 'a hello without a name', steps: [answer('claude.ai'), hello()], rows: [INFERRED] },
  { name: 'a hello with another name', steps: [answer('claude.ai'), hello({ serverName: 'other.example' })] },
  { name: 'no answer', steps: [hello()] },
  { name: 'an answer to another client', steps: [answer('claude.ai', SERVER, { client: '10.0.0.8' }), hello()] },
  { name: 'another address', steps: [answer('claude.ai', '203.0.113.10'), hello()] },
  {
    name: 'the same name in capitals, twice',
    steps: [answer('claude.ai'), answer('CLAUDE.ai'), hello()],
    rows: [INFERRED],
  },
  { name: 'another name of the same address', steps: [answer('claude.ai'), answer('other.example'), hello()] },
  { name: 'another platform of the same address', steps: [answer('claude.ai'), answer('chatgpt.com'), hello()] },
  {
    name: 'another name that has expired',
    steps: [answer('other.example', SERVER, { ttl: 30 }), later(answer('claude.ai'), 40), hello()],
    rows: [INFERRED],
  },
  { name: 'at the end of the time to live', steps: [answer('claude.ai'), later(hello(), 299)], rows: [INFERRED] },
  { name: 'after the time to live', steps: [answer('claude.ai'), later(hello(), 302)] },
  {
    name: 'a long time to live is limited',
    steps: [answer('claude.ai', SERVER, { ttl: 1_000_000 }), later(hello(), ANSWER_SECONDS_MAX + 2)],
  },
  {
    name: 'a time to live of 0 lasts for the connection that follows',
    steps: [answer('claude.ai', SERVER, { ttl: 0 }), hello()],
    rows: [INFERRED],
  },
  { name: 'an error', steps: [answer('claude.ai', SERVER, { flags: 0x8183 }), hello()] },
  {
    name: 'IPv6',
    steps: [answer('claude.ai', SERVER6, { client: CLIENT6 }), hello({ client: CLIENT6, server: SERVER6 })],
    rows: [`tls_inferred claude.ai ${CLIENT6} ${SERVER6}`],
  },
  {
    name: 'Encrypted Client Hello that the HTTPS record offers',
    steps: [answer('claude.ai'), service('claude.ai', [ECH]), hello({ serverName: 'public.example', ech: true })],
    rows: [INFERRED],
  },
  {
    name: 'GREASE where the HTTPS record offers none',
    steps: [answer('claude.ai'), service('claude.ai', [[3, u16(443)]]), hello({ serverName: 'x.example', ech: true })],
  },
  {
    name: 'GREASE without an HTTPS record',
    steps: [answer('claude.ai'), hello({ serverName: 'x.example', ech: true })],
  },
  {
    name: 'GREASE with the name of a platform',
    steps: [answer('claude.ai'), service('claude.ai', [ECH]), hello({ serverName: 'claude.ai', ech: true })],
    rows: [`tls claude.ai ${CLIENT} ${SERVER}`],
  },
  {
    name: 'an address that only the HTTPS record has',
    steps: [service('claude.ai', [[4, addressBytes(SERVER)]]), hello()],
    rows: [INFERRED],
  },
  {
    name: 'the port of the HTTPS record',
    steps: [answer('claude.ai'), service('claude.ai', [[3, u16(8443)]]), hello({ port: 8443 })],
    rows: [INFERRED],
  },
  {
    name: 'a QUIC connection of an unknown version',
    steps: [answer('claude.ai'), quicOfUnknownVersion()],
    rows: [`quic_inferred claude.ai ${CLIENT} ${SERVER}`],
  },
  {
    name: 'an alias that is a platform, asked by another name',
    steps: [query('ai.corp.example'), answer('ai.corp.example', SERVER, { aliases: ['cname.example', 'claude.ai'] })],
    rows: [`dns_alias claude.ai ${CLIENT} ${RESOLVER}`],
  },
  {
    name: 'an alias of a platform is no second match',
    steps: [query('claude.ai'), answer('claude.ai', SERVER, { aliases: ['chatgpt.com'] }), hello()],
    rows: [`dns claude.ai ${CLIENT} ${RESOLVER}`, INFERRED],
  },
]

for (const { name, steps, rows = [] } of CASES) {
  t.test(name, async (t) => {
    const found = await namesIn(t, steps)
    t.same(found.rows, rows)
    t.equal(found.counts.counters.helloExplained, rows.filter((row) => row.includes('_inferred')).length)
  })
}

t.test('every lane knows the answers', async (t) => {
  const clients = Array.from({ length: 40 }, (_, index) => `10.0.1.${index}`)
  const steps = clients.flatMap((client) => [answer('claude.ai', SERVER, { client }), hello({ client })])
  const { path, rows } = await namesIn(t, steps)
  t.equal(rows.length, clients.length)
  for (const lanes of [0, 1, 2, 3]) {
    const names: string[] = []
    const { done, counts } = await observe(
      { kind: 'file', path },
      {
        ...{ trie: TRIE, lanes },
        onNames: (found) =>
          void names.push(...found.map(({ method, name, client, server }) => `${method} ${name} ${client} ${server}`)),
      },
    )
    await done
    t.same(names, rows, `${lanes} lanes`)
    t.equal(counts.frames, steps.length, 'a frame counts once')
    t.equal(counts.classes.dnsResponse, clients.length)
  }
})

t.test('an address whose answer was evicted is ambiguous', async (t) => {
  const others = Array.from({ length: ANSWERS_MAX }, (_, index) =>
    answer('other.example', `198.18.${index >> 8}.${index & 255}`, { ttl: 3600 }),
  )
  const steps = [answer('other.example', SERVER, { ttl: 3600 }), ...others, answer('claude.ai'), hello()]
  const { rows, counts } = await namesIn(t, steps)
  t.same(rows, [])
  t.ok(counts.counters.answersEvicted > 0)
})
