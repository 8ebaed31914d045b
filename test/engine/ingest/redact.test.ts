import { isIP } from 'node:net'
import t from 'tap'
import { redact, SAMPLE_CHARS_MAX } from '../../../engine/ingest/redact.ts'
import * as fc from '../../support/property.ts'
import { cpuMsOf } from '../../support/wait.ts'

const TOKEN = `svc_mt_${'0123456789abcdef'.repeat(3)}`

const rows: { name: string; text: string; shown: string }[] = [
  {
    name: 'text without a secret',
    text: 'denied tcp to example.com port 443',
    shown: 'denied tcp to example.com port 443',
  },
  { name: 'IPv4', text: 'src=192.0.2.45,dst=198.51.100.7', shown: 'src=192.0.2.x,dst=198.51.100.x' },
  { name: 'IPv4 within a word', text: 'ip_192.0.2.45_a', shown: 'ip_192.0.2.x_a' },
  { name: 'IPv6', text: 'from 2001:db8:1:2:3:4:5:6 to', shown: 'from 2001:db8:x to' },
  { name: 'IPv6 with ::', text: '[2001:db8::5]:443', shown: '[2001:db8:x]:443' },
  { name: 'a link-local address', text: 'fe80::1c2:3 said', shown: 'fe80:x said' },
  { name: 'a short address', text: '(::1)', shown: '(:x)' },
  { name: 'an IPv4-mapped address', text: '::ffff:192.0.2.45', shown: ':x.0.2.x' },
  { name: 'a network', text: 'to 9::/16', shown: 'to 9:x/16' },
  { name: 'IPv6 in a URL that is encoded', text: 'h=2001%3adb8%3A%3a5', shown: 'h=2001:db8:x' },
  { name: 'IPv4 in a host name', text: 'ip-192-0-2-45.example', shown: 'ip-192-0-2-x.example' },
  { name: 'IPv4 in a URL that is encoded', text: 'h=192%2E0%2e2%2E45', shown: 'h=192%2E0%2e2%2Ex' },
  { name: 'IPv4 with underscores', text: 'ip_192_0_2_45.example', shown: 'ip_192_0_2_x.example' },
  { name: 'a name for a reverse lookup', text: 'PTR 45.2.0.192.in-addr.arpa IN', shown: 'PTR x.in-addr.arpa IN' },
  { name: 'of IPv6', text: `PTR ${'5.0.'.repeat(16)}ip6.arpa. IN`, shown: 'PTR x.ip6.arpa. IN' },
  { name: 'a hardware address', text: 'mac=00:53:00:ab:cd:ef', shown: 'mac=00:53:x' },
  { name: 'a hardware address with hyphens', text: 'mac=00-53-00-AB-CD-EF', shown: 'mac=00-53-00…' },
  { name: 'a hardware address with dots', text: 'mac 0053.00ab.cdef', shown: 'mac 0053.00…' },
  { name: 'an escape before colons is no address', text: '\t:: x', shown: '\\x09:x x' },
  { name: 'a mail address', text: 'to jane.doe@example.com ok', shown: 'to …@… ok' },
  { name: 'a query string', text: 'GET /a?session=1&b=2 x', shown: 'GET /a?… x' },
  { name: 'a user', text: 'user=jdoe action=deny', shown: 'user=… action=deny' },
  { name: 'a user in quotes', text: 'srcuser="Jane Doe" a=b', shown: 'srcuser=… a=b' },
  { name: 'a password', text: 'password: hunter2, x', shown: 'password: …, x' },
  { name: 'a token', text: `[svc@00000 key="${TOKEN}"] x`, shown: '[…@… key=…] x' },
  { name: 'a token within a word', text: `x${TOKEN}`, shown: 'xsvc_…' },
  { name: 'an API key', text: TOKEN.replace('_mt_', '_pk_'), shown: 'svc_…' },
  { name: 'an API key of another service', text: 'k AKIAIOSFODNN7EXAMPLEabcdef x', shown: 'k … x' },
  { name: 'escape sequences', text: '\x1b[31mred\x07\r\n', shown: '\\x1b[31mred\\x07\\x0d\\x0a' },
  { name: 'C1 controls', text: '\x9b31m', shown: '\\x9b31m' },
  { name: 'bidirectional control characters', text: 'a\u202eb\u2028c', shown: 'a\\u202eb\\u2028c' },
  { name: 'bytes that were not text', text: 'a\ufffdb', shown: 'a\\ufffdb' },
  {
    name: 'JSON',
    text: '{"user":"jdoe","password":"hunter2","api_key":"k-12345"}',
    shown: '{"user":…,"password":…,"api_key":…}',
  },
  {
    name: 'JSON in a string',
    text: '"{\\"user\\":\\"jdoe\\",\\"a\\":\\"b\\"}"',
    shown: '"{\\"user\\":…,\\"a\\":\\"b\\"}"',
  },
  { name: 'a bearer', text: 'Authorization: Bearer abc', shown: 'Authorization: …' },
  { name: 'a proxy password', text: 'Proxy-Authorization: Basic amRv', shown: 'Proxy-Authorization: …' },
  { name: 'a bearer alone', text: 'sent Bearer abc to', shown: 'sent Bearer … to' },
  { name: 'short names', text: 'pwd=a key=b sessionid=c suid=d', shown: 'pwd=… key=… sessionid=… suid=…' },
  { name: 'a user of a domain', text: 'for CORP\\jdoe at', shown: 'for CORP\\… at' },
  { name: 'a user of a domain, escaped', text: '"CORP\\\\jdoe"', shown: '"CORP\\…"' },
  { name: 'a user in a URL', text: 'GET https://user:pw@h/x', shown: 'GET https:…@…' },
  { name: 'a name of two words', text: 'user=John Smith dst=1', shown: 'user=… dst=1' },
  { name: 'a quote within quotes', text: 'user="John \\"J\\" Smith" a=b', shown: 'user=… a=b' },
  { name: 'after a TAB', text: 'srcuser\tjdoe', shown: 'srcuser\\x09…' },
  {
    name: 'the users of devices',
    text: 'unauthuser="Jane D" usr=jd suser=a b duser=c',
    shown: 'unauthuser=… usr=… suser=… duser=…',
  },
  { name: 'the users of LEEF and W3C', text: 'usrName=jdoe cs-username=jdoe', shown: 'usrName=… cs-username=…' },
  { name: 'a user of JSON', text: '{"SourceUser":"corp\\\\jdoe","login":"jdoe"}', shown: '{"SourceUser":…,"login":…}' },
  { name: 'a user by distinguished name', text: 'src_user_name:"CN=Jane Doe,DC=x"; a', shown: 'src_user_name:…; a' },
  { name: 'a password in a sentence', text: 'passwd hunter2 refused', shown: 'passwd … refused' },
  { name: 'a token with an escape', text: 'svc_mt%5Faaaabbbb', shown: 'svc_…' },
  { name: 'nothing', text: '', shown: '' },
]

for (const { name, text, shown } of rows) t.test(name, async (t) => t.equal(redact(text), shown))

const separator = fc.constantFrom(' ', ',', '=', '"', '[', ']', '(', '|', ';', '/', '_', '-', '\t', '\0', 'x', '\n')
const word = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('src', 'GET', 'user', '443', 'date', '?', '::'))

/** Complete addresses in a text. */
function addressesIn(text: string): string[] {
  return (text.match(/[0-9a-f:.]+/gi) ?? []).filter((part) => isIP(part) !== 0)
}

type Piece = readonly [word: string, separator: string]
type Message = [before: Piece[], left: string, secret: string, right: string, behind: Piece[]]

/** Examples that failed once. */
const FAILED: Message[] = [
  [
    [
      ['src', '\t'],
      ['::', ' '],
    ],
    ' ',
    '9::',
    ' ',
    [],
  ],
]

t.test('in any context, no token, complete address or control character remains', async () => {
  const secret = fc.oneof(fc.constantFrom(TOKEN, TOKEN.toUpperCase()), fc.ipV4(), fc.ipV6())
  const piece = fc.tuple(word, separator)
  fc.assert(
    fc.property(
      fc.array(piece),
      separator,
      secret,
      separator,
      fc.array(fc.tuple(separator, word)),
      (before, left, one, right, behind) => {
        const text = `${before.flat().join('')}${left}${one}${right}${behind.flat().join('')}`
        const shown = redact(text)
        if (shown.length > SAMPLE_CHARS_MAX) throw new Error('too long')
        if (/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(shown))
          throw new Error(`controls: ${JSON.stringify(shown)}`)
        if (/svc_(mt|pk)_[0-9a-f]/i.test(shown)) throw new Error(`token: ${shown}`)
        const addresses = addressesIn(shown)
        if (addresses.length > 0) throw new Error(`${JSON.stringify(text)} -> ${shown}: ${addresses.join(', ')}`)
      },
    ),
    { numRuns: 5000, examples: FAILED },
  )
})

t.test('a long text takes linear time', async (t) => {
  for (const part of [
    'user=',
    'user ',
    'user=a ',
    '"',
    'user="\\',
    '\\',
    'a\\',
    'x-key',
    '://',
    'cookie',
    'a',
    '1.',
    ':a',
    '@',
    'user',
    '?',
    'a1',
    '\x1b',
    '1.2.3.',
  ]) {
    const text = part.repeat(2_000_000)
    t.ok(cpuMsOf(() => redact(text)) < 500, part)
  }
})
