import { randomInt } from 'node:crypto'
import { LABEL_BYTES_MAX } from './domain-name.ts'
import { filterBitsOf, filterWordOf, globState, hashLabel, slotOf, tagOf } from './label-hash.ts'

/**
 * Rules -> one SharedArrayBuffer that every thread reads in place (domain-trie.ts). All numbers are
 * 32-bit in native byte order, because the buffer never leaves the machine.
 *
 *     HEADER   16 words   MAGIC, VERSION, bytes in total, slots, nodes, globs, patterns, rules,
 *                         1 if a pattern has its first wildcard directly below a top-level domain
 *                         (otherwise 0), words of the filter, state of the root; the rest is 0
 *     FILTER   8 to 16 bits per node, a power of two: two bits of a node's hash are 1. Rejects
 *                         95 of 100 names without a rule
 *     SLOTS    1 word per slot      0 = empty, else tag << 24 | node. Open addressing, linear
 *                         probing, 75 % full
 *     NODES    3 words per node     parent << 8 | flags
 *                         offset of the label in LABELS
 *                         rule index; for a node below a wildcard the rank of its pattern;
 *                         -1 = no rule ends here
 *     GLOBS    3 words per glob     parent node, node, offset of the label in LABELS: the labels
 *                         that contain a `*`, by parent
 *     PATTERNS 1 word per pattern   rank -> rule index; a lower rank is narrower
 *     LABELS   bytes      length byte, then the label in lower case; equal labels are stored once
 *
 * A node is a label below a parent label. The root (node 0) is the dot at the end of every name. A
 * child is found by the hash of its labels (label-hash.ts). A slot is only a candidate, which the
 * node's parent and label bytes confirm, so there are no false matches. No rule has only one label,
 * so the last two labels are looked up together, and most names without a rule end there.
 */
export const MAGIC = 0x54524945
export const VERSION = 1
export const HEADER_WORDS = 16
export const NODE_WORDS = 3
export const GLOB_WORDS = 3
export const Header = {
  magic: 0,
  version: 1,
  bytes: 2,
  slots: 3,
  nodes: 4,
  globs: 5,
  patterns: 6,
  rules: 7,
  topGlobs: 8,
  filterWords: 9,
  rootState: 10,
} as const

/** Flags of a node. */
export const IS_SUFFIX = 1
export const IS_EXACT = 2
export const IS_PATTERN = 4
export const HAS_CHILDREN = 8
export const HAS_GLOBS = 16

/** A node has 24 bits. One value is reserved so that slot value 0 means "empty". */
const NODES_MAX = 0xffffff
/**
 * A fuller table costs hits a few more probes (2.5 at 75 %, 1.8 at 60 %). The filter handles misses
 * and gets the memory instead.
 */
const SLOTS_FILLED = 0.75
const FILTER_BITS_MIN = 8

/** The part of a rule that the trie needs. */
export interface TrieRule {
  readonly domain: string
  readonly match: 'exact' | 'pattern' | 'suffix'
}

/**
 * Compiles rules into a trie. Throws if a domain is invalid (domain-name.ts) or a duplicate, which
 * is an error of the caller.
 */
export function compileTrie(rules: readonly TrieRule[]): SharedArrayBuffer {
  const draft = draftOf(rules)
  const nodes = draft.parents.length
  const slots = Math.ceil(nodes / SLOTS_FILLED) + 1
  const filterWords = 2 ** Math.ceil(Math.log2((nodes * FILTER_BITS_MIN) / 32 + 1))
  const globs = draft.globs.length
  const patterns = draft.patterns.length
  const words = HEADER_WORDS + filterWords + slots + nodes * NODE_WORDS + globs * GLOB_WORDS + patterns
  const bytes = words * 4 + Math.ceil(draft.labelBytes / 4) * 4
  const buffer = new SharedArrayBuffer(bytes)
  const header = new Int32Array(buffer, 0, HEADER_WORDS)
  const topGlobs = draft.topGlobs ? 1 : 0
  const rootState = randomInt(2 ** 32)
  header.set([MAGIC, VERSION, bytes, slots, nodes, globs, patterns, rules.length, topGlobs, filterWords, rootState])
  const filter = new Int32Array(buffer, HEADER_WORDS * 4, filterWords)
  const table = new Int32Array(buffer, (HEADER_WORDS + filterWords) * 4, words - HEADER_WORDS - filterWords)
  const labels = new Uint8Array(buffer, words * 4)

  const labelOffsets = new Map<string, number>()
  let labelEnd = 0
  for (const label of draft.labels) {
    labelOffsets.set(label, labelEnd)
    labels[labelEnd] = label.length
    for (let at = 0; at < label.length; at++) labels[labelEnd + 1 + at] = label.charCodeAt(at)
    labelEnd += 1 + label.length
  }

  const scale = slots / 2 ** 32
  const nodesAt = slots
  const states = new Int32Array(nodes)
  states[0] = rootState
  const view = new DataView(buffer, words * 4)
  for (let node = 0; node < nodes; node++) {
    const parent = draft.parents[node] ?? 0
    const label = draft.nodeLabels[node] ?? ''
    const labelOffset = labelOffsets.get(label) ?? 0
    const at = nodesAt + node * NODE_WORDS
    table[at] = (parent << 8) | (draft.flags[node] ?? 0)
    table[at + 1] = labelOffset
    table[at + 2] = draft.ends[node] ?? -1
    if (label.includes('*')) states[node] = globState(node, rootState)
    if (node === 0 || label.includes('*')) continue
    const hash = hashLabel(view, labelOffset + 1, label.length, states[parent] ?? 0)
    states[node] = hash
    const word = filterWordOf(hash, filterWords - 1)
    filter[word] = (filter[word] ?? 0) | filterBitsOf(hash)
    let slot = slotOf(hash, scale)
    while (table[slot] !== 0) slot = slot + 1 === slots ? 0 : slot + 1
    table[slot] = tagOf(hash) | node
  }

  const globsAt = nodesAt + nodes * NODE_WORDS
  draft.globs.forEach((node, index) => {
    const label = labelOffsets.get(draft.nodeLabels[node] ?? '') ?? 0
    table.set([draft.parents[node] ?? 0, node, label], globsAt + index * GLOB_WORDS)
  })
  table.set(draft.patterns, globsAt + globs * GLOB_WORDS)
  return buffer
}

/** The trie in growable arrays, one element per node. */
interface Draft {
  readonly parents: number[]
  readonly nodeLabels: string[]
  readonly flags: number[]
  readonly ends: number[]
  /** Nodes whose label contains a `*`, by parent. */
  readonly globs: number[]
  readonly patterns: number[]
  readonly labels: Set<string>
  readonly labelBytes: number
  /** Whether a glob is directly below a top-level domain. */
  readonly topGlobs: boolean
}

function draftOf(rules: readonly TrieRule[]): Draft {
  const parents = [0]
  const nodeLabels = ['']
  const flags = [0]
  const ends = [-1]
  const globs: number[] = []
  const nodeOf = new Map<string, number>([['', 0]])

  function nodeFor(domain: string): number {
    const known = nodeOf.get(domain)
    if (known !== undefined) return known
    const dot = domain.indexOf('.')
    const label = dot < 0 ? domain : domain.slice(0, dot)
    if (label.length === 0 || label.length > LABEL_BYTES_MAX) throw new RangeError(`no legal label in ${domain}`)
    const parent = nodeFor(dot < 0 ? '' : domain.slice(dot + 1))
    const node = parents.length
    if (node >= NODES_MAX) throw new RangeError(`more than ${NODES_MAX} labels in the registry`)
    nodeOf.set(domain, node)
    parents.push(parent)
    nodeLabels.push(label)
    flags.push(0)
    ends.push(-1)
    const isGlob = label.includes('*')
    flags[parent] = (flags[parent] ?? 0) | (isGlob ? HAS_GLOBS : HAS_CHILDREN)
    if (isGlob) globs.push(node)
    return node
  }

  const patterns = patternsByNarrowness(rules)
  const rankOf = new Map(patterns.map((index, rank) => [index, rank]))
  rules.forEach(({ domain, match }, index) => {
    if (!domain.includes('.')) throw new RangeError(`${domain} has one label only`)
    const node = nodeFor(domain)
    if (ends[node] !== -1) throw new RangeError(`${domain} is in the registry twice`)
    ends[node] = rankOf.get(index) ?? index
    const flag = match === 'suffix' ? IS_SUFFIX : match === 'exact' ? IS_EXACT : IS_PATTERN
    flags[node] = (flags[node] ?? 0) | flag
  })
  globs.sort((a, b) => (parents[a] ?? 0) - (parents[b] ?? 0) || a - b)
  const labels = new Set(nodeLabels)
  let labelBytes = 0
  for (const label of labels) labelBytes += 1 + label.length
  const topGlobs = globs.some((node) => parents[parents[node] ?? 0] === 0)
  return { parents, nodeLabels, flags, ends, globs, patterns, labels, labelBytes, topGlobs }
}

/** Rule indexes of the patterns, narrowest first. */
function patternsByNarrowness(rules: readonly TrieRule[]): number[] {
  const indexes: number[] = []
  rules.forEach((rule, index) => {
    if (rule.match === 'pattern') indexes.push(index)
  })
  return indexes.sort((a, b) => compareNarrowness(rules[a]?.domain ?? '', rules[b]?.domain ?? '') || a - b)
}

/**
 * Compares two patterns that match the same name. The narrower one has fewer labels with a `*`,
 * then more literal characters.
 */
export function compareNarrowness(a: string, b: string): number {
  const openLabels = (pattern: string) => pattern.split('.').filter((label) => label.includes('*')).length
  const given = (pattern: string) => pattern.length - pattern.split('*').length + 1
  return openLabels(a) - openLabels(b) || given(b) - given(a)
}
