import { BlockList, isIP } from 'node:net'
import t from 'tap'
import {
  addressBytes,
  canonicalAddress,
  clientOf,
  clientOfBytes,
  contains,
  networkOf,
} from '../../../../engine/kernel/process/network.ts'
import * as fc from '../../../support/property.ts'

const rows: { network: string; inside: string[]; outside: string[] }[] = [
  {
    network: '192.0.2.1',
    inside: ['192.0.2.1', '::ffff:192.0.2.1'],
    outside: ['192.0.2.2', '192.0.3.1', '::192.0.2.1'],
  },
  {
    network: '192.0.2.0/24',
    inside: ['192.0.2.0', '192.0.2.255'],
    outside: ['192.0.1.255', '192.0.3.0', '2001:db8::'],
  },
  { network: '192.0.2.77/24', inside: ['192.0.2.1'], outside: ['192.0.3.77'] },
  { network: '192.0.2.128/25', inside: ['192.0.2.128'], outside: ['192.0.2.127'] },
  { network: '0.0.0.0/0', inside: ['0.0.0.0', '255.255.255.255'], outside: ['::1', '2001:db8::1'] },
  { network: '192.0.2.1/32', inside: ['192.0.2.1'], outside: ['192.0.2.0'] },
  { network: '2001:db8::/32', inside: ['2001:db8::', '2001:db8:ffff::1'], outside: ['2001:db9::', '192.0.2.1'] },
  { network: '2001:db8::1', inside: ['2001:DB8:0:0::1', '2001:db8::1%eth0'], outside: ['2001:db8::2'] },
  { network: '2001:db8::/33', inside: ['2001:db8:7fff::'], outside: ['2001:db8:8000::'] },
  { network: '::/0', inside: ['::', 'ffff::', '192.0.2.1'], outside: [] },
  { network: '::ffff:192.0.2.0/120', inside: ['192.0.2.9'], outside: ['192.0.3.9'] },
]

for (const { network, inside, outside } of rows) {
  t.test(`${network} contains the right addresses`, async (t) => {
    const parsed = networkOf(network)
    if (parsed === undefined) throw new Error('no network')
    const has = (address: string): boolean => {
      const bytes = addressBytes(address)
      return bytes !== undefined && contains(parsed, bytes)
    }
    for (const address of inside) t.ok(has(address), address)
    for (const address of outside) t.notOk(has(address), address)
  })
}

for (const text of [
  ...[
    '',
    '/',
    '192.0.2',
    '192.0.2.256',
    '192.0.2.0/33',
    '192.0.2.0/-1',
    '192.0.2.0/',
    '192.0.2.0/24/24',
    '192.0.2.0/ 24',
  ],
  ...['2001:db8::/129', '2001:db8::/x', '2001:db8::1::', ':::', 'example.com', '01.2.3.4', '192.0.2.0/1e1', '/24'],
]) {
  t.test(`${JSON.stringify(text)} is not a network`, async (t) => t.equal(networkOf(text), undefined))
}

const canonical: [string, string][] = [
  ['192.0.2.1', '192.0.2.1'],
  ['::FFFF:192.0.2.1', '192.0.2.1'],
  ['::ffff:c000:201', '192.0.2.1'],
  ['2001:0DB8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['::', '::'],
  ['::1', '::1'],
  ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ['somebody', 'somebody'],
  ['', ''],
  ['1.2.3.4.5', '1.2.3.4.5'],
]
for (const [text, expected] of canonical) {
  t.test(`${JSON.stringify(text)} has the canonical form ${JSON.stringify(expected)}`, async (t) => {
    t.equal(canonicalAddress(text), expected)
    t.equal(canonicalAddress(expected), expected, 'and stays so')
  })
}

const ipv4 = fc.ipV4()
const ipv6 = fc.ipV6()

t.test('the check agrees with node:net on any address and network of one family', async () => {
  const both = fc.oneof(
    fc.record({ kind: fc.constant('ipv4' as const), one: ipv4, other: ipv4, bits: fc.nat(32) }),
    fc.record({ kind: fc.constant('ipv6' as const), one: ipv6, other: ipv6, bits: fc.nat(128) }),
  )
  fc.assert(
    fc.property(both, fc.boolean(), fc.nat(15), fc.nat(255), ({ kind, one, other, bits }, near, place, value) => {
      // Two random addresses are never in one network, so half of the pairs differ in one byte
      // only.
      const address = near ? changed(one, kind, place, value) : other
      const bytes = addressBytes(address)
      const network = networkOf(`${one}/${bits}`)
      if (bytes === undefined || network === undefined) return false
      const list = new BlockList()
      list.addSubnet(one, bits, kind)
      const mapped = kind === 'ipv6' && isIP(canonicalAddress(address)) === 4
      return mapped || contains(network, bytes) === list.check(address, kind)
    }),
    { numRuns: 3000 },
  )
})

function changed(address: string, kind: 'ipv4' | 'ipv6', place: number, value: number): string {
  const bytes = addressBytes(address) as Uint8Array
  if (kind === 'ipv4') {
    bytes[12 + (place % 4)] = value
    return bytes.subarray(12).join('.')
  }
  bytes[place] = value
  return Array.from({ length: 8 }, (_, index) =>
    (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16),
  ).join(':')
}

t.test('the canonical form denotes the same address, and is unique', async () => {
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), (address) => {
      const form = canonicalAddress(address)
      const same = Buffer.compare(addressBytes(form) ?? Buffer.alloc(0), addressBytes(address) ?? Buffer.alloc(1)) === 0
      return same && canonicalAddress(form) === form && canonicalAddress(address.toUpperCase()) === form
    }),
    { numRuns: 2000 },
  )
})

t.test('no text causes an exception', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f:./%]{0,40}$/)), (text) => {
      networkOf(text)
      return typeof canonicalAddress(text) === 'string'
    }),
    { numRuns: 3000 },
  )
})

for (const [address, expected] of [
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['0000:0000:0000:0000:0000:ffff:c000:0201', '192.0.2.1'],
  ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
  ['2001:db8:1:2:ffff::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8::/64'],
  ['::1', '::/64'],
  ['fe80::1%eth0', 'fe80::/64'],
  ['', ''],
  ['somebody', 'somebody'],
] as const) {
  t.test(`${JSON.stringify(address)} counts as ${JSON.stringify(expected)}`, async (t) => {
    t.equal(clientOf(address), expected)
    const bytes = addressBytes(address)
    if (bytes !== undefined) t.equal(clientOfBytes(bytes), expected)
  })
}

t.test('four bytes are an IPv4 address, and none are no address', async (t) => {
  t.equal(clientOfBytes(Uint8Array.of(192, 0, 2, 1)), '192.0.2.1')
  t.equal(clientOfBytes(new Uint8Array(0)), '')
})
