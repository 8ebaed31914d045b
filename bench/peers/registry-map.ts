import type { TrieRule } from '../../registry/compile-trie.ts'

export const version = `(Node ${process.versions.node})`

/**
 * The simple solution: a Map of domains, queried for the whole name and then label by label. It
 * cannot match patterns.
 */
export function build(rules: readonly TrieRule[]): (name: string) => number {
  const exact = new Map<string, number>()
  const suffix = new Map<string, number>()
  rules.forEach(({ domain, match }, index) => {
    if (match === 'exact') exact.set(domain, index)
    if (match === 'suffix') suffix.set(domain, index)
  })
  return (name) => {
    const whole = exact.get(name)
    if (whole !== undefined) return whole
    let rest = name
    for (;;) {
      const found = suffix.get(rest)
      if (found !== undefined) return found
      const dot = rest.indexOf('.')
      if (dot < 0) return -1
      rest = rest.slice(dot + 1)
    }
  }
}
