/**
 * The classes of packets. Every packet ends in exactly one class, so the sum of all classes is the
 * number of frames. Unread packets are counted by the reason.
 *
 * The entry function of a layer returns an offset, or the complement (`~`) of the packet's class:
 * `if (at < 0) return ~at`.
 */
export const PacketClass = {
  /** An unsupported link type, or an unsupported layer between the link header and IP. */
  linkUnsupported: 0,
  /** A link-layer frame without IP: ARP, LLDP, spanning tree, 802.11 management. */
  notIp: 1,
  /** The frame ends before the length in its headers: truncated by the snaplen, or sent short. */
  truncated: 2,
  /** Contradictory IP header fields. */
  ipMalformed: 3,
  /** A fragment of an IP packet. The fragment that completes the packet counts as its content. */
  ipFragment: 4,
  /** IP without UDP, TCP or a supported tunnel. */
  otherTransport: 5,
  udpMalformed: 6,
  /** UDP of no protocol that carries names. */
  udpOther: 7,
  /** QUIC that cannot be a part of a ClientHello: from a server, or after the handshake. */
  quicOther: 8,
  /** A DNS query, or a TCP segment that completes one. All its QNAMEs were read. */
  dnsQuery: 9,
  /** A query without a question (RFC 7873 §5.4). */
  dnsNoQuestion: 10,
  dnsQuestionsOverLimit: 11,
  dnsResponse: 12,
  /** A DNS message with an OPCODE other than QUERY: NOTIFY, UPDATE and the like. */
  dnsOther: 13,
  dnsMalformed: 14,
  /** A TCP segment with a part of a DNS message. */
  dnsPart: 15,
  tcpMalformed: 16,
  /** A segment without payload: SYN, ACK, FIN. */
  tcpNoPayload: 17,
  /** A segment that is not part of a ClientHello. */
  tcpOther: 18,
  /** A packet that completes a ClientHello whose server_name was read. */
  clientHello: 19,
  /** A packet that completes a ClientHello without server_name. */
  clientHelloNoName: 20,
  /** A packet with a part of a ClientHello. */
  clientHelloPart: 21,
  clientHelloMalformed: 22,
  /**
   * A packet that completes a ClientHello with encrypted_client_hello: the server_name read is the
   * outer name.
   */
  clientHelloEch: 23,
  /** Bytes of a hello or message that were already received. */
  tcpRetransmission: 24,
  /** A QUIC Initial that none of its connection's keys opens. */
  quicUndecodable: 25,
  /** A long header of an unsupported QUIC version. */
  quicUnknownVersion: 26,
  /** More nested tunnels or tags than the limit. */
  nestedTooDeep: 27,
  /** An 802.11 frame whose payload is encrypted. */
  linkEncrypted: 28,
  /** A frame that MACsec (IEEE 802.1AE) encrypted. */
  macsecEncrypted: 29,
  /** A frame of an EtherType that is not read and may contain IP. */
  etherTypeUnknown: 30,
  /** A segment of a proxy's handshake or, with `httpNames`, of a request of plain HTTP. */
  proxyHandshake: 31,
} as const
export type PacketClassName = keyof typeof PacketClass
export type PacketClass = (typeof PacketClass)[PacketClassName]

/** Names in numerical order. */
export const PACKET_CLASS_NAMES = Object.keys(PacketClass) as readonly PacketClassName[]
export const PACKET_CLASS_COUNT = PACKET_CLASS_NAMES.length
