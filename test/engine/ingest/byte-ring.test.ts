import t from 'tap'
import { ByteRing, makeByteRing, RecordKind } from '../../../engine/ingest/byte-ring.ts'
import * as fc from '../../support/property.ts'

const RING_BYTES = 256 * 1024

t.test('data is read as written, in order, with any sizes and fill levels', async () => {
  const step = fc.oneof(
    fc.record({ write: fc.oneof(fc.nat(200), fc.integer({ min: 0, max: 64 * 1024 })) }),
    fc.record({ read: fc.integer({ min: 1, max: RING_BYTES }) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const memory = makeByteRing(RING_BYTES)
      const writer = new ByteRing(memory)
      const reader = new ByteRing(memory)
      const written: string[] = []
      const read: string[] = []
      const take = (kind: RecordKind, connection: number, chunk: Uint8Array): void => {
        read.push(`${kind} ${connection} ${chunk.length} ${chunk.every((byte) => byte === (connection & 255))}`)
      }
      for (const [index, one] of steps.entries()) {
        if ('write' in one) {
          const isTaken = writer.write(RecordKind.data, index, Buffer.alloc(one.write, index & 255))
          if (isTaken) written.push(`${RecordKind.data} ${index} ${one.write} true`)
          // An empty ring has space for any chunk.
          if (!isTaken && written.length === read.length) return false
        } else {
          const more = reader.read(one.read, take)
          if (more !== written.length > read.length) return false
        }
      }
      while (reader.read(RING_BYTES, take)) {}
      return read.join('|') === written.join('|')
    }),
    { numRuns: 300 },
  )
})

t.test('a sleeping reader is woken once, and never sleeps when data has arrived', async (t) => {
  const memory = makeByteRing(RING_BYTES)
  const writer = new ByteRing(memory)
  const reader = new ByteRing(memory)
  t.equal(writer.takeSleeping(), false)
  t.equal(reader.sleep(), true)
  writer.write(RecordKind.end, 1, new Uint8Array(0))
  t.equal(writer.takeSleeping(), true)
  t.equal(writer.takeSleeping(), false)
  t.equal(reader.sleep(), false, 'there is something to read')
  t.equal(writer.takeSleeping(), false)
  reader.read(1, () => {})
  t.equal(reader.sleep(), true)
})

t.test('a writer that waits for space is notified once', async (t) => {
  const memory = makeByteRing(RING_BYTES)
  const writer = new ByteRing(memory)
  const reader = new ByteRing(memory)
  t.equal(reader.takeSpaceRequest(), false)
  while (writer.write(RecordKind.data, 1, Buffer.alloc(1000))) {}
  writer.requestSpace()
  t.equal(reader.takeSpaceRequest(), true)
  t.equal(reader.takeSpaceRequest(), false)
})
