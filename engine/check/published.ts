import { createHash, type Hash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import type { Use } from '../../registry/contact.ts'
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

function isList(list: number): list is PublishedList {
  return NAMES.has(list)
}

/** The scan in the head of discovery. */
interface PublishedScan {
  readonly id: string
  readonly organization_id: string
  readonly summary: { readonly platforms_discovered: number }
}

/** A list being checked, part by part after its head. */
interface Reading {
  readonly organizationId: string
  readonly list: PublishedList
  readonly head: PublishedHead
  readonly hash: Hash
  parts: number
  elements: number
  /** Of discovery: the elements that the summary counts. */
  ai: number
  /** The elements of each part, comma-separated. */
  readonly pages: string[]
  /** A part is damaged, which is already a finding. */
  broken: boolean
}

/**
 * Checks that heads and parts of the lists match, that tags are correct, and that all elements are
 * JSON.
 */
export function checkPublished(walk: StoreWalk): void {
  let reading: Reading | undefined
  const form = { keyBytes: KEY_BYTES, open: (bytes: Buffer) => bytes }
  walk.table('published', form, ({ key, bytes, organizationId }) => {
    const list = key[LIST_OFFSET] ?? 0
    const part = key.readUInt32BE(PART_OFFSET)
    if (reading?.organizationId !== organizationId || reading.list !== list) {
      endReading(walk, reading)
      reading = undefined
      if (!isList(list)) return walk.wrong('published', organizationId, `a list ${list}`, 'one that the API has')
      if (part !== 0) {
        walk.wrong(
          'published',
          organizationId,
          `part ${part} of ${NAMES.get(list)} without a head`,
          'the head before it',
        )
        return
      }
      const { hash, ...head } = openHead(bytes)
      reading = {
        organizationId,
        list,
        head,
        hash: createHash('sha256').update(hash),
        parts: 0,
        elements: 0,
        ai: 0,
        pages: [],
        broken: false,
      }
      checkHead(walk, reading)
      return
    }
    if (part === FIRST_BODY_PART) return checkBody(walk, reading, 0, openPart(bytes))
    if (part >= GZIP_PARTS) return checkGzipBody(walk, reading, part - GZIP_PARTS, openPart(bytes))
    reading.parts++
    if (part !== reading.parts) {
      walk.wrong('published', organizationId, `part ${part} of ${NAMES.get(list)}`, `part ${reading.parts}`)
      reading.broken = true
      return
    }
    // If opening the part throws, the list stays marked as broken.
    const isBroken = reading.broken
    reading.broken = true
    const opened = openPart(bytes)
    reading.hash.update(opened)
    const expected = Math.min(ELEMENTS_PER_PART, reading.head.count - (part - 1) * ELEMENTS_PER_PART)
    const texts = elementTexts(opened, expected)
    reading.elements += checkElements(walk, reading, part, texts)
    reading.pages.push(texts.join(','))
    reading.broken = isBroken
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

function checkGzipBody(walk: StoreWalk, reading: Reading, page: number, packed: Buffer): void {
  let body: Buffer | undefined
  try {
    body = gunzipSync(gzipOf(packed))
  } catch {
    body = undefined
  }
  checkBody(walk, reading, page, body)
}

function endReading(walk: StoreWalk, reading: Reading | undefined): void {
  if (reading === undefined || reading.broken) return
  const { organizationId, list, head, hash, elements, ai } = reading
  const wrong = (found: string, expected: string): void =>
    walk.wrong('published', organizationId, `${found} of ${NAMES.get(list)}`, expected)
  if (elements !== head.count) wrong(`${elements} elements`, `${head.count}, as in its head`)
  if (list === PublishedList.discovery && isJson(head.text.toString())) {
    const { summary } = JSON.parse(head.text.toString()) as PublishedScan
    if (summary.platforms_discovered !== ai) {
      wrong(`${summary.platforms_discovered} AI platforms in the head`, `${ai}, the number of such elements`)
    }
  }
  const tag = hash.digest('hex').slice(0, head.tag.length)
  if (tag !== head.tag) wrong(`the tag ${head.tag}`, `${tag}, that of its bytes`)
}

/** Returns the number of elements. */
function checkElements(
  walk: StoreWalk,
  reading: Reading,
  part: number,
  texts: readonly (string | undefined)[],
): number {
  const first = (part - 1) * ELEMENTS_PER_PART
  for (const [at, text] of texts.entries()) {
    if (text !== undefined && isJson(text)) {
      if (reading.list === PublishedList.discovery && isAi(text)) reading.ai++
      continue
    }
    const found = `element ${first + at} of ${NAMES.get(reading.list)} that is no JSON`
    walk.wrong('published', reading.organizationId, found, 'JSON')
  }
  return texts.length
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isAi(element: string): boolean {
  const { metadata } = JSON.parse(element) as { readonly metadata?: { readonly use?: Use } }
  return metadata?.use === 'ai'
}

/** Only the head of discovery has content: its scan. */
function checkHead(walk: StoreWalk, { organizationId, list, head }: Reading): void {
  const text = head.text.toString()
  const wrong = (found: string, expected: string): void =>
    walk.wrong('published', organizationId, `${found} in the head of ${NAMES.get(list)}`, expected)
  if (list !== PublishedList.discovery) {
    if (text !== '') wrong(`${head.text.length} bytes`, 'nothing')
    return
  }
  if (!isJson(text)) return wrong('no JSON', 'a scan')
  const scan = JSON.parse(text) as PublishedScan
  if (scan.organization_id !== organizationId) wrong(`the organization ${scan.organization_id}`, 'its own')
  walk.unlessUnreadable(() => {
    const status = walk.store.scans.last(organizationId, ({ id }) => id === scan.id)?.status
    if (status !== 'completed') wrong(`the scan ${scan.id}, ${status ?? 'which is not stored'}`, 'a completed one')
  })
}
