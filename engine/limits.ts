import assert from 'node:assert/strict'

/* The limits of the service, in one place: the unit, the reason, and what happens at the limit. */

/**
 * Bytes of one HTTPS body as sent, and of one batch of events when decompressed: its largest takes
 * 0.1 s to parse as JSON. Larger ones get 413.
 */
export const BATCH_BYTES_MAX = 8 * 1024 * 1024
/** Bytes of one decompressed body of log lines. Larger ones get 413. */
export const BATCH_UNPACKED_BYTES_MAX = 32 * 1024 * 1024
/** Messages of one HTTPS body of log lines: 0.3 s to read. More get 413. */
export const BODY_MESSAGES_MAX = 100_000
/** Events of one HTTPS batch. More get 413, so that no sender blocks the writer for long. */
export const BATCH_EVENTS_MAX = 10_000
/**
 * Bytes of HTTPS bodies in memory over all senders, until they are answered: the announced size
 * while a body arrives, then its size plus the decompressed size. Beyond it senders get 503, before
 * the body is read or after decompression; counted as `overloaded`. Enough for 200 batches of
 * 10,000 events.
 */
export const BODIES_BYTES_MAX = 128 * 1024 * 1024
/** Of these, announced bytes of arriving bodies of one organization. Beyond it they get 503. */
export const ARRIVING_BYTES_PER_ORGANIZATION_MAX = BODIES_BYTES_MAX / 4
/** Milliseconds before the minimum rate of a body applies. */
export const BODY_GRACE_MS = 10_000
/**
 * Minimum average bytes per second of a body, after BODY_GRACE_MS. A slower body gets 408 and its
 * connection is closed.
 */
export const BODY_BYTES_PER_SECOND_MIN = 64 * 1024
/**
 * Bytes of responses of one thread that wait for clients to read: 16 of the largest pages. Beyond
 * it the connection that has waited longest is closed, which truncates its response. Counted as
 * `posture_api_answers_aborted_total`.
 */
export const ANSWERS_WAITING_BYTES_MAX = 64 * 1024 * 1024
/**
 * Of these, for one client (an IPv4 address or an IPv6 /64). Beyond it the connection of the client
 * that has waited longest is closed; counted in the same way.
 */
export const ANSWERS_WAITING_PER_CLIENT_BYTES_MAX = 32 * 1024 * 1024
/**
 * HTTP requests that one thread answers in one turn of the event loop. Beyond it each connection
 * gets one more response, and a connection that has pipelined more requests is closed.
 */
export const REQUESTS_PER_TURN_MAX = 128
/**
 * Refused HTTP requests of one client per minute and thread. Beyond it the client is disconnected;
 * counted as `refusals`.
 */
export const REFUSALS_PER_MINUTE_MAX = 600
/**
 * Refusals that a connection counts for if it is closed because it pipelined more than
 * REQUESTS_PER_TURN_MAX allows. The third one disconnects the client.
 */
export const PIPELINED_REFUSALS = REFUSALS_PER_MINUTE_MAX / 2
/** Milliseconds during which new connections of a disconnected client are closed. */
export const DISCONNECTED_MS = 60_000
/** Clients whose refusals a thread counts. Beyond it the oldest are forgotten. */
export const REFUSED_CLIENTS_MAX = 10_000
/**
 * Default of --max-connections-per-address: connections of one client to an HTTP port, or to all syslog
 * listeners. More are closed when accepted; counted as `address` (HTTP) or `limit` (syslog).
 */
export const CONNECTIONS_PER_CLIENT_DEFAULT = 1000
/**
 * Mean number of responses without a body (HEAD, 304) per connection, 115 KB. Then the service
 * closes the connection and the client reconnects.
 */
export const BODILESS_ANSWERS_MEAN = 256
/**
 * Bodies decompressed at the same time: the size of the thread pool that does it. Others wait
 * compressed.
 */
export const DECOMPRESSING_MAX = 4
/** Events waiting for the next transaction, over all senders. Beyond it senders get 503. */
export const PENDING_EVENTS_MAX = 100_000
/** Buffered events of one organization. Beyond it senders get 503 and retry after a scan. */
export const BUFFERED_EVENTS_MAX = 1_000_000
/**
 * Collector instances of one organization whose counted sequences are stored. Beyond it the
 * instances that were inactive the longest are removed.
 */
export const SEEN_INSTANCES_MAX = 10_000
/**
 * Pages of old sequences of one collector instance, of at least 256 gaps each: 100,000 gaps fit.
 * Beyond it the oldest goes, and its events are late from then on. Counted.
 */
export const SEEN_PAGES_PER_INSTANCE_MAX = 400
/**
 * The same of one organization, each up to 20 KB. Beyond it the oldest of the instance goes that
 * needs one more. Counted.
 */
export const SEEN_PAGES_MAX = 10_000
/** Seconds after which senders retry when a limit is reached (Retry-After). */
export const RETRY_AFTER_SECONDS = 5
/**
 * Bytes of one syslog message (RFC 5424 §6.1 requires at least 2048). A longer line is truncated. A
 * longer octet-counted message is skipped.
 */
export const MESSAGE_BYTES_MAX = 64 * 1024
/** Connections of all syslog listeners. Further connections are closed at once. */
export const SYSLOG_CONNECTIONS_MAX = 20_000
/** Of these, with messages of one token. */
export const SYSLOG_CONNECTIONS_PER_TOKEN_MAX = 10_000
/** A syslog connection without data for this long is closed: senders keep theirs for hours. */
export const SYSLOG_IDLE_MS = 3600 * 1000
/** Milliseconds for the TLS handshake or PROXY header, and again for the first message. */
export const SYSLOG_HELLO_MS = 30_000
/** Milliseconds from the first to the last byte of a message. Slower connections are closed. */
export const SYSLOG_MESSAGE_MS = 30_000
/**
 * Bytes of syslog connections that are read but not processed: incomplete messages, and messages of
 * organizations with a full queue. Above half, the connections of these organizations are paused.
 * Above the limit, the connection that holds the most is closed.
 */
export const SYSLOG_WAITING_BYTES_MAX = 256 * 1024 * 1024
/**
 * Of these, bytes of one connection without an authorized message, while all such connections
 * together hold more than a quarter. Connections that need more are closed.
 */
export const SYSLOG_UNAUTHENTICATED_BYTES_MAX = 4 * 1024
/** Receive buffer of the UDP socket that is requested from the kernel. */
export const UDP_RECEIVE_BYTES = 16 * 1024 * 1024
/** Bytes that wait for space in the ring of a lane. Beyond it the lane's sockets are paused. */
export const RING_WAITING_BYTES_MAX = 16 * 1024 * 1024
/**
 * Bytes of the ring from the syslog socket thread to one lane. Sockets are paused while it is full.
 */
export const LANE_RING_BYTES = 4 * 1024 * 1024
/** Events of one organization in one batch from a lane to the writer. */
export const LOG_BATCH_EVENTS_MAX = 4000
/** Maximum milliseconds that a matched message waits for its batch to fill. */
export const LOG_BATCH_MS = 100
/**
 * Minimum milliseconds that a matched DNS query waits for the line that says that it was blocked,
 * if its server writes such a line.
 */
export const QUESTION_HOLD_MS = 1000
/**
 * Batches of one organization in transit to the writer. While they are not durable, its senders are
 * paused.
 */
export const LOG_BATCHES_IN_FLIGHT_MAX = 2
/** Tokens cached by a thread. Others are looked up for each message. */
export const KNOWN_TOKENS_MAX = 10_000
/**
 * Sources with a known token in a thread. Beyond it new sources of an organization share a row.
 * Unauthenticated sources have a separate limit, a quarter of this one.
 */
export const SOURCES_MAX = 20_000
/** Of these, of one organization. */
export const SOURCES_PER_ORGANIZATION_MAX = 5_000
/**
 * Stored sources of one organization. Beyond it the sources that were inactive the longest share a
 * row.
 */
export const STORED_SOURCES_MAX = 10_000
/**
 * Unauthenticated senders that a lane reports to the writer thread per second, each once a minute.
 * All are counted.
 */
export const NOTICES_PER_SECOND_MAX = 20
/** Of these, logged per minute. One line reports that there are more. */
export const SENDERS_LOGGED_PER_MINUTE_MAX = 100
/**
 * Messages of one organization that were not understood and that an operator can read. The oldest
 * are removed.
 */
export const STORED_REJECTS_MAX = 500
/** Of these, messages that a thread reports per second. The others are only counted. */
export const REJECTS_PER_SECOND_MAX = 20
/** Organizations with such messages per second and thread. */
export const REJECTED_ORGANIZATIONS_MAX = 1000

/**
 * Blocks of log files, of 1 MB each, for which an organization stores which messages were read, in
 * 4 bytes each. The oldest are removed; their messages would count again.
 */
export const READ_BLOCKS_MAX = 20_000
/** Entries of the audit log of one organization. The oldest are removed. */
export const AUDIT_ENTRIES_MAX = 100_000
/** Days of evidence that a scan can count. Every scan reads one record per platform and day. */
export const EVIDENCE_WINDOW_DAYS_MAX = 400
/**
 * Platforms and days of the events that one scan adds, up to 2 KB of memory each. The remaining
 * events stay in the buffer for the next scan.
 */
export const EVIDENCE_CELLS_MAX = 16_384
/**
 * Clients of one platform and day that are kept: those with the most matches. The matches of the
 * others are only summed, and the clients are counted as before.
 */
export const CLIENTS_PER_DAY_MAX = 1000
/** Clients of a platform in a list, of the most matches; twice as many while they are summed. */
export const CLIENTS_LISTED_MAX = 20_000
/**
 * Clients of platforms and days in the events that one scan adds, about 100 bytes of memory each.
 * The remaining events stay in the buffer for the next scan.
 */
export const CLIENT_ROWS_MAX = 262_144
/**
 * Bytes of stored client records that one scan merges with new clients, all in memory at once. The
 * events of further platforms and days stay in the buffer for the next scan.
 */
export const CLIENT_BYTES_PER_SCAN_MAX = 64 * 1024 * 1024
/**
 * Bytes of the client records of one organization: 1,000 clients of each of 300 platforms on each
 * of 30 days. Beyond it the records of the oldest days are removed. Counted.
 */
export const CLIENT_BYTES_MAX = 256 * 1024 * 1024
/**
 * Client records that one transaction removes, each up to 60 pages. The next transaction continues.
 */
export const CLIENT_RECORDS_REMOVED_MAX = 1000
/**
 * Clients of one organization in the list of clients: those that used a platform, with the most
 * matches. The use by others is only summed.
 */
export const CLIENT_SUMMARIES_MAX = 20_000
/** Addresses of a user in the list of clients. Beyond it the oldest is left out. */
export const ADDRESSES_PER_USER_MAX = 16
/**
 * Bytes of client records from which a scan makes the list of clients of an earlier release, of the
 * last days: about a million clients of platforms and days, in a second. The days before are left
 * out.
 */
export const CLIENT_SUMMARIES_BYTES_READ_MAX = 32 * 1024 * 1024
/**
 * Clients of the list whose old days one transaction removes. The next scan continues, and the
 * daily retention goes on to the last client.
 */
export const CLIENT_SUMMARIES_CHANGED_MAX = 2000
/** Names of addresses of one organization, each with its time. Beyond it, those that ended first leave. */
export const CLIENT_NAMES_MAX = 100_000
/** Of these, for one address: the names of 50 leases. Beyond it the oldest are removed. */
export const NAME_SPANS_PER_ADDRESS_MAX = 50
/** Addresses whose old names one transaction removes. The next transaction continues. */
export const CLIENT_NAMES_REMOVED_MAX = 5000
/** Addresses whose names an export or a list remembers while it reads. */
export const ADDRESSES_REMEMBERED_MAX = 50_000
/** Bytes of a file with names of addresses. Larger files are refused. */
export const CLIENT_NAMES_FILE_BYTES_MAX = 64 * 1024 * 1024
/** Named networks of one organization. More are refused. */
export const CLIENT_NETWORKS_MAX = 1000
/** Rows of an export of one person. The export says that it stops. */
export const PERSON_ROWS_MAX = 20_000
/** Groups of clients of one organization, and their members together. A file with more is refused. */
export const CLIENT_GROUPS_MAX = 500
export const CLIENT_GROUP_MEMBERS_MAX = 20_000
/** Saved views of one organization. More are refused. */
export const SAVED_VIEWS_MAX = 50
/** Bytes of the name and of the filters of a saved view. Longer ones are refused. */
export const SAVED_VIEW_NAME_BYTES_MAX = 100
export const SAVED_VIEW_QUERY_BYTES_MAX = 1000
/** Bytes of a text to managers. Longer ones are refused. */
export const MANAGER_TEXT_BYTES_MAX = 4096
/** Bytes of a file with groups of clients. Larger files are refused. */
export const CLIENT_GROUPS_FILE_BYTES_MAX = 4 * 1024 * 1024
/** With pseudonyms, and in reports, a group of fewer people is not shown: it would say who they are. */
export const GROUP_PEOPLE_MIN = 5
/** Days for which the result of the last scan of each day is kept: 13 months. */
export const HISTORY_DAYS = 396
/**
 * Milliseconds of CPU time of one scan. At the limit the scan fails and publishes nothing, and its
 * organization is scanned alone and after the others; counted as `posture_scans_over_budget_total`.
 */
export const SCAN_CPU_MS = 10_000
/** Of these, for adding events. They are then published, and the others wait for the next scan. */
export const SCAN_ADDING_CPU_MS = SCAN_CPU_MS / 4
/** Organizations whose scans share a transaction. */
export const SCANS_PER_TRANSACTION_MAX = 64
/** Evidence records of such a transaction. A scan with more is written alone. */
export const EVIDENCE_PER_TRANSACTION_MAX = 4096
/** Stored scans of one organization with their results. The oldest are removed. */
export const STORED_SCANS_MAX = 1000
/**
 * Platforms with a decision of an organization, including withdrawn and expired decisions. Every
 * scan reads the last decision about each. At the limit, the platform whose decision ended the
 * longest ago is forgotten; if all decisions count, a new one is refused.
 */
export const DECIDED_PLATFORMS_MAX = 2000
/** Decisions about one platform that are kept. The oldest are removed. */
export const DECISIONS_KEPT_MAX = 50
/** Bytes of the note of a decision. Longer ones are refused. */
export const DECISION_NOTE_BYTES_MAX = 1000
/** Milliseconds between two polls of posture-admin verify. */
export const POLL_EVENTS_EVERY_MS = 500
/**
 * Bytes of a coverage report in msgpack, and of a syslog message with one; a collector sends 700. A
 * longer report is rejected before it is unpacked: in the response to its batch, or as a rejected
 * message. A report in a JSON batch is limited by the batch.
 */
export const COVERAGE_BYTES_MAX = 16 * 1024
/**
 * Minimum milliseconds between two stored reports of one instance. Collectors send one a minute.
 * Earlier reports are rejected as too frequent.
 */
export const COVERAGE_INTERVAL_MS = 10_000
/**
 * Reports of one organization that are stored per second, that a thread reads from syslog per
 * second, and that wait in a thread for the next batch. 10,000 sensors send 167. Further reports
 * are rejected as too frequent.
 */
export const COVERAGE_PER_SECOND_MAX = 200
/** Organizations with reports per second. */
export const COVERAGE_ORGANIZATIONS_MAX = 1000
/**
 * Instances of one organization whose last report is stored. Beyond it the instances that were
 * inactive the longest are removed; their next report would count in full.
 */
export const COVERAGE_INSTANCES_MAX = 10_000
/** Custom platforms of one organization, changed and disabled ones included. More are refused. */
export const OWN_PLATFORMS_MAX = 1000
/**
 * Domains of its custom platforms: a set is read and compiled within a few milliseconds. More are
 * refused.
 */
export const OWN_DOMAINS_MAX = 10_000
/**
 * Patterns among them: patterns below one name are tried one after the other, for every message.
 * More are refused.
 */
export const OWN_PATTERNS_MAX = 100
/**
 * Domains of all service-wide platforms that `registry add` leaves. More are refused; a registry
 * file has at most 128 MB.
 */
export const SERVICE_DOMAINS_MAX = 1_000_000
/**
 * Events of one organization whose name no platform of its registry has, kept until the registry
 * has it or they leave the evidence window. Beyond the limit the oldest leave, since they would
 * leave first anyway; counted as `unmatched_dropped`.
 */
export const UNMATCHED_EVENTS_MAX = 100_000
/**
 * Organizations whose custom platforms a thread keeps compiled, and those without any. The oldest are
 * read again when they are needed.
 */
export const OWN_SETS_KEPT_MAX = 20_000
/** Rules of all of these, about 60 bytes each. The oldest are read again when they are needed. */
export const OWN_RULES_KEPT_MAX = 500_000
/**
 * Organizations with custom platforms whose platforms a thread keeps, for pages and commands. The
 * least recently used is merged again when it is needed.
 */
export const OWN_CATALOGS_KEPT_MAX = 20
/**
 * Entries of a block list. Firewalls have a limit for all lists together: 50,000 in small models of
 * Palo Alto Networks. Platforms of the highest risk come first; the rest is reported.
 */
export const BLOCK_LIST_ENTRIES_MAX = 50_000
/** Members of one organization. More are refused. */
export const MEMBERS_MAX = 1000
/**
 * Removed members of one organization, whom a sign-in with the identity provider does not bring
 * back. Beyond the limit, the one who was removed first may come back.
 */
export const REMOVED_MEMBERS_MAX = 1000
/** Links that wait to be used, over all organizations. More are refused until some expire. */
export const ACCOUNT_LINKS_MAX = 1000
/** Sessions of one user of the console. Beyond the limit, the session used longest ago ends. */
export const SESSIONS_PER_USER_MAX = 20
/** Passkeys of one user of the console. More are refused. */
export const PASSKEYS_PER_USER_MAX = 10
/**
 * Browsers of one user that have an allowance of their own. Beyond the limit, the one used longest
 * ago loses it.
 */
export const TRUSTED_BROWSERS_MAX = 10
/** Groups with a role in the sign-in settings of one organization. More are refused. */
export const IDENTITY_PROVIDER_GROUPS_MAX = 100
/** Scopes that an identity provider is asked for. More are refused. */
export const IDENTITY_PROVIDER_SCOPES_MAX = 20
/** Bytes of each text in the sign-in settings. Longer ones are refused. */
export const IDENTITY_PROVIDER_TEXT_BYTES_MAX = 500
/** Bytes of a client secret. Longer ones are refused. */
export const CLIENT_SECRET_BYTES_MAX = 1024
/**
 * Assessments of one organization, in any state: one of each framework a month for ten years. More
 * are refused. Assessments that are not completed can be removed.
 */
export const ASSESSMENTS_MAX = 1000
/** Categories of one assessment. More are refused. */
export const ASSESSMENT_CATEGORIES_MAX = 100
/**
 * Items of one assessment: twice the controls and enhancements of the longest framework. More are
 * refused.
 */
export const ASSESSMENT_ITEMS_MAX = 2000
/** Bytes of a title, category name or recommendation: one line. Longer ones are refused. */
export const ASSESSMENT_LINE_BYTES_MAX = 500
/** Bytes of a note on an item. Longer ones are refused. */
export const ASSESSMENT_NOTE_BYTES_MAX = 2000
/**
 * Bytes of an assessment file for import. Larger files are refused before they are read completely.
 */
export const ASSESSMENT_FILE_BYTES_MAX = 26 * 1024 * 1024
/** Errors of such a file that are listed. The others are only counted. */
export const ASSESSMENT_FAULTS_NAMED_MAX = 20
/**
 * Recommendations of one organization, all of which are read and published at every change. Beyond
 * it the recommendations completed the longest ago are removed. If that is not enough, the
 * assessment that adds more cannot be completed.
 */
export const RECOMMENDATIONS_MAX = 10_000

/**
 * Default days that an organization keeps ended scans, audit entries and inactive sources. Older
 * ones are removed once a day.
 */
export const RETENTION_DAYS_DEFAULT = 400
/**
 * Maximum days of retention. More are refused. The limits on the number of records apply in
 * addition.
 */
export const RETENTION_DAYS_MAX = 3650
/** Minimum days of retention of audit entries: a quarter. Fewer are refused. */
export const AUDIT_DAYS_MIN = 90
/**
 * Records that one retention transaction removes, so that none is long. The next transaction
 * continues.
 */
export const RETENTION_RECORDS_PER_STEP = 500
/** Alerts of one organization that are kept. The oldest are removed. */
export const ALERTS_MAX = 10_000
/**
 * Alerts that one message lists. Webhooks and SIEM channels get the others in further messages; a
 * chat or a mail only counts them.
 */
export const ALERTS_LISTED_MAX = 50
/** Alert channels of one organization. More are refused. */
export const ALERT_CHANNELS_MAX = 10
/**
 * Alert channels of all organizations: each can hold one connection, so that no channel waits for
 * another. More are refused.
 */
export const ALERT_CHANNELS_TOTAL_MAX = 1000
/** Messages that wait for one channel. Beyond it the oldest becomes a dead letter. Counted. */
export const ALERT_MESSAGES_WAITING_MAX = 1000
/** Dead letters of one channel: a full queue. Beyond it the oldest is removed. Counted. */
export const ALERT_DEAD_LETTERS_MAX = 1000
/** Outcomes of messages to one channel that are kept. The oldest are removed. */
export const ALERT_OUTCOMES_MAX = 10_000
/** Milliseconds from its first failed attempt after which a message becomes a dead letter. */
export const ALERT_RETRY_FOR_MS = 24 * 60 * 60 * 1000
/** Milliseconds for one attempt to send a message, from the name lookup to the answer. */
export const ALERT_ATTEMPT_MS = 20_000
/** Bytes of the answer of a receiver that are read. The rest is not read. */
export const ALERT_ANSWER_BYTES_MAX = 2048
/** Bytes of a name or value in an alert. Longer ones are truncated. */
export const ALERT_TEXT_BYTES_MAX = 300
/** Scheduled reports of one organization. More are refused. */
export const REPORT_SCHEDULES_MAX = 10
/** Conditions of one rule that raise alerts in one evaluation. The others wait for the next one. */
export const ALERTS_PER_RULE_MAX = 10_000
/** Findings that a store check lists. The others are only counted. */
export const FINDINGS_NAMED_MAX = 1000

/**
 * Organizations with gauges of their own on /metrics, two dozen series each: 24,000 series, 3 MB.
 * Further ones have none; counted as `posture_organizations_left_out`.
 */
export const METRICS_ORGANIZATIONS_MAX = 1000
/**
 * Records of sources, sensors and days of coverage that one scrape reads, 80 ms of CPU time.
 * Beyond it the gauges of the next organizations keep older values until a later scrape.
 */
export const METRICS_SENDER_RECORDS_MAX = 10_000

assert(LOG_BATCH_EVENTS_MAX <= BATCH_EVENTS_MAX)
assert(OWN_RULES_KEPT_MAX >= OWN_DOMAINS_MAX)
/** Bytes of an event with a long name and an IPv6 address. */
const COMMON_EVENT_BYTES_MAX = 400

assert(ANSWERS_WAITING_PER_CLIENT_BYTES_MAX <= ANSWERS_WAITING_BYTES_MAX / 2)
assert(PENDING_EVENTS_MAX >= BATCH_EVENTS_MAX)
// An exported assessment can be imported: each item repeats its category, and each character may be
// escaped as two. Owner, due date, links, review and facts of discovery have at most 4,600 bytes.
assert(
  ASSESSMENT_ITEMS_MAX * (2 * (ASSESSMENT_LINE_BYTES_MAX * 4 + ASSESSMENT_NOTE_BYTES_MAX + 500) + 4600) <=
    ASSESSMENT_FILE_BYTES_MAX,
)
assert(RECOMMENDATIONS_MAX >= ASSESSMENT_ITEMS_MAX)
assert(BUFFERED_EVENTS_MAX >= PENDING_EVENTS_MAX)
assert(BATCH_UNPACKED_BYTES_MAX >= BATCH_BYTES_MAX)
assert(ARRIVING_BYTES_PER_ORGANIZATION_MAX >= BATCH_BYTES_MAX)
// The largest body is accepted if there is no other: compressed and decompressed forms are held at
// the same time.
assert(BODIES_BYTES_MAX >= BATCH_BYTES_MAX + BATCH_UNPACKED_BYTES_MAX)
// Typical batches reach PENDING_EVENTS_MAX before this limit.
assert(BODIES_BYTES_MAX >= PENDING_EVENTS_MAX * COMMON_EVENT_BYTES_MAX)
assert(BODIES_BYTES_MAX + DECOMPRESSING_MAX * BATCH_UNPACKED_BYTES_MAX <= 256 * 1024 * 1024)
// Even if all connections are unauthenticated with an incomplete message, half of the limit remains
// for others.
assert(
  SYSLOG_CONNECTIONS_MAX * SYSLOG_UNAUTHENTICATED_BYTES_MAX + SYSLOG_WAITING_BYTES_MAX / 4 <=
    SYSLOG_WAITING_BYTES_MAX * (3 / 4),
)
