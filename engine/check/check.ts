import { createHash, type Hash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { unpackEvent } from '../kernel/event/event.ts'
import { footprintInPages, isStateKey, openState, type QueueState } from '../kernel/lmdb/queue.ts'
import { ChunkReader } from '../kernel/lmdb/queue-chunk.ts'
import { gzipOf } from '../store/gzip-body.ts'
import { UUID_BYTES } from '../store/keys.ts'
import {
  bodyOf,
  ELEMENTS_PER_PART,
  elementTexts,
  FIRST_BODY_PART,
  GZIP_PARTS,
  LIST_SHAPES,
  openHead,
  openPart,
  type PublishedHead,
  PublishedList,
} from '../store/published.ts'
import type { Store } from '../store/store.ts'
import { checkFamilies } from './families.ts'
import { checkSums } from './sums.ts'
import { type Finding, type OnProgress, StoreWalk } from './walk.ts'

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
function checkQueues(walk: StoreWalk): void {
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

const LIST_OFFSET = UUID_BYTES
const PART_OFFSET = LIST_OFFSET + 1
const KEY_BYTES = PART_OFFSET + 4

const NAMES = new Map<number, string>(Object.entries(PublishedList).map(([name, list]) => [list, name]))

/** A list being checked, part by part after its head. */
interface Reading {
  readonly organizationId: string
  readonly list: PublishedList
  readonly head: PublishedHead
  readonly hash: Hash
  elements: number
  /** The elements of each part, comma-separated. */
  readonly pages: string[]
  /** A part is damaged, which is already a finding. */
  broken: boolean
}

/** Checks that the head, parts and ready bodies of each list match, and that its tag is correct. */
function checkPublished(walk: StoreWalk): void {
  let reading: Reading | undefined
  const form = { keyBytes: KEY_BYTES, open: (bytes: Buffer) => bytes }
  walk.table('published', form, ({ key, bytes, organizationId }, wrong) => {
    const list = (key[LIST_OFFSET] ?? 0) as PublishedList
    const part = key.readUInt32BE(PART_OFFSET)
    if (!NAMES.has(list)) return wrong(`a list ${list}`, 'one that the API has')
    if (part === 0) {
      endReading(walk, reading)
      reading = undefined
      const { hash, ...head } = openHead(bytes)
      const sha256 = createHash('sha256').update(hash)
      reading = { organizationId, list, head, hash: sha256, elements: 0, pages: [], broken: false }
      return
    }
    if (reading?.organizationId !== organizationId || reading.list !== list)
      return wrong(`part ${part} of ${NAMES.get(list)} without a head`, 'the head before it')
    // If opening the part throws, the list stays marked as broken.
    const { broken } = reading
    reading.broken = true
    const opened = openPart(bytes)
    reading.broken = broken
    if (part === FIRST_BODY_PART) return checkBody(walk, reading, 0, opened)
    if (part >= GZIP_PARTS) return checkBody(walk, reading, part - GZIP_PARTS, gunzipped(opened))
    const { head, pages, hash } = reading
    if (part !== pages.length + 1) wrong(`part ${part} of ${NAMES.get(list)}`, `part ${pages.length + 1}`)
    hash.update(opened)
    const texts = elementTexts(opened, Math.min(ELEMENTS_PER_PART, head.count - (part - 1) * ELEMENTS_PER_PART))
    reading.elements += texts.filter((text) => text !== undefined).length
    pages.push(texts.join(','))
  })
  endReading(walk, reading)
}

/** A stored body must equal the body assembled from the parts. */
function checkBody(walk: StoreWalk, reading: Reading, page: number, body: Buffer | undefined): void {
  const { organizationId, list, head, pages, broken } = reading
  const shown = LIST_SHAPES[list].paged ? (pages[page] ?? '') : pages.join(',')
  if (broken || body?.equals(bodyOf(list, head.text, [Buffer.from(shown)]))) return
  walk.wrong('published', organizationId, `another ready body of ${NAMES.get(list)}`, 'that of its parts')
}

function gunzipped(packed: Buffer): Buffer | undefined {
  try {
    return gunzipSync(gzipOf(packed))
  } catch {
    return undefined
  }
}

function endReading(walk: StoreWalk, reading: Reading | undefined): void {
  if (reading === undefined || reading.broken) return
  const { organizationId, list, head, hash, elements } = reading
  const tag = hash.digest('hex').slice(0, head.tag.length)
  if (elements === head.count && tag === head.tag) return
  const found = `${elements} elements of ${NAMES.get(list)} with the tag ${tag}`
  walk.wrong('published', organizationId, found, `${head.count} with ${head.tag}, as in its head`)
}

/** The result of checking the whole store. */
export interface StoreCheck {
  /** Empty if the store is intact. At most FINDINGS_NAMED_MAX. */
  readonly findings: readonly Finding[]
  readonly findingsCount: number
  /** Records by table. */
  readonly records: Readonly<Record<string, number>>
}

/**
 * Verifies the whole store in one snapshot: each record can be read and has an owner, indexes and
 * records match in both directions, and redundant data agrees. Holds one record of each kind at a
 * time, and sums by organization and sender. Takes linear time, and does not yield. Others can write
 * in the meantime; the file grows by what they replace.
 */
export function checkStore(store: Store, onProgress: OnProgress = () => {}): StoreCheck {
  const { environment } = store
  return environment.read(() => {
    const walk = new StoreWalk(store, onProgress)
    checkFamilies(walk)
    checkQueues(walk)
    checkSums(walk)
    checkPublished(walk)
    walk.assertAllVisited()
    const names = [...environment.tables.keys()].sort()
    return {
      findings: walk.findings,
      findingsCount: walk.findingsCount,
      records: Object.fromEntries(names.map((name) => [name, environment.tableRecords(name)])),
    }
  })
}
