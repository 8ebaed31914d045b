import { IpHeader, IpProtocol, ipPayload } from '../decode/ip.ts'
import { linkPayload } from '../decode/link.ts'

const ip = new IpHeader()

/**
 * A hash of protocol, addresses and ports that is the same for both directions, so that all packets of a flow meet in one lane.
 * 0 for what is not IP. A fragment hashes by its addresses alone, since only the first of them has ports.
 */
export function flowHash(view: DataView, linkType: number, offset: number, end: number): number {
  const header = linkPayload(view, linkType, offset, end)
  if (header < 0) return 0
  // ipPayload() sets the addresses before it finds that a packet is a fragment; after any other fault they may be those of the packet before.
  ip.addressBytes = 0
  const transport = ipPayload(view, header, end, ip)
  let mixed = 0
  // Exclusive or of both ends: symmetric without a comparison.
  for (let at = ip.source, stop = ip.source + ip.addressBytes; at < stop; at += 4) {
    mixed = Math.imul(mixed, 31) ^ view.getUint32(at) ^ view.getUint32(at + ip.addressBytes)
  }
  if (transport >= 0 && (ip.protocol === IpProtocol.udp || ip.protocol === IpProtocol.tcp) && transport + 4 <= end) {
    mixed ^= (view.getUint16(transport) ^ view.getUint16(transport + 2)) << 8
    mixed ^= ip.protocol
  }
  // The finalizer of MurmurHash3: the lane is taken from the low bits, and the differences stand in the high ones.
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
