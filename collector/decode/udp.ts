import { PacketClass } from '../batch/packet-class.ts'

/**
 * RFC 768: source port, destination port, length of header and payload, checksum. The checksum is
 * not verified, because offloading leaves it wrong.
 */
export const UDP_HEADER_BYTES = 8
export const UDP_SOURCE_PORT = 0
export const UDP_DESTINATION_PORT = 2
export const UDP_LENGTH = 4

/**
 * Returns the offset of the payload of the datagram in bytes [offset, end). udpEnd() returns its
 * end.
 */
export function udpPayload(view: DataView, offset: number, end: number): number {
  if (offset + UDP_HEADER_BYTES > end) return ~PacketClass.truncated
  const bytes = view.getUint16(offset + UDP_LENGTH)
  // 0 means a jumbogram (RFC 2675 §4) or segmentation offload.
  if (bytes !== 0 && bytes < UDP_HEADER_BYTES) return ~PacketClass.udpMalformed
  return offset + UDP_HEADER_BYTES
}

/**
 * Returns the end of the payload of a datagram that passed udpPayload(): by its length or `end`,
 * whichever comes first.
 */
export function udpEnd(view: DataView, offset: number, end: number): number {
  const bytes = view.getUint16(offset + UDP_LENGTH)
  return bytes === 0 ? end : Math.min(end, offset + bytes)
}
