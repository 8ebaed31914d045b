import {
  addressBytes,
  type Ipv4Fields,
  type Ipv6Fields,
  ipv4,
  ipv6,
  type NetworkPacket,
  otherTransport,
  type Transport,
  u16,
  u32,
  withChecksum,
} from './packets.ts'

/** IANA Assigned Internet Protocol Numbers: the Fragment header of IPv6. */
const PROTOCOL_FRAGMENT = 44
/** RFC 791 §3.1: the MF bit in the 16-bit field of flags and offset. */
const MORE_FRAGMENTS = 0x2000

/** The indexes of the fragments in sending order. Default: ascending. */
export type SendingOrder = readonly number[]

/**
 * RFC 791 §3.1: the bytes [start, end) of the payload as one fragment. `start` must be a multiple
 * of 8; `end`, too, except in the last fragment.
 */
export function ipv4Fragment(fields: Ipv4Fields, payload: Transport, start: number, end: number): NetworkPacket {
  const bytes = whole(fields, payload)
  const more = end < bytes.length ? MORE_FRAGMENTS : 0
  return ipv4(
    { ...fields, fragment: more | (start >> 3) },
    otherTransport(payload.protocol, bytes.subarray(start, end)),
  )
}

/** The packet in fragments with `size` bytes of payload each. */
export function ipv4Fragments(
  fields: Ipv4Fields,
  payload: Transport,
  size: number,
  order?: SendingOrder,
): NetworkPacket[] {
  return sent(pieces(payload.bytes.length, size), order).map(([start, end]) =>
    ipv4Fragment(fields, payload, start, end),
  )
}

/**
 * RFC 8200 §4.5: the same for IPv6. An extension header after the others holds offset and
 * identification.
 */
export function ipv6Fragment(
  fields: Ipv6Fields & { readonly identification?: number },
  payload: Transport,
  start: number,
  end: number,
): NetworkPacket {
  const bytes = whole(fields, payload)
  const more = end < bytes.length ? 1 : 0
  const header = Buffer.concat([Buffer.from([0]), u16(start | more), u32(fields.identification ?? 1)])
  return ipv6(
    { ...fields, extensions: [...(fields.extensions ?? []), { number: PROTOCOL_FRAGMENT, bytes: header }] },
    otherTransport(payload.protocol, bytes.subarray(start, end)),
  )
}

export function ipv6Fragments(
  fields: Ipv6Fields & { readonly identification?: number },
  payload: Transport,
  size: number,
  order?: SendingOrder,
): NetworkPacket[] {
  return sent(pieces(payload.bytes.length, size), order).map(([start, end]) =>
    ipv6Fragment(fields, payload, start, end),
  )
}

function whole(fields: { readonly source: string; readonly destination: string }, payload: Transport): Buffer {
  return withChecksum(payload, addressBytes(fields.source), addressBytes(fields.destination))
}

/** Offsets [start, end) of pieces of at most `size` bytes. */
function pieces(length: number, size: number): [number, number][] {
  const borders: [number, number][] = []
  for (let at = 0; at < length; at += size) borders.push([at, Math.min(at + size, length)])
  return borders
}

function sent<Piece>(inOrder: readonly Piece[], order: SendingOrder = [...inOrder.keys()]): Piece[] {
  return order.map((index) => inOrder[index] as Piece)
}
