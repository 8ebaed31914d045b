import { strict as assert } from 'node:assert'

/**
 * Every bound of the packet path in one place: its unit, why it is what it is, what happens at the bound and which counter tells.
 * What must hold between them is asserted at the end.
 */

/** The longest frame that is kept, in bytes: libpcap's MAXIMUM_SNAPLEN. A longer one in a file is damage. */
export const SNAPLEN_BYTES_MAX = 262_144

/** Snaplen of a live capture, in bytes, unless configured: names stand in the first bytes of a packet, offloads make packets of 64 kB. */
export const LIVE_SNAPLEN_BYTES = 65_535

/** Ring between kernel and capture thread, in bytes, unless configured. When it is full the kernel drops: `dropped.kernel`. */
export const LIVE_RING_BYTES = 16 * 1024 * 1024

/** How long a frame may wait in a batch that does not fill, in milliseconds. */
export const LIVE_FLUSH_MS = 100

/** How long the capture thread sleeps when the ring is empty, in milliseconds. The ring holds what arrives meanwhile. */
export const LIVE_IDLE_MS = 20

/** Frames area of a batch, in bytes: about a thousand full-size packets or ten thousand DNS queries. */
export const BATCH_FRAME_BYTES = 1024 * 1024

/** Rows area of a batch, in bytes. When it is full the batch is decoded in several runs; nothing is lost. */
export const BATCH_ROW_BYTES = 1024 * 1024

/** Batches for each lane. When all are taken a file waits, a live capture drops the packet: `dropped.pool`. */
export const BATCHES_PER_LANE = 8

/** Decode workers at most. */
export const LANES_MAX = 16

/** How much of a capture file is read at once, in bytes. */
export const FILE_CHUNK_BYTES = 1024 * 1024

/** RFC 1035 §2.3.4: a name has at most 255 octets, on the wire. */
export const NAME_BYTES_MAX = 255

/** A name has at most 127 labels, so more compression pointers than that lead nowhere: the packet is malformed. */
export const NAME_POINTERS_MAX = 127

/** Questions of one DNS message that are read. A message with more ends in the class dnsQuestionsOverLimit, its first names are kept. */
export const DNS_QUESTIONS_MAX = 256

/** A ClientHello longer than this, in bytes, is no ClientHello: clientHelloMalformed. With ML-KEM key shares it is about 1,800. */
export const HELLO_BYTES_MAX = 65_536

/** IPv6 extension headers that are followed; RFC 8200 §4.1 names eight, each once. More: ipMalformed. */
export const EXTENSION_HEADERS_MAX = 16

/** VLAN tags that are followed: QinQ has two, carriers stack a few more. Beyond: linkUnsupported. */
export const VLAN_TAGS_MAX = 8

/** Events that wait in the outbox, about 250 bytes each: 512 MB. Beyond it the oldest are dropped: `dropped`. */
export const OUTBOX_EVENTS_MAX = 2_000_000

/** Free space of the outbox's file system, in bytes, below which nothing is appended: a file waits, a live capture drops. */
export const OUTBOX_FREE_BYTES_MIN = 16 * 1024 * 1024

/** Events of one HTTPS batch. The service takes 10,000; smaller ones share the link better. */
export const FORWARD_EVENTS_MAX = 2_000

/** Bytes of one HTTPS batch before compression, reached by events with long names only. */
export const FORWARD_BYTES_MAX = 1024 * 1024

/** How long an answer of the service is awaited, in milliseconds. */
export const FORWARD_TIMEOUT_MS = 30_000

/** How long the forwarder sleeps when nothing waits, in milliseconds. */
export const FORWARD_IDLE_MS = 250

/** Wait before the first new try, in milliseconds; doubled for each further one up to the longest. */
export const RETRY_FIRST_MS = 500
export const RETRY_LONGEST_MS = 60_000

assert(BATCH_FRAME_BYTES >= 2 * (SNAPLEN_BYTES_MAX + 32), 'a batch holds the longest frame')
assert(LIVE_SNAPLEN_BYTES <= SNAPLEN_BYTES_MAX)
assert(BATCHES_PER_LANE >= 1)
