/**
 * Counters of a lane in addition to the packet classes: outcomes of ClientHellos, encrypted DNS,
 * and the effects of the reassembly limits.
 */
export const Counter = {
  /** ClientHellos with a server_name, without encrypted_client_hello. */
  helloName: 0,
  /**
   * ClientHellos with encrypted_client_hello (RFC 9849) or its GREASE, which looks the same. The
   * name is the outer name.
   */
  helloEch: 1,
  /** Complete ClientHellos without server_name. */
  helloNoName: 2,
  /** ClientHellos that timed out before their server_name arrived. */
  helloIncomplete: 3,
  /**
   * Connections whose Initial packets have an unsupported QUIC version, counted only if the packet
   * is QUIC beyond doubt: quic-initial.ts.
   */
  helloQuicUnknownVersion: 4,
  /** Connections of DNS over TLS or QUIC: port 853 (RFC 7858 §3.1, RFC 9250 §4.1.1). */
  dotSessions: 5,
  /** ClientHellos to a known DNS-over-HTTPS resolver. */
  dohSessions: 6,
  /** Connections that were followed. */
  streamsFollowed: 7,
  /** Followed connections that were evicted because the table or the buffers were full. */
  streamsEvicted: 8,
  /** Followed connections that timed out within a hello or message. */
  streamsTimedOut: 9,
  /** Segments and CRYPTO frames too far ahead to be kept, and names beyond those that a frame has space for. */
  streamsOverLimit: 10,
  /** Datagrams reassembled from fragments. */
  datagramsReassembled: 11,
  datagramsEvicted: 12,
  datagramsTimedOut: 13,
  /** IPv6 datagrams that were discarded because fragments overlapped (RFC 5722 §4). */
  datagramsOverlapping: 14,
  /** QUIC Initial packets that were opened. */
  quicOpened: 15,
  /** Of dotSessions, those over QUIC: port 853, or any port with the protocol `doq` (RFC 9250). */
  doqSessions: 16,
  /** DNSCrypt over UDP: connections in which a resolver answered. */
  dnscryptSessions: 17,
  /** Security associations of IPsec ESP (RFC 4303), also in UDP (RFC 3948). */
  espSessions: 18,
  /** WireGuard: connections in which a peer began a handshake. */
  wireguardSessions: 19,
  /** OpenVPN over UDP or TCP: connections that a client began. */
  openvpnSessions: 20,
  /** ClientHellos that look like those of Tor: a random name, and no ALPN. */
  torSessions: 21,
  /** DTLS: connections that a client began. */
  dtlsSessions: 22,
  /** Packets with an IPsec authentication header (RFC 4302). Their content is read. */
  ahPackets: 23,
  /** Names in CONNECT requests to proxies. */
  connectTargets: 24,
  /** Names in SOCKS 4A and 5 requests. */
  socksTargets: 25,
  /** Server names in PROXY headers of configured load balancers. */
  proxyHeaderNames: 26,
  /** PROXY headers of configured load balancers. */
  proxyHeaders: 27,
  /** PROXY headers of other hosts, which are skipped. */
  proxyHeadersUntrusted: 28,
  /** ClientHellos and QUIC connections with a hidden name, which an answer or a proxy names. */
  helloExplained: 29,
  /** DNS answers that were evicted before they expired, because the table was full. */
  answersEvicted: 30,
  /** Names in requests of plain HTTP, with `httpNames`. */
  httpNames: 31,
  /** Gaps in DNS over TCP: segments that did not arrive in time. */
  dnsGaps: 32,
  /** With `candidates`: names that were not searched for candidates, because too many were new. */
  candidatesUnread: 33,
} as const
export type CounterName = keyof typeof Counter
export type Counter = (typeof Counter)[CounterName]

/** Increments a counter of a lane. */
export function countUp(counters: Uint32Array, counter: Counter): void {
  counters[counter] = (counters[counter] ?? 0) + 1
}

/** Names in numerical order. */
export const COUNTER_NAMES = Object.keys(Counter) as readonly CounterName[]
export const COUNTER_COUNT = COUNTER_NAMES.length
