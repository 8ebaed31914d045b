import { compileTrie, type TrieRule } from '../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../registry/domain-trie.ts'
import { type Figure, inTurn, type Size, same } from './harness.ts'
import * as hntrie from './peers/registry-hntrie.ts'
import * as map from './peers/registry-map.ts'

/**
 * Cost of a name of no platform, with 100,000 domains. All contenders start from the bytes of a
 * packet, so a peer that needs a string creates one first, from dotted text. Patterns are not in the work, because no
 * peer supports them.
 */
export async function run(size: Size): Promise<Figure[]> {
  const [names, rounds, domains] = size === 'toy' ? [500, 2, 1000] : [200_000, 15, 100_000]
  const rules = randomRules(new Random(7), domains)
  const trie = new DomainTrie(compileTrie(rules))
  const mapped = map.build(rules)
  const below = await hntrie.build(rules.filter(({ match }) => match === 'suffix'))
  const misses = missesOf(new Random(13), names)
  const hits = rules.map(({ domain }) => domain)
  const ours: Matched = { text: wireName, match: ({ view }, start, end) => trie.matchWire(view, start, end) }
  const simple: Matched = { text: String, match: ({ bytes }, start, end) => mapped(bytes.latin1Slice(start, end)) }
  const wasm: Matched = { text: String, match: ({ bytes }, start, end) => below(bytes.latin1Slice(start, end)) - 1 }
  // Answers are compared first. HNTrie reports that a name matches, but not by which rule.
  same('Map of suffixes', sumOf(hits, simple), sumOf(hits, ours))
  const contender = (name: string, matched: Matched) => {
    const batch = batchOf(misses.map(matched.text))
    same(name, sum(batch, matched.match), names * NO_MATCH)
    return {
      name,
      run: () => {
        const start = performance.now()
        sum(batch, matched.match)
        return ((performance.now() - start) * 1e6) / names
      },
    }
  }
  const figures = await inTurn(rounds, [
    contender('trie', ours),
    contender(`Map of suffixes ${map.version}`, simple),
    contender(`uBO HNTrie (WebAssembly) ${hntrie.version}`, wasm),
  ])
  return [{ what: `a name of no platform, ${domains.toLocaleString('en')} domains`, unit: 'ns', ...figures }]
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
interface Matched {
  /** The bytes of a name. */
  text(name: string): string
  match(batch: Batch, start: number, end: number): number
}

const sumOf = (names: readonly string[], { text, match }: Matched): number => sum(batchOf(names.map(text)), match)

function sum(batch: Batch, match: Matched['match']): number {
  const { offsets } = batch
  let sum = 0
  for (let name = 0; name + 1 < offsets.length; name++) {
    sum = (sum + match(batch, offsets[name] ?? 0, offsets[name + 1] ?? 0)) | 0
  }
  return sum
}

const labelsOf = (name: string) => name.split('.').map((label) => String.fromCharCode(label.length) + label)
const wireName = (name: string) => `${labelsOf(name).join('')}\0`

function batchOf(texts: readonly string[]): Batch {
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

const TOPS = 'com com com com com net org ai io dev app co de fr cn ru co.uk com.br'.split(' ')
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

/** Domains of the same kind with a prefix that no rule has, two of three with a host in front. */
function missesOf(random: Random, count: number): string[] {
  return Array.from({ length: count }, () => {
    const domain = randomDomain(random, 'qz')
    return random.below(3) > 0 ? `${random.of(HOSTS)}.${domain}` : domain
  })
}
