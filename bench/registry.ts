import { fileURLToPath } from 'node:url'
import { loadCatalog } from '../registry/catalog.ts'
import { compileTrie, type TrieRule } from '../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../registry/domain-trie.ts'
import { type Contender, compare, print } from './compare.ts'
import * as hntrie from './peers/registry-hntrie.ts'
import * as map from './peers/registry-map.ts'

/**
 * Cost of one name: hits and misses, with the real registry and with generated ones of 100,000 and
 * 1,000,000 domains. All contenders start from the bytes of a packet, so a peer that needs a string
 * creates one first. A second line omits that and gives the Map prepared strings with cached
 * hashes, which no program that reads packets has. Patterns are not in the generated sets or the
 * work, because no peer supports them; our trie includes those of the real registry.
 */
export async function run(options: { toy: boolean }): Promise<void> {
  const names = options.toy ? 500 : 200_000
  const rounds = options.toy ? 2 : 15
  const { rules } = loadCatalog()
  await measure('real', rules, names, rounds)
  for (const domains of options.toy ? [1000] : [100_000, 1_000_000]) {
    await measure(domains.toLocaleString('en'), randomRules(new Random(7), domains), names, rounds)
  }
}

async function measure(title: string, rules: readonly TrieRule[], names: number, rounds: number): Promise<void> {
  const start = performance.now()
  const bytes = compileTrie(rules)
  const compiledMs = performance.now() - start
  const perDomain = bytes.byteLength / rules.length
  print(
    `${title}: ${rules.length} domains compiled in ${compiledMs.toFixed(0)} ms, ${perDomain.toFixed(1)} bytes a domain`,
  )

  const trie = new DomainTrie(bytes)
  const simple = rules.filter(({ match }) => match !== 'pattern')
  const indexes = rules.flatMap(({ match }, index) => (match === 'pattern' ? [] : [index]))
  const mapMatch = map.build(simple)
  const mapped = (name: string) => indexes[mapMatch(name)] ?? NO_MATCH
  const below = await hntrie.build(simple.filter(({ match }) => match === 'suffix'))
  for (const kind of ['hit', 'miss'] as const) {
    const workload = kind === 'hit' ? hits(new Random(11), simple, names) : misses(new Random(13), names)
    const wire = wireBatch(workload)
    const text = dottedBatch(workload)
    const matched = () => trie.matchWire(wire.view, wire.offsets[0] ?? 0, wire.offsets[1] ?? 0)
    if ((matched() === NO_MATCH) !== (kind === 'miss')) throw new Error(`${title}: the ${kind} work is not one`)
    const contenders: Contender[] = [
      { name: 'trie', version: '', run: () => runWire(trie, wire, workload.length) },
      { name: 'trie, dotted text', version: '', run: () => runDotted(trie, text, workload.length) },
      { name: 'Map of suffixes', version: map.version, run: () => runText(text, workload.length, mapped) },
      {
        name: 'Map of suffixes, strings at hand',
        version: map.version,
        run: () => {
          let sum = 0
          for (const name of workload) sum = (sum + mapped(name)) | 0
          return sum
        },
      },
      {
        name: 'uBO HNTrie (WebAssembly)',
        version: hntrie.version,
        ...(kind === 'hit' && { differs: 'answers yes or no, not which rule' }),
        run: () => runText(text, workload.length, kind === 'hit' ? below : (name) => below(name) - 1),
      },
    ]
    compare({ name: `${title} ${kind}`, units: workload.length, unit: 'name', rounds }, contenders)
  }
}

/** Faster than toString('latin1', ...), and in every Node version. Only the types lack it. */
interface BytesToText extends Buffer {
  latin1Slice(start: number, end: number): string
}

interface Batch {
  readonly bytes: BytesToText
  readonly view: DataView
  /** Name n is in bytes [offsets[n], offsets[n + 1]). */
  readonly offsets: Int32Array
}

function runWire(trie: DomainTrie, { view, offsets }: Batch, count: number): number {
  let sum = 0
  for (let name = 0; name < count; name++)
    sum = (sum + trie.matchWire(view, offsets[name] ?? 0, offsets[name + 1] ?? 0)) | 0
  return sum
}

function runDotted(trie: DomainTrie, { view, offsets }: Batch, count: number): number {
  let sum = 0
  for (let name = 0; name < count; name++)
    sum = (sum + trie.matchDotted(view, offsets[name] ?? 0, offsets[name + 1] ?? 0)) | 0
  return sum
}

function runText({ bytes, offsets }: Batch, count: number, match: (name: string) => number): number {
  let sum = 0
  for (let name = 0; name < count; name++) {
    sum = (sum + match(bytes.latin1Slice(offsets[name] ?? 0, offsets[name + 1] ?? 0))) | 0
  }
  return sum
}

function wireBatch(names: readonly string[]): Batch {
  return batch(
    names.map(
      (name) =>
        `${name
          .split('.')
          .map((label) => String.fromCharCode(label.length) + label)
          .join('')}\0`,
    ),
  )
}

const dottedBatch = (names: readonly string[]): Batch => batch(names)

function batch(texts: readonly string[]): Batch {
  const offsets = new Int32Array(texts.length + 1)
  texts.forEach((text, index) => {
    offsets[index + 1] = (offsets[index] ?? 0) + text.length
  })
  const bytes = Buffer.from(texts.join(''), 'latin1') as BytesToText
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offsets }
}

/** Reproducible random numbers (xorshift32). */
class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  below(bound: number): number {
    this.#state ^= this.#state << 13
    this.#state ^= this.#state >>> 17
    this.#state ^= this.#state << 5
    return (this.#state >>> 0) % bound
  }

  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T
  }
}

const TOPS = [
  'com',
  'com',
  'com',
  'com',
  'com',
  'net',
  'org',
  'ai',
  'io',
  'dev',
  'app',
  'co',
  'de',
  'fr',
  'cn',
  'ru',
  'co.uk',
  'com.br',
]
const HOSTS = ['www', 'api', 'cdn', 'app', 'mail', 'static', 'img', 'docs', 'auth', 'edge-7', 'eu-west-1']

/**
 * A realistic domain: 5 to 14 letters of alternating vowels and consonants, sometimes a digit or a
 * hyphen.
 */
function randomDomain(random: Random, mark: string): string {
  let label = mark
  const length = 5 + random.below(10)
  while (label.length < length) {
    label +=
      random.of(['b', 'c', 'd', 'f', 'g', 'h', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'w']) +
      random.of(['a', 'e', 'i', 'o', 'u'])
    if (random.below(20) === 0) label += random.of(['1', '24', '-s'])
  }
  return `${label}.${random.of(TOPS)}`
}

/** 70 % suffixes, 30 % exact hosts below their own domain or that of the rule before. */
function randomRules(random: Random, count: number): TrieRule[] {
  const domains = new Map<string, TrieRule>()
  let last = 'example.com'
  while (domains.size < count) {
    const exact = random.below(10) < 3
    if (!exact || random.below(2) === 0) last = randomDomain(random, '')
    const domain = exact ? `${random.of(HOSTS)}.${last}` : last
    domains.set(domain, { domain, match: exact ? 'exact' : 'suffix' })
  }
  return [...domains.values()]
}

/** Names of rules, half of the suffixes with a host in front. */
function hits(random: Random, rules: readonly TrieRule[], count: number): string[] {
  return Array.from({ length: count }, () => {
    const { domain, match } = random.of(rules)
    return match === 'suffix' && random.below(2) === 0 ? `${random.of(HOSTS)}.${domain}` : domain
  })
}

/** Domains of the same kind with a prefix that no rule has, two of three with a host in front. */
function misses(random: Random, count: number): string[] {
  return Array.from({ length: count }, () => {
    const domain = randomDomain(random, 'qz')
    return random.below(3) > 0 ? `${random.of(HOSTS)}.${domain}` : domain
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run({ toy: process.argv.includes('--toy') })
