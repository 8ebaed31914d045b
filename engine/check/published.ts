import { createHash, type Hash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
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
import type { StoreWalk } from './walk.ts'

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
export function checkPublished(walk: StoreWalk): void {
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
