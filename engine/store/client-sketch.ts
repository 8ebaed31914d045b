/*
 * How many clients requested a name, in 32 bytes: linear counting. Each client sets one of 256 bits
 * by its hash, and the number of zero bits gives the estimate. Merging is OR. The sketch of scans
 * (scan/distinct-clients.ts) is exact for few clients and up to 65 times as long. A guess needs
 * fewer bytes, which say less about clients.
 */
export const SKETCH_BYTES = 32
const SKETCH_BITS = SKETCH_BYTES * 8
/** The estimate with all bits set, whatever the number of clients. */
export const SKETCH_CLIENTS_MAX = 1000

/** @param hash 32 bits of which all depend on the client */
export function addToSketch(sketch: Uint8Array, hash: number): void {
  const bit = hash >>> 24
  sketch[bit >>> 3] = (sketch[bit >>> 3] ?? 0) | (1 << (bit & 7))
}

export function mergedSketch(one: Uint8Array, other: Uint8Array): Uint8Array {
  return one.map((byte, at) => byte | (other[at] ?? 0))
}

/** Exact up to about 10 clients, within 10% up to 500. */
export function clientsInSketch(sketch: Uint8Array): number {
  let zeros = SKETCH_BITS
  for (let byte of sketch) for (; byte > 0; byte &= byte - 1) zeros--
  if (zeros === 0) return SKETCH_CLIENTS_MAX
  return Math.min(SKETCH_CLIENTS_MAX, Math.round(SKETCH_BITS * Math.log(SKETCH_BITS / zeros)))
}
