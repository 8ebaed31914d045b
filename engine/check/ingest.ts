import { createHash } from 'node:crypto'
import { canonicalName } from '../../registry/domain-name.ts'
import type { LogPosition } from '../cluster/log/event-log.ts'
import { unpackEvent } from '../kernel/event/event.ts'
import type { Candidate } from '../store/candidates.ts'
import { SKETCH_BYTES } from '../store/client-sketch.ts'
import type { StoredDay, StoredSensor } from '../store/coverage.ts'
import { endOfPrefix, UUID_BYTES, uuidBytes } from '../store/keys.ts'
import type { ClusterNode } from '../store/nodes.ts'
import { openBlock } from '../store/read-lines.ts'
import { recentSince } from '../store/recent-arrivals.ts'
import { lastOf, PAGE_RANGES_MAX, type StoredSeen, type StoredSeenPage } from '../store/seen-instance.ts'
import type { Reject, StoredSource } from '../store/sources.ts'
import { checkQueue } from './queue.ts'
import { packed, type StoreWalk } from './walk.ts'

const SEQUENCE_BYTES = 8
const SENDER_HASH_BYTES = 16
const INSTANCE_BYTES = 8
const BLOCK_HASHES_BYTES = 32

/** Checks buffered events, counted sequences and the counters of senders. */
export function checkIngest(walk: StoreWalk): void {
  checkQueue(walk, 'buffer', UUID_BYTES, checkEvent)
  checkQueue(walk, 'unmatched-events', UUID_BYTES, checkEvent)
  checkSeen(walk)
  checkLogPositions(walk)
  checkNodes(walk)
  checkSources(walk)
  checkCandidates(walk)
  walk.table(
    'rejects',
    { keyBytes: UUID_BYTES + SEQUENCE_BYTES, mayBeUnattributed: true, open: packed<Reject>('rejected message') },
    ({ value, organizationId }) => {
      if (value.organizationId === organizationId) return
      walk.wrong('rejects', organizationId, `a message of ${value.organizationId}`, 'one of the key')
    },
  )
  walk.table('read-lines', { keyBytes: UUID_BYTES + BLOCK_HASHES_BYTES, open: openBlock }, () => {})
}

function checkLogPositions(walk: StoreWalk): void {
  const form = {
    keyBytes: 1,
    keyIsLonger: true,
    isIndex: true,
    open: packed<LogPosition>('position in a log'),
  } as const
  walk.table('log-positions', form, ({ value: { sequence } }) => {
    if (!(Number.isSafeInteger(sequence) && sequence >= 0))
      walk.wrong('log-positions', '', String(sequence), 'a whole number')
  })
}

function checkNodes(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, isIndex: true, open: packed<ClusterNode>('node') } as const
  walk.table('nodes', form, ({ key, value: { id } }) => {
    if (!uuidBytes(id).equals(key)) walk.wrong('nodes', '', id, 'the id of the key')
  })
}

function checkEvent(entry: Buffer): string | undefined {
  const event = unpackEvent(entry, true)
  return typeof event === 'string' ? event : undefined
}

function checkSeen(walk: StoreWalk): void {
  const openHead = packed<StoredSeen>('seen events')
  const openPage = packed<StoredSeenPage>('page of seen events')
  const instanceBytes = UUID_BYTES + INSTANCE_BYTES
  const pagesTable = walk.store.environment.table('seen-pages')

  let pages = { key: Buffer.alloc(0), organizationId: '', count: 0, last: 0 }
  /** What the head says of the pages, which were all visited. */
  const checkHead = (): void => {
    const { key, organizationId, count, last } = pages
    if (count === 0) return
    const wrong = (found: string, expected: string): void => wrongOf(walk, 'seen', organizationId, key, found, expected)
    const bytes = walk.store.environment.table('seen').get(key)
    if (bytes === undefined) return wrong('no record', `one with ${count} pages`)
    walk.unlessUnreadable(() => {
      const head = openHead(bytes)
      if (head.pages !== count) wrong(`${head.pages ?? 0} pages`, `${count}`)
      if (head.pagesThrough !== last) wrong(`pages through ${head.pagesThrough ?? 0}`, `${last}`)
    })
  }
  walk.table('seen-pages', { keyBytes: instanceBytes + SEQUENCE_BYTES, open: openPage }, (record) => {
    const { value, organizationId } = record
    const key = record.key.subarray(0, instanceBytes)
    if (!pages.key.equals(key)) {
      checkHead()
      pages = { key: Buffer.from(key), organizationId, count: 0, last: 0 }
    }
    const last = lastOf(record.key)
    const wrong = (found: string, expected: string): void =>
      wrongOf(walk, 'seen-pages', organizationId, key, found, expected)
    checkRanges(value.ranges, pages.last, last, wrong)
    pages.count++
    pages.last = last
  })
  checkHead()

  walk.table('seen', { keyBytes: instanceBytes, open: openHead }, ({ key, value, organizationId }) => {
    const { ranges, pages = 0, pagesThrough = 0, lateThrough = 0 } = value
    const wrong = (found: string, expected: string): void => wrongOf(walk, 'seen', organizationId, key, found, expected)
    checkRanges(ranges, pagesThrough, Number.MAX_SAFE_INTEGER, wrong)
    const [page] = pagesTable.getKeys({ start: key, end: endOfPrefix(key), limit: 1 })
    if (page === undefined && pages !== 0) wrong(`${pages} pages`, 'none')
    if (page === undefined && pagesThrough !== lateThrough) wrong(`pages through ${pagesThrough}`, `${lateThrough}`)
  })
}

function wrongOf(
  walk: StoreWalk,
  table: string,
  organizationId: string,
  key: Buffer,
  found: string,
  expected: string,
): void {
  walk.wrong(table, organizationId, `${found} of instance ${key.toString('hex', UUID_BYTES)}`, expected)
}

/** All ranges of a head or page are after `after`, and up to `last`. */
function checkRanges(
  ranges: readonly number[],
  after: number,
  last: number,
  wrong: (found: string, expected: string) => void,
): void {
  if (ranges.length === 0 || ranges.length % 2 !== 0 || ranges.length > 2 * PAGE_RANGES_MAX) {
    wrong(`${ranges.length} bounds`, `pairs, up to ${PAGE_RANGES_MAX}`)
  }
  const at = ranges.findIndex((bound, index) => !isAscending(bound, ranges[index - 1], index))
  if (at >= 0) wrong(`the bound ${ranges[at]} after ${ranges[at - 1]}`, 'ranges that ascend and do not touch')
  if ((ranges[0] ?? 0) <= after) wrong(`a range from ${ranges[0]}`, `one after ${after}`)
  if ((ranges.at(-1) ?? 0) > last) wrong(`a range to ${ranges.at(-1)}`, `one up to ${last}`)
}

/** Whether a bound may follow the previous one: ranges ascend, with gaps between them. */
function isAscending(bound: number, before: number | undefined, index: number): boolean {
  if (!Number.isSafeInteger(bound) || before === undefined) return Number.isSafeInteger(bound)
  return index % 2 === 1 ? bound >= before : bound > before + 1
}

function checkCandidates(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES + 1, keyIsLonger: true, open: packed<Candidate>('candidate') }
  walk.table('candidates', form, ({ key, value, organizationId }) => {
    const { name, requests, withAi, firstSeenMs, lastSeenMs, clients } = value
    const wrong = (found: string, expected: string): void => walk.wrong('candidates', organizationId, found, expected)
    if (key.toString('utf8', UUID_BYTES) !== name || canonicalName(name) !== name) wrong(name, 'the name in its key')
    if (!Number.isSafeInteger(requests) || requests < 1 || !(withAi >= 0 && withAi <= requests))
      wrong(`${requests} requests of ${name}, ${withAi} with AI`, 'whole numbers')
    if (!(firstSeenMs >= 0 && firstSeenMs <= lastSeenMs)) wrong(`${name} first seen after it was last seen`, 'before')
    if (clients.length !== SKETCH_BYTES) wrong(`${clients.length} bytes of clients of ${name}`, `${SKETCH_BYTES}`)
  })
}

/** Messages of one token at one listener. */
interface Messages {
  received: number
  counted: number
}

function checkSources(walk: StoreWalk): void {
  const form = {
    keyBytes: 2 * UUID_BYTES + SENDER_HASH_BYTES,
    mayBeUnattributed: true,
    open: packed<StoredSource>('source'),
  }
  let token = { organizationId: '', tokenId: '', listeners: new Map<string, Messages>() }
  walk.table('sources', form, ({ key, value, organizationId }) => {
    const { tokenId, listener, address, host, received, counts } = value
    const wrong = (found: string, expected: string): void => walk.wrong('sources', organizationId, found, expected)
    const sender = createHash('sha256').update(`${listener}\n${address}\n${host}`).digest()
    const own = [uuidBytes(value.organizationId), uuidBytes(tokenId), sender.subarray(0, SENDER_HASH_BYTES)]
    if (!Buffer.concat(own).equals(key)) wrong(`the sender ${listener} ${address}`, 'the one in its key')
    const numbers = [received, ...counts]
    if (!numbers.every((count) => Number.isSafeInteger(count) && count >= 0)) {
      wrong(`${numbers} messages of ${listener} ${address}`, 'whole numbers')
    }
    const [, recently] = recentSince(value.recent ?? [], 0)
    if (!(recently <= received))
      wrong(`${recently} messages in an hour of ${listener} ${address}`, `at most ${received}`)
    if (token.organizationId !== organizationId || token.tokenId !== tokenId) {
      checkCounters(walk, token)
      token = { organizationId, tokenId, listeners: new Map() }
    }
    const messages = token.listeners.get(listener) ?? { received: 0, counted: 0 }
    messages.received += received
    messages.counted += counts.reduce((sum, count) => sum + count, 0)
    token.listeners.set(listener, messages)
  })
  checkCounters(walk, token)
}

/**
 * Compares sums per listener, not rows: a message may be received in a sender's own row and counted
 * later in a shared one. Messages in transit to the disk when the service was killed were received
 * but never counted.
 */
function checkCounters(
  walk: StoreWalk,
  { organizationId, listeners }: { organizationId: string; listeners: ReadonlyMap<string, Messages> },
): void {
  for (const [listener, { received, counted }] of listeners) {
    if (counted <= received) continue
    walk.wrong(
      'sources',
      organizationId,
      `${counted} messages counted of ${listener}`,
      `at most the ${received} received`,
    )
  }
}

const DAY_BYTES = 4

/**
 * Checks the coverage reports of sensors and their daily sums. Inactive instances are removed from
 * the former, so the sums may include more instances.
 */
export function checkCoverage(walk: StoreWalk): void {
  const sensor = { keyBytes: UUID_BYTES + INSTANCE_BYTES, open: packed<StoredSensor>("sensor's coverage") }
  walk.table('coverage-sensors', sensor, ({ value, organizationId }) => {
    if (!areCounts(Object.values(value.counters))) wrongCounts(walk, 'coverage-sensors', organizationId, value.counters)
  })
  const day = { keyBytes: UUID_BYTES + DAY_BYTES, open: packed<StoredDay>('coverage of a day') }
  walk.table('coverage-days', day, ({ value, organizationId }) => {
    const isRight = areCounts([value.sensors, ...Object.values(value.counters)])
    if (!isRight) wrongCounts(walk, 'coverage-days', organizationId, value)
  })
}

function areCounts(values: readonly number[]): boolean {
  return values.every((value) => Number.isSafeInteger(value) && value >= 0)
}

function wrongCounts(walk: StoreWalk, table: string, organizationId: string, found: object): void {
  walk.wrong(table, organizationId, JSON.stringify(found), 'whole numbers from 0')
}
