import t from 'tap'
import { CHUNK_ENTRIES_MAX, ChunkReader, sealChunk, slicesOf } from '../../../../engine/kernel/lmdb/queue-chunk.ts'
import { sealRecord } from '../../../../engine/kernel/lmdb/record.ts'

const slices = slicesOf(['one', '', 'three', 'four'].map((text) => Buffer.from(text)))

function textsIn(record: Buffer): string[] {
  const chunk = new ChunkReader()
  chunk.open(record)
  return Array.from({ length: chunk.count }, (_, index) => chunk.entry(index).toString())
}

t.test('ranges of entries in any order become one chunk', async (t) => {
  const ranges = [
    { slices, from: 2, to: 4 },
    { slices, from: 1, to: 1 },
    { slices, from: 0, to: 2 },
  ]
  const record = sealChunk(ranges, 1_800_000_000_000)
  t.same(textsIn(record), ['three', 'four', 'one', ''])
  const chunk = new ChunkReader()
  t.ok(chunk.openIfIntact(record))
  t.equal(chunk.writtenMs, 1_800_000_000_000)
})

/** A record with a valid checksum. */
function chunkOf(count: number, lengths: readonly number[], entriesBytes: number): Buffer {
  const head = Buffer.alloc(10 + lengths.length * 2)
  head.writeUInt16LE(count, 8)
  for (const [index, length] of lengths.entries()) head.writeUInt16LE(length, 10 + index * 2)
  return sealRecord(1, Buffer.concat([head, Buffer.alloc(entriesBytes)]))
}

const flipped = sealChunk([{ slices, from: 0, to: 4 }], 0)
flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1

const damaged: { name: string; record: Buffer; error: RegExp }[] = [
  { name: 'a changed byte', record: flipped, error: /checksum/ },
  { name: 'shorter than its header', record: sealRecord(1, Buffer.alloc(9)), error: /9 bytes cannot have 0 entries/ },
  { name: 'no entries', record: chunkOf(0, [], 0), error: /10 bytes cannot have 0 entries/ },
  { name: 'more entries than lengths', record: chunkOf(2, [0], 0), error: /12 bytes cannot have 2 entries/ },
  {
    name: 'more entries than a chunk can have',
    record: chunkOf(CHUNK_ENTRIES_MAX + 1, new Array(CHUNK_ENTRIES_MAX + 1).fill(0), 0),
    error: /cannot have 257 entries/,
  },
  { name: 'bytes after the entries', record: chunkOf(1, [3], 4), error: /1 entries fill 15 bytes.* has 16/ },
  { name: 'bytes missing', record: chunkOf(2, [3, 3], 5), error: /2 entries fill 20 bytes.* has 19/ },
]

t.test('a damaged chunk is detected and has no entries', async (t) => {
  const chunk = new ChunkReader()
  for (const { name, record, error } of damaged) {
    t.throws(() => textsIn(record), { code: 'STORE_DAMAGED', message: error }, name)
    chunk.open(sealChunk([{ slices, from: 0, to: 4 }], 0))
    t.notOk(chunk.openIfIntact(record), name)
    t.equal(chunk.count, 0, name)
  }
})

t.test('a chunk of a newer release is rejected', async (t) => {
  t.throws(() => new ChunkReader().openIfIntact(sealRecord(2, Buffer.alloc(20))), { code: 'STORE_VERSION' })
})
