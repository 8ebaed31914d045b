import { Counter } from '../batch/counters.ts'
import type { Transport } from './layers.ts'
import { NO_SLOT } from './slot-table.ts'
import { StreamState, type StreamTable } from './stream-table.ts'

/**
 * Encrypted tunnels and protocols, counted by kind, each connection once. A kind is counted only
 * for the packets that its specification fixes, so that other traffic on the same port is not
 * counted.
 */

/** RFC 3948 §2: ESP in UDP begins with an SPI, which is not 0 as in IKE. */
const PORT_NAT_TRAVERSAL = 4500
/** RFC 4303 §2: SPI, sequence number, at least a block of payload and the check value. */
const ESP_BYTES_MIN = 8 + 8

/**
 * WireGuard's protocol, "Handshake": message type 1, three zero bytes, and the exact length of an
 * initiation.
 */
const WIREGUARD_INITIATION = 0x0100_0000
const WIREGUARD_INITIATION_BYTES = 148

/**
 * OpenVPN's protocol, "P_CONTROL_HARD_RESET_CLIENT_V2" and "_V3": opcode in the high 5 bits, key 0;
 * session ID; with tls-auth an HMAC, packet number and time; or with tls-crypt packet number, time,
 * HMAC and the encrypted rest; then no acknowledgements and message number 0.
 */
const OPENVPN_RESET_V2 = 0x38
const OPENVPN_RESET_V3 = 0x50
const OPENVPN_PLAIN_BYTES = 14
/** Plain, then with tls-auth and MD5, SHA-1, SHA-256 or SHA-512. */
const OPENVPN_HMAC_BYTES = [16, 20, 32, 64]
const OPENVPN_CRYPT_BYTES = 54
const OPENVPN_SESSION_BYTES = 8

/**
 * RFC 6347 §4.1, RFC 9147 §4: handshake, version 254.255 to 254.252, epoch 0, then a ClientHello.
 */
const DTLS_HANDSHAKE = 22
const DTLS_VERSION_MAJOR = 254
const DTLS_VERSION_MINOR_MIN = 252
const DTLS_RECORD_HEADER_BYTES = 13
const DTLS_HANDSHAKE_HEADER_BYTES = 12
const DTLS_CLIENT_HELLO = 1

/** DNSCrypt's protocol, version 2, §10: "r6fnvWj8" begins every answer; a nonce of 24 follows. */
const DNSCRYPT_ANSWER_BYTES_MIN = 8 + 24 + 16
const DNSCRYPT_FIRST = 0x7236_666e
const DNSCRYPT_SECOND = 0x7657_6a38

export class HiddenStreams {
  readonly #streams: StreamTable

  constructor(streams: StreamTable) {
    this.#streams = streams
  }

  /** A packet of ESP. Each security association is counted once. */
  esp(transport: Transport, seconds: number): void {
    const { view, start, end } = transport
    if (start + ESP_BYTES_MIN <= end) this.#count(transport, view.getUint32(start), Counter.espSessions, seconds)
  }

  /** A datagram that carries neither DNS nor a long header of QUIC. */
  datagram(transport: Transport, source: number, destination: number, seconds: number): void {
    const { view, payload, payloadEnd } = transport
    const kind = datagramKind(view, payload, payloadEnd, source, destination)
    if (kind === NOTHING) return
    const key = kind === Counter.espSessions ? view.getUint32(payload) : source * 65_536 + destination
    this.#count(transport, key, kind, seconds)
  }

  #count(transport: Transport, key: number, kind: Counter, seconds: number): void {
    const streams = this.#streams
    const slot = streams.find(transport, key)
    if (slot !== NO_SLOT) {
      streams.touch(slot, seconds)
      return
    }
    // A port of 0, so that the connection is not also counted as DNS over TLS or QUIC.
    streams.follow(StreamState.unread, 0, 0, seconds)
    streams.count(kind)
  }
}

const NOTHING = -1

/** The counter of the kind of datagram in bytes [at, end), or NOTHING. */
function datagramKind(
  view: DataView,
  at: number,
  end: number,
  source: number,
  destination: number,
): Counter | typeof NOTHING {
  const bytes = end - at
  if (bytes < OPENVPN_PLAIN_BYTES) return NOTHING
  switch (view.getUint8(at)) {
    case 1:
      if (bytes === WIREGUARD_INITIATION_BYTES && view.getUint32(at) === WIREGUARD_INITIATION)
        return Counter.wireguardSessions
      break
    case OPENVPN_RESET_V2:
    case OPENVPN_RESET_V3:
      if (isOpenVpnReset(view, at, end)) return Counter.openvpnSessions
      break
    case DTLS_HANDSHAKE:
      if (isDtlsHello(view, at, end)) return Counter.dtlsSessions
      break
    case DNSCRYPT_FIRST >>> 24:
      if (bytes < DNSCRYPT_ANSWER_BYTES_MIN) break
      if (view.getUint32(at) === DNSCRYPT_FIRST && view.getUint32(at + 4) === DNSCRYPT_SECOND)
        return Counter.dnscryptSessions
      break
    default:
  }
  const traverses = source === PORT_NAT_TRAVERSAL || destination === PORT_NAT_TRAVERSAL
  return traverses && bytes >= ESP_BYTES_MIN && view.getUint32(at) !== 0 ? Counter.espSessions : NOTHING
}

/**
 * Whether bytes [at, end) are the first message of an OpenVPN client, without its length over TCP.
 */
export function isOpenVpnReset(view: DataView, at: number, end: number): boolean {
  const bytes = end - at
  if (bytes < OPENVPN_PLAIN_BYTES) return false
  const opcode = view.getUint8(at)
  const packetNumber = at + 1 + OPENVPN_SESSION_BYTES
  if (opcode === OPENVPN_RESET_V3) {
    // tls-crypt-v2: the client's wrapped key follows, and the last two bytes are its length.
    if (bytes < OPENVPN_CRYPT_BYTES + 2) return false
    return isFirstNumber(view, packetNumber) && bytes === OPENVPN_CRYPT_BYTES + view.getUint16(end - 2)
  }
  if (opcode !== OPENVPN_RESET_V2) return false
  const isEmpty = view.getUint32(end - 4) === 0 && view.getUint8(end - 5) === 0
  if (bytes === OPENVPN_PLAIN_BYTES) return isEmpty
  if (bytes === OPENVPN_CRYPT_BYTES && isFirstNumber(view, packetNumber)) return true
  for (const hmac of OPENVPN_HMAC_BYTES) {
    if (bytes === OPENVPN_PLAIN_BYTES + hmac + 8) return isEmpty && isFirstNumber(view, packetNumber + hmac)
  }
  return false
}

/** The number of a client's first packet: 1, or 0x0f000001 of a client that negotiates early. */
function isFirstNumber(view: DataView, at: number): boolean {
  const number = view.getUint32(at)
  return number === 1 || number === 0x0f00_0001
}

function isDtlsHello(view: DataView, at: number, end: number): boolean {
  const fragment = at + DTLS_RECORD_HEADER_BYTES
  if (fragment + DTLS_HANDSHAKE_HEADER_BYTES > end) return false
  if (view.getUint8(at + 1) !== DTLS_VERSION_MAJOR || view.getUint8(at + 2) < DTLS_VERSION_MINOR_MIN) return false
  return view.getUint16(at + 3) === 0 && view.getUint8(fragment) === DTLS_CLIENT_HELLO
}
