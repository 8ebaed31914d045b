import assert from 'node:assert/strict'

/*
 * The bounds of the service, in one place. Each line: unit, reason, what happens at the bound.
 */

/** Bytes of one HTTPS batch as sent. Larger ones are refused by 413. */
export const BATCH_BYTES_MAX = 8 * 1024 * 1024
/** Bytes of one HTTPS batch when decompressed, against decompression bombs. More is refused by 413. */
export const BATCH_UNPACKED_BYTES_MAX = 32 * 1024 * 1024
/** Events of one HTTPS batch. More are refused by 413, so that one sender does not hold the writer for long. */
export const BATCH_EVENTS_MAX = 10_000
/**
 * Bytes of HTTPS bodies, over all senders, that are held until they are answered: as announced while they arrive, then as they are, decompressed. Beyond it
 * senders get 503 before their body is read, or when it was decompressed; counted as `overloaded`. Room for 200 batches of 10,000 events.
 */
export const BODIES_BYTES_MAX = 128 * 1024 * 1024
/** Of these, bytes announced by bodies of one organization that are on their way. Beyond it its senders get 503. */
export const ARRIVING_BYTES_PER_ORGANIZATION_MAX = BODIES_BYTES_MAX / 4
/** Milliseconds that a body has at the beginning. */
export const BODY_GRACE_MS = 10_000
/** Bytes of a body in a second, on average and behind that. A slower one is answered by 408, and its connection closed. */
export const BODY_BYTES_PER_SECOND_MIN = 64 * 1024
/**
 * Bytes of answers that wait for clients to read, of one thread: 16 of the largest pages. Beyond it the connection that has waited longest is closed, which for a
 * page over a slow line is a broken answer; counted as `posture_api_answers_cut_total`.
 */
export const ANSWERS_WAITING_BYTES_MAX = 64 * 1024 * 1024
/** Answers without a body, to HEAD and by 304, of one connection on average, 115 KB. Then it is closed, and its client makes another one. */
export const BODILESS_ANSWERS_MEAN = 256
/** Bodies that are decompressed at once: as many as the threads that do it. The others wait for their turn, held as they were sent. */
export const DECOMPRESSING_MAX = 4
/** Events that wait for the next transaction, over all senders. Beyond it senders get 503 and try again. */
export const PENDING_EVENTS_MAX = 100_000
/** Buffered events of one organization. Beyond it senders get 503 and try again after a scan. */
export const BUFFERED_EVENTS_MAX = 1_000_000
/** Collector instances of one organization whose counted sequences are remembered. Beyond it those go that were silent the longest. */
export const SEEN_INSTANCES_MAX = 10_000
/**
 * Pages of old sequences of one collector instance, of at least 256 gaps each: 100,000 gaps fit.
 * Beyond it the oldest goes, and its events are late from then on. Counted.
 */
export const SEEN_PAGES_PER_INSTANCE_MAX = 400
/** The same of one organization, each up to 20 KB. Beyond it the oldest of the instance goes that needs one more. Counted. */
export const SEEN_PAGES_MAX = 10_000
/** Seconds that a sender is asked to wait at a bound (Retry-After). */
export const RETRY_AFTER_SECONDS = 5
/** Bytes of one syslog message (RFC 5424 §6.1 asks for 2048 at least). A longer line is cut there, a longer counted message left out. */
export const MESSAGE_BYTES_MAX = 64 * 1024
/** Connections of the syslog listeners, over all of them. More are closed at once. */
export const SYSLOG_CONNECTIONS_MAX = 20_000
/** Of these, from one address, which may be a relay or a translated network. */
export const SYSLOG_CONNECTIONS_PER_ADDRESS_MAX = 10_000
/** Of these, that sent messages of one token. */
export const SYSLOG_CONNECTIONS_PER_TOKEN_MAX = 10_000
/** Milliseconds that a client has for its TLS handshake or PROXY header, and for its first message. */
export const SYSLOG_HELLO_MS = 30_000
/** Milliseconds from the first byte of a message to its last. A slower sender's connection is closed. */
export const SYSLOG_MESSAGE_MS = 30_000
/**
 * Bytes that were read of syslog connections and are not taken: of messages that are not whole, and of organizations without room. When half is full,
 * connections of organizations without room are not read; when all is, the one that holds the most is closed.
 */
export const SYSLOG_WAITING_BYTES_MAX = 256 * 1024 * 1024
/** Of these, held by one connection without an authorised message, when all such hold more than a quarter. Whoever needs more is closed. */
export const SYSLOG_UNAUTHENTICATED_BYTES_MAX = 4 * 1024
/** Bytes that the kernel is asked to hold of datagrams that were not read yet. */
export const UDP_RECEIVE_BYTES = 16 * 1024 * 1024
/** Bytes that wait for room in the ring of a lane. Beyond it no socket of the lane is read. */
export const RING_WAITING_BYTES_MAX = 16 * 1024 * 1024
/** Bytes on their way from the thread of the syslog sockets to one lane. Beyond it sockets are not read. */
export const LANE_RING_BYTES = 4 * 1024 * 1024
/** Events of one organization in one batch from the syslog thread to the writer. */
export const LOG_BATCH_EVENTS_MAX = 4000
/** Milliseconds that a matched message waits for others to be written with. */
export const LOG_BATCH_MS = 100
/** Batches of one organization that are with the writer. While so many are not durable, its senders are not read. */
export const LOG_BATCHES_IN_FLIGHT_MAX = 2
/** Tokens that a thread remembers; others are looked up for each message. */
export const KNOWN_TOKENS_MAX = 10_000
/** Sources with a known token that a thread remembers. Beyond it new ones of a token share a row. Those without have a quarter of as many places beside. */
export const SOURCES_MAX = 20_000
/** Of these, of one organization. */
export const SOURCES_PER_ORGANIZATION_MAX = 5_000
/** Sources of one organization in the store. Beyond it those that were silent the longest share a row. */
export const STORED_SOURCES_MAX = 10_000
/** Senders without a known token that a lane tells the writer's thread of, in a second; each once a minute. All are counted. */
export const UNAUTHENTICATED_NOTICES_PER_SECOND_MAX = 20
/** Of these, named in the log in a minute; of others there is one line. */
export const UNAUTHENTICATED_LOGGED_PER_MINUTE_MAX = 100
/** Messages that were not understood, of one organization, that an operator can read. The oldest go. */
export const STORED_REJECTS_MAX = 500
/** Such messages of one organization that a thread hands over in a second; the others are counted only. */
export const REJECTS_PER_SECOND_MAX = 20
/** Organizations of which it hands any over in a second. */
export const REJECTED_ORGANIZATIONS_MAX = 1000

/** Blocks of log files, of a megabyte each, of which is known which messages were read, of one organization. The oldest go, and would count again. Each takes 4 bytes a message. */
export const READ_BLOCKS_MAX = 20_000
/** Entries of the audit log of one organization. The oldest go. */
export const AUDIT_ENTRIES_MAX = 100_000
/** Days of evidence that a scan can count: each is a record a platform, which every scan reads. */
export const EVIDENCE_WINDOW_DAYS_MAX = 400
/** Platforms and days that one scan folds; each takes up to 2 KB while it does. What is behind in the buffer is left to the scan that follows. */
export const FOLD_CELLS_MAX = 16_384
/** Organizations whose scans share a transaction. */
export const SCANS_PER_TRANSACTION_MAX = 64
/** Records of evidence that such a transaction writes; a scan that alone has more is written alone. */
export const EVIDENCE_PER_TRANSACTION_MAX = 4096
/** Scans of one organization that are stored, with what they summed up to. The oldest go. */
export const STORED_SCANS_MAX = 1000
/** Platforms that an organization can approve: they stand in its record, which every request of the API reads. */
export const APPROVALS_MAX = 1000
/** Milliseconds between two looks of posture-admin verify: about as often as the service writes down who sent what. */
export const POLL_EVENTS_EVERY_MS = 500
/**
 * Bytes of a coverage report in msgpack, and of a syslog message with one; the collector's have 700. A longer
 * report is rejected before it is unpacked: in the answer to its batch, or as a rejected message. A report in
 * a JSON batch is limited as the batch is.
 */
export const COVERAGE_BYTES_MAX = 16 * 1024
/** Milliseconds between two reports of one instance that are stored; collectors send one a minute. Others are rejected as too often. */
export const COVERAGE_INTERVAL_MS = 10_000
/**
 * Reports of one organization that are stored in a second, and that a thread reads of its syslog: 10,000 sensors send 167. Also how many
 * wait in a thread for the next batch of the organization. The rest as above.
 */
export const COVERAGE_PER_SECOND_MAX = 200
/** Organizations of which any are in a second. */
export const COVERAGE_ORGANIZATIONS_MAX = 1000
/** Instances of one organization whose last report is remembered. Beyond it those go that were silent the longest, and would count anew. */
export const COVERAGE_INSTANCES_MAX = 10_000
/** Members of one organization. More are refused. */
export const MEMBERS_MAX = 1000
/** Assessments of one organization, in any state: one of each framework a month for ten years. More are refused, and those that are not completed can be removed. */
export const ASSESSMENTS_MAX = 1000
/** Categories of one assessment. More are refused. */
export const ASSESSMENT_CATEGORIES_MAX = 100
/** Items of one assessment, twice as many as all controls and enhancements of the longest framework. More are refused. */
export const ASSESSMENT_ITEMS_MAX = 2000
/** Bytes of a title, a category's name or a recommendation, which is one line. Longer ones are refused. */
export const ASSESSMENT_LINE_BYTES_MAX = 500
/** Bytes of a note on an item. Longer ones are refused. */
export const ASSESSMENT_NOTE_BYTES_MAX = 2000
/** Bytes of a file that an assessment is imported from. A larger one is refused before it is read to its end. */
export const ASSESSMENT_FILE_BYTES_MAX = 16 * 1024 * 1024
/** Faults of such a file that are named; of the others there is their number. */
export const ASSESSMENT_FAULTS_NAMED_MAX = 20
/**
 * Recommendations of one organization: all are read and published whenever one changes. Beyond it the ones that were completed the longest ago go; where
 * that is not enough, the assessment that brings more cannot be completed.
 */
export const RECOMMENDATIONS_MAX = 10_000

/** Days that an organization keeps ended scans, audit entries and silent sources, unless it is told otherwise. Older ones go once a day. */
export const RETENTION_DAYS_DEFAULT = 400
/** Days that it can be told to keep them. More are refused; the bounds of their numbers hold all the same. */
export const RETENTION_DAYS_MAX = 3650
/** Days that it keeps audit entries at least: a quarter can be looked back on. Fewer are refused. */
export const AUDIT_DAYS_MIN = 90
/** Records that one transaction of the retention takes away, so that none is long. The next ones go in the next. */
export const RETENTION_RECORDS_PER_STEP = 500
/** Findings of a check of the store that are named; of the others there is their number. */
export const FINDINGS_NAMED_MAX = 1000

assert(LOG_BATCH_EVENTS_MAX <= BATCH_EVENTS_MAX)
/** Bytes of an event with a long name and an IPv6 address. */
const COMMON_EVENT_BYTES_MAX = 400

assert(PENDING_EVENTS_MAX >= BATCH_EVENTS_MAX)
// What was exported can be imported: each item repeats its category, and every character may be written as two.
assert(
  ASSESSMENT_ITEMS_MAX * 2 * (ASSESSMENT_LINE_BYTES_MAX * 3 + ASSESSMENT_NOTE_BYTES_MAX + 500) <=
    ASSESSMENT_FILE_BYTES_MAX,
)
assert(RECOMMENDATIONS_MAX >= ASSESSMENT_ITEMS_MAX)
assert(BUFFERED_EVENTS_MAX >= PENDING_EVENTS_MAX)
assert(BATCH_UNPACKED_BYTES_MAX >= BATCH_BYTES_MAX)
assert(ARRIVING_BYTES_PER_ORGANIZATION_MAX >= BATCH_BYTES_MAX)
// The largest body is taken when no other is there: both its forms are held for a moment.
assert(BODIES_BYTES_MAX >= BATCH_BYTES_MAX + BATCH_UNPACKED_BYTES_MAX)
// And no sender alone fills it with batches as they usually are, so that the bound of events is what a busy service meets first.
assert(BODIES_BYTES_MAX >= PENDING_EVENTS_MAX * COMMON_EVENT_BYTES_MAX)
assert(BODIES_BYTES_MAX + DECOMPRESSING_MAX * BATCH_UNPACKED_BYTES_MAX <= 256 * 1024 * 1024)
// All connections that are let in can be strangers in the middle of a message, and half of the bound is left to others.
assert(
  SYSLOG_CONNECTIONS_MAX * SYSLOG_UNAUTHENTICATED_BYTES_MAX + SYSLOG_WAITING_BYTES_MAX / 4 <=
    SYSLOG_WAITING_BYTES_MAX * (3 / 4),
)
