import { strict as assert } from 'node:assert'
import { BATCH_UNPACKED_BYTES_MAX } from '../../limits.ts'

/** Bytes of batches that the brokers have not acknowledged. Beyond it senders get 503. */
export const APPENDING_BYTES_MAX = 64 * 1024 * 1024
/**
 * Bytes that the brokers send ahead of a reader. They never send a message that is larger, and the
 * reader would wait for it permanently.
 */
export const READ_AHEAD_BYTES_MAX = BATCH_UNPACKED_BYTES_MAX + 1024 * 1024
/** Bytes of batches from the log that wait for their transaction. Beyond it reading waits. */
export const UNSTORED_BYTES_MAX = 16 * 1024 * 1024
/** The same in batches: small ones have a few hundred bytes. */
export const UNSTORED_BATCHES_MAX = 1000
/**
 * A broker that restarts forgets its readers. They notice it by missing heartbeats: with the
 * client's default after half a minute. In milliseconds.
 */
export const CONSUMING = { expires: 4000, idle_heartbeat: 1000 } as const
/** A reader that has missed more heartbeats begins again, later each time until it hears one. */
export const SILENT_HEARTBEATS_MIN = 3
export const SILENT_HEARTBEATS_MAX = 48
/**
 * A broker that has lost the others answers with its own copy of a stream until it notices, after
 * about ten seconds. A stream has lost messages that the store has if each attempt to use it for
 * this long shows that it ends before them. In milliseconds.
 */
export const ENDS_BEFORE_MS = 30_000
/**
 * So often brokers may refuse the credentials before a node ends, two to four times a second. Busy
 * brokers do, too. The client keeps 2.5 kB for each refusal until it is connected again.
 */
export const REFUSALS_MAX = 100
/**
 * How long an attempt to append a change waits for an answer, and in addition for each kibibyte. A
 * lost broker answers nothing, so the primary has to try again before a replica takes over.
 */
export const APPEND_MS = 2000
export const APPEND_MS_PER_KIBIBYTE = 1

assert(APPENDING_BYTES_MAX >= BATCH_UNPACKED_BYTES_MAX)
