/**
 * The hash that finds a label of a name in the trie: compile-trie.ts fills the table by it, domain-trie.ts looks labels up. It goes from the
 * state of the labels to the right to the state with this label, four bytes at a time (a byte at a time: a miss takes 1.5 times as
 * long, bench registry). Case is folded by setting bit 5, which also makes some illegal bytes alike: the bytes are compared afterwards.
 */
export const ROOT_STATE = 0x2545f491

const FOLD_BYTE = 0x20
const FOLD_WORD = 0x20202020

export function hashLabel(view: DataView, start: number, length: number, state: number): number {
  let hash = state ^ length
  const end = start + length
  if (length < 4) {
    for (let at = start; at < end; at++) hash = step(hash, view.getUint8(at) | FOLD_BYTE)
    return hash
  }
  let at = start
  for (; at + 4 <= end; at += 4) hash = step(hash, view.getUint32(at, true) | FOLD_WORD)
  // The rest of up to three bytes, together with bytes that were read already.
  return at === end ? hash : step(hash, view.getUint32(end - 4, true) | FOLD_WORD)
}

function step(hash: number, bytes: number): number {
  const product = Math.imul(hash ^ bytes, 0x9e3779b1)
  return product ^ (product >>> 15)
}

/** The state below a wildcard: the label there says nothing, so the node stands for it. */
export function globState(node: number): number {
  return Math.imul(node, 0x85ebca6b) ^ ROOT_STATE
}

/** hash / 2^32 of the way through the table: any number of slots will do, with no division. */
export function slotOf(hash: number, scale: number): number {
  return Math.floor((Math.imul(hash, 0x85ebca6b) >>> 0) * scale)
}

/** Which word of the filter, of a power of two that `mask` is one less than. */
export function filterWordOf(hash: number, mask: number): number {
  return (hash >>> 5) & mask
}

/** Two bits of that word; one alone lets 6 to 11 names in a hundred through, two let 1 to 5. */
export function filterBitsOf(hash: number): number {
  return (1 << (hash & 31)) | (1 << (hash >>> 27))
}

/** What a slot keeps of the hash, in the bits that its node leaves free. */
export function tagOf(hash: number): number {
  return hash << 24
}

/**
 * Whether four bytes of a name are, but for case, four bytes of a label in the registry. Those are a-z, 0-9 and hyphen, so all have bit 5 set,
 * and only the letters have bit 6. With bit 5 set in the name's bytes, the words must be equal; that leaves bytes whose bit 5 was
 * not set: with bit 6 they are A-Z, without it control characters, which the second part refuses.
 */
export function sameFolded(seen: number, stored: number): boolean {
  return ((seen | FOLD_WORD) ^ stored) === 0 && ((seen | (seen >>> 1)) & FOLD_WORD) === FOLD_WORD
}
