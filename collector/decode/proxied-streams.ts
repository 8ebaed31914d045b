import type { Network } from '../../engine/kernel/process/network.ts'
import { STREAMS_MAX } from '../limits.ts'
import type { Transport } from './layers.ts'
import type { RowSource } from './name-rows.ts'
import { ADDRESSES_BYTES, type ProxyElement, ProxyPhase } from './proxy-element.ts'

const UNSEEN_START = 1

/**
 * What proxies' handshakes said about the streams of a lane, by their slots. The memory of a slot
 * takes pages only when it is used.
 */
export class ProxiedStreams {
  readonly phase = new Uint8Array(STREAMS_MAX)
  /** Bytes to skip, or bytes of header fields that were skipped. */
  readonly bytes = new Uint16Array(STREAMS_MAX)
  /** nameHash() of the last name in the stream's handshake, 0 for none. */
  readonly announced = new Uint32Array(STREAMS_MAX)
  /** IP version of the client in a PROXY header, 0 for none, or UNSEEN_START. */
  readonly #version = new Uint8Array(STREAMS_MAX)
  readonly #addresses = new DataView(new SharedArrayBuffer(STREAMS_MAX * ADDRESSES_BYTES))

  /** A new stream uses the slot. */
  clear(slot: number): void {
    this.phase[slot] = ProxyPhase.start
    this.bytes[slot] = 0
    this.announced[slot] = 0
    this.#version[slot] = 0
  }

  /** Remembers the addresses in a PROXY header. */
  setClient(slot: number, { version, addresses }: ProxyElement): void {
    this.#version[slot] = version
    const at = slot * ADDRESSES_BYTES
    for (let byte = 0; byte < ADDRESSES_BYTES; byte += 4)
      this.#addresses.setUint32(at + byte, addresses.getUint32(byte))
  }

  /**
   * The start of the new stream was not seen. A PROXY header in its middle would be the client's
   * own, passed on by the load balancer.
   */
  beginUnseen(slot: number): void {
    this.#version[slot] = UNSEEN_START
  }

  /** Whether a PROXY header of the stream can be of the load balancer. */
  mayHaveHeader(slot: number): boolean {
    return this.#version[slot] !== UNSEEN_START
  }

  /** A later request of the stream, before which no PROXY header is read. */
  beginRequest(slot: number): void {
    this.phase[slot] = ProxyPhase.afterHeader
    this.bytes[slot] = 0
  }

  /** The names that follow are of this stream: those of its client, if a PROXY header named it. */
  apply(slot: number, row: RowSource): void {
    row.announced = this.announced[slot] ?? 0
    const version = this.#version[slot] ?? 0
    if (version === 0 || version === UNSEEN_START) return
    const at = slot * ADDRESSES_BYTES
    const bytes = version === 4 ? 4 : 16
    row.addresses = this.#addresses
    row.version = version
    row.addressBytes = bytes
    row.client = at
    row.server = at + bytes
    row.clientPort = this.#addresses.getUint16(at + 2 * bytes)
    row.serverPort = this.#addresses.getUint16(at + 2 * bytes + 2)
  }
}

/** Whether the packet's source is in one of the networks. */
export function isFrom(networks: readonly Network[], transport: Transport): boolean {
  for (const network of networks) if (isWithin(network, transport)) return true
  return false
}

/** Networks have IPv4 addresses in their IPv6 form (RFC 4291 §2.5.5.2). */
function isWithin({ bytes, prefixBits }: Network, { addressView, source, addressBytes }: Transport): boolean {
  const first = 16 - addressBytes
  for (let at = 0; at * 8 < prefixBits; at++) {
    const byte = at >= first ? addressView.getUint8(source + at - first) : at < 10 ? 0 : 0xff
    const mask = prefixBits - at * 8 >= 8 ? 0xff : (0xff00 >> (prefixBits - at * 8)) & 0xff
    if (((byte ^ (bytes[at] ?? 0)) & mask) !== 0) return false
  }
  return true
}
