import { BACKSLASH, PIPE } from './bytes.ts'

/** The maximum length of a CEF or LEEF header. */
const HEADER_BYTES_MAX = 1024
/** Parts that both formats have at the same index; a part after these is CEF's name. */
const VENDOR = 1
const ID = 4
const NAME = 5

/**
 * The header of a CEF or LEEF message: parts that each end with a bar. One instance per format,
 * filled again for each message.
 */
export class EventHeader {
  vendorStart = 0
  vendorEnd = 0
  /** CEF: the event class; LEEF: the event id. */
  idStart = 0
  idEnd = 0
  /** CEF only; start and end are equal in LEEF. */
  nameStart = 0
  nameEnd = 0
  /** Offset after the last bar, where the extension begins. */
  extension = 0
  readonly #ends: Int32Array
  readonly #isEscaped: boolean

  /** @param isEscaped a bar after a backslash belongs to its part */
  constructor(parts: number, isEscaped: boolean) {
    this.#ends = new Int32Array(parts)
    this.#isEscaped = isEscaped
  }

  /** Whether all parts have their bar. Sets the fields if they do. */
  read(view: DataView, start: number, end: number): boolean {
    const ends = this.#ends
    const limit = Math.min(end, start + HEADER_BYTES_MAX)
    let count = 0
    for (let at = start; at < limit; at++) {
      const byte = view.getUint8(at)
      if (byte === BACKSLASH && this.#isEscaped) at++
      else if (byte === PIPE) {
        ends[count++] = at
        if (count === ends.length) return this.#found(at)
      }
    }
    return false
  }

  #found(lastBar: number): true {
    const ends = this.#ends
    this.vendorStart = (ends[VENDOR - 1] ?? 0) + 1
    this.vendorEnd = ends[VENDOR] ?? 0
    this.idStart = (ends[ID - 1] ?? 0) + 1
    this.idEnd = ends[ID] ?? 0
    if (ends.length > NAME) {
      this.nameStart = (ends[NAME - 1] ?? 0) + 1
      this.nameEnd = ends[NAME] ?? 0
    }
    this.extension = lastBar + 1
    return true
  }
}
