import t from 'tap'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie, type TrieRule } from '../../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { allocatedBytes } from '../support/allocated-bytes.ts'
import { dottedName, wireName } from '../support/random-names.ts'

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const matchWire = (trie: DomainTrie, bytes: Uint8Array) => trie.matchWire(viewOf(bytes), 0, bytes.byteLength)
const matchDotted = (trie: DomainTrie, text: string) => {
  const bytes = Buffer.from(text, 'latin1')
  return trie.matchDotted(viewOf(bytes), 0, bytes.byteLength)
}

const rules: TrieRule[] = [
  { domain: 'openai.com', match: 'suffix' },
  { domain: 'chat.openai.com', match: 'exact' },
  { domain: 'eu.openai.com', match: 'suffix' },
  { domain: '*.openai.com', match: 'pattern' },
  { domain: 'api-*.openai.com', match: 'pattern' },
  { domain: 'bedrock.*.amazonaws.com', match: 'pattern' },
  { domain: '*.*.replit.dev', match: 'pattern' },
  { domain: 'only.example.org', match: 'exact' },
  { domain: 'a*b*c.example.net', match: 'pattern' },
  { domain: '*.goog', match: 'pattern' },
  { domain: '1-2.example.co.uk', match: 'suffix' },
]
const trie = new DomainTrie(compileTrie(rules))

const named: { name: string; host: string; rule: string | undefined }[] = [
  { name: "a suffix's own domain", host: 'eu.openai.com', rule: '*.openai.com' },
  { name: 'a deep subdomain of a suffix', host: 'x.y.z.openai.com', rule: 'openai.com' },
  { name: 'the longest suffix wins', host: 'x.eu.openai.com', rule: 'eu.openai.com' },
  { name: 'an exact rule wins over pattern and suffix', host: 'chat.openai.com', rule: 'chat.openai.com' },
  { name: 'below an exact host, the suffix wins', host: 'x.chat.openai.com', rule: 'openai.com' },
  { name: 'a pattern wins over the suffix', host: 'anything.openai.com', rule: '*.openai.com' },
  { name: 'the pattern with more literal characters wins', host: 'api-eu.openai.com', rule: 'api-*.openai.com' },
  { name: 'a star is at least one character', host: 'api-.openai.com', rule: undefined },
  { name: 'upper case', host: 'CHAT.OpenAI.COM', rule: 'chat.openai.com' },
  { name: 'a star in the middle label', host: 'bedrock.us-east-1.amazonaws.com', rule: 'bedrock.*.amazonaws.com' },
  { name: 'a star does not span labels', host: 'bedrock.a.b.amazonaws.com', rule: undefined },
  { name: 'a pattern does not match its parent', host: 'us-east-1.amazonaws.com', rule: undefined },
  { name: 'a pattern does not match its subdomains', host: 'x.bedrock.us-east-1.amazonaws.com', rule: undefined },
  { name: 'two stars, two labels', host: 'a.b.replit.dev', rule: '*.*.replit.dev' },
  { name: 'two stars, one label', host: 'b.replit.dev', rule: undefined },
  { name: 'several stars in a label', host: 'a1b2bbc.example.net', rule: 'a*b*c.example.net' },
  { name: 'several stars that do not match', host: 'a1bc.example.net', rule: undefined },
  { name: 'a pattern directly below a top-level domain', host: 'antigravity.goog', rule: '*.goog' },
  { name: 'the top-level domain of a pattern', host: 'goog', rule: undefined },
  { name: 'below an exact rule without a suffix', host: 'x.only.example.org', rule: undefined },
  { name: 'the parent of an exact rule', host: 'example.org', rule: undefined },
  { name: 'a name that ends like a rule', host: 'notopenai.com', rule: undefined },
  { name: 'a name that begins like a rule', host: 'openai.com.evil.test', rule: undefined },
  { name: 'another top-level domain', host: 'openai.net', rule: undefined },
  { name: 'an underscore label below a suffix', host: '_https._tcp.eu.openai.com', rule: 'eu.openai.com' },
  { name: 'digits and a hyphen', host: 'x.1-2.example.co.uk', rule: '1-2.example.co.uk' },
  { name: 'a label of 63 characters below a suffix', host: `${'a'.repeat(63)}.x.openai.com`, rule: 'openai.com' },
  {
    name: 'a name of 253 characters',
    host: `${'a.'.repeat(121)}x.openai.com`.slice(-253).replace(/^\./, 'a'),
    rule: 'openai.com',
  },
]

t.test('the right rule wins, on the wire and as text', async (t) => {
  for (const { name, host, rule } of named) {
    const wanted = rule === undefined ? NO_MATCH : rules.findIndex(({ domain }) => domain === rule)
    t.equal(matchWire(trie, wireName(host.split('.'))), wanted, `${name}, on the wire`)
    t.equal(matchDotted(trie, host), wanted, `${name}, as text`)
    t.equal(matchDotted(trie, `${host}.`), wanted, `${name}, with a trailing dot`)
  }
})

t.test('text that is not a host name never matches', async (t) => {
  const hostile: { name: string; text: string }[] = [
    { name: 'nothing', text: '' },
    { name: 'a dot', text: '.' },
    { name: 'two trailing dots', text: 'openai.com..' },
    { name: 'a leading dot', text: '.openai.com' },
    { name: 'an empty label', text: 'x..openai.com' },
    { name: 'one label', text: 'com' },
    { name: 'a space', text: 'a b.openai.com' },
    { name: 'a trailing space', text: 'openai.com ' },
    { name: 'a NUL', text: 'x\0.openai.com' },
    { name: 'a byte above 127', text: 'caf\u00e9.openai.com' },
    { name: 'a star', text: '*.openai.com' },
    { name: 'a leading hyphen', text: '-x.openai.com' },
    { name: 'a trailing hyphen', text: 'x-.openai.com' },
    { name: 'a port', text: 'openai.com:443' },
    { name: 'a URL', text: 'https://openai.com' },
    { name: 'a path', text: 'openai.com/' },
    { name: 'an IPv4 address', text: '192.0.2.1' },
    { name: 'an IPv6 address', text: '[2001:db8::1]' },
    { name: 'a label of 64 characters', text: `${'a'.repeat(64)}.openai.com` },
    { name: 'a name of 255 characters', text: `${'a.'.repeat(122)}x.openai.com`.padStart(255, 'a').slice(0, 255) },
    { name: 'a control character that case-folding turns into a hyphen', text: '1\r2.example.co.uk' },
    { name: 'a control character that case-folding turns into a digit', text: '\x11-2.example.co.uk' },
    { name: 'an at sign, which case-folds like a letter', text: 'openai@com.example' },
  ]
  for (const { name, text } of hostile) t.equal(matchDotted(trie, text), NO_MATCH, name)
})

t.test('bytes that are not a wire name never match', async (t) => {
  const good = Buffer.from(wireName(['x', 'openai', 'com']))
  t.not(matchWire(trie, good), NO_MATCH, 'the name itself does')
  const hostile: { name: string; bytes: Uint8Array }[] = [
    { name: 'nothing', bytes: Buffer.alloc(0) },
    { name: 'the root alone', bytes: Buffer.from([0]) },
    { name: 'no zero byte at the end', bytes: good.subarray(0, -1) },
    { name: 'a byte after the final zero byte', bytes: Buffer.concat([good, Buffer.from([0])]) },
    { name: 'a premature zero byte', bytes: Buffer.concat([Buffer.from([0]), good]) },
    { name: 'a length beyond the end', bytes: Buffer.from([9, 0x61, 0]) },
    { name: 'a length that ends on the last byte', bytes: Buffer.from([2, 0x61, 0]) },
    { name: 'a compression pointer', bytes: Buffer.concat([Buffer.from([1, 0x78]), Buffer.from([0xc0, 0x0c])]) },
    { name: 'a label of 64 bytes', bytes: wireName(['a'.repeat(64), 'openai', 'com']) },
    { name: 'a dot inside a label that looks like two labels', bytes: wireName(['chat.openai', 'com']) },
    { name: 'a dot inside a label that looks like the whole name', bytes: wireName(['chat.openai.com']) },
    { name: 'a dot inside a left label', bytes: wireName(['a.b', 'openai', 'com']) },
    { name: 'a length byte inside a label', bytes: wireName(['x\u0006openai', 'com']) },
    { name: 'characters that differ from upper case only in bit 5', bytes: wireName(['x', 'openai', 'c/m']) },
    { name: '256 bytes', bytes: wireName([...Array(122).fill('a'), 'openai', 'com']) },
    { name: 'only zeros', bytes: Buffer.alloc(64) },
    { name: 'only 0xff', bytes: Buffer.alloc(64, 0xff) },
  ]
  for (const { name, bytes } of hostile) t.equal(matchWire(trie, bytes), NO_MATCH, name)
})

t.test('offsets outside the bytes never match and never throw', async (t) => {
  const bytes = wireName(['openai', 'com'])
  const view = viewOf(bytes)
  for (const [offset, end] of [
    [-1, 5],
    [0, 99],
    [5, 2],
    [99, 120],
    [Number.NaN, 3],
    [0, Number.NaN],
  ] as const) {
    t.equal(trie.matchWire(view, offset, end), NO_MATCH, `wire ${offset}..${end}`)
    t.equal(trie.matchDotted(view, offset, end), NO_MATCH, `dotted ${offset}..${end}`)
  }
})

t.test('every built-in rule wins for its own name', async (t) => {
  const { rules } = loadCatalog()
  const builtIn = new DomainTrie(compileTrie(rules))
  const lost = rules.filter(({ domain }, index) => {
    const labels = domain.replaceAll('*', 'x1').split('.')
    return (
      matchWire(builtIn, wireName(labels)) !== index ||
      builtIn.matchDotted(viewOf(dottedName(labels, true)), 0, dottedName(labels, true).length) !== index
    )
  })
  t.same(
    lost.map(({ domain }) => domain),
    [],
  )
})

t.test('compileTrie and DomainTrie reject invalid input', async (t) => {
  const suffix = (domain: string): TrieRule => ({ domain, match: 'suffix' })
  t.throws(() => compileTrie([suffix('a.com'), suffix('a.com')]), /a.com is in the registry twice/)
  t.throws(() => compileTrie([suffix('com')]), /one label only/)
  t.throws(() => compileTrie([suffix('a..com')]), /no legal label/)
  t.throws(() => compileTrie([suffix(`${'a'.repeat(64)}.com`)]), /no legal label/)
  t.throws(() => new DomainTrie(new SharedArrayBuffer(8)), /too short/)
  t.throws(() => new DomainTrie(new SharedArrayBuffer(128)), /not a compiled registry/)
  const bytes = compileTrie([])
  t.equal(matchDotted(new DomainTrie(bytes), 'openai.com'), NO_MATCH, 'a registry without rules matches nothing')
  const newer = new Int32Array(bytes)
  newer[1] = 2
  t.throws(() => new DomainTrie(bytes), /this version/)
})

t.test('1,000,000 domains fit into 32 bytes each, sampled at 100,000', async (t) => {
  const many = Array.from(
    { length: 100_000 },
    (_, n): TrieRule => ({ domain: `${(n * 7919).toString(36).padStart(10, 'q')}.com`, match: 'suffix' }),
  )
  const perDomain = compileTrie(many).byteLength / many.length
  t.ok(perDomain <= 32, `${perDomain.toFixed(1)} bytes`)
})

t.test('a warm matcher allocates nothing for a miss, a hit, a pattern or an invalid name', async (t) => {
  const names = [
    wireName(['www', 'example', 'com']),
    wireName(['X', 'Eu', 'OpenAI', 'com']),
    wireName(['bedrock', 'us-east-1', 'amazonaws', 'com']),
    wireName(['a.b', 'openai', 'com']),
    Buffer.alloc(40, 0xff),
  ].map(viewOf)
  const matches = (rounds: number) => {
    let sum = 0
    for (let round = 0; round < rounds; round++) {
      for (const view of names)
        sum += trie.matchWire(view, 0, view.byteLength) + trie.matchDotted(view, 1, view.byteLength)
    }
    return sum
  }
  matches(20_000)
  // 200,000 matches. One heap number (16 bytes) each would be 3.2 MB.
  const bytes = allocatedBytes(() => matches(100), 200_000)
  t.ok(bytes <= 200_000, `${bytes} bytes`)
  const kept = { last: {} }
  const wasteful = allocatedBytes(() => {
    for (let n = 0; n < 1_000; n++) kept.last = { n }
  }, Number.MAX_SAFE_INTEGER)
  t.ok(wasteful > 1_000_000, `an allocation is noticed: ${wasteful} bytes`)
})

t.test('the slots of a registry differ at each compilation, so that nobody can prepare equal ones', async (t) => {
  const rules = Array.from({ length: 100 }, (_, index) => ({ domain: `n${index}.example`, match: 'suffix' as const }))
  const [one, other] = [compileTrie(rules), compileTrie(rules)].map((bytes) => Buffer.from(bytes))
  t.ok(one !== undefined && other !== undefined && !one.equals(other))
})
