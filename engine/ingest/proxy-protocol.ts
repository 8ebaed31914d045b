import type { Socket } from 'node:net'
import { addressOfBytes } from '../kernel/process/network.ts'

/*
 * The PROXY protocol header, version 2
 * (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, section 2.2), which a load balancer
 * sends before the client's first byte:
 *
 *   0   12       signature
 *   12  1        high four bits: version 2; low four bits: command,
 *                0 LOCAL (the balancer's own connection) or 1 PROXY
 *   13  1        address family and protocol:
 *                0x11 TCP over IPv4, 0x21 TCP over IPv6, 0x00 unspecified
 *   14  2        length of the rest, big-endian
 *   16  4 or 16  source address; then destination address, both ports, and TLVs (ignored)
 */
const SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a])
const FIXED_BYTES = 16
const VERSION = 2
const LOCAL = 0
const PROXY = 1
const TCP4 = 0x11
const TCP6 = 0x21
const TCP4_BYTES = 12
const TCP6_BYTES = 36
/** Limit for addresses and TLVs. */
const HEADER_BYTES_MAX = 4096

/**
 * A complete header, an incomplete one, or none. `address` is '' if the connection is the
 * balancer's own.
 */
export type ProxyHeader = { readonly address: string; readonly bytes: number } | 'incomplete' | 'none'

export function readProxyHeader(bytes: Buffer): ProxyHeader {
  const known = Math.min(bytes.length, SIGNATURE.length)
  if (SIGNATURE.compare(bytes, 0, known, 0, known) !== 0) return 'none'
  if (bytes.length < FIXED_BYTES) return 'incomplete'
  const versionAndCommand = bytes.readUInt8(12)
  const family = bytes.readUInt8(13)
  const length = bytes.readUInt16BE(14)
  const command = versionAndCommand & 0x0f
  if (versionAndCommand >> 4 !== VERSION || command > PROXY || length > HEADER_BYTES_MAX) return 'none'
  if (bytes.length < FIXED_BYTES + length) return 'incomplete'
  const whole = FIXED_BYTES + length
  if (command === LOCAL) return { address: '', bytes: whole }
  if (family === TCP4 && length >= TCP4_BYTES) {
    return { address: addressOfBytes(bytes.subarray(FIXED_BYTES, FIXED_BYTES + 4)), bytes: whole }
  }
  if (family === TCP6 && length >= TCP6_BYTES) {
    return { address: addressOfBytes(bytes.subarray(FIXED_BYTES, FIXED_BYTES + 16)), bytes: whole }
  }
  return family === 0 ? { address: '', bytes: whole } : 'none'
}

/**
 * Reads the header from a new connection and pushes the bytes after it back. Resolves to the
 * client's address, or undefined if there is no valid header.
 */
export async function takeProxyHeader(socket: Socket): Promise<string | undefined> {
  let waiting: Buffer = Buffer.alloc(0)
  return new Promise((resolve) => {
    const settle = (address: string | undefined): void => {
      socket.off('data', onData)
      socket.off('close', onClose)
      socket.pause()
      resolve(address)
    }
    const onClose = (): void => settle(undefined)
    const onData = (chunk: Buffer): void => {
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
      const header = readProxyHeader(waiting)
      if (header === 'incomplete') return
      if (header === 'none') return settle(undefined)
      const after = waiting.subarray(header.bytes)
      settle(header.address === '' ? (socket.remoteAddress ?? '') : header.address)
      if (after.length > 0) socket.unshift(after)
    }
    socket.on('data', onData)
    socket.once('close', onClose)
  })
}
