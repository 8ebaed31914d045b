import { isIP } from 'node:net'
import t from 'tap'
import { HostFinder, HostKind } from '../../../engine/formats/host.ts'
import { AddressKind, addressKind } from '../../../engine/formats/ip-address.ts'
import * as fc from '../../support/property.ts'

const bytes = new Uint8Array(4096)
const view = new DataView(bytes.buffer)
const finder = new HostFinder(bytes, 3800)

function find(text: string): string {
  const field = Buffer.from(text)
  bytes.set(field, 5)
  const kind = finder.find(view, 5, 5 + field.length)
  const name = Object.entries(HostKind).find(([, value]) => value === kind)?.[0] ?? ''
  if (kind === HostKind.none) return name
  return `${name} ${Buffer.from(bytes.subarray(finder.start, finder.end)).toString()}`
}

const rows: readonly (readonly [string, string])[] = [
  ['api.openai.com', 'name api.openai.com'],
  ['API.OpenAI.com.', 'name API.OpenAI.com'],
  ['api.openai.com:443', 'name api.openai.com'],
  ['api.openai.com:443/v1/chat', 'name api.openai.com'],
  ['api.openai.com/v1/x@y', 'name api.openai.com'],
  ['https://user:pw@api.openai.com:8443/a?b#c', 'name api.openai.com'],
  ['https://api.openai.com?x=a@evil.example', 'name api.openai.com'],
  ['wss://claude.ai', 'name claude.ai'],
  ['ssl://claude.ai:443', 'name claude.ai'],
  ['[api.openai.com]', 'name api.openai.com'],
  ['"api.openai.com"', 'name api.openai.com'],
  ['  claude.ai  ', 'name claude.ai'],
  ['*.anthropic.com', 'name anthropic.com'],
  ['_ldap._tcp.example.com', 'name _ldap._tcp.example.com'],
  ['bücher.example', 'name xn--bcher-kva.example'],
  ['b%C3%BCcher.example', 'name xn--bcher-kva.example'],
  ['api%2eopenai.com', 'name api.openai.com'],
  ['xn--bcher-kva.example', 'name xn--bcher-kva.example'],
  ['example.xn--p1ai', 'name example.xn--p1ai'],
  ['192.0.2.9/', 'address 192.0.2.9'],
  ['http://192.0.2.9:8080/x', 'address 192.0.2.9'],
  ['http://[2001:db8::1]:8080/x', 'address 2001:db8::1'],
  ['2001:db8::1', 'address 2001:db8::1'],
  ['::ffff:192.0.2.1', 'address ::ffff:192.0.2.1'],
  ['45.2.0.192.in-addr.arpa', 'reverse 45.2.0.192.in-addr.arpa'],
  ['8.b.d.0.1.0.0.2.ip6.arpa.', 'reverse 8.b.d.0.1.0.0.2.ip6.arpa'],
  ['45.2.0.192.IN-ADDR.ARPA', 'reverse 45.2.0.192.IN-ADDR.ARPA'],
  ['localhost', 'none'],
  ['intranet', 'none'],
  ['https:443', 'none'],
  ['/index.html', 'none'],
  ['-', 'none'],
  ['', 'none'],
  ['igb0.40', 'none'],
  ['ethernet1/2.30', 'none'],
  ['12.9.1.B700001', 'none'],
  ['a.1', 'none'],
  ['a.b', 'none'],
  ['a..com', 'none'],
  ['.com', 'none'],
  ['.', 'none'],
  ['-a.example.com', 'none'],
  ['192.0.2.256', 'none'],
  ['192.0.02.1', 'none'],
  ['a b.com', 'none'],
  ['<script>.com', 'none'],
  [`${'a'.repeat(64)}.com`, 'none'],
  [`${'a.'.repeat(126)}com`, 'none'],
  ['error:invalid-request', 'none'],
  ['urn:isbn:1.example', 'none'],
  ['\u0141.%00.com', 'none'],
]
const common: readonly (readonly [string, string])[] = [
  ['a.b.example.com:443', 'name a.b.example.com'],
  ['a.b.example.com:', 'name a.b.example.com'],
  ['a.b.example.com:443/', 'name a.b.example.com'],
  ['a.b.example.com:x@claude.ai', 'name claude.ai'],
  ['a.b.example.com:443@claude.ai/', 'name claude.ai'],
  ['a.b.example.com:443?x', 'name a.b.example.com'],
  ['http://http://claude.ai', 'none'],
  ['a.b://claude.ai', 'none'],
  ['h2c-x+y://claude.ai', 'name claude.ai'],
  ['1http://claude.ai', 'none'],
  ['://claude.ai', 'none'],
  ['https://claude.ai.', 'name claude.ai'],
  ['https:///claude.ai', 'none'],
  ['https://-claude.ai', 'none'],
]
for (const [text, is] of [...rows, ...common]) t.equal(find(text), is, JSON.stringify(text.slice(0, 60)))

t.test('addresses are accepted as by Node, except for parts with a leading zero', async (t) => {
  const part = fc.oneof(fc.integer({ min: 0, max: 300 }).map(String), fc.constantFrom('', '01', '0', 'f', '::', ':'))
  const ipv4 = fc.array(part, { minLength: 3, maxLength: 5 }).map((parts) => parts.join('.'))
  const group = fc.oneof(
    fc.integer({ min: 0, max: 0x1ffff }).map((n) => n.toString(16)),
    fc.constantFrom('', '', '1.2.3.4', '::'),
  )
  const ipv6 = fc.array(group, { minLength: 1, maxLength: 9 }).map((groups) => groups.join(':'))
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), ipv4, ipv6, fc.string({ maxLength: 20 })), (text) => {
      const field = Buffer.from(text)
      bytes.set(field, 5)
      const kind = addressKind(view, 5, 5 + field.length)
      return isIP(text) === kind || `${text}: ${kind}` === ''
    }),
    { numRuns: 20_000 },
  )
  const zone = Buffer.from('fe80::1%eth0')
  bytes.set(zone, 5)
  t.equal(addressKind(view, 5, 5 + zone.length), AddressKind.ipv6)
})

t.test('a host is in the field, or is its A-label form, for any bytes', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (field) => {
      bytes.set(field, 5)
      const kind = finder.find(view, 5, 5 + field.length)
      return kind === HostKind.none || (finder.end > finder.start && finder.end - finder.start <= 253)
    }),
    { numRuns: 5000 },
  )
})

t.test('the fast path and the slow path, selected by a leading blank, find the same host', async () => {
  const piece = fc.constantFrom(
    'a',
    'claude',
    'ai',
    'com',
    '1',
    '.',
    '.',
    ':',
    '/',
    '//',
    '@',
    '-',
    '443',
    'x.',
    'http',
    '%',
    '_',
    'arpa',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join('')
      return find(text) === find(` ${text}`)
    }),
    { numRuns: 20_000 },
  )
})
