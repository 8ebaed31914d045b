import { PacketClass } from '../batch/packet-class.ts'
import { DNS_PORT } from '../decode/dns.ts'
import { IpProtocol } from '../decode/ip.ts'
import { Layers, Transport } from '../decode/layers.ts'

const layers = new Layers()
const nothing = new SharedArrayBuffer(8)
const nothingBytes = new Uint8Array(nothing)
const transport = new Transport(new DataView(nothing), nothingBytes)

let answers = false

/**
 * Hashes the innermost protocol, addresses and ports. Both directions have the same hash, so all
 * packets of a flow go to one lane. Returns 0 for packets that are not IP. A fragment is hashed by
 * its addresses only, since only the first fragment has ports.
 */
export function flowHash(view: DataView, linkType: number, offset: number, end: number): number {
  answers = false
  const outcome = layers.unwrap(view, nothingBytes, linkType, offset, end, 0, transport)
  const fragment = outcome === ~PacketClass.ipFragment
  if (outcome < 0 && !fragment) return 0
  let mixed = 0
  const { addressView, source, addressBytes } = transport
  // XOR of both endpoints: symmetric without a comparison.
  for (let at = source, stop = source + addressBytes; at < stop; at += 4) {
    mixed = Math.imul(mixed, 31) ^ addressView.getUint32(at) ^ addressView.getUint32(at + addressBytes)
  }
  if (!fragment && transport.start + 4 <= transport.end) {
    mixed ^= (transport.view.getUint16(transport.start) ^ transport.view.getUint16(transport.start + 2)) << 8
    mixed ^= transport.protocol
    answers = transport.protocol === IpProtocol.udp && transport.view.getUint16(transport.start) === DNS_PORT
  }
  // The finalizer of MurmurHash3. The lane comes from the low bits, and the differences are in the
  // high bits.
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/**
 * Whether the packet that was hashed last is a DNS answer. The connections to its addresses may be
 * in any lane. Answers from other ports than 53 are known only to the lane that decodes them.
 */
export function isDnsAnswer(): boolean {
  return answers
}
