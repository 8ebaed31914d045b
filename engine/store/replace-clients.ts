import { PackedEvent } from '../kernel/event/packed-event.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'

/** What an event says instead of a client's address, and instead of a user's name. */
export interface Replacement {
  readonly ofClient: (address: string) => string
  readonly ofUser: (name: string) => string
}

const STRING_8 = 0xd9
const FIXED_STRING = 0xa0
const FIXED_STRING_BYTES_MAX = 31
const TEXT_BYTES_MAX = 255

/** Copies packed events (event/packed-event.ts), with other clients and users. */
export function replaceClients(events: Slices, replacement: Replacement): Slices {
  const { bytes, count } = events
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const starts = new Uint32Array(count)
  const ends = new Uint32Array(count)
  const copy = new Copy(bytes, count)
  const packed = new PackedEvent()
  for (let event = 0; event < count; event++) {
    const start = events.starts[event] ?? 0
    const end = events.ends[event] ?? 0
    starts[event] = copy.length
    if (packed.read(view, start, end) !== end) throw new Error('an event is not in the form of packed-event.ts')
    const { nameEnd, clientAt, clientEnd, userAt, userEnd } = packed
    copy.bytes(start, nameEnd)
    copy.text(replacement.ofClient(textOf(bytes, clientAt, clientEnd)))
    if (userAt === userEnd) copy.bytes(clientEnd, end)
    else {
      copy.bytes(clientEnd, packed.userHeaderAt)
      copy.text(replacement.ofUser(textOf(bytes, userAt, userEnd)))
      copy.bytes(userEnd, end)
    }
    ends[event] = copy.length
  }
  return { bytes: copy.end(), starts, ends, count }
}

function textOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')
}

class Copy {
  length = 0
  readonly #from: Uint8Array
  #to: Buffer

  constructor(from: Uint8Array, events: number) {
    this.#from = from
    this.#to = Buffer.allocUnsafe(from.length + events * 64)
  }

  bytes(start: number, end: number): void {
    this.#reserve(end - start)
    this.#to.set(this.#from.subarray(start, end), this.length)
    this.length += end - start
  }

  text(text: string): void {
    this.#reserve(2 + TEXT_BYTES_MAX)
    const bytes = Buffer.byteLength(text)
    if (bytes > FIXED_STRING_BYTES_MAX) this.#to[this.length++] = STRING_8
    this.#to[this.length++] = bytes > FIXED_STRING_BYTES_MAX ? bytes : FIXED_STRING | bytes
    this.length += this.#to.write(text, this.length)
  }

  end(): Buffer {
    return this.#to.subarray(0, this.length)
  }

  #reserve(bytes: number): void {
    if (this.length + bytes <= this.#to.length) return
    this.#to = Buffer.concat([this.#to.subarray(0, this.length), Buffer.allocUnsafe(this.length + bytes)])
  }
}
