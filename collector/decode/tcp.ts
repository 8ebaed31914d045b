import { PacketClass } from '../batch/packet-class.ts'

/**
 * RFC 9293 §3.1: ports, sequence and acknowledgment number, data offset in units of 4 bytes, flags.
 */
const TCP_HEADER_BYTES = 20
export const TCP_SEQUENCE = 4
const TCP_DATA_OFFSET = 12
export const TCP_FLAGS = 13
export const TcpFlag = { syn: 0x02, ack: 0x10 } as const

/**
 * Returns the offset of the payload of the segment in bytes [offset, end), or `end` if there is no
 * payload.
 */
export function tcpPayload(view: DataView, offset: number, end: number): number {
  if (offset + TCP_HEADER_BYTES > end) return ~PacketClass.truncated
  const headerBytes = (view.getUint8(offset + TCP_DATA_OFFSET) >> 4) * 4
  if (headerBytes < TCP_HEADER_BYTES) return ~PacketClass.tcpMalformed
  if (offset + headerBytes > end) return ~PacketClass.truncated
  return offset + headerBytes
}
