import fc from 'fast-check'
import t from 'tap'
import { Environment } from '../../../engine/store/environment.ts'
import { DurableQueue } from '../../../engine/store/queue.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }

/** What is done to a queue, beside the same done to a plain array. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ kind: fc.constant('remove' as const), count: fc.integer({ min: 0, max: 7 }) }),
    fc.record({ kind: fc.constant('abort' as const), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('reopen' as const), count: fc.constant(0) }),
  ),
  { maxLength: 25 },
)

t.test('a queue does what a plain array does, through aborted transactions and reopening', async (t) => {
  const directory = t.testdir()
  let run = 0
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const path = `${directory}/${run++}`
      let environment = new Environment(path, OPTIONS)
      let queue = new DurableQueue(environment.table('q'), Buffer.from('a'))
      // A neighbour in the same table, which must not be seen.
      environment.write(() =>
        new DurableQueue(environment.table('q'), Buffer.from('b')).append([Buffer.from('neighbour')]),
      )
      const model: { sequence: number; text: string }[] = []
      let next = 1
      for (const { kind, count } of all) {
        if (kind === 'append') {
          const texts = Array.from({ length: count }, (_, index) => `entry ${next + index}`)
          environment.write(() => queue.append(texts.map((text) => Buffer.from(text))))
          for (const text of texts) model.push({ sequence: next++, text })
        } else if (kind === 'remove') {
          const through = (model[0]?.sequence ?? next) + count - 1
          const gone = environment.write(() => queue.removeThrough(through))
          const expected = model.filter(({ sequence }) => sequence <= through).length
          t.equal(gone, expected)
          model.splice(0, expected)
        } else if (kind === 'abort') {
          t.throws(() =>
            environment.write(() => {
              queue.append(Array.from({ length: count }, () => Buffer.from('never')))
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
          queue.read(0, 1000).map(({ sequence, bytes }) => ({ sequence, text: bytes.toString() })),
          model,
        )
      }
      await environment.close()
    }),
    { numRuns: 25 },
  )
})

t.test('reading stops at a count, and once so many bytes are together', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  const queue = new DurableQueue(environment.table('q'), Buffer.alloc(0))
  environment.write(() => queue.append(['aaaa', 'bbbb', 'cccc'].map((text) => Buffer.from(text))))
  t.equal(queue.read(0, 2).length, 2)
  t.equal(queue.read(2, 10).length, 2)
  t.equal(queue.read(0, 10, 5).length, 2)
  t.equal(queue.read(0, 10, 1).length, 1, 'one at least, however long')
  await environment.close()
})
