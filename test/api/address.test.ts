import t from 'tap'
import { acceptsGzip } from '../../api/respond.ts'
import { addressHash } from '../../api/routes.ts'

const SAME: readonly { name: string; one: string; other: string; same: boolean }[] = [
  { name: 'one IPv4 address', one: '192.0.2.1', other: '192.0.2.1', same: true },
  { name: 'an IPv4-mapped IPv6 address', one: '192.0.2.1', other: '::ffff:192.0.2.1', same: true },
  { name: 'two IPv4 addresses', one: '192.0.2.1', other: '192.0.2.2', same: false },
  { name: 'two IPv4-mapped IPv6 addresses', one: '::ffff:192.0.2.1', other: '::ffff:192.0.2.2', same: false },
  { name: 'two addresses of one /64', one: '2001:db8:1:2::1', other: '2001:db8:1:2:ffff::9', same: true },
  {
    name: 'the same two addresses uncompressed',
    one: '2001:db8::1',
    other: '2001:0db8:0000:0000:0000:0000:0000:0002',
    same: true,
  },
  { name: 'two /64', one: '2001:db8:1:2::1', other: '2001:db8:1:3::1', same: false },
  { name: 'an address with a zone', one: 'fe80::1%eth0', other: 'fe80::1', same: true },
]
for (const { name, one, other, same } of SAME) {
  t.test(name, async (t) => t.equal(addressHash(one).equals(addressHash(other)), same))
}

const ENCODINGS: readonly (readonly [field: string, takes: boolean])[] = [
  ['', false],
  ['gzip', true],
  ['GZIP', true],
  ['x-gzip', true],
  ['gzip, deflate, br', true],
  ['deflate, br', false],
  ['gzip;q=0', false],
  ['gzip; q=0.0', false],
  ['gzip;q=0.000, *', false],
  ['gzip;q=0.001', true],
  ['*', true],
  ['*;q=0', false],
  ['*;q=0, gzip', true],
  ['identity', false],
  ['gzipped', false],
  [',,gzip,,', true],
  ['x-gzip;q=0, gzip', true],
  ['gzip;q=0, x-gzip;q=0, *', false],
  ['identity, gzip;q=0.5', false],
  ['identity;q=0.5, gzip', true],
  ['gzip;q=0.5, *', false],
  ['gzip, *;q=0.5', true],
  ['identity;q=0.5, *;q=0.4', false],
  ['gzip;q=1.000, identity', true],
]
for (const [field, takes] of ENCODINGS) {
  t.test(`Accept-Encoding: ${field}`, async (t) => t.equal(acceptsGzip(field), takes))
}
