import { isIP } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { canonicalAddress } from '../../../engine/ingest/network.ts'
import { redact, SAMPLE_CHARS_MAX } from '../../../engine/ingest/redact.ts'

const TOKEN = `svc_mt_${'0123456789abcdef'.repeat(3)}`

const rows: { name: string; text: string; shown: string }[] = [
  { name: 'what is nobody', text: 'denied tcp to example.com port 443', shown: 'denied tcp to example.com port 443' },
  { name: 'IPv4', text: 'src=192.0.2.45,dst=198.51.100.7', shown: 'src=192.0.2.x,dst=198.51.100.x' },
  { name: 'IPv4 within a word', text: 'ip_192.0.2.45_a', shown: 'ip_192.0.2.x_a' },
  { name: 'IPv6', text: 'from 2001:db8:1:2:3:4:5:6 to', shown: 'from 2001:db8:x to' },
  { name: 'IPv6 with a gap', text: '[2001:db8::5]:443', shown: '[2001:db8:x]:443' },
  { name: 'a link-local address', text: 'fe80::1c2:3 said', shown: 'fe80::x said' },
  { name: 'a short address', text: '(::1)', shown: '(::x)' },
  { name: 'IPv4 in IPv6', text: '::ffff:192.0.2.45', shown: '::x.0.2.x' },
  { name: 'a mail address', text: 'to jane.doe@example.com ok', shown: 'to …@… ok' },
  { name: 'a query string', text: 'GET /a?session=1&b=2 x', shown: 'GET /a?… x' },
  { name: 'a user', text: 'user=jdoe action=deny', shown: 'user=… action=deny' },
  { name: 'a user in quotes', text: 'srcuser="Jane Doe" a=b', shown: 'srcuser=… a=b' },
  { name: 'a password', text: 'password: hunter2, x', shown: 'password: …, x' },
  { name: 'a token', text: `[svc@00000 key="${TOKEN}"] x`, shown: '[…@… key=…] x' },
  { name: 'a token within a word', text: `x${TOKEN}`, shown: 'xsvc_…' },
  { name: 'an API key', text: TOKEN.replace('_mt_', '_pk_'), shown: 'svc_…' },
  { name: 'a key of another', text: 'k AKIAIOSFODNN7EXAMPLEabcdef x', shown: 'k … x' },
  { name: 'escape sequences', text: '\x1b[31mred\x07\r\n', shown: '\\x1b[31mred\\x07\\x0d\\x0a' },
  { name: 'C1 controls', text: '\x9b31m', shown: '\\x9b31m' },
  { name: 'what turns the direction of writing', text: 'a\u202eb\u2028c', shown: 'a\\u202eb\\u2028c' },
  { name: 'bytes that were no text', text: 'a\ufffdb', shown: 'a\\ufffdb' },
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
  { name: 'behind a TAB', text: 'srcuser\tjdoe', shown: 'srcuser\\x09…' },
  { name: 'a password in a sentence', text: 'passwd hunter2 refused', shown: 'passwd … refused' },
  { name: 'a token with an escape', text: 'svc_mt%5Faaaabbbb', shown: 'svc_…' },
  { name: 'nothing', text: '', shown: '' },
]

for (const { name, text, shown } of rows) t.test(name, async (t) => t.equal(redact(text), shown))

const separator = fc.constantFrom(' ', ',', '=', '"', '[', ']', '(', '|', ';', '/', '_', '-', '\t', '\0', 'x', '\n')
const word = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('src', 'GET', 'user', '443', 'date', '?', '::'))

t.test('whatever stands around it: no token, no whole address, no control character', async () => {
  const secret = fc.oneof(
    fc.constantFrom(TOKEN, TOKEN.toUpperCase()),
    // Addresses of people; 0.0.0.0 and :: are nobody's.
    fc.ipV4().filter((address) => address !== '0.0.0.0'),
    fc.ipV6().filter((address) => canonicalAddress(address) !== '::' && !address.includes('.')),
  )
  fc.assert(
    fc.property(
      fc.array(fc.tuple(word, separator)),
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
        // `1::` is shown as `1::x`.
        if (isIP(one) !== 0 && shown.replaceAll(':x', '').includes(one))
          throw new Error(`address: ${JSON.stringify(text)} -> ${shown}`)
      },
    ),
    { numRuns: 5000 },
  )
})

t.test('a long text costs time linear in its length', async (t) => {
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
    const startMs = performance.now()
    redact(part.repeat(2_000_000))
    t.ok(performance.now() - startMs < 500, part)
  }
})
