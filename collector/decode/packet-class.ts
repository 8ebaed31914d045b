/**
 * The classes of packets. Every packet ends in exactly one, so that the sum of all classes is the number of frames: what the sensor
 * did not read is counted under the reason why.
 *
 * A layer's door returns an offset, or the complement (`~`) of the class in which the packet ends: `if (at < 0) return ~at`.
 */
export const PacketClass = {
  /** The link type, or what the link header carries on the way to IP, is not one that is read. */
  linkUnsupported: 0,
  /** A link-layer frame without IP: ARP, LLDP, spanning tree. */
  notIp: 1,
  /** The frame ends before what its headers announce: cut by the snaplen, or sent short. */
  truncated: 2,
  /** IP header fields that contradict each other. */
  ipMalformed: 3,
  /** A fragment of an IP packet. */
  ipFragment: 4,
  /** IP that carries neither UDP nor TCP. */
  otherTransport: 5,
  udpMalformed: 6,
  /** UDP of no kind that carries a name for us. */
  udpOther: 7,
  /** UDP of port 443: its server names are not read. */
  quic: 8,
  /** A DNS query; all its QNAMEs were read. */
  dnsQuery: 9,
  /** A query without a question (RFC 7873 §5.4). */
  dnsNoQuestion: 10,
  dnsQuestionsOverLimit: 11,
  dnsResponse: 12,
  /** A DNS message of another OPCODE than QUERY: NOTIFY, UPDATE and the like. */
  dnsOther: 13,
  dnsMalformed: 14,
  /** A segment of DNS over TCP: its names are not read. */
  dnsOverTcp: 15,
  tcpMalformed: 16,
  /** A segment that carries no payload: SYN, ACK, FIN. */
  tcpNoPayload: 17,
  /** A segment that does not begin with a ClientHello. */
  tcpOther: 18,
  /** A ClientHello whose server_name was read. */
  clientHello: 19,
  /** A ClientHello without server_name. */
  clientHelloNoName: 20,
  /** A ClientHello that goes on in a later segment. */
  clientHelloIncomplete: 21,
  clientHelloMalformed: 22,
} as const
export type PacketClassName = keyof typeof PacketClass
export type PacketClass = (typeof PacketClass)[PacketClassName]

/** The names in the order of their numbers. */
export const PACKET_CLASS_NAMES = Object.keys(PacketClass) as readonly PacketClassName[]
export const PACKET_CLASS_COUNT = PACKET_CLASS_NAMES.length
