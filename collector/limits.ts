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
export const LIVE_RING_BYTES = 32 * 1024 * 1024

/** A second with losses may be a burst; after this many in a row the filter narrows. */
export const NARROW_AFTER_SECONDS = 2

/** Seconds without a loss after which a narrow filter widens; doubled each time that it was too early, up to the longest. */
export const WIDEN_AFTER_SECONDS = 30
export const WIDEN_AFTER_SECONDS_MAX = 600

/** Without a packet for so long, in milliseconds, while so many passed the interface, something is wrong with the filter or the link. */
export const SILENCE_MS = 60_000
export const SILENCE_LINK_PACKETS = 1000

/** The same of names, where packets pass the filter: so long, in milliseconds, and so many. */
export const NAMELESS_MS = 600_000
export const NAMELESS_PACKETS = 10_000

/** An answer that takes longer than this is overdue, in milliseconds: the way is no longer called connected. */
export const OVERDUE_MS = 5_000

/** Without an answer of the service for so long, in milliseconds, forwarding makes no progress: degraded. */
export const STALLED_MS = 30_000

/** How often it is looked whether the state has changed, for the log, in milliseconds. */
export const SENSOR_POLL_MS = 1000

/** How often a live collector looks at its clocks, in milliseconds: while there are open events, and while there are none. */
export const COLLECTOR_TICK_MS = 250
export const COLLECTOR_QUIET_TICK_MS = 1000

/**
 * Seconds in which the kernel counts packets for a capture and none arrives, after which the capture is opened anew; so many times in a row,
 * then the collector ends.
 */
export const CAPTURE_SILENT_SECONDS = 10
export const SILENCES_MAX = 3

/**
 * The capture thread says once a second how it stands. After so long without a word, in milliseconds, the collector is degraded; when that was so
 * at this many looks, a second apart, the thread hangs, and the collector ends to be started anew.
 */
export const SILENT_THREAD_MS = 10_000
export const CAPTURE_HANGING_CHECKS = 50

/**
 * How often an interface that vanished is opened again. Each time a ring stays behind, since libpcap's packet socket of an interface that is
 * gone cannot be closed through the addon; so after that the collector ends, and is started anew by what watches over it: CAPTURE_LOST.
 */
export const REOPENINGS_MAX = 8

/** How long a frame may wait in a batch that does not fill, in milliseconds. */
export const LIVE_FLUSH_MS = 100

/** Nice value of the thread that captures from an interface, where the user may set it. */
export const CAPTURE_NICE = -10

/** How long the capture thread sleeps when the ring is empty, in milliseconds. The ring holds what arrives meanwhile. */
export const LIVE_IDLE_MS = 20

/** The same when no packet came for a second: an idle sensor shall cost nothing. Half of what the ring outlasts at a million packets a second. */
export const LIVE_QUIET_MS = 100

/**
 * Frames area of a batch, in bytes: about two thousand full-size packets or twenty thousand DNS queries. A file is read in chunks of it.
 * Half of it costs a tenth of the speed, for the handing over between threads; more gains nothing.
 */
export const BATCH_FRAME_BYTES = 2 * 1024 * 1024

/** Frames that a batch can list. Fuller batches are of frames below 64 bytes; the rest goes to the next. */
export const BATCH_LIST_FRAMES = 32_768

/** Rows area of each lane in a batch, in bytes. When it is full the batch is decoded in several runs; nothing is lost. */
export const BATCH_ROW_BYTES = 2 * 1024 * 1024

/** Batches of the pool. When all are taken a file waits, a live capture drops the packet: `dropped.pool`. */
export const BATCHES = 6

/**
 * The same of a live capture, whose buffer is the ring: less memory, and sooner decoded. The rows area holds the names of one datagram, as
 * FRAME_ROW_BYTES_MAX has it, and of four thousand packets besides.
 */
export const LIVE_BATCH_FRAME_BYTES = 768 * 1024
export const LIVE_BATCH_LIST_FRAMES = 8192
export const LIVE_BATCH_ROW_BYTES = 1280 * 1024
export const LIVE_BATCHES = 6

/** How long a live capture waits for a free batch, in milliseconds: the ring outlasts it. Then packets are dropped: `dropped.pool`. */
export const LIVE_POOL_WAIT_MS = 50

/** How often the packet path is run over the self-test's capture before a live capture begins: after that it is compiled. */
export const WARM_UP_ROUNDS = 40

/** Decode workers at most. */
export const LANES_MAX = 16

/** How much of a capture file is looked at to know its format, in bytes. */
export const CAPTURE_HEAD_BYTES = 65_536

/** How much of a capture file is read at once where it is not read into batches, in bytes. */
export const FILE_CHUNK_BYTES = 1024 * 1024

/** Interfaces in a section of a pcapng file. More is damage. */
export const PCAPNG_INTERFACES_MAX = 65_536

/** How often a thread that waits for a pipe looks whether a stop is asked for, in milliseconds. */
export const STOP_CHECK_MS = 50

/** RFC 1035 §2.3.4: a name has at most 255 octets, on the wire. */
export const NAME_BYTES_MAX = 255

/** A name has at most 127 labels, so more compression pointers than that lead nowhere: the packet is malformed. */
export const NAME_POINTERS_MAX = 127

/** Questions of one DNS message that are read. A message with more ends in the class dnsQuestionsOverLimit, its first names are kept. */
export const DNS_QUESTIONS_MAX = 256

/**
 * Bytes that the rows of one frame may take; questions beyond are not read: dnsQuestionsOverLimit. Fits the names of the streams that are
 * given up before it, and what 64 KiB of queries are.
 */
export const FRAME_ROW_BYTES_MAX = 896 * 1024

/** A ClientHello longer than this, in bytes, is no ClientHello: clientHelloMalformed. With ML-KEM key shares it is about 1,800. */
export const HELLO_BYTES_MAX = 65_536

/**
 * Connections whose first bytes, or whose DNS messages, are followed in one lane. At the bound the one that was silent the longest goes,
 * those of which nothing is kept first: `streamsEvicted`.
 */
export const STREAMS_MAX = 32_768

/**
 * Buffers for bytes that wait for others, in one lane. Most are short: a hello with a post-quantum key share is about 1.8 kB. When all
 * short ones are taken the longest silent connection gives its own up (`streamsEvicted`); a connection that needs a long one when all are
 * taken is given up itself (`streamsOverLimit`). Memory is 2 bytes a byte, and only what is used.
 */
export const SHORT_BUFFER_BYTES = 4096
export const SHORT_BUFFERS = 1024
export const LONG_BUFFER_BYTES = 72 * 1024
export const LONG_BUFFERS = 16

/** How long a connection in the middle of a hello or message may be silent, in seconds of the capture: `streamsTimedOut`. */
export const STREAM_IDLE_SECONDS = 30

/** How long a connection of which nothing is kept is remembered, in seconds of the capture. */
export const STREAM_REMEMBERED_SECONDS = 300

/** IP datagrams that are put together of fragments at once, in one lane. At the bound the oldest goes: `datagramsEvicted`. */
export const DATAGRAMS_MAX = 256
export const DATAGRAM_SHORT_BUFFERS = 256
export const DATAGRAM_LONG_BUFFERS = 16

/** RFC 8200 §4.5: 60 seconds after the first fragment came, the datagram is given up: `datagramsTimedOut`. */
export const DATAGRAM_SECONDS = 60

/** An IP datagram's payload is at most this long, in bytes. */
export const DATAGRAM_BYTES_MAX = 65_535

/** Packets of one QUIC datagram that are looked at (RFC 9000 §12.2): clients put an Initial or two and 0-RTT into one. */
export const QUIC_COALESCED_MAX = 16

/** Tunnels in tunnels. Deeper: nestedTooDeep. */
export const TUNNELS_MAX = 8

/** IPv6 extension headers that are followed; RFC 8200 §4.1 names eight, each once. More: ipMalformed. */
export const EXTENSION_HEADERS_MAX = 16

/** VLAN tags, MPLS labels and the like before an IP header: carriers stack a few of each. Beyond: nestedTooDeep. */
export const ENCAPSULATIONS_MAX = 16

/**
 * Events whose window is open, and bytes of their clients and names, about 48 each. At either bound the oldest close before their time:
 * `closedEarly`.
 */
export const AGGREGATE_EVENTS_MAX = 65_536
export const AGGREGATE_KEY_BYTES = 4 * 1024 * 1024

/** Events in one bucket of the hash table; names that are made to fall into one are counted less well, and cost no more. */
export const AGGREGATE_BUCKET_MAX = 32

/** How long a match may wait in memory before it is written to the outbox, in milliseconds, and how many may. */
export const AGGREGATE_WRITE_MS = 200
export const AGGREGATE_WRITE_EVENTS = 8192

/** How far the figures of an event that is open may be behind in the outbox, in milliseconds. */
export const AGGREGATE_REWRITE_MS = 1000

/** How often a writer that waits for space on the disk looks again, in milliseconds. */
export const FULL_DISK_RETRY_MS = 1000

/**
 * What the outbox may take on disk, and in memory, in bytes, and how old an event may become there, in milliseconds, unless configured. At
 * either limit the oldest events go first: `dropped`. An event takes about 60 bytes.
 */
export const OUTBOX_BYTES = 512 * 1024 * 1024
export const OUTBOX_MEMORY_BYTES = 32 * 1024 * 1024
export const OUTBOX_AGE_MS = 30 * 24 * 3600 * 1000

/** Capture files of which the outbox remembers how far they were read. Beyond it those go that were read the longest ago. */
export const SOURCES_MAX = 1000

/** Free space of the outbox's file system, in bytes, below which nothing is appended: a file waits, a live capture drops. */
export const OUTBOX_FREE_BYTES_MIN = 16 * 1024 * 1024

/** What removing events may need of it, in bytes: the pages of an acknowledged batch's ends and of the tree above it, many times over. */
export const OUTBOX_SHRINK_BYTES_MIN = 512 * 1024

/**
 * A batch is sent when so many events wait, or so many bytes of them, or the oldest has waited so long, in milliseconds. The service takes
 * 10,000 events of HTTPS at once; smaller batches share the link better.
 */
export const FORWARD_EVENTS_MAX = 2_000
export const FORWARD_BYTES_MAX = 1024 * 1024
export const FORWARD_LINGER_MS = 1000

/** The same of syslog, whose messages are six times as long. */
export const SYSLOG_EVENTS_MAX = 500
export const SYSLOG_LINGER_MS = 200

/** How long HTTPS waits for syslog to send first, where both are on, in milliseconds. */
export const SYSLOG_AHEAD_MS = 5000

/** How long the service may be silent, and how long it may take for all of an answer, in milliseconds. */
export const FORWARD_TIMEOUT_MS = 30_000
export const FORWARD_WHOLE_TIMEOUT_MS = 120_000

/** How long a connection to a syslog receiver must last before something is sent on it, in milliseconds. */
export const CONNECTION_SETTLED_MS = 500

/** How long a connection to a syslog receiver may take, and how long one may take nothing, in milliseconds. */
export const SYSLOG_TIMEOUT_MS = 10_000

/**
 * A syslog message by UDP, in bytes. RFC 5426 §3.2: every receiver takes 480 by IPv4 and 1,180 by IPv6, and a message shall fit the path MTU,
 * which is 1,280 at least by IPv6. An event with a name of 100 characters takes 430. Longer ones, of names made of binary: `refused`.
 */
export const SYSLOG_DATAGRAM_BYTES_MAX = 1180

/** Datagrams that are given to the kernel before it is looked what became of them. */
export const SYSLOG_DATAGRAMS_AT_ONCE = 64

/** How long a resolved name is relied on where no connection tells that it is right, in milliseconds. */
export const SYSLOG_RESOLVE_MS = 300_000

/** How long the forwarder sleeps when nothing waits and nobody tells it of something that does, in milliseconds. */
export const FORWARD_IDLE_MS = 2000

/** How long it sleeps at least, however soon something is due, in milliseconds. */
export const FORWARD_PAUSE_MS = 10

/** After this long without a batch an empty one shows whether the service is there, in milliseconds. */
export const FORWARD_PROBE_MS = 15_000

/** When a run first reports its coverage, and how often then if anything has changed, in milliseconds. */
export const COVERAGE_FIRST_MS = 10_000
export const COVERAGE_EVERY_MS = 60_000

/** How long the end of a run waits for the last report after the last event, in milliseconds. After that the report is given up. */
export const COVERAGE_LAST_MS = 5_000

/** Wait before the first new try, in milliseconds; doubled for each further one up to the longest. */
export const RETRY_FIRST_MS = 500
export const RETRY_LONGEST_MS = 60_000

/** How long each step of `posture-collector check` may take, in milliseconds; then it has failed, and its process is ended. */
export const CHECK_STEP_MS = 10_000

/** How long a connection may take there, in milliseconds: the step tries two, the second to look at a certificate that is refused. */
export const CHECK_CONNECT_MS = 4_000

assert(BATCH_FRAME_BYTES >= 2 * SNAPLEN_BYTES_MAX + CAPTURE_HEAD_BYTES, 'a batch holds the longest record')
assert(BATCH_ROW_BYTES >= FRAME_ROW_BYTES_MAX, 'the names of one frame fit, so every run makes progress')
assert(LIVE_BATCH_ROW_BYTES >= FRAME_ROW_BYTES_MAX && LIVE_BATCH_FRAME_BYTES >= SNAPLEN_BYTES_MAX)
assert(LIVE_SNAPLEN_BYTES <= SNAPLEN_BYTES_MAX)
assert(BATCHES >= 2, 'one batch is held back while the next is filled')
assert(LONG_BUFFER_BYTES >= HELLO_BYTES_MAX && LONG_BUFFER_BYTES >= DATAGRAM_BYTES_MAX)
assert(2 * CHECK_CONNECT_MS < CHECK_STEP_MS, 'the step can say itself why there is no connection')
