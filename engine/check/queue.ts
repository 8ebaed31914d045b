import { unpackEvent } from '../kernel/event/event.ts'
import { footprintInPages, isStateKey, openState, type QueueState } from '../kernel/lmdb/queue.ts'
import { ChunkReader } from '../kernel/lmdb/queue-chunk.ts'
import { UUID_BYTES } from '../store/keys.ts'
import type { StoreWalk } from './walk.ts'

const SEQUENCE_BYTES = 8
const TIME_BYTES = 8

/** The chunks of one queue, up to its state, which is the last record. */
class QueueReading {
  /** The prefix of its keys, in hex. */
  readonly prefix: string
  readonly organizationId: string
  /** undefined before the first chunk and after a damaged one. */
  next: number | undefined
  first: number | undefined
  chunks = 0
  footprint = 0

  constructor(prefix: string, organizationId: string) {
    this.prefix = prefix
    this.organizationId = organizationId
  }
}

/** The queues of the store, with the length of their prefix and what is wrong with an entry. */
export function checkQueues(walk: StoreWalk): void {
  checkQueue(walk, 'buffer', UUID_BYTES, eventFault)
  checkQueue(walk, 'unmatched-events', UUID_BYTES, eventFault)
  checkQueue(walk, 'alert-queue', 2 * UUID_BYTES, messageFault)
}

function eventFault(entry: Buffer): string | undefined {
  const event = unpackEvent(entry, true)
  return typeof event === 'string' ? event : undefined
}

/** A time, and a message in JSON. */
function messageFault(entry: Buffer): string | undefined {
  try {
    JSON.parse(entry.toString('utf8', TIME_BYTES))
    return undefined
  } catch {
    return 'text that is not JSON'
  }
}

/** Checks the invariants of engine/kernel/lmdb/queue.ts for all queues of a table. */
function checkQueue(
  walk: StoreWalk,
  table: string,
  prefixBytes: number,
  entryFault: (entry: Buffer) => string | undefined,
): void {
  const chunk = new ChunkReader()
  let reading = new QueueReading('', '')
  const wrong = (found: string, expected: string): void => walk.wrong(table, reading.organizationId, found, expected)
  const noState = (): void => {
    if (reading.chunks > 0) wrong(`${reading.chunks} chunks without the queue's state`, 'the state after them')
  }
  const form = { keyBytes: prefixBytes + SEQUENCE_BYTES, open: (bytes: Buffer) => bytes }
  walk.table(table, form, ({ key, bytes, organizationId }) => {
    const prefix = key.toString('hex', 0, prefixBytes)
    if (reading.prefix !== prefix) {
      noState()
      reading = new QueueReading(prefix, organizationId)
    }
    if (isStateKey(key, prefixBytes)) {
      checkState(reading, openState(bytes), wrong)
      reading = new QueueReading('', '')
      return
    }
    const sequence = Number(key.readBigUInt64BE(prefixBytes))
    if (reading.next !== undefined && sequence !== reading.next) wrong(`a chunk at ${sequence}`, `${reading.next}`)
    reading.first ??= sequence
    reading.next = undefined
    reading.chunks++
    reading.footprint += footprintInPages(key, bytes)
    chunk.open(bytes)
    reading.next = sequence + chunk.count
    for (let at = 0; at < chunk.count; at++) {
      const fault = entryFault(chunk.entry(at))
      if (fault !== undefined) wrong(`in entry ${sequence + at}: ${fault}`, 'a valid entry')
    }
  })
  noState()
}

function checkState(reading: QueueReading, state: QueueState, wrong: (found: string, expected: string) => void): void {
  const { next, first, footprint } = state
  if (!(Number.isSafeInteger(first) && Number.isSafeInteger(next) && first >= 1 && first <= next)) {
    wrong(`the sequences ${first} to ${next}`, 'whole numbers from 1, the first not after the next')
    return
  }
  if (reading.next !== undefined && reading.next !== next) wrong(`the next sequence ${next}`, `${reading.next}`)
  if (first === next && reading.chunks > 0) wrong(`${reading.chunks} chunks`, 'none, since the queue is empty')
  if (first < next && reading.chunks === 0) wrong('no chunk', `those of ${next - first} entries`)
  if (reading.first !== undefined && reading.first > first) wrong(`${reading.first} as the oldest entry`, `${first}`)
  if (footprint !== reading.footprint) wrong(`a footprint of ${footprint} bytes`, `${reading.footprint}`)
}
