import t from 'tap'
import { BodyMemory } from '../../../engine/ingest/body-memory.ts'
import { BATCH_BYTES_MAX, DECOMPRESSING_MAX } from '../../../engine/limits.ts'

t.test('a body reserves its announced length, or the maximum if none is announced', async (t) => {
  for (const [announced, need] of [
    ['0', 0],
    ['10', 10],
    [String(BATCH_BYTES_MAX + 1), BATCH_BYTES_MAX],
    ['', BATCH_BYTES_MAX],
    ['ten', BATCH_BYTES_MAX],
    ['-1', BATCH_BYTES_MAX],
  ] as const) {
    t.equal(BodyMemory.bytesNeeded(announced), need, announced)
  }
})

t.test('memory is granted until none is left', async (t) => {
  const memory = new BodyMemory(10)
  t.equal(memory.reserve(6), true)
  t.equal(memory.reserve(5), false)
  t.equal(memory.reserve(4), true)
  memory.release(6)
  t.equal(memory.reserve(5), true)
  t.equal(memory.held, 9)
})

t.test('the number of concurrent decompressions is limited, in order, even when one fails', async (t) => {
  const memory = new BodyMemory()
  let running = 0
  let most = 0
  const ended: number[] = []
  const work = (number: number) => async (): Promise<number> => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, 2))
    running--
    ended.push(number)
    if (number % 3 === 0) throw new Error('damaged')
    return number
  }
  const all = Array.from({ length: 20 }, (_, number) => memory.decompress(work(number)))
  const outcomes = await Promise.allSettled(all)
  t.equal(most, DECOMPRESSING_MAX)
  t.equal(outcomes.filter(({ status }) => status === 'rejected').length, 7)
  t.same(
    ended,
    [...ended].sort((a, b) => a - b),
  )
  t.equal(await memory.decompress(work(1)), 1, 'later work succeeds')
})
