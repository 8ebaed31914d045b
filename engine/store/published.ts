import { createHash } from 'node:crypto'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { openRecord, RECORD_HEADER_BYTES, sealInPlace, sealRecord } from '../kernel/lmdb/record.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { ApiVersions } from './api-versions.ts'
import { compressedMiddle, gzipOf, packGzipBody } from './gzip-body.ts'
import { u32Bytes, uuidBytes } from './keys.ts'

/*
 * API responses as ready bytes. A list of the API is a head and elements in JSON, stored in parts:
 *
 *   key     organization (16) + list (1) + part (4)
 *   part 0  the head, a sealed record:
 *             0   16       entity tag: first half of the SHA-256 of the rest and all parts
 *             16  4        number of elements
 *             20  n        JSON text before the list (a scan, or nothing)
 *   part i  elements (i - 1) * 100 .. i * 100 - 1, a sealed record:
 *             0   4 x 101  offset of each element after this table, and the end of the
 *                          last one; zero-filled
 *             404 n        the elements in JSON, comma-separated
 *   part 0xffffffff
 *           a sealed record: the complete body of the response to a request without
 *           parameters, which most requests are; sent as stored
 *   part 0x80000000 + i
 *           a sealed record: the complete body in gzip of the response with the elements of part
 *           i + 1 (see gzip-body.ts); sent as stored. Missing if compression does not pay
 *
 * A page has at most 100 elements, so it is in at most two parts and consists of one or two byte
 * ranges. A request neither serializes, parses nor compresses JSON. A part whose bytes did not
 * change is neither compressed nor written again.
 */
export const ELEMENTS_PER_PART = 100
const RECORD_VERSION = 1
const TAG_BYTES = 16
const HEAD_COUNT_OFFSET = 16
const HEAD_TEXT_OFFSET = 20
const OFFSETS_BYTES = 4 * (ELEMENTS_PER_PART + 1)
export const FIRST_BODY_PART = 0xffff_ffff
export const GZIP_PARTS = 0x8000_0000

/**
 * The lists of the API, by their byte in keys. others: platforms that the discovery does not count,
 * in the same form, which only console, commands and exports show.
 */
export const PublishedList = { discovery: 1, scores: 2, recommendations: 3, assessments: 4, others: 5 } as const
export type PublishedList = (typeof PublishedList)[keyof typeof PublishedList]

/** The JSON around the elements of a list in a response. */
export interface ListShape {
  /** `open` precedes the head, `afterHead` separates it from the elements. */
  readonly open: Buffer
  readonly afterHead: Buffer
  readonly close: Buffer
  /** The head before the first publication. */
  readonly emptyHead: Buffer
  /** false: a response contains all elements. */
  readonly paged: boolean
  /** false: no list of the API, so that it has no ready bodies. */
  readonly served: boolean
}

function shape(
  name: string,
  options: { paged: boolean; head?: string; emptyHead?: string; served?: boolean },
): ListShape {
  const opening = `"${name}":[`
  return {
    open: Buffer.from(options.head === undefined ? `{${opening}` : `{"${options.head}":`),
    afterHead: Buffer.from(options.head === undefined ? '' : `,${opening}`),
    close: Buffer.from(']}'),
    emptyHead: Buffer.from(options.emptyHead ?? ''),
    paged: options.paged,
    served: options.served ?? true,
  }
}

export const LIST_SHAPES: Readonly<Record<PublishedList, ListShape>> = {
  [PublishedList.discovery]: shape('platforms', { paged: true, head: 'scan', emptyHead: 'null' }),
  [PublishedList.scores]: shape('scores', { paged: false }),
  [PublishedList.recommendations]: shape('recommendations', { paged: true }),
  [PublishedList.assessments]: shape('assessments', { paged: true }),
  [PublishedList.others]: shape('platforms', { paged: true, served: false }),
}

export interface PublishedHead {
  /** 32 hex digits. Changes with every byte of the head or the elements. */
  readonly tag: string
  readonly count: number
  readonly text: Buffer
}

/** Assembles the body of a response. */
export function bodyOf(list: PublishedList, head: Buffer | undefined, runs: readonly Buffer[]): Buffer {
  const { open, afterHead, close, emptyHead } = LIST_SHAPES[list]
  return Buffer.concat([open, head ?? emptyHead, afterHead, ...runs, close])
}

/** A list in stored form. packList creates it outside the write transaction. */
export interface PackedList {
  readonly head: Buffer
  readonly parts: readonly Buffer[]
  /** undefined: no list of the API. */
  readonly firstBody: Buffer | undefined
  /** By part; undefined if compression does not pay. */
  readonly gzipBodies: readonly (Buffer | undefined)[]
}

/**
 * The record of a part, from 0, and the payload of its body in gzip. undefined: either is missing
 * or damaged.
 */
export type StoredPart = (part: number) => { readonly elements: Buffer; readonly gzip: Buffer } | undefined

/** @param before parts whose compressed elements are used again if the elements are the same */
export function packList(
  list: PublishedList,
  headText: string,
  elements: readonly string[],
  before: StoredPart = () => undefined,
): PackedList {
  const parts: Buffer[] = []
  for (let first = 0; first < elements.length; first += ELEMENTS_PER_PART) {
    parts.push(packPart(elements.slice(first, first + ELEMENTS_PER_PART)))
  }
  const head = Buffer.alloc(HEAD_TEXT_OFFSET + Buffer.byteLength(headText))
  head.writeUInt32BE(elements.length, HEAD_COUNT_OFFSET)
  head.write(headText, HEAD_TEXT_OFFSET)
  const hash = createHash('sha256').update(head.subarray(TAG_BYTES))
  for (const part of parts) hash.update(part.subarray(RECORD_HEADER_BYTES))
  hash.digest().copy(head, 0, 0, TAG_BYTES)
  const text = head.subarray(HEAD_TEXT_OFFSET)
  const { served, paged } = LIST_SHAPES[list]
  const shown = paged ? parts.slice(0, 1) : parts
  const runs = shown.flatMap((part, index) => (index === 0 ? [textOf(part)] : [COMMA, textOf(part)]))
  return {
    head: sealRecord(RECORD_VERSION, head),
    parts,
    firstBody: served ? sealRecord(RECORD_VERSION, bodyOf(list, text, runs)) : undefined,
    // A list that is not paged is one body, which is never longer than a part today.
    gzipBodies:
      served && (paged || parts.length === 1)
        ? parts.map((part, index) => packGzipPart(list, text, part, before(index)))
        : [],
  }
}

function packGzipPart(
  list: PublishedList,
  head: Buffer,
  part: Buffer,
  before: ReturnType<StoredPart>,
): Buffer | undefined {
  const { open, afterHead, close } = LIST_SHAPES[list]
  const text = textOf(part)
  const compressed = before?.elements.equals(part) ? compressedMiddle(before.gzip) : undefined
  const body = packGzipBody(Buffer.concat([open, head, afterHead]), { text, compressed }, close)
  return body && sealRecord(RECORD_VERSION, body)
}

/** The entity tag of a packed list. */
export function tagOf({ head }: PackedList): string {
  return openHead(head).tag
}

/**
 * Opens a stored head. `hash` is the hashed part of its bytes.
 *
 * @throws Fault STORE_DAMAGED, STORE_VERSION
 */
export function openHead(stored: Uint8Array): PublishedHead & { readonly hash: Buffer } {
  const head = openRecord(stored, RECORD_VERSION, 'published list')
  return {
    tag: head.toString('hex', 0, TAG_BYTES),
    count: head.readUInt32BE(HEAD_COUNT_OFFSET),
    text: head.subarray(HEAD_TEXT_OFFSET),
    hash: head.subarray(TAG_BYTES),
  }
}

/** @throws Fault STORE_DAMAGED, STORE_VERSION */
export function openPart(stored: Uint8Array): Buffer {
  return openRecord(stored, RECORD_VERSION, 'published list')
}

/**
 * Returns the JSON texts of the `count` elements of a part. undefined: the offsets of an element
 * are invalid.
 */
export function elementTexts(part: Buffer, count: number): (string | undefined)[] {
  const texts = part.subarray(OFFSETS_BYTES)
  const offset = (index: number): number => part.readUInt32BE(index * 4)
  return Array.from({ length: Math.max(0, count) }, (_, index) => {
    const begin = offset(index)
    const next = offset(index + 1)
    const isLast = index + 1 === count
    const isBounded = isLast ? next === texts.length + 1 : next <= texts.length && texts[next - 1] === COMMA[0]
    return begin < next && isBounded ? texts.toString('utf8', begin, next - 1) : undefined
  })
}

export class Published {
  readonly #table: Table
  readonly #versions: ApiVersions

  constructor(environment: Environment, versions: ApiVersions) {
    this.#table = environment.table('published')
    this.#versions = versions
  }

  /** Replaces a list. */
  replace(organizationId: string, list: PublishedList, headText: string, elements: readonly string[]): void {
    this.replacePacked(organizationId, list, packList(list, headText, elements, this.stored(organizationId, list)))
  }

  /** Replaces a list with a packed one. */
  replacePacked(organizationId: string, list: PublishedList, packed: PackedList): void {
    const partsBefore = this.#partCount(organizationId, list)
    this.#table.putSync(partKey(organizationId, list, 0), packed.head)
    for (let index = 0; index < Math.max(packed.parts.length, partsBefore); index++) {
      this.#replacePart(partKey(organizationId, list, index + 1), packed.parts[index], index < partsBefore)
      this.#replacePart(
        partKey(organizationId, list, GZIP_PARTS + index),
        packed.gzipBodies[index],
        index < partsBefore,
      )
    }
    if (packed.firstBody !== undefined) this.#table.putSync(firstBodyKey(organizationId, list), packed.firstBody)
    this.#versions.change(organizationId)
  }

  /** Of the keys, because a damaged head must not prevent another publication. */
  #partCount(organizationId: string, list: PublishedList): number {
    const range = { start: partKey(organizationId, list, 1), end: partKey(organizationId, list, FIRST_BODY_PART) }
    let count = 0
    for (const key of this.#table.getKeys(range)) {
      const part = key.readUInt32BE(key.length - 4)
      count = Math.max(count, part < GZIP_PARTS ? part : part - GZIP_PARTS + 1)
    }
    return count
  }

  #replacePart(key: Buffer, packed: Buffer | undefined, mayExist: boolean): void {
    if (packed === undefined) {
      this.#table.removeSync(key)
    } else if (!mayExist || this.#table.get(key)?.equals(packed) !== true) {
      this.#table.putSync(key, packed)
    }
  }

  /**
   * The parts of a list, for packList. Call what it returns within Environment.read or a
   * transaction.
   */
  stored(organizationId: string, list: PublishedList): StoredPart {
    return (part) => {
      const elements = this.#table.get(partKey(organizationId, list, part + 1))
      const gzip = this.#table.get(partKey(organizationId, list, GZIP_PARTS + part))
      if (elements === undefined || gzip === undefined) return undefined
      try {
        return { elements, gzip: openPart(gzip) }
      } catch {
        return undefined
      }
    }
  }

  head(organizationId: string, list: PublishedList): PublishedHead | undefined {
    const stored = this.#table.get(partKey(organizationId, list, 0))
    if (stored === undefined) return undefined
    return openHead(stored)
  }

  /**
   * A complete body, by firstBodyKey(). Valid until the next read from the store. undefined: the
   * list was never published.
   *
   * @param check whether to verify the checksum; once after each publication is enough
   */
  firstBody(key: Buffer, check: boolean): Uint8Array | undefined {
    return this.#view(key, check)
  }

  /** A complete body in gzip, by gzipBodyKey(), in the same way. undefined: there is none. */
  gzipBody(key: Buffer, check: boolean): Uint8Array | undefined {
    const packed = this.#view(key, check)
    return packed && gzipOf(packed)
  }

  #view(key: Buffer, check: boolean): Uint8Array | undefined {
    const stored = this.#table.getBinaryFast(key)
    if (stored === undefined) return undefined
    // lmdb-js returns a reused buffer whose length, but not byteLength, is that of the value.
    const { buffer, byteOffset, length } = stored
    if (check) openRecord(new Uint8Array(buffer, byteOffset, length), RECORD_VERSION, 'published list')
    return new Uint8Array(buffer, byteOffset + RECORD_HEADER_BYTES, length - RECORD_HEADER_BYTES)
  }

  /**
   * The JSON of the first element that contains `text`, such as `"id":"…"`. undefined: none does.
   * Call within Environment.read, with the count in the head.
   */
  elementWith(organizationId: string, list: PublishedList, count: number, text: string): string | undefined {
    const wanted = Buffer.from(text)
    for (let first = 0; first < count; first += ELEMENTS_PER_PART) {
      const part = this.#part(organizationId, list, first / ELEMENTS_PER_PART, count)
      const at = part.indexOf(wanted, OFFSETS_BYTES) - OFFSETS_BYTES
      if (at < 0) continue
      const last = Math.min(ELEMENTS_PER_PART, count - first)
      for (let index = 0; index < last; index++) {
        if (part.readUInt32BE((index + 1) * 4) > at) return runOf(part, index, index + 1).toString()
      }
    }
    return undefined
  }

  /**
   * The JSON of elements `offset` .. `offset + limit - 1`, comma-separated, in one or more byte
   * ranges. `count` is the count in the head. Call within Environment.read, so that head and
   * elements are from one snapshot.
   */
  elements(organizationId: string, list: PublishedList, count: number, offset: number, limit: number): Buffer[] {
    const runs: Buffer[] = []
    const end = Math.min(offset + limit, count)
    for (let at = offset; at < end; ) {
      const part = Math.floor(at / ELEMENTS_PER_PART)
      const partEnd = Math.min((part + 1) * ELEMENTS_PER_PART, end)
      const bytes = this.#part(organizationId, list, part, count)
      if (runs.length > 0) runs.push(COMMA)
      runs.push(runOf(bytes, at - part * ELEMENTS_PER_PART, partEnd - part * ELEMENTS_PER_PART))
      at = partEnd
    }
    return runs
  }

  /** The JSON of each element. `count` is the count in the head. Call within Environment.read. */
  *elementsOneByOne(organizationId: string, list: PublishedList, count: number): Generator<string> {
    for (let first = 0; first < count; first += ELEMENTS_PER_PART) {
      const part = this.#part(organizationId, list, first / ELEMENTS_PER_PART, count)
      const last = Math.min(ELEMENTS_PER_PART, count - first)
      for (let index = 0; index < last; index++) yield runOf(part, index, index + 1).toString()
    }
  }

  #part(organizationId: string, list: PublishedList, part: number, count: number): Buffer {
    const stored = this.#table.get(partKey(organizationId, list, part + 1))
    if (stored === undefined)
      throw new Fault(
        'STORE_DAMAGED',
        `published list ${list} of ${count} elements: part ${part + 1} is missing; scan again or restore a backup`,
      )
    return openPart(stored)
  }
}

const COMMA = Buffer.from(',')

/** Scratch space of packPart. It keeps the size of the largest part, up to SCRATCH_BYTES_MAX. */
const SCRATCH_BYTES_MAX = 1024 * 1024
let scratch = Buffer.allocUnsafe(0)

/** Returns a sealed record. */
function packPart(elements: readonly string[]): Buffer {
  const start = RECORD_HEADER_BYTES + OFFSETS_BYTES
  // UTF-8 takes at most three bytes per UTF-16 unit.
  const bytesMax = start + elements.reduce((sum, { length }) => sum + 3 * length + 1, 0)
  const target = bytesMax <= scratch.length ? scratch : Buffer.allocUnsafe(bytesMax)
  if (bytesMax <= SCRATCH_BYTES_MAX) scratch = target
  target.fill(0, RECORD_HEADER_BYTES, start)
  let at = start
  for (const [index, element] of elements.entries()) {
    if (index > 0) target[at++] = COMMA[0] as number
    target.writeUInt32BE(at - start, RECORD_HEADER_BYTES + index * 4)
    at += target.write(element, at)
    // The entry after the last element is the end of an assumed comma.
    target.writeUInt32BE(at + 1 - start, RECORD_HEADER_BYTES + (index + 1) * 4)
  }
  const part = Buffer.allocUnsafe(at)
  part.set(target.subarray(0, at))
  return sealInPlace(RECORD_VERSION, part)
}

/** The elements in the record of a part. */
function textOf(part: Buffer): Buffer {
  return part.subarray(RECORD_HEADER_BYTES + OFFSETS_BYTES)
}

function runOf(part: Buffer, first: number, end: number): Buffer {
  return part.subarray(OFFSETS_BYTES + part.readUInt32BE(first * 4), OFFSETS_BYTES + part.readUInt32BE(end * 4) - 1)
}

function partKey(organizationId: string, list: PublishedList, part: number): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from([list]), u32Bytes(part)])
}

export function firstBodyKey(organizationId: string, list: PublishedList): Buffer {
  return partKey(organizationId, list, FIRST_BODY_PART)
}

/** @param page from 0: the elements `page` * 100 and the next 99 */
export function gzipBodyKey(organizationId: string, list: PublishedList, page: number): Buffer {
  return partKey(organizationId, list, GZIP_PARTS + page)
}
