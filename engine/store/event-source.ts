/*
 * The source of an event is in the instance of its id, 8 bytes (event.ts):
 *
 *   of a log message   u32 the mark of its monitoring token, u32 random
 *   of a collector     8 random bytes: one start of a sensor
 *
 * Evidence names a source by 8 hex digits, the mark of a token, or by 16 hex digits, an instance.
 * An instance that begins like a token by chance is taken for it, one in 4 billion for each token.
 */
const MARK_HEX_DIGITS = 8

/** Sources that the evidence of a platform and day names. The matches of others are not named. */
export const SOURCES_PER_DAY_MAX = 32

/** The first 32 bits of a token's id. */
export function tokenMarkOf(tokenId: string): number {
  return Number.parseInt(tokenId.slice(0, MARK_HEX_DIGITS), 16) >>> 0
}

/** A source, as evidence names it. */
export function sourceOfInstance(instance: string, tokenIds: readonly string[]): string {
  const mark = instance.slice(0, MARK_HEX_DIGITS)
  return tokenIds.some((id) => id.startsWith(mark)) ? mark : instance
}

/** Whether a source is a token's log messages. Otherwise it is an instance of a sensor. */
export function isTokenMark(source: string): boolean {
  return source.length === MARK_HEX_DIGITS
}
