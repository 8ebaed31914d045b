import { compareNarrowness, type TrieRule } from '../../registry/compile-trie.ts'

/**
 * The reference for the trie, written to be obviously correct: strings, regular expressions, and a
 * scan of all rules.
 */
export class ReferenceMatcher {
  readonly #rules: readonly TrieRule[]
  readonly #patterns: readonly (RegExp | undefined)[]

  constructor(rules: readonly TrieRule[]) {
    this.#rules = rules
    this.#patterns = rules.map(({ domain, match }) => (match === 'pattern' ? patternOf(domain) : undefined))
  }

  matchWire(bytes: Uint8Array): number {
    const labels = wireLabels(bytes)
    return labels === undefined ? -1 : this.#match(labels)
  }

  matchDotted(bytes: Uint8Array): number {
    const text = Buffer.from(bytes).toString('latin1')
    const labels = (text.endsWith('.') ? text.slice(0, -1) : text).split('.')
    return this.#match(labels)
  }

  #match(labels: readonly string[]): number {
    if (!labels.every((label) => /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$/.test(label))) return -1
    const name = labels.join('.').toLowerCase()
    if (name.length > 253) return -1
    const rules = this.#rules
    const exact = rules.findIndex((rule) => rule.match === 'exact' && rule.domain === name)
    if (exact !== -1) return exact
    let best = -1
    rules.forEach((rule, index) => {
      if (this.#patterns[index]?.test(name) !== true) return
      if (best === -1 || compareNarrowness(rule.domain, rules[best]?.domain ?? '') < 0) best = index
    })
    if (best !== -1) return best
    rules.forEach((rule, index) => {
      if (rule.match !== 'suffix' || !(name === rule.domain || name.endsWith(`.${rule.domain}`))) return
      if (best === -1 || rule.domain.length > (rules[best]?.domain.length ?? 0)) best = index
    })
    return best
  }
}

function patternOf(domain: string): RegExp {
  return new RegExp(`^${domain.replaceAll('.', '\\.').replaceAll('*', '[^.]+')}$`)
}

/** The labels of an uncompressed wire name that fills the bytes exactly; otherwise undefined. */
function wireLabels(bytes: Uint8Array): string[] | undefined {
  const labels: string[] = []
  let at = 0
  for (;;) {
    const length = bytes[at]
    if (length === undefined || length > 63) return undefined
    if (length === 0) return at + 1 === bytes.length && bytes.length <= 255 ? labels : undefined
    if (at + 1 + length > bytes.length) return undefined
    labels.push(Buffer.from(bytes.subarray(at + 1, at + 1 + length)).toString('latin1'))
    at += 1 + length
  }
}
