import { spawnSync } from 'node:child_process'
import type { LookupAddress } from 'node:dns'
import { BlockList, createServer } from 'node:net'
import t from 'tap'
import { addressBytes, type Network, networkOf } from '../../../../engine/kernel/process/network.ts'
import {
  checkAddress,
  checkedLookup,
  connectChecked,
  isAllowedTarget,
  type ResolveAll,
  TARGET_REFUSED,
  TargetRefused,
} from '../../../../engine/kernel/process/outbound-address.ts'
import { listenOn } from '../../../support/free-port.ts'
import * as fc from '../../../support/property.ts'

function networks(...texts: readonly string[]): Network[] {
  return texts.map((text) => networkOf(text) as Network)
}

const refused: readonly { readonly why: string; readonly addresses: readonly string[] }[] = [
  { why: 'unspecified', addresses: ['0.0.0.0', '0.1.2.3', '::', '0:0:0:0:0:0:0:0'] },
  { why: 'loopback', addresses: ['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'] },
  { why: 'private use', addresses: ['10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1'] },
  { why: 'carrier-grade NAT', addresses: ['100.64.0.0', '100.127.255.255', '100.100.100.200'] },
  { why: 'link-local', addresses: ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'] },
  {
    why: 'metadata of clouds',
    addresses: ['169.254.169.254', '169.254.170.2', 'fd00:ec2::254', '192.0.0.192', '168.63.129.16'],
  },
  { why: 'unique local', addresses: ['fc00::1', 'fdff:ffff::1'] },
  { why: 'site-local', addresses: ['fec0::1'] },
  { why: 'multicast', addresses: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'] },
  { why: 'reserved and broadcast', addresses: ['240.0.0.1', '255.255.255.255'] },
  { why: 'documentation', addresses: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'] },
  { why: 'benchmarks and protocols', addresses: ['198.18.0.1', '198.19.255.255', '192.0.0.1', '192.88.99.1'] },
  { why: 'IPv4-mapped', addresses: ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::FFFF:A9FE:A9FE'] },
  { why: 'IPv4-compatible', addresses: ['::127.0.0.1', '::8.8.8.8'] },
  { why: 'IPv4-translated', addresses: ['::ffff:0:127.0.0.1', '::ffff:0:8.8.8.8'] },
  { why: 'NAT64', addresses: ['64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::10.0.0.1', '64:ff9b:1::8.8.8.8'] },
  { why: '6to4 and Teredo', addresses: ['2002:7f00:1::1', '2002:808:808::1', '2001::1', '2001:0:808:808::1'] },
  { why: 'not assigned', addresses: ['4000::1', '100::1', '1fff::1', '5f00::1'] },
  {
    why: 'not an address',
    addresses: ['', 'localhost', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', '[::1]', '8.8.8.8/32', '8.8.8.8 '],
  },
]

for (const { why, addresses } of refused) {
  t.test(`no connection: ${why}`, async (t) => {
    for (const address of addresses) t.notOk(isAllowedTarget(address, []), address)
  })
}

t.test('public addresses are allowed, also next to the refused networks', async (t) => {
  for (const address of [
    ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
    ...['128.0.0.0', '168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
    ...['172.32.0.0', '192.0.1.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
    ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2001:200::1', '2003::1', '2a00:1450::1', '3ffe::1'],
    ...['::ffff:8.8.8.8', '::ffff:808:808', '64:ff9b::8.8.8.8', '64:ff9b::808:808'],
  ]) {
    t.ok(isAllowedTarget(address, []), address)
  }
})

t.test("this machine's own networks are refused unless allowed, though their addresses are public", async (t) => {
  const own = networks('11.22.33.44/24', '2600:1f18:1:2::5/64', '5.6.7.8/32')
  for (const [address, isAllowed] of [
    ['11.22.33.44', false],
    ['11.22.33.1', false],
    ['::ffff:11.22.33.1', false],
    ['64:ff9b::11.22.33.1', false],
    ['11.22.34.1', true],
    ['2600:1f18:1:2::1', false],
    ['2600:1f18:1:3::1', true],
    ['5.6.7.8', false],
    ['5.6.7.9', true],
  ] as const) {
    t.equal(isAllowedTarget(address, [], own), isAllowed, address)
    t.ok(isAllowedTarget(address, networks('11.22.33.0/24', '2600:1f18:1:2::/64', '5.6.7.8'), own), address)
  }
})

t.test(
  'an address of an interface is one of its own networks',
  { skip: process.getuid?.() === 0 ? false : 'needs root' },
  async (t) => {
    const script = `
    const { isAllowedTarget } = await import(${JSON.stringify(new URL('../../../../engine/kernel/process/outbound-address.js', import.meta.url).href)})
    console.log(['11.22.33.44', '11.22.33.1', '11.22.34.1', '2600:1f18:1:2::1', '8.8.9.9', '2600:1f18:1:4::1', '9.9.9.9', '2600:1f18:1:5::1'].map((address) => isAllowedTarget(address, [])).join())`
    const commands = [
      'ip link add one type veth peer name two',
      'ip link set one up',
      'ip link set two up',
      'ip address add 11.22.33.44/24 dev one',
      'ip address add 2600:1f18:1:2::5/64 dev one nodad',
      'ip route add 8.8.9.0/24 dev one',
      'ip -6 route add 2600:1f18:1:4::/64 dev one',
      'ip route add default via 11.22.33.1',
      'ip -6 route add default via 2600:1f18:1:2::1',
      'ip route add 0.0.0.0/1 dev one',
      `exec ${process.execPath} --input-type=module -e "$1"`,
    ]
    const { stdout, stderr } = spawnSync('unshare', ['--net', 'sh', '-ec', commands.join('\n'), 'sh', script], {
      encoding: 'utf8',
    })
    t.equal(stdout, 'false,false,true,false,false,false,true,true\n', stderr)
  },
)

const settings: {
  readonly allowed: readonly string[]
  readonly yes: readonly string[]
  readonly no: readonly string[]
}[] = [
  {
    allowed: ['10.1.0.0/16'],
    yes: ['10.1.2.3', '::ffff:10.1.2.3', '64:ff9b::10.1.2.3', '8.8.8.8'],
    no: ['10.2.0.1', '127.0.0.1', '64:ff9b::10.2.0.1'],
  },
  { allowed: ['127.0.0.0/8', '::1'], yes: ['127.0.0.1', '::1'], no: ['::2', '169.254.169.254', '0.0.0.0'] },
  { allowed: ['fd12:3456::/32'], yes: ['fd12:3456::1'], no: ['fd00:ec2::254', '10.0.0.1'] },
  { allowed: ['fe80::/10'], yes: ['fe80::1%eth0'], no: ['fec0::1'] },
  { allowed: ['0.0.0.0/0'], yes: ['127.0.0.1', '169.254.169.254', '64:ff9b::10.0.0.1'], no: ['::1', 'fd00::1'] },
]
for (const { allowed, yes, no } of settings) {
  t.test(`the setting ${allowed} allows its network and no other`, async (t) => {
    for (const address of yes) t.ok(isAllowedTarget(address, networks(...allowed)), address)
    for (const address of no) t.notOk(isAllowedTarget(address, networks(...allowed)), address)
  })
}

t.test('every form of an IPv4 address counts as the address', async () => {
  const loopbackOrPrivate = new BlockList()
  for (const [network, bits] of [
    ['127.0.0.0', 8],
    ['10.0.0.0', 8],
    ['169.254.0.0', 16],
  ] as const) {
    loopbackOrPrivate.addSubnet(network, bits)
  }
  const near = fc.tuple(fc.constantFrom('127', '10', '169.254', '8', '1'), fc.ipV4()).map(([first, rest]) => {
    return [...first.split('.'), ...rest.split('.')].slice(0, 4).join('.')
  })
  fc.assert(
    fc.property(near, (ipv4) => {
      const hex = Buffer.from((addressBytes(ipv4) as Uint8Array).subarray(12)).toString('hex')
      const groups = `${hex.slice(0, 4)}:${hex.slice(4)}`
      const forms = [`::ffff:${ipv4}`, `::ffff:${groups}`, `0:0:0:0:0:FFFF:${groups}`, `64:ff9b::${groups}`]
      const expected = isAllowedTarget(ipv4, [])
      if (loopbackOrPrivate.check(ipv4) && expected) return false
      return forms.every((form) => isAllowedTarget(form, []) === expected)
    }),
    { numRuns: 1000 },
  )
})

/** A resolver with one answer. */
function answering(...addresses: readonly string[]): ResolveAll {
  return (_, options, callback) => {
    if (options.all !== true) throw new Error('expected a request for all addresses')
    callback(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
}

type Resolved = string | LookupAddress[]

function lookedUp(resolve: ResolveAll, options: { all?: boolean }, ...allowed: string[]): Promise<Resolved> {
  return new Promise((done, failed) => {
    checkedLookup(networks(...allowed), resolve)('host.example', options, (error, address) => {
      if (error === null) done(address)
      else failed(error)
    })
  })
}

t.test('a name resolves to its allowed addresses only', async (t) => {
  const mixed = answering('127.0.0.1', '8.8.8.8', 'fd00::1', '2606:4700::1')
  t.equal(await lookedUp(mixed, {}), '8.8.8.8')
  t.same(await lookedUp(mixed, { all: true }), [
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ])
  t.equal(await lookedUp(mixed, {}, '127.0.0.0/8'), '127.0.0.1')
})

t.test('a name without an allowed address is refused, and the message names no address', async (t) => {
  const message =
    'host.example is on this machine or in a local or private network, to which the service does not connect. Its operator can allow the network with --outbound-networks'
  await t.rejects(lookedUp(answering('10.0.0.7', 'fd00::7'), { all: true }), { code: TARGET_REFUSED, message })
  await t.rejects(lookedUp(answering(), {}), { code: TARGET_REFUSED })
  const unknown: ResolveAll = (_host, _options, callback) =>
    callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), [])
  await t.rejects(lookedUp(unknown, {}), { code: 'ENOTFOUND' })
})

t.test('a host that is an address is checked without a lookup', async (t) => {
  for (const host of ['127.0.0.1', '::1', '[::1]', '::ffff:10.0.0.1', '[fe80::1]', '169.254.169.254']) {
    t.throws(() => checkAddress(host, []), TargetRefused, host)
  }
  for (const host of ['8.8.8.8', '[2606:4700::1]', 'localhost', 'host.example']) checkAddress(host, [])
  checkAddress('[::1]', networks('::1'))
})

t.test('connections go to the checked address, and nowhere if it is refused', async (t) => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.end()
  })
  const port = await listenOn(t, server)
  const refusing = { allowed: [], timeoutMs: 10_000 }
  for (const host of ['127.0.0.1', 'localhost', '127.1', '2130706433', '0', '::ffff:127.0.0.1', '[::ffff:7f00:1]']) {
    await t.rejects(connectChecked(host, port, refusing), { code: TARGET_REFUSED }, host)
  }
  t.equal(connections, 0)

  const allowing = { allowed: networks('127.0.0.0/8'), timeoutMs: 10_000 }
  // The second answer of the resolver would be refused. It is not asked twice.
  const answers = [['127.0.0.1'], ['10.0.0.1']]
  const resolve: ResolveAll = (host, options, callback) =>
    answering(...(answers.shift() ?? []))(host, options, callback)
  const socket = await connectChecked('host.example', port, { ...allowing, resolve })
  t.equal(socket.remoteAddress, '127.0.0.1')
  t.equal(answers.length, 1)
  socket.destroy()
  const mapped = await connectChecked('[::ffff:127.0.0.1]', port, allowing)
  mapped.destroy()
})

t.test('a host that does not answer fails after the time', async (t) => {
  const never: ResolveAll = () => {}
  const options = { allowed: [], timeoutMs: 20, resolve: never }
  await t.rejects(connectChecked('host.example', 443, options), {
    code: 'ETIMEDOUT',
    message: 'host.example does not answer',
  })
})
