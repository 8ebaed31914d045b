import { z } from 'zod'
import { pack, unpack } from '../../kernel/event/msgpack.ts'
import type { Change } from '../../kernel/lmdb/replication.ts'
import { Fault } from '../../kernel/process/error-codes.ts'

/*
 * The messages of the stream of changes. The first byte is the kind:
 *
 *   1  a part of a change: generation (6 bytes), number of the change (6), part from 0 (2), number
 *      of parts (2), little-endian, then the writes (engine/kernel/lmdb/replication.ts)
 *   2  tick: the primary works
 *   3  takeover: the sender is the primary from now on
 *   4  resignation: the primary stops, and has published everything
 *   5  consecutive changes: generation (6 bytes), number of the first (6), then for each the number
 *      of bytes (4) and the writes
 *
 * 2 to 4 continue with the sender in msgpack.
 */
const CHANGE = 1
const CHANGES = 5
const KINDS = { tick: 2, takeover: 3, resignation: 4 } as const
const CHANGE_HEADER_BYTES = 17
const GENERATION_OFFSET = 1
const NUMBER_OFFSET = 7
const PART_OFFSET = 13
const PARTS_OFFSET = 15
const CHANGES_HEADER_BYTES = 13
const LENGTH_BYTES = 4
const NUMBER_BYTES = 6
/** Below the largest message that brokers accept (deploy/nats/nats.conf: max_payload). */
const PART_BYTES_MAX = 4 * 1024 * 1024

const senderSchema = z.object({ node: z.string(), name: z.string(), generation: z.number() })
/** Who sent a message: id of its store, name, generation. */
export type Sender = z.infer<typeof senderSchema>

export interface ChangePart {
  readonly kind: 'change'
  readonly generation: number
  readonly number: number
  readonly part: number
  readonly parts: number
  readonly writes: Buffer
}

export interface ChangesMessage {
  readonly kind: 'changes'
  readonly generation: number
  /** Number of the first one. */
  readonly first: number
  readonly writes: readonly Buffer[]
}

/** Of a sender. */
const LIMITS = { valuesMax: 1000, depthMax: 4 }

export type NodeMessage = { readonly kind: keyof typeof KINDS; readonly sender: Sender }

/**
 * Writes changes with consecutive numbers. Small ones share a message, and a large one needs
 * several: a message is appended only when the one before it is in the stream.
 */
export function changeMessages(generation: number, changes: readonly Change[]): Buffer[] {
  const messages: Buffer[] = []
  let group: Change[] = []
  let bytes = 0
  const close = (): void => {
    if (group.length > 0) messages.push(groupMessage(generation, group))
    group = []
    bytes = 0
  }
  for (const change of changes) {
    const { length } = change.writes
    if (bytes + LENGTH_BYTES + length > PART_BYTES_MAX) close()
    if (LENGTH_BYTES + length > PART_BYTES_MAX) messages.push(...partMessages(generation, change))
    else {
      group.push(change)
      bytes += LENGTH_BYTES + length
    }
  }
  close()
  return messages
}

function groupMessage(generation: number, changes: readonly Change[]): Buffer {
  const header = Buffer.alloc(CHANGES_HEADER_BYTES)
  header[0] = CHANGES
  header.writeUIntLE(generation, GENERATION_OFFSET, NUMBER_BYTES)
  header.writeUIntLE(changes[0]?.number ?? 0, NUMBER_OFFSET, NUMBER_BYTES)
  const all = changes.flatMap(({ writes }) => {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32LE(writes.length)
    return [length, writes]
  })
  return Buffer.concat([header, ...all])
}

function partMessages(generation: number, { number, writes }: Change): Buffer[] {
  const parts = Math.ceil(writes.length / PART_BYTES_MAX)
  return Array.from({ length: parts }, (_, part) => {
    const content = writes.subarray(part * PART_BYTES_MAX, (part + 1) * PART_BYTES_MAX)
    const bytes = Buffer.allocUnsafe(CHANGE_HEADER_BYTES + content.length)
    bytes[0] = CHANGE
    bytes.writeUIntLE(generation, GENERATION_OFFSET, NUMBER_BYTES)
    bytes.writeUIntLE(number, NUMBER_OFFSET, NUMBER_BYTES)
    bytes.writeUInt16LE(part, PART_OFFSET)
    bytes.writeUInt16LE(parts, PARTS_OFFSET)
    bytes.set(content, CHANGE_HEADER_BYTES)
    return bytes
  })
}

export function nodeMessage(kind: keyof typeof KINDS, sender: Sender): Buffer {
  return Buffer.concat([Buffer.from([KINDS[kind]]), pack(sender)])
}

/** @throws Fault STORE_VERSION if a newer release wrote it; Error if none can have written it */
export function readMessage(message: Uint8Array): ChangePart | ChangesMessage | NodeMessage {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  if (bytes[0] === CHANGE && bytes.length >= CHANGE_HEADER_BYTES) {
    return {
      kind: 'change',
      generation: bytes.readUIntLE(GENERATION_OFFSET, NUMBER_BYTES),
      number: bytes.readUIntLE(NUMBER_OFFSET, NUMBER_BYTES),
      part: bytes.readUInt16LE(PART_OFFSET),
      parts: bytes.readUInt16LE(PARTS_OFFSET),
      writes: bytes.subarray(CHANGE_HEADER_BYTES),
    }
  }
  if (bytes[0] === CHANGES && bytes.length >= CHANGES_HEADER_BYTES) {
    const generation = bytes.readUIntLE(GENERATION_OFFSET, NUMBER_BYTES)
    const first = bytes.readUIntLE(NUMBER_OFFSET, NUMBER_BYTES)
    const writes: Buffer[] = []
    for (let at = CHANGES_HEADER_BYTES; at < bytes.length; ) {
      const end = at + LENGTH_BYTES + bytes.readUInt32LE(at)
      if (end > bytes.length) throw new Error(`a change of ${end - at} bytes in ${bytes.length - at}`)
      writes.push(bytes.subarray(at + LENGTH_BYTES, end))
      at = end
    }
    return { kind: 'changes', generation, first, writes }
  }
  for (const kind of ['tick', 'takeover', 'resignation'] as const) {
    if (bytes[0] === KINDS[kind]) return { kind, sender: senderSchema.parse(unpack(bytes.subarray(1), LIMITS)) }
  }
  throw new Fault('STORE_VERSION', `the primary writes messages of kind ${bytes[0]}; upgrade this node`)
}
