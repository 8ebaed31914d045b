import { otherTransport, type Transport, u16, u32 } from './packets.ts'
import { fill } from './packets-tls.ts'

/** The packets by which encrypted tunnels and protocols are recognized. */

/** RFC 4303 §2: SPI, sequence number, ciphertext and check value. */
export function espPacket(spi: number): Buffer {
  return Buffer.concat([u32(spi), u32(1), fill(spi)(64)])
}

export function esp(spi: number): Transport {
  return otherTransport(50, espPacket(spi))
}

/** RFC 4302 §2: next header, length, reserved, SPI, sequence number, check value of 12 bytes. */
export function ah(inner: Transport): Transport {
  const header = Buffer.concat([Buffer.from([inner.protocol, 4]), u16(0), u32(0x1234), u32(1), Buffer.alloc(12, 0xc5)])
  return otherTransport(51, Buffer.concat([header, inner.bytes]))
}

/** A handshake initiation: type 1, sender, 32 + 48 + 28 bytes of keys and time, two MACs. */
export function wireguardInitiation(): Buffer {
  return Buffer.concat([Buffer.from([1, 0, 0, 0]), fill(7)(4 + 32 + 48 + 28 + 32)])
}

/** P_CONTROL_HARD_RESET_CLIENT_V2, with an HMAC of `hmacBytes` as tls-auth adds it. */
export function openVpnReset(hmacBytes = 0): Buffer {
  const protectedPart = hmacBytes === 0 ? [] : [fill(9)(hmacBytes), u32(1), u32(1_795_000_000)]
  return Buffer.concat([Buffer.from([0x38]), fill(8)(8), ...protectedPart, Buffer.alloc(5)])
}

/** P_CONTROL_HARD_RESET_CLIENT_V3 of tls-crypt-v2, with a wrapped key of 290 bytes. */
export function openVpnResetWithKey(): Buffer {
  const key = Buffer.concat([fill(10)(288), u16(290)])
  return Buffer.concat([Buffer.from([0x50]), fill(8)(8), u32(1), u32(1_795_000_000), fill(11)(32 + 5), key])
}

/** RFC 6347 §4.2: a record of DTLS 1.0 with a ClientHello of 1.2. */
export function dtlsHello(): Buffer {
  const body = Buffer.concat([u16(0xfefd), fill(12)(32), Buffer.from([0, 0]), u16(2), u16(0xc02b), Buffer.from([1, 0])])
  const length = Buffer.from([0, 0, body.length])
  const handshake = Buffer.concat([Buffer.from([1]), length, u16(0), Buffer.from([0, 0, 0]), length, body])
  return Buffer.concat([Buffer.from([22]), u16(0xfeff), u16(0), Buffer.alloc(6), u16(handshake.length), handshake])
}

/** A resolver's answer: the magic number, a nonce of 24 bytes, ciphertext. */
export function dnscryptAnswer(): Buffer {
  return Buffer.concat([Buffer.from('r6fnvWj8', 'latin1'), fill(13)(24 + 16 + 128)])
}
