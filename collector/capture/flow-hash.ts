import { PacketClass } from '../batch/packet-class.ts'
import { Layers, Transport } from '../decode/layers.ts'

const layers = new Layers()
const nothing = new SharedArrayBuffer(8)
const nothingBytes = new Uint8Array(nothing)
const transport = new Transport(new DataView(nothing), nothingBytes)

/**
 * A hash of the innermost protocol, addresses and ports that is the same for both directions, so that all packets of a flow meet in one
 * lane. 0 for what is not IP. A fragment hashes by its addresses alone, since only the first of them has ports.
 */
export function flowHash(view: DataView, linkType: number, offset: number, end: number): number {
  const outcome = layers.unwrap(view, nothingBytes, linkType, offset, end, 0, transport)
  const fragment = outcome === ~PacketClass.ipFragment
  if (outcome < 0 && !fragment) return 0
  let mixed = 0
  const { addressView, source, addressBytes } = transport
  // Exclusive or of both ends: symmetric without a comparison.
  for (let at = source, stop = source + addressBytes; at < stop; at += 4) {
    mixed = Math.imul(mixed, 31) ^ addressView.getUint32(at) ^ addressView.getUint32(at + addressBytes)
  }
  if (!fragment && transport.start + 4 <= transport.end) {
    mixed ^= (transport.view.getUint16(transport.start) ^ transport.view.getUint16(transport.start + 2)) << 8
    mixed ^= transport.protocol
  }
  // The finalizer of MurmurHash3: the lane is taken from the low bits, and the differences stand in the high ones.
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
