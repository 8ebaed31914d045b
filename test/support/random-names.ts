import type { TrieRule } from '../../registry/compile-trie.ts'

/** Random numbers that a seed reproduces (xorshift32). */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0 || 0x9e3779b9
  }

  /** An integer in 0..bound-1. */
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

/** Few labels, so that rules and names often match. */
const LABELS = ['a', 'b', 'ai', 'api', 'x-1', 'xn--p1ai', 'openai', 'a1-b', 'abab', 'a'.repeat(63)]
const GLOBS = ['*', 'a*', '*-b', 'a*b', '*a*', 'x*1', 'a*-*', '*1*b']
const TOPS = ['com', 'net', 'ai', 'co']

/** Up to `count` rules with distinct domains. The kinds overlap as much as possible. */
export function makeRules(random: SeededRandom, count: number): TrieRule[] {
  const rules = new Map<string, TrieRule>()
  for (let made = 0; made < count; made++) {
    const labels = Array.from({ length: 1 + random.below(3) }, () => random.of(LABELS))
    const kind = random.below(3)
    if (kind === 0) labels[random.below(labels.length)] = random.of(GLOBS)
    if (kind === 0 && random.below(4) === 0) labels[0] = random.of(GLOBS)
    const domain = [...labels, random.of(TOPS)].join('.')
    rules.set(domain, { domain, match: kind === 0 ? 'pattern' : kind === 1 ? 'exact' : 'suffix' })
  }
  return [...rules.values()]
}

/**
 * The labels of a rule's name, or of a similar one: labels added, removed or replaced; upper case;
 * bytes that are not allowed in host names.
 */
export function makeLabels(random: SeededRandom, rules: readonly TrieRule[]): string[] {
  const rule = random.of(rules)
  const labels = rule.domain
    .split('.')
    .map((label) => label.replaceAll('*', () => random.of(['a', 'b', '1', '-', 'ab', 'a-b'])))
  switch (random.below(10)) {
    case 0:
      labels.unshift(random.of(LABELS))
      break
    case 1:
      labels.unshift(random.of(['_https', '_dmarc', '-a', 'a-', '*', '', 'a.b', 'a b', '\u00e9', '\0']))
      break
    case 2:
      labels.shift()
      break
    case 3:
      labels[random.below(labels.length)] = random.of(LABELS)
      break
    case 4:
      labels.push(random.of(TOPS))
      break
    case 5: {
      const at = random.below(labels.length)
      labels[at] = mutate(random, labels[at] ?? '')
      break
    }
    case 6:
      for (let added = random.below(130); added > 0; added--) labels.unshift(random.of(['a', 'api']))
      break
    case 7:
      // Two labels joined into one with a dot inside. On the wire, the result is a different name.
      labels.splice(0, 2, labels.slice(0, 2).join('.'))
      break
  }
  return random.below(3) === 0 ? labels.map((label) => label.toUpperCase()) : labels
}

function mutate(random: SeededRandom, label: string): string {
  const at = random.below(label.length + 1)
  const byte = String.fromCharCode(random.below(256))
  return label.slice(0, at) + byte + label.slice(at + random.below(2))
}

/** RFC 1035 §3.1. A label longer than 63 bytes gives an invalid name on purpose. */
export function wireName(labels: readonly string[]): Uint8Array {
  const parts = labels.map((label) => Buffer.from(`${String.fromCharCode(label.length & 0xff)}${label}`, 'latin1'))
  return Buffer.concat([...parts, Buffer.from([0])])
}

export function dottedName(labels: readonly string[], trailingDot: boolean): Uint8Array {
  return Buffer.from(labels.join('.') + (trailingDot ? '.' : ''), 'latin1')
}
