import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Aggregate } from '../../../collector/outbox/aggregate.ts'
import { MatchWriter } from '../../../collector/outbox/match-writer.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import { observeRows } from '../../../collector/pipeline/observe.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { compileTrie } from '../../../registry/compile-trie.ts'
import { addressBytes, ipFrame, u16, u32, udp } from '../../support/packets.ts'
import { type DnsRecord, dnsAnswer, dnsQuery, type QuestionType, wireName } from '../../support/packets-dns.ts'
import { pcapFile } from '../../support/packets-pcap.ts'

/* DNS answers of servers that block a name, from packets to the outbox. */

const CLIENT = '10.0.0.7'
const OTHER_CLIENT = '10.0.0.8'
const RESOLVER = '192.0.2.53'
const { rules } = loadCatalog()
const TRIE = compileTrie(rules)

const asked = (name: string, client = CLIENT, type: QuestionType = 'A'): Buffer =>
  ipFrame(
    { source: client, destination: RESOLVER },
    udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery([name], type)),
  )

interface Parts {
  readonly answers?: readonly DnsRecord[]
  readonly authorities?: readonly DnsRecord[]
  readonly additionals?: readonly DnsRecord[]
  readonly flags?: number
  readonly client?: string
}

function answered(name: string, parts: Parts): Buffer {
  const { answers = [], authorities = [], additionals = [], flags = 0x8180, client = CLIENT } = parts
  const message = dnsAnswer(name, [...answers, ...authorities, ...additionals], { flags, type: 1 })
  message.writeUInt16BE(answers.length, 6)
  message.writeUInt16BE(authorities.length, 8)
  message.writeUInt16BE(additionals.length, 10)
  return ipFrame({ source: RESOLVER, destination: client }, udp({ sourcePort: 53, destinationPort: 50_000 }, message))
}

const address = (text: string): DnsRecord => ({
  ...{ type: text.includes(':') ? 28 : 1, ttl: 60, data: addressBytes(text) },
})
const SOA: DnsRecord = {
  ...{ owner: wireName('rpz.example.com'), type: 6, ttl: 60 },
  data: Buffer.concat([wireName('a.example.com'), wireName('b.example.com'), ...[1, 2, 3, 4, 5].map(u32)]),
}
/** RFC 6891 §6.1.2, RFC 8914 §2. */
const edns = (...options: readonly (readonly [code: number, data: Buffer])[]): DnsRecord => ({
  ...{ owner: Buffer.alloc(1), type: 41, ttl: 0 },
  data: Buffer.concat(options.flatMap(([code, data]) => [u16(code), u16(data.length), data])),
})
const extendedError = (code: number): DnsRecord =>
  edns([10, Buffer.alloc(8)], [15, Buffer.concat([u16(code), Buffer.from('why')])])

const NXDOMAIN = 0x8183
const REFUSED = 0x8185

/** The events in the outbox: `method client name count/blocked`. */
async function eventsOf(t: Test, packets: readonly Buffer[]): Promise<string[]> {
  const directory = t.testdir()
  const path = join(directory, 'answers.pcap')
  writeFileSync(path, pcapFile(packets.map((bytes, index) => ({ bytes, timeMs: Date.UTC(2026, 10, 20) + index }))))
  const outbox = new Outbox(join(directory, 'outbox'))
  const writer = new MatchWriter(new Aggregate(60_000), () => outbox, {
    ...{ source: 'answers.pcap', rules: rules.length, onFull: () => {}, onWritten: () => {} },
  })
  const observation = await observeRows({ kind: 'file', path }, { trie: TRIE, lanes: 0 }, writer)
  await observation.done
  await writer.finish()
  t.equal(
    observation.counts.names,
    packets.filter((bytes) => bytes.readUInt16BE(36) === 53).length,
    'an answer is no name',
  )
  const waiting = outbox.peek(100, 1e6)?.events ?? []
  const events = waiting.map(
    ({ method, client, name, count, blocked = 0 }) => `${method} ${client} ${name} ${count}/${blocked}`,
  )
  await outbox.close()
  return events.sort()
}

const blocked: readonly [name: string, parts: Parts][] = [
  ...[
    '0.0.0.0',
    '127.0.0.1',
    '::',
    '::1',
    '146.112.61.106',
    '208.91.112.55',
    '2001:cdba::3257:9652',
    '198.135.184.22',
  ].map((text): [string, Parts] => [`the address ${text}`, { answers: [address(text)] }]),
  ['the SOA record of a policy zone, with NXDOMAIN', { flags: NXDOMAIN, additionals: [SOA] }],
  ['the SOA record of a policy zone, with an address', { answers: [address('192.0.2.9')], additionals: [SOA] }],
  ...[15, 16, 17].map((code): [string, Parts] => [
    `the extended error ${code}`,
    { flags: NXDOMAIN, authorities: [SOA], additionals: [extendedError(code)] },
  ]),
  ['an extended error of a refused query', { flags: REFUSED, additionals: [extendedError(15)] }],
  ['an extended error without any answer', { additionals: [extendedError(17)] }],
]

const allowed: readonly [name: string, parts: Parts][] = [
  ['an address', { answers: [address('203.0.113.9')], additionals: [edns()] }],
  ['NXDOMAIN alone', { flags: NXDOMAIN, authorities: [SOA], additionals: [edns()] }],
  ['a refused query', { flags: REFUSED }],
  ['another extended error', { flags: NXDOMAIN, additionals: [extendedError(3)] }],
  ['an extended error in bytes that the option does not have', { additionals: [edns([15, Buffer.alloc(1)])] }],
  ['addresses near those of block pages', { answers: [address('146.112.61.103'), address('::2'), address('1.0.0.0')] }],
]

for (const [name, parts] of blocked) {
  t.test(`${name} says that the query was blocked`, async (t) => {
    const events = await eventsOf(t, [
      ...[asked('claude.ai'), asked('claude.ai', CLIENT, 'AAAA'), asked('claude.ai', CLIENT, 'HTTPS')],
      ...[asked('claude.ai', OTHER_CLIENT), asked('chatgpt.com'), answered('claude.ai', parts)],
      asked('claude.ai', CLIENT, 'HTTPS'),
    ])
    t.same(events, [
      ...[`dns ${CLIENT} chatgpt.com 1/0`, `dns ${CLIENT} claude.ai 4/4`],
      `dns ${OTHER_CLIENT} claude.ai 1/0`,
    ])
  })
}

for (const [name, parts] of allowed) {
  t.test(`${name} says nothing of a block`, async (t) => {
    t.same(await eventsOf(t, [asked('claude.ai'), answered('claude.ai', parts)]), [`dns ${CLIENT} claude.ai 1/0`])
  })
}

t.test('an alias of a platform in a blocked answer is no event', async (t) => {
  const alias: DnsRecord = { type: 5, ttl: 60, data: wireName('claude.ai') }
  const last: DnsRecord = { ...address('0.0.0.0'), owner: wireName('claude.ai') }
  const packets = [asked('chat.example.com'), answered('chat.example.com', { answers: [alias, last] })]
  t.same(await eventsOf(t, packets), [])
})

t.test('a blocked answer without its query is no event', async (t) => {
  t.same(await eventsOf(t, [answered('claude.ai', { answers: [address('0.0.0.0')] })]), [])
})
