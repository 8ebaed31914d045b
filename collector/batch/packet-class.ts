/**
 * The classes of packets. Every packet ends in exactly one, so that the sum of all classes is the number of frames: what the sensor
 * did not read is counted under the reason why.
 *
 * A layer's door returns an offset, or the complement (`~`) of the class in which the packet ends: `if (at < 0) return ~at`.
 */
export const PacketClass = {
  /** The link type, or what the link header carries on the way to IP, is not one that is read. */
  linkUnsupported: 0,
  /** A link-layer frame without IP: ARP, LLDP, spanning tree, 802.11 management. */
  notIp: 1,
  /** The frame ends before what its headers announce: cut by the snaplen, or sent short. */
  truncated: 2,
  /** IP header fields that contradict each other. */
  ipMalformed: 3,
  /** A fragment of an IP packet; the one that completes the packet counts as what is in it. */
  ipFragment: 4,
  /** IP that carries neither UDP nor TCP nor a tunnel that is read. */
  otherTransport: 5,
  udpMalformed: 6,
  /** UDP of no kind that carries a name for us. */
  udpOther: 7,
  /** QUIC that cannot be a part of a ClientHello: from a server, or behind the handshake. */
  quicOther: 8,
  /** A DNS query, or a TCP segment that completes one; all its QNAMEs were read. */
  dnsQuery: 9,
  /** A query without a question (RFC 7873 §5.4). */
  dnsNoQuestion: 10,
  dnsQuestionsOverLimit: 11,
  dnsResponse: 12,
  /** A DNS message of another OPCODE than QUERY: NOTIFY, UPDATE and the like. */
  dnsOther: 13,
  dnsMalformed: 14,
  /** A TCP segment with a part of a DNS message. */
  dnsPart: 15,
  tcpMalformed: 16,
  /** A segment that carries no payload: SYN, ACK, FIN. */
  tcpNoPayload: 17,
  /** A segment that is no part of a ClientHello. */
  tcpOther: 18,
  /** A packet that completes a ClientHello whose server_name was read. */
  clientHello: 19,
  /** A packet that completes a ClientHello without server_name. */
  clientHelloNoName: 20,
  /** A packet with a part of a ClientHello. */
  clientHelloPart: 21,
  clientHelloMalformed: 22,
  /** A packet that completes a ClientHello with encrypted_client_hello: the server_name that was read is the outer one. */
  clientHelloEch: 23,
  /** Bytes of a connection's hello or messages that came before. */
  tcpRetransmission: 24,
  /** A QUIC Initial that no key of its connection opens. */
  quicUndecodable: 25,
  /** A long header of a QUIC version that is not read. */
  quicUnknownVersion: 26,
  /** Tunnels in tunnels, or tags upon tags, beyond what is followed. */
  nestedTooDeep: 27,
  /** An 802.11 frame whose payload is encrypted. */
  linkEncrypted: 28,
} as const
export type PacketClassName = keyof typeof PacketClass
export type PacketClass = (typeof PacketClass)[PacketClassName]

/** The names in the order of their numbers. */
export const PACKET_CLASS_NAMES = Object.keys(PacketClass) as readonly PacketClassName[]
export const PACKET_CLASS_COUNT = PACKET_CLASS_NAMES.length
