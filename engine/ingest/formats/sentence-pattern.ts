import assert from 'node:assert'
import { indexOfByte, isDigit, lastIndexOfByte, NOT_FOUND, SPACE, textAt } from './bytes.ts'
import { TextSearch } from './text-search.ts'

/**
 * The fields of a pattern:
 *
 *   {client} {server}  an address, with or without a port
 *   {name}             a DNS name
 *   {host}             a host, host and port, or URL
 *   {time}             may have blanks
 *   {action} {user}    a word
 *   {}                 a word that is not read
 *   {#}                a number that is not read
 *   {*}                any text, also none
 *   {<client}          any text, which ends with an address
 */
export const Field = {
  client: 0,
  server: 1,
  name: 2,
  host: 3,
  time: 4,
  action: 5,
  user: 6,
  word: 7,
  number: 8,
  any: 9,
} as const
export type Field = (typeof Field)[keyof typeof Field]
const FIELD_COUNT = 7
/** With the text that follows. */
const TIME_BYTES_MAX = 80

interface Step {
  readonly field: Field
  /** Read backward from the text that follows. */
  readonly isBefore: boolean
  /** The text after the field; '' at the pattern's end. */
  readonly after: string
  /** Finds `after`, unless it is short. */
  readonly search: TextSearch | undefined
}

/** Offsets of the fields that the last successful match found. One per format. */
export class SentenceFields {
  readonly starts = new Int32Array(FIELD_COUNT)
  readonly ends = new Int32Array(FIELD_COUNT)

  has(field: Field): boolean {
    return (this.ends[field] ?? 0) > (this.starts[field] ?? 0)
  }

  start(field: Field): number {
    return this.starts[field] ?? 0
  }

  end(field: Field): number {
    return this.ends[field] ?? 0
  }
}

/**
 * The text of a product's messages: literal text, and fields in braces. Text may follow its end.
 */
export class SentencePattern {
  /** The bytes with which a message can begin. */
  readonly firstBytes: readonly number[]
  readonly #head: string
  readonly #steps: readonly Step[]

  constructor(pattern: string) {
    const [head = '', ...parts] = pattern.split('{')
    this.#head = head
    this.#steps = parts.map((part) => stepOf(part, pattern))
    const first = this.#steps[0]?.field
    if (head !== '') this.firstBytes = [head.charCodeAt(0)]
    else {
      assert(first === Field.client || first === Field.number || first === Field.time, pattern)
      const bytes = first === Field.client ? '0123456789abcdefABCDEF:[' : '0123456789'
      this.firstBytes = Array.from(bytes, (byte) => byte.charCodeAt(0))
    }
  }

  /** Whether the message in [start, end) matches. Each byte is read a few times at most. */
  matches(view: DataView, start: number, end: number, fields: SentenceFields): boolean {
    if (!textAt(view, start, end, this.#head)) return false
    fields.starts.fill(0)
    fields.ends.fill(0)
    let at = start + this.#head.length
    const steps = this.#steps
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]
      if (step === undefined) return false
      const stop = fieldEnd(view, at, end, step)
      if (stop === NOT_FOUND) return false
      const { field, after } = step
      if (field < FIELD_COUNT) {
        fields.starts[field] = step.isBefore ? lastIndexOfByte(view, at, stop, SPACE) + 1 || at : at
        fields.ends[field] = stop
      }
      at = stop + after.length
    }
    return true
  }
}

function stepOf(part: string, pattern: string): Step {
  const close = part.indexOf('}')
  assert(close >= 0, pattern)
  const name = part.slice(0, close)
  const after = part.slice(close + 1)
  const isBefore = name.startsWith('<')
  const field = fieldOf(isBefore ? name.slice(1) : name)
  assert(field !== undefined && (after !== '' || field !== Field.any), pattern)
  const isSearched = field === Field.any || field === Field.time || isBefore
  return { field, isBefore, after, search: isSearched && after.length > 1 ? new TextSearch(after) : undefined }
}

function fieldOf(name: string): Field | undefined {
  if (name === '') return Field.word
  if (name === '#') return Field.number
  if (name === '*') return Field.any
  return Object.entries(Field).find(([word]) => word === name)?.[1]
}

/** The end of the field that begins at `at`, before the text that follows, or NOT_FOUND. */
function fieldEnd(view: DataView, at: number, end: number, step: Step): number {
  const { field, after, search, isBefore } = step
  if (field === Field.time) end = Math.min(end, at + TIME_BYTES_MAX)
  if (field === Field.any || field === Field.time || isBefore) {
    return search === undefined ? indexOfByte(view, at, end, after.charCodeAt(0)) : search.find(view, at, end)
  }
  const first = after === '' ? SPACE : after.charCodeAt(0)
  let stop = at
  for (; stop < end; stop++) {
    const byte = view.getUint8(stop)
    if (field === Field.number && !isDigit(byte)) break
    // A colon and a digit are inside an address or before its port.
    if (byte === first && textAt(view, stop, end, after) && !(after === ':' && isDigitAt(view, stop + 1, end)))
      return stop
    if (byte <= SPACE) break
  }
  if (after === '') return stop > at ? stop : NOT_FOUND
  return field === Field.number && stop > at && textAt(view, stop, end, after) ? stop : NOT_FOUND
}

function isDigitAt(view: DataView, at: number, end: number): boolean {
  return at < end && isDigit(view.getUint8(at))
}
