/**
 * The hash that finds a label of a name in the trie. compile-trie.ts fills the table with it, and
 * domain-trie.ts finds labels. It extends the state of the labels to the right by this label,
 * four bytes at a time (with single bytes, a miss takes 1.5 times as long, bench registry). Setting
 * bit 5 makes letters lowercase. It also makes some invalid bytes equal, so the bytes are compared
 * afterward. A trie begins with a random state, so that nobody can prepare a registry whose labels
 * have the same hash.
 */
export const ROOT_STATE = 0x2545f491

const CASE_BIT = 0x20
const CASE_BITS = 0x20202020

export function hashLabel(view: DataView, start: number, length: number, state: number): number {
  let hash = state ^ length
  const end = start + length
  if (length < 4) {
    for (let at = start; at < end; at++) hash = step(hash, view.getUint8(at) | CASE_BIT)
    return hash
  }
  let at = start
  for (; at + 4 <= end; at += 4) hash = step(hash, view.getUint32(at, true) | CASE_BITS)
  // The remaining one to three bytes, together with bytes already read.
  return at === end ? hash : step(hash, view.getUint32(end - 4, true) | CASE_BITS)
}

function step(hash: number, bytes: number): number {
  const product = Math.imul(hash ^ bytes, 0x9e3779b1)
  return product ^ (product >>> 15)
}

/** The state below a wildcard. The label at a wildcard varies, so the node is hashed instead. */
export function globState(node: number, rootState: number): number {
  return Math.imul(node, 0x85ebca6b) ^ rootState
}

/** Scales the hash to the number of slots: works for any number, without a division. */
export function slotOf(hash: number, scale: number): number {
  return Math.floor((Math.imul(hash, 0x85ebca6b) >>> 0) * scale)
}

/** Returns the index of the filter word. The number of words is a power of two, `mask` + 1. */
export function filterWordOf(hash: number, mask: number): number {
  return (hash >>> 5) & mask
}

/**
 * Returns two bits of that word. One bit passes 6 to 11 of 100 names without a rule, two pass 1 to
 * 5.
 */
export function filterBitsOf(hash: number): number {
  return (1 << (hash & 31)) | (1 << (hash >>> 27))
}

/**
 * Returns the part of the hash that is stored in a slot, in the bits that the node does not use.
 */
export function tagOf(hash: number): number {
  return hash << 24
}

/**
 * Whether four bytes of a name equal four bytes of a label in the registry, ignoring case. Bytes in
 * the registry are a-z, 0-9 and hyphen: all have bit 5 set, and only letters have bit 6. With bit 5
 * set in the name's bytes, the words must be equal. Among bytes without bit 5, those with bit 6 are
 * A-Z; the second part rejects the others, which are control characters.
 */
export function sameIgnoreCase(seen: number, stored: number): boolean {
  return ((seen | CASE_BITS) ^ stored) === 0 && ((seen | (seen >>> 1)) & CASE_BITS) === CASE_BITS
}
