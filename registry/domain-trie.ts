import {
  GLOB_WORDS,
  HAS_CHILDREN,
  HAS_GLOBS,
  HEADER_WORDS,
  Header,
  IS_EXACT,
  IS_PATTERN,
  IS_SUFFIX,
  MAGIC,
  NODE_WORDS,
  VERSION,
} from './compile-trie.ts'
import { LABEL_BYTE, LABEL_BYTES_MAX, LABELS_MAX, NAME_CHARS_MAX, WIRE_BYTES_MAX } from './domain-name.ts'
import { filterBitsOf, filterWordOf, globState, hashLabel, sameIgnoreCase, slotOf, tagOf } from './label-hash.ts'

export const NO_MATCH = -1

const DOT = 0x2e
const HYPHEN = 0x2d
const STAR = 0x2a
const ROOT = 0
const NO_NODE = -1
const ANY_TOP = -2
const NO_RANK = 0x7fffffff

/**
 * Finds the rule for a name, over the bytes of compile-trie.ts and of the packet, without creating
 * a string or object. Precedence: exact, pattern, longest suffix. A trie belongs to one thread,
 * because it has scratch arrays. All threads share the bytes.
 */
export class DomainTrie {
  readonly #filter: Int32Array
  readonly #slots: Int32Array
  readonly #nodes: Int32Array
  readonly #globs: Int32Array
  readonly #patterns: Int32Array
  readonly #labels: DataView
  readonly #scale: number
  readonly #rootState: number
  readonly #topGlobs: boolean
  /** Start and length of each label of the current name, from left to right. */
  readonly #starts = new Int32Array(LABELS_MAX)
  readonly #lengths = new Int32Array(LABELS_MAX)

  /** @throws RangeError for bytes that compileTrie did not create. */
  constructor(bytes: SharedArrayBuffer) {
    if (bytes.byteLength < HEADER_WORDS * 4) throw new RangeError('not a compiled registry: too short')
    const header = new Int32Array(bytes, 0, HEADER_WORDS)
    const word = (at: number) => header[at] ?? 0
    if (word(Header.magic) !== MAGIC || word(Header.version) !== VERSION || word(Header.bytes) !== bytes.byteLength) {
      throw new RangeError('not a compiled registry of this version')
    }
    let offset = HEADER_WORDS * 4
    const words = (count: number) => {
      const section = new Int32Array(bytes, offset, count)
      offset += count * 4
      return section
    }
    this.#filter = words(word(Header.filterWords))
    this.#slots = words(word(Header.slots))
    this.#nodes = words(word(Header.nodes) * NODE_WORDS)
    this.#globs = words(word(Header.globs) * GLOB_WORDS)
    this.#patterns = words(word(Header.patterns))
    this.#labels = new DataView(bytes, offset)
    this.#topGlobs = word(Header.topGlobs) !== 0
    this.#rootState = word(Header.rootState)
    this.#scale = this.#slots.length / 2 ** 32
  }

  /**
   * RFC 1035 §3.1: [offset, end) must hold length-prefixed labels and the zero byte of the root,
   * without pointers. Returns the index of the matching rule, or NO_MATCH, also for an invalid host
   * name.
   */
  matchWire(view: DataView, offset: number, end: number): number {
    if (!(offset >= 0 && end <= view.byteLength && end - offset <= WIRE_BYTES_MAX)) return NO_MATCH
    const starts = this.#starts
    const lengths = this.#lengths
    let count = 0
    let at = offset
    while (at < end) {
      const length = view.getUint8(at)
      at++
      if (length === 0) return at === end ? this.#match(view, count) : NO_MATCH
      if (length > LABEL_BYTES_MAX || count === LABELS_MAX) return NO_MATCH
      starts[count] = at
      lengths[count] = length
      count++
      at += length
    }
    return NO_MATCH
  }

  /** The same for ASCII text in [offset, end), in any case, with or without one trailing dot. */
  matchDotted(view: DataView, offset: number, end: number): number {
    if (!(offset >= 0 && end > offset && end <= view.byteLength)) return NO_MATCH
    const stop = view.getUint8(end - 1) === DOT ? end - 1 : end
    if (stop - offset > NAME_CHARS_MAX) return NO_MATCH
    const starts = this.#starts
    const lengths = this.#lengths
    let count = 0
    let start = offset
    for (let at = offset; at <= stop; at++) {
      if (at !== stop && view.getUint8(at) !== DOT) continue
      const length = at - start
      if (length === 0 || length > LABEL_BYTES_MAX || count === LABELS_MAX) return NO_MATCH
      starts[count] = start
      lengths[count] = length
      count++
      start = at + 1
    }
    return this.#match(view, count)
  }

  /**
   * Walks from the last label to the first as far as rules exist. Then validates the name and
   * selects the best match.
   */
  #match(view: DataView, count: number): number {
    const nodes = this.#nodes
    let suffix = NO_MATCH
    let exact = NO_MATCH
    let rank = NO_RANK
    let node = ROOT
    let flags = HAS_CHILDREN
    let state = this.#rootState
    let label = count - 1
    for (; label >= 0; label--) {
      if ((flags & HAS_GLOBS) !== 0) rank = this.#underGlobs(view, node, label, rank)
      if ((flags & HAS_CHILDREN) === 0) break
      state = hashLabel(view, this.#starts[label] ?? 0, this.#lengths[label] ?? 0, state)
      if (node === ROOT && !this.#topGlobs) {
        // No rule has only one label, so the last label is looked up together with the next.
        node = ANY_TOP
        continue
      }
      node = this.#child(view, node, label, state)
      if (node === NO_NODE) break
      const word = node * NODE_WORDS
      flags = (nodes[word] ?? 0) & 0xff
      if ((flags & IS_SUFFIX) !== 0) suffix = nodes[word + 2] ?? NO_MATCH
      else if ((flags & IS_EXACT) !== 0 && label === 0) exact = nodes[word + 2] ?? NO_MATCH
    }
    if (exact !== NO_MATCH) return exact
    if (rank !== NO_RANK) return this.#isValidName(view, count) ? (this.#patterns[rank] ?? NO_MATCH) : NO_MATCH
    // The labels right of `label` are equal to a rule's labels, so they are valid.
    return suffix !== NO_MATCH && this.#isValidName(view, label + 1) ? suffix : NO_MATCH
  }

  /**
   * Returns the node of label `index` of the name, whose hash is `state`, below `parent`, or
   * NO_NODE. ANY_TOP as the parent stands for the name's last label.
   */
  #child(view: DataView, parent: number, index: number, state: number): number {
    const filter = this.#filter
    const bits = filterBitsOf(state)
    if (((filter[filterWordOf(state, filter.length - 1)] ?? 0) & bits) !== bits) return NO_NODE
    const slots = this.#slots
    const tag = tagOf(state)
    let slot = slotOf(state, this.#scale)
    for (;;) {
      const entry = slots[slot] ?? 0
      if (entry === 0) return NO_NODE
      if ((entry & 0xff000000) === tag) {
        const node = entry & 0xffffff
        const above = (this.#nodes[node * NODE_WORDS] ?? 0) >>> 8
        if (this.#sameLabel(view, node, index)) {
          if (above === parent) return node
          if (parent === ANY_TOP && above !== ROOT && this.#isTop(above) && this.#sameLabel(view, above, index + 1))
            return node
        }
      }
      slot++
      if (slot === slots.length) slot = 0
    }
  }

  #isTop(node: number): boolean {
    return (this.#nodes[node * NODE_WORDS] ?? 0) >>> 8 === ROOT
  }

  #sameLabel(view: DataView, node: number, index: number): boolean {
    const labels = this.#labels
    const stored = this.#nodes[node * NODE_WORDS + 1] ?? 0
    const start = this.#starts[index] ?? 0
    const length = this.#lengths[index] ?? 0
    if (labels.getUint8(stored) !== length) return false
    if (length < 4) {
      for (let at = 0; at < length; at++) {
        if (LABEL_BYTE[view.getUint8(start + at)] !== labels.getUint8(stored + 1 + at)) return false
      }
      return true
    }
    // The last four bytes first, where labels of equal length differ most. They may overlap the
    // others.
    for (let at = length - 4; at > -4; at -= 4) {
      const from = Math.max(at, 0)
      if (!sameIgnoreCase(view.getUint32(start + from, true), labels.getUint32(stored + 1 + from, true))) return false
    }
    return true
  }

  /**
   * Returns the lowest rank below `best` of a pattern that continues from `parent` with a wildcard
   * at label `index`, otherwise `best`.
   */
  #underGlobs(view: DataView, parent: number, index: number, best: number): number {
    const globs = this.#globs
    let low = 0
    let high = globs.length / GLOB_WORDS
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((globs[middle * GLOB_WORDS] ?? 0) < parent) low = middle + 1
      else high = middle
    }
    let rank = best
    for (let at = low * GLOB_WORDS; at < globs.length && globs[at] === parent; at += GLOB_WORDS) {
      if (this.#matchesGlob(view, index, globs[at + 2] ?? 0)) {
        const node = globs[at + 1] ?? 0
        rank = this.#underPattern(view, node, globState(node, this.#rootState), index - 1, rank)
      }
    }
    return rank
  }

  /**
   * The same below a node with a wildcard on its path. The structure is a tree, so no node is
   * visited twice, and only patterns that may match cost work.
   */
  #underPattern(view: DataView, node: number, state: number, index: number, best: number): number {
    const word = node * NODE_WORDS
    const flags = (this.#nodes[word] ?? 0) & 0xff
    if (index < 0) return (flags & IS_PATTERN) === 0 ? best : Math.min(best, this.#nodes[word + 2] ?? NO_RANK)
    let rank = best
    if ((flags & HAS_CHILDREN) !== 0) {
      const below = hashLabel(view, this.#starts[index] ?? 0, this.#lengths[index] ?? 0, state)
      const child = this.#child(view, node, index, below)
      if (child !== NO_NODE) rank = this.#underPattern(view, child, below, index - 1, rank)
    }
    return (flags & HAS_GLOBS) === 0 ? rank : this.#underGlobs(view, node, index, rank)
  }

  /**
   * Whether label `index` of the name matches a label with `*`. A star first takes one character,
   * then one more each time the rest fails to match.
   */
  #matchesGlob(view: DataView, index: number, stored: number): boolean {
    const labels = this.#labels
    const start = this.#starts[index] ?? 0
    const length = this.#lengths[index] ?? 0
    const globEnd = stored + 1 + labels.getUint8(stored)
    let glob = stored + 1
    let at = 0
    let starGlob = -1
    let starAt = 0
    while (at < length) {
      if (glob < globEnd && labels.getUint8(glob) === STAR) {
        starGlob = ++glob
        starAt = ++at
      } else if (glob < globEnd && labels.getUint8(glob) === LABEL_BYTE[view.getUint8(start + at)]) {
        glob++
        at++
      } else if (starGlob >= 0) {
        glob = starGlob
        at = ++starAt
      } else return false
    }
    return glob === globEnd
  }

  /**
   * Whether every byte is valid in a label and no label begins or ends with a hyphen
   * (domain-name.ts).
   */
  #isValidName(view: DataView, count: number): boolean {
    for (let label = 0; label < count; label++) {
      const start = this.#starts[label] ?? 0
      const end = start + (this.#lengths[label] ?? 0)
      if (view.getUint8(start) === HYPHEN || view.getUint8(end - 1) === HYPHEN) return false
      for (let at = start; at < end; at++) if (LABEL_BYTE[view.getUint8(at)] === 0) return false
    }
    return true
  }
}
