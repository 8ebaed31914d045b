/**
 * Texts of equal length with the same FNV-1a hash, which tables once used without a key: at each
 * of `pairs` places one of two blocks that lead from the same state to the same next state, so that
 * all 2^pairs combinations have one hash.
 */
export function collidingTexts(pairs: number, state = 0x811c9dc5): string[] {
  let texts = ['']
  let from = state
  for (let pair = 0; pair < pairs; pair++) {
    const [one, other] = collidingBlocks(from)
    texts = texts.flatMap((text) => [text + one, text + other])
    from = fnv1a(one, from)
  }
  return texts
}

/** FNV-1a of an ASCII text, from a state on. */
export function fnv1a(text: string, state = 0x811c9dc5): number {
  let hash = state
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

/** By the birthday paradox after about 2^16 blocks. */
function collidingBlocks(state: number): readonly [string, string] {
  const seen = new Map<number, string>()
  for (let number = 0; ; number++) {
    // The digits in reverse: the first ones change most, and spread over all bits.
    const block = (36 ** 5 + number).toString(36).split('').reverse().join('')
    const hash = fnv1a(block, state)
    const known = seen.get(hash)
    if (known !== undefined) return [known, block]
    seen.set(hash, block)
  }
}

/** A view that counts how often it is read. */
export interface CountingView extends DataView {
  reads: number
}

export function countingView(bytes: Uint8Array): CountingView {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const counting: CountingView = Object.assign(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
    reads: 0,
    getUint8(at: number): number {
      counting.reads++
      return view.getUint8(at)
    },
    getUint32(at: number, littleEndian?: boolean): number {
      counting.reads++
      return view.getUint32(at, littleEndian)
    },
  })
  return counting
}
