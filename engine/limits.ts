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
/** Events that wait for the next transaction, over all senders. Beyond it senders get 503 and try again. */
export const PENDING_EVENTS_MAX = 100_000
/** Buffered events of one organization. Beyond it senders get 503 and try again after a scan. */
export const BUFFERED_EVENTS_MAX = 1_000_000
/** Collector instances of one organization whose counted sequences are remembered. Beyond it those go that were silent the longest. */
export const SEEN_INSTANCES_MAX = 10_000
/** Seconds that a sender is asked to wait at a bound (Retry-After). */
export const RETRY_AFTER_SECONDS = 5
/** Milliseconds that an event may lie in the future of our clock, for senders whose clock is fast. A later one counts as of now. */
export const FUTURE_MS_MAX = 24 * 60 * 60 * 1000

assert(PENDING_EVENTS_MAX >= BATCH_EVENTS_MAX)
assert(BUFFERED_EVENTS_MAX >= PENDING_EVENTS_MAX)
assert(BATCH_UNPACKED_BYTES_MAX >= BATCH_BYTES_MAX)
