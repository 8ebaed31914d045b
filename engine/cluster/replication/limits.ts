import { strict as assert } from 'node:assert'
import { MINUTE_MS, SECOND_MS } from '../../kernel/process/clock.ts'
import { APPEND_MS } from '../log/limits.ts'

/** The primary appends a tick, which names it, at least this often. */
export const TICK_MS = SECOND_MS
/** A primary whose appends are not acknowledged for this time writes nothing more. */
export const PAUSE_AFTER_MS = 3 * SECOND_MS
/** Replicas replace a primary of which they have read nothing for this time. */
export const TAKEOVER_AFTER_MS = 4 * SECOND_MS
/**
 * The brokers must have answered for this time before a replica takes over: after an election of
 * theirs, the primary was silent only because it could not append. In this time, it tries again.
 */
export const ANSWERING_MS = 3 * SECOND_MS
/**
 * A node of a newer release waits this much longer, because it migrates the store when it takes
 * over, and nodes of the older release can no longer follow. One of them is the next primary if
 * there is one.
 */
export const UPGRADE_AFTER_MS = 4 * SECOND_MS
/** How often a replica checks whether the primary is silent, and how soon an append is repeated. */
export const WATCH_MS = 250
/** How often the primary looks for changes of other threads and processes. */
export const PUBLISH_POLL_MS = 10
/** Bytes of changes that are read from the store at once. */
export const PUBLISH_BYTES_MAX = 8 * 1024 * 1024
/** Bytes and number of changes that a replica writes in one transaction. */
export const APPLY_BYTES_MAX = 4 * 1024 * 1024
export const APPLY_CHANGES_MAX = 256
export const SNAPSHOT_EVERY_MS = 30 * MINUTE_MS
/** The least time between two snapshots that are made because a stream is half full. */
export const SNAPSHOT_GAP_MS = 10 * SECOND_MS
/** How often a node reports its state, and the primary checks whether a snapshot is due. */
export const REPORT_EVERY_MS = 5 * SECOND_MS
/** A process that did nothing for this time was paused, and its connection may hold messages. */
export const PAUSED_AFTER_MS = SECOND_MS
/** A replica with at most this many unread messages has the current state. */
export const FRESH_PENDING_MAX = 256
/** Above this share of the stream, the primary changes nothing until a snapshot has trimmed it. */
export const STREAM_SHARE_MAX = 0.7
/** How often a nearly full stream is checked. */
export const FULLNESS_EVERY_MS = SECOND_MS
/** How long a node that stops waits for a snapshot that it is making. */
export const SNAPSHOT_END_MS = 2 * SECOND_MS

// A disconnected primary stops writing before another node becomes the primary.
assert(PAUSE_AFTER_MS < TAKEOVER_AFTER_MS)
assert(2 * TICK_MS < PAUSE_AFTER_MS)
// After an election of the brokers, the primary appends before a replica takes over. The rest is
// for the answer.
assert(APPEND_MS + 2 * WATCH_MS < ANSWERING_MS)
// A dead primary is replaced after its silence alone.
assert(ANSWERING_MS <= TAKEOVER_AFTER_MS)
