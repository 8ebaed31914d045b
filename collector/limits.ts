import { strict as assert } from 'node:assert'

/**
 * Every limit of the collector in one place: unit, reason, policy at the limit and counter.
 * Assertions at the end check the relations between them.
 */

/**
 * Longest supported frame in bytes: libpcap's MAXIMUM_SNAPLEN. A longer frame in a file is damage.
 */
export const SNAPLEN_BYTES_MAX = 262_144

/**
 * Default snaplen of a live capture in bytes. Names are in the first bytes of a packet, but
 * offloading creates packets of 64 kB.
 */
export const LIVE_SNAPLEN_BYTES = 65_535

/**
 * Default size of the ring between kernel and capture thread in bytes. When it is full, the kernel
 * drops packets: `dropped.kernel`.
 */
export const LIVE_RING_BYTES = 32 * 1024 * 1024

/**
 * Candidates that wait for a coverage report. At the limit, further names are counted as `dropped`,
 * until a report has taken some.
 */
export const CANDIDATES_MAX = 1000

/** One second with losses may be a burst. The filter narrows after this many in a row. */
export const NARROW_AFTER_SECONDS = 2

/**
 * Seconds without a loss after which a narrow filter widens. Doubled each time that widening was
 * too early, up to the maximum.
 */
export const WIDEN_AFTER_SECONDS = 30
export const WIDEN_AFTER_SECONDS_MAX = 600

/**
 * If no packet arrives for this many milliseconds while this many packets pass the interface, the
 * filter or the link is wrong.
 */
export const SILENCE_MS = 60_000
export const SILENCE_LINK_PACKETS = 1000

/** The same for names while packets pass the filter: milliseconds, and packets. */
export const NAMELESS_MS = 600_000
export const NAMELESS_PACKETS = 10_000

/**
 * An answer that takes longer than this is overdue, in milliseconds: the transport no longer counts
 * as connected.
 */
export const OVERDUE_MS = 5_000

/**
 * After this time without an answer from the service, in milliseconds, the collector is degraded.
 */
export const STALLED_MS = 30_000

/** Interval at which the state is checked for changes to log, in milliseconds. */
export const SENSOR_POLL_MS = 1000

/**
 * Intervals at which a live collector polls its clocks, in milliseconds: with open events, and
 * without.
 */
export const COLLECTOR_TICK_MS = 250
export const COLLECTOR_QUIET_TICK_MS = 1000

/**
 * Seconds in which the kernel counts packets but none arrives, after which the capture is reopened.
 * After this many times in a row, the collector exits.
 */
export const CAPTURE_SILENT_SECONDS = 10
export const SILENCES_MAX = 3

/**
 * The capture thread reports its state once a second. After this many milliseconds without a
 * report, the collector is degraded. After this many checks in that state, a second apart, the
 * thread hangs, and the collector exits for the supervisor to restart it.
 */
export const SILENT_THREAD_MS = 10_000
export const CAPTURE_HANGING_CHECKS = 50

/**
 * How often a vanished interface is reopened. Each time a ring remains allocated, because the addon
 * cannot close libpcap's packet socket of a vanished interface. Beyond the limit the collector
 * exits for the supervisor to restart it: CAPTURE_LOST.
 */
export const REOPENINGS_MAX = 8

/** Maximum time that a frame waits in a batch that does not fill, in milliseconds. */
export const LIVE_FLUSH_MS = 100

/** Nice value of the thread that captures from an interface, if the user may set it. */
export const CAPTURE_NICE = -10

/**
 * Sleep of the capture thread when the ring is empty, in milliseconds. The ring holds packets that
 * arrive meanwhile.
 */
export const LIVE_IDLE_MS = 20

/**
 * The same after a second without packets: an idle sensor should cost nothing. Half of the time
 * that the ring lasts at a million packets a second.
 */
export const LIVE_QUIET_MS = 100

/**
 * Frames area of a batch in bytes: about two thousand full-size packets or twenty thousand DNS
 * queries. A file is read in chunks of this size. Half the size costs a tenth of the speed for
 * passing batches between threads; a larger size gains nothing.
 */
export const BATCH_FRAME_BYTES = 2 * 1024 * 1024

/**
 * Capacity of a batch's frame list. Only frames below 64 bytes exceed it. The rest goes to the next
 * batch.
 */
export const BATCH_LIST_FRAMES = 32_768

/**
 * Rows area of each lane in a batch, in bytes. When it is full, the batch is decoded in several
 * runs. Nothing is lost.
 */
export const BATCH_ROW_BYTES = 2 * 1024 * 1024

/**
 * Batches of the pool. When all are in use, a file waits, and a live capture drops packets:
 * `dropped.pool`.
 */
export const BATCHES = 6

/**
 * The same for a live capture, which the ring buffers: less memory and lower latency. The rows area
 * fits the names of one datagram (FRAME_ROW_BYTES_MAX) plus those of four thousand packets.
 */
export const LIVE_BATCH_FRAME_BYTES = 768 * 1024
export const LIVE_BATCH_LIST_FRAMES = 8192
export const LIVE_BATCH_ROW_BYTES = 1280 * 1024
export const LIVE_BATCHES = 6

/**
 * How long a live capture waits for a free batch, in milliseconds. The ring lasts longer. After
 * that, packets are dropped: `dropped.pool`.
 */
export const LIVE_POOL_WAIT_MS = 50

/**
 * Number of runs of the packet path over the self-test's capture before a live capture begins.
 * After these V8 has compiled it.
 */
export const WARM_UP_ROUNDS = 40

/** Maximum number of decode workers. */
export const LANES_MAX = 16

/** Bytes of a capture file that are examined to detect its format. */
export const CAPTURE_HEAD_BYTES = 65_536

/** Bytes of a capture file that are read at once, except into batches. */
export const FILE_CHUNK_BYTES = 1024 * 1024

/** Maximum number of interfaces in a section of a pcapng file. More is damage. */
export const PCAPNG_INTERFACES_MAX = 65_536

/** Interval at which a thread that waits for a pipe checks for a stop request, in milliseconds. */
export const STOP_CHECK_MS = 50

/** RFC 1035 §2.3.4: a name has at most 255 octets, on the wire. */
export const NAME_BYTES_MAX = 255

/**
 * Maximum number of compression pointers in a name, which has at most 127 labels. A name with more
 * is malformed, and so is a loop.
 */
export const NAME_POINTERS_MAX = 127

/**
 * Maximum number of questions read in a DNS message. A message with more is in class
 * dnsQuestionsOverLimit; its first names are kept.
 */
export const DNS_QUESTIONS_MAX = 256

/**
 * Maximum size of a frame's rows in bytes. Further questions are not read: dnsQuestionsOverLimit.
 * Fits the names of the streams that time out before the frame, plus those in 64 KiB of queries.
 */
export const FRAME_ROW_BYTES_MAX = 896 * 1024

/**
 * Maximum length of a ClientHello in bytes. A longer one is malformed: clientHelloMalformed. A
 * hello with ML-KEM key shares has about 1,800 bytes.
 */
export const HELLO_BYTES_MAX = 65_536

/**
 * Maximum length of a CONNECT request's first line, of a PROXY header, of the user in SOCKS 4, and
 * of a request's header fields, in bytes. A longer one is not a proxy's handshake.
 */
export const REQUEST_LINE_BYTES_MAX = 512
export const PROXY_HEADER_BYTES_MAX = 2048
export const SOCKS_USER_BYTES_MAX = 255
export const REQUEST_FIELDS_BYTES_MAX = 65_535

/**
 * Maximum number of connections in a lane whose first bytes, or whose DNS messages, are followed.
 * At the limit the least recently active is evicted, those without kept bytes first:
 * `streamsEvicted`.
 */
export const STREAMS_MAX = 32_768

/**
 * Reassembly buffers of a lane. Most are short: a hello with a post-quantum key share has about 1.8
 * kB. When all short ones are in use, the least recently active connection is evicted
 * (`streamsEvicted`). A connection that needs a long one when all are in use is abandoned
 * (`streamsOverLimit`). Each byte takes 2 bytes of memory, and only used buffers take any.
 */
export const SHORT_BUFFER_BYTES = 4096
export const SHORT_BUFFERS = 1024
export const LONG_BUFFER_BYTES = 72 * 1024
export const LONG_BUFFERS = 16

/**
 * Maximum idle time of a connection within a hello or message, in seconds of capture time:
 * `streamsTimedOut`.
 */
export const STREAM_IDLE_SECONDS = 30

/** Capture time that goes on by more than this from one frame to the next shows that the clock was set. */
export const CLOCK_STEP_SECONDS = 600

/** Time after which a gap in DNS over TCP counts as lost, instead of overtaken: longer than the first retransmission takes. */
export const DNS_GAP_SECONDS = 2

/** How long a connection without kept bytes is remembered, in seconds of capture time. */
export const STREAM_REMEMBERED_SECONDS = 300

/**
 * Maximum number of IP datagrams in reassembly at once, in a lane. At the limit the oldest is
 * evicted: `datagramsEvicted`.
 */
export const DATAGRAMS_MAX = 256
export const DATAGRAM_SHORT_BUFFERS = 256
export const DATAGRAM_LONG_BUFFERS = 16

/**
 * RFC 8200 §4.5: a datagram is discarded 60 seconds after its first fragment arrived:
 * `datagramsTimedOut`.
 */
export const DATAGRAM_SECONDS = 60

/** Maximum length of an IP datagram's payload in bytes. */
export const DATAGRAM_BYTES_MAX = 65_535

/**
 * Maximum number of packets read in a QUIC datagram (RFC 9000 §12.2). Clients combine one or two
 * Initials with 0-RTT, and a capture on the sending or receiving host has up to 64 datagrams of a
 * connection in one (UDP_MAX_SEGMENTS of Linux).
 */
export const QUIC_COALESCED_MAX = 128

/**
 * DNS answers: maximum number of addresses and services that a lane remembers, each of a client and
 * an asked name. At the limit the least recently answered is evicted: `answersEvicted`. Its address
 * is then ambiguous, and no connection to it is attributed.
 */
export const ANSWERS_MAX = 32_768
/** Maximum number of records that are read in an answer. Further ones are ignored. */
export const ANSWER_RECORDS_MAX = 64
/**
 * Least and longest time for which an answer is remembered, in seconds. A client connects at once
 * even if the time to live is 0; a longer one than an hour is seldom kept by clients.
 */
export const ANSWER_SECONDS_MIN = 2
export const ANSWER_SECONDS_MAX = 3600

/** Maximum number of nested tunnels. Beyond: nestedTooDeep. */
export const TUNNELS_MAX = 8

/**
 * Maximum number of IPv6 extension headers. RFC 8200 §4.1 defines eight, each once. More:
 * ipMalformed.
 */
export const EXTENSION_HEADERS_MAX = 16

/**
 * Maximum number of VLAN tags, MPLS labels and the like before an IP header. Carriers stack a few
 * of each. Beyond: nestedTooDeep.
 */
export const ENCAPSULATIONS_MAX = 16

/**
 * Maximum number of open events, and bytes of their clients and names, about 48 each. At either
 * limit the oldest close early: `closedEarly`.
 */
export const AGGREGATE_EVENTS_MAX = 65_536
export const AGGREGATE_KEY_BYTES = 4 * 1024 * 1024

/**
 * Maximum number of entries in a bucket of a hash table. The hash has a key, so senders cannot fill
 * a bucket. At the limit, streams, datagrams and answers evict the oldest of the bucket, counted as
 * if the table were full; a match becomes an event to which no other is added.
 */
export const BUCKET_MAX = 32

/**
 * Maximum time that a match waits in memory before it is written to the outbox, in milliseconds,
 * and maximum number of such matches.
 */
export const AGGREGATE_WRITE_MS = 200
export const AGGREGATE_WRITE_EVENTS = 8192

/** Maximum age of an open event's figures in the outbox, in milliseconds. */
export const AGGREGATE_REWRITE_MS = 1000

/** Interval at which a writer that waits for disk space retries, in milliseconds. */
export const FULL_DISK_RETRY_MS = 1000

/**
 * Default limits of the outbox: bytes on disk and in memory, and age of an event in milliseconds.
 * At either limit the oldest events are dropped: `dropped`. An event takes about 60 bytes.
 */
export const OUTBOX_BYTES = 512 * 1024 * 1024
export const OUTBOX_MEMORY_BYTES = 32 * 1024 * 1024
export const OUTBOX_AGE_MS = 30 * 24 * 3600 * 1000

/**
 * Maximum number of capture files whose position the outbox stores. Beyond it, the least recently
 * read are forgotten.
 */
export const SOURCES_MAX = 1000

/**
 * Free bytes of the outbox's file system below which nothing is appended: a file waits, a live
 * capture drops.
 */
export const OUTBOX_FREE_BYTES_MIN = 16 * 1024 * 1024

/**
 * The part of those bytes that removing events may use: the pages at the ends of an acknowledged
 * batch and the tree above them, with a large margin.
 */
export const OUTBOX_SHRINK_BYTES_MIN = 512 * 1024

/**
 * A batch is sent when this many events or bytes wait, or the oldest has waited this long, in
 * milliseconds. The service accepts 10,000 events per HTTPS batch; smaller batches share the link
 * better.
 */
export const FORWARD_EVENTS_MAX = 2_000
export const FORWARD_BYTES_MAX = 1024 * 1024
export const FORWARD_LINGER_MS = 1000

/** The same for syslog, whose messages are six times as long. */
export const SYSLOG_EVENTS_MAX = 500
export const SYSLOG_LINGER_MS = 200

/** How long HTTPS waits for syslog to send first if both are enabled, in milliseconds. */
export const SYSLOG_AHEAD_MS = 5000

/** Maximum silence of the service, and maximum time for a whole answer, in milliseconds. */
export const FORWARD_TIMEOUT_MS = 30_000
export const FORWARD_WHOLE_TIMEOUT_MS = 120_000

/**
 * How long a connection to a syslog receiver must be open before the first message is sent, in
 * milliseconds.
 */
export const CONNECTION_SETTLED_MS = 500

/**
 * Maximum time to connect to a syslog receiver, and maximum time that a receiver may read nothing,
 * in milliseconds.
 */
export const SYSLOG_TIMEOUT_MS = 10_000

/**
 * Maximum size of a syslog message over UDP in bytes. RFC 5426 §3.2: every receiver accepts 480
 * over IPv4 and 1,180 over IPv6, and a message should fit the path MTU, at least 1,280 over IPv6.
 * An event with a name of 100 characters takes 430. Longer messages, from binary names, are
 * `refused`.
 */
export const SYSLOG_DATAGRAM_BYTES_MAX = 1180

/** Datagrams sent before checking for errors. */
export const SYSLOG_DATAGRAMS_AT_ONCE = 64

/** How long a resolved name is used if no connection confirms it, in milliseconds. */
export const SYSLOG_RESOLVE_MS = 300_000

/** Maximum sleep of the forwarder when nothing waits and no event wakes it, in milliseconds. */
export const FORWARD_IDLE_MS = 2000

/** Minimum sleep of the forwarder, in milliseconds. */
export const FORWARD_PAUSE_MS = 10

/**
 * After this many milliseconds without a batch, an empty batch tests whether the service is
 * reachable.
 */
export const FORWARD_PROBE_MS = 15_000

/**
 * Time of a run's first coverage report, and interval of further reports if anything has changed,
 * in milliseconds.
 */
export const COVERAGE_FIRST_MS = 10_000
export const COVERAGE_EVERY_MS = 60_000

/**
 * How long the end of a run waits for the last report to be sent after the last event, in
 * milliseconds. The report is then abandoned.
 */
export const COVERAGE_LAST_MS = 5_000

/**
 * Delay before the first retry in milliseconds; doubled for each further one, up to the maximum.
 */
export const RETRY_FIRST_MS = 500
export const RETRY_LONGEST_MS = 60_000

/**
 * Maximum time of each step of `posture-collector check`, in milliseconds. After that the step has
 * failed and its process is killed.
 */
export const CHECK_STEP_MS = 10_000

/**
 * Maximum time of a connection in such a step. The step tries two: the second inspects a rejected
 * certificate.
 */
export const CHECK_CONNECT_MS = 4_000

assert(BATCH_FRAME_BYTES >= 2 * SNAPLEN_BYTES_MAX + CAPTURE_HEAD_BYTES, 'a batch holds the longest record')
assert(BATCH_ROW_BYTES >= FRAME_ROW_BYTES_MAX, 'the names of one frame fit, so every run makes progress')
assert(LIVE_BATCH_ROW_BYTES >= FRAME_ROW_BYTES_MAX && LIVE_BATCH_FRAME_BYTES >= SNAPLEN_BYTES_MAX)
assert(LIVE_SNAPLEN_BYTES <= SNAPLEN_BYTES_MAX)
assert(BATCHES >= 2, 'one batch is held back while the next is filled')
assert(LONG_BUFFER_BYTES >= HELLO_BYTES_MAX && LONG_BUFFER_BYTES >= DATAGRAM_BYTES_MAX)
assert(2 * CHECK_CONNECT_MS < CHECK_STEP_MS, 'the step can say itself why there is no connection')

/**
 * First and longest delay before an update of the registry is fetched again after a failure, in
 * milliseconds. The delay doubles each time.
 */
export const REGISTRY_RETRY_MS = 10_000
export const REGISTRY_RETRY_MS_MAX = 3_600_000

/** Of the service, unless settings name others. */
export const SYSLOG_PORT = 6514
export const SYSLOG_PROTOCOL = 'tls'
