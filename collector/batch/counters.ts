/**
 * What a lane counts beside the classes of packets: how each ClientHello ended, which resolvers hide their queries, and what the
 * bounds of reassembly cost.
 */
export const Counter = {
  /** ClientHellos with a server_name, without encrypted_client_hello. */
  helloName: 0,
  /** ClientHellos with encrypted_client_hello (RFC 9849, or its GREASE, which cannot be told apart): the name is the outer one. */
  helloEch: 1,
  /** ClientHellos that came whole and have no server_name. */
  helloNoName: 2,
  /** ClientHellos whose rest did not come in time, before their server_name was there. */
  helloIncomplete: 3,
  /** Connections whose Initial packets are of a QUIC version that is not read. */
  helloQuicUnknownVersion: 4,
  /** Connections of DNS over TLS or QUIC: port 853 (RFC 7858 §3.1, RFC 9250 §4.1.1). */
  dotSessions: 5,
  /** ClientHellos to a resolver that is known to answer DNS over HTTPS. */
  dohSessions: 6,
  /** Connections that were begun to be followed. */
  streamsFollowed: 7,
  /** Followed connections that made room for another because the table, or the memory for their bytes, was full. */
  streamsEvicted: 8,
  /** Followed connections that fell silent in the middle of a hello or message. */
  streamsTimedOut: 9,
  /** Segments and CRYPTO frames that lie farther ahead than is kept. */
  streamsOverLimit: 10,
  /** Datagrams put together of fragments. */
  datagramsReassembled: 11,
  datagramsEvicted: 12,
  datagramsTimedOut: 13,
  /** IPv6 datagrams with overlapping fragments, which are discarded (RFC 5722 §4). */
  datagramsOverlapping: 14,
  /** QUIC Initial packets that were opened. */
  quicOpened: 15,
} as const
export type CounterName = keyof typeof Counter
export type Counter = (typeof Counter)[CounterName]

/** Counts one up in the columns of a lane. */
export function countUp(counters: Uint32Array, counter: Counter): void {
  counters[counter] = (counters[counter] ?? 0) + 1
}

/** The names in the order of their numbers. */
export const COUNTER_NAMES = Object.keys(Counter) as readonly CounterName[]
export const COUNTER_COUNT = COUNTER_NAMES.length
