import t from 'tap'
import { Environment } from '../../../../engine/kernel/lmdb/environment.ts'
import { DurableQueue } from '../../../../engine/kernel/lmdb/queue.ts'
import { ENTRY_BYTES_MAX, type Slices, slicesOf } from '../../../../engine/kernel/lmdb/queue-chunk.ts'
import * as fc from '../../../support/property.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }

/** Operations on a queue, repeated on a plain array. */
const steps = fc.array(
  fc.oneof(
    // Up to more than a chunk holds.
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 0, max: 600 }) }),
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ kind: fc.constant('slices' as const), count: fc.integer({ min: 0, max: 600 }) }),
    fc.record({ kind: fc.constant('replace' as const), count: fc.integer({ min: 1, max: 50 }) }),
    fc.record({ kind: fc.constant('remove' as const), count: fc.integer({ min: 0, max: 700 }) }),
    fc.record({ kind: fc.constant('remove' as const), count: fc.integer({ min: 0, max: 7 }) }),
    fc.record({ kind: fc.constant('abort' as const), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('reopen' as const), count: fc.constant(0) }),
  ),
  { maxLength: 25 },
)

/**
 * Texts in shared memory. Other bytes precede every `every`th text, and two of every 3 * `every`
 * texts are swapped.
 */
function scatteredSlices(texts: readonly string[], every: number): Slices {
  const starts = new Uint32Array(texts.length)
  const ends = new Uint32Array(texts.length)
  let bytes = ''
  const order = texts.map((_, index) => index)
  for (let at = every; at + 1 < order.length; at += every * 3) order.splice(at, 2, at + 1, at)
  for (const index of order) {
    if (index % every === 0) bytes += 'between'
    starts[index] = bytes.length
    bytes += texts[index]
    ends[index] = bytes.length
  }
  return { bytes: Buffer.from(bytes), starts, ends, count: texts.length }
}

t.test('a queue behaves like an array, through aborted transactions and reopening', async (t) => {
  const directory = t.testdir()
  let run = 0
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const path = `${directory}/${run++}`
      let environment = new Environment(path, OPTIONS)
      let queue = new DurableQueue(environment.table('q'), Buffer.from('a'))
      // A queue with a neighboring key in the same table, which must not be visible.
      environment.write(() =>
        new DurableQueue(environment.table('q'), Buffer.from('b')).append(slicesOf([Buffer.from('neighbour')])),
      )
      const model: { sequence: number; text: string }[] = []
      let next = 1
      for (const { kind, count } of all) {
        if (kind === 'append') {
          const texts = Array.from({ length: count }, (_, index) => `entry ${next + index}`)
          environment.write(() => queue.append(slicesOf(texts.map((text) => Buffer.from(text)))))
          for (const text of texts) model.push({ sequence: next++, text })
        } else if (kind === 'slices') {
          const texts = Array.from({ length: count }, (_, index) => `entry ${next + index}`)
          environment.write(() => queue.append(scatteredSlices(texts, 7)))
          for (const text of texts) model.push({ sequence: next++, text })
        } else if (kind === 'remove') {
          const through = (model[0]?.sequence ?? next) + count - 1
          const removed = environment.write(() => queue.removeThrough(through))
          const expected = model.filter(({ sequence }) => sequence <= through).length
          t.equal(removed, expected)
          model.splice(0, expected)
        } else if (kind === 'replace') {
          // Every few entries, and some that have been removed or are not written yet.
          const changes: { sequence: number; entry: Buffer }[] = []
          for (let sequence = 1; sequence < next + count; sequence += count) {
            changes.push({
              sequence,
              entry: Buffer.from(`entry ${sequence} anew, ${'and longer '.repeat(sequence % 3)}`),
            })
          }
          environment.write(() =>
            queue.replace(
              changes.map(({ sequence }) => sequence),
              slicesOf(changes.map(({ entry }) => entry)),
            ),
          )
          for (const { sequence, entry } of changes) {
            const waiting = model[sequence - (model[0]?.sequence ?? next)]
            if (waiting?.sequence === sequence) waiting.text = entry.toString()
          }
        } else if (kind === 'abort') {
          t.throws(() =>
            environment.write(() => {
              queue.append(slicesOf(Array.from({ length: count }, () => Buffer.from('never'))))
              queue.removeThrough(next)
              throw new Error('aborted')
            }),
          )
        } else {
          await environment.close()
          environment = new Environment(path, OPTIONS)
          queue = new DurableQueue(environment.table('q'), Buffer.from('a'))
        }
        t.equal(queue.length, model.length)
        t.equal(queue.nextSequence, next)
        t.equal(queue.firstSequence, model[0]?.sequence ?? next)
        t.same(
          queue.read(0, 1e6).map(({ sequence, bytes }) => ({ sequence, text: bytes.toString() })),
          model,
        )
        const [from, to] = [next - Math.ceil(model.length / 2), next - Math.ceil(model.length / 3)]
        t.same(
          queue.read(from, 1e6, 1e9, to).map(({ sequence }) => sequence),
          model.filter(({ sequence }) => sequence >= from && sequence < to).map(({ sequence }) => sequence),
          'a part of them',
        )
        if (model.length === 0) t.equal(queue.footprintBytes, 0)
        else t.ok(queue.footprintBytes > model.reduce((sum, { text }) => sum + text.length, 0) * 0.9)
      }
      await environment.close()
    }),
    { numRuns: 25 },
  )
})

t.test('reading stops at a number of entries or bytes', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  const queue = new DurableQueue(environment.table('q'), Buffer.alloc(0))
  environment.write(() => queue.append(slicesOf(['aaaa', 'bbbb', 'cccc'].map((text) => Buffer.from(text)))))
  t.equal(queue.read(0, 2).length, 2)
  t.equal(queue.read(2, 10).length, 2)
  t.equal(queue.read(0, 10, 5).length, 2)
  t.equal(queue.read(0, 10, 1).length, 1, 'at least one, of any length')
  await environment.close()
})

t.test("a queue's footprint is the used part of its file", async (t) => {
  for (const entryBytes of [10, 60, 500, 5000]) {
    const path = `${t.testdir()}/${entryBytes}`
    const environment = new Environment(path, OPTIONS)
    const queue = new DurableQueue(environment.table('q'), Buffer.alloc(0))
    const entries = Array.from({ length: 500 }, () => Buffer.alloc(entryBytes, 1))
    for (let round = 0; round < 40; round++) environment.write(() => queue.append(slicesOf(entries)))
    const { fileBytes, unusedBytes } = environment.space()
    const usedBytes = fileBytes - unusedBytes
    const ratio = queue.footprintBytes / usedBytes
    t.ok(ratio > 0.8 && ratio < 1.1, `entries of ${entryBytes} bytes: ${queue.footprintBytes} of ${usedBytes}`)
    await environment.close()
  }
})

t.test('sequences to replace must ascend, and those that are not waiting are ignored', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  const queue = new DurableQueue(environment.table('q'), Buffer.alloc(0))
  const entries = (...texts: string[]): Slices => slicesOf(texts.map((text) => Buffer.from(text)))
  const replace = (sequences: readonly number[], slices: Slices): void =>
    environment.write(() => queue.replace(sequences, slices))
  environment.write(() => queue.append(entries('one', 'two', 'three', 'four')))
  environment.write(() => queue.removeThrough(1))
  for (const sequences of [
    [3, 2],
    [2, 2],
  ]) {
    t.throws(() => replace(sequences, entries('a', 'b')), /must ascend/)
  }
  replace([1, 2, 4, 5], entries('gone', 'TWO', 'FOUR', 'not yet'))
  t.same(
    queue.read(0, 9).map(({ bytes }) => bytes.toString()),
    ['TWO', 'three', 'FOUR'],
  )
  await environment.close()
})

t.test('an entry that is too long is rejected, and a damaged chunk is detected', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  const table = environment.table('q')
  const queue = new DurableQueue(table, Buffer.alloc(0))
  t.throws(() => environment.write(() => queue.append(slicesOf([Buffer.alloc(ENTRY_BYTES_MAX + 1)]))), {
    name: 'RangeError',
  })
  environment.write(() =>
    queue.append(slicesOf([Buffer.alloc(ENTRY_BYTES_MAX), Buffer.alloc(ENTRY_BYTES_MAX), Buffer.alloc(9)])),
  )
  t.same(
    queue.read(0, 9).map(({ bytes }) => bytes.length),
    [ENTRY_BYTES_MAX, ENTRY_BYTES_MAX, 9],
  )
  const bytes = Buffer.alloc(ENTRY_BYTES_MAX + 1)
  const long = { bytes, starts: new Uint32Array(100), ends: new Uint32Array(100).fill(bytes.length), count: 100 }
  t.throws(() => environment.write(() => queue.append(long)), { name: 'RangeError' })
  long.ends.fill(ENTRY_BYTES_MAX)
  environment.write(() => queue.append(long))
  t.equal(queue.read(4, 200).length, 100, 'chunks are also limited in bytes')
  environment.write(() => queue.removeThrough(queue.nextSequence - 1))
  environment.write(() => queue.append(slicesOf([Buffer.alloc(9)])))
  const [first] = [...table.getRange({ limit: 1 })]
  const broken = Buffer.from(first?.value ?? Buffer.alloc(0))
  broken[broken.length - 1] = 1
  environment.write(() => table.putSync(first?.key as Buffer, broken))
  t.throws(() => queue.read(0, 9), { code: 'STORE_DAMAGED' })
  await environment.close()
})
