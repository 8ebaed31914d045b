import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { makeRateTable, RateLimit, REQUESTS_PER_WINDOW, ROWS, WINDOW_MS } from '../../api/rate-limit.ts'

t.test('never more than 60 in any 60 s, and never fewer than a plain log of times allows', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 100, maxLength: 300 }), (gaps) => {
      let nowMs = 1
      const limit = new RateLimit(makeRateTable(), () => nowMs)
      const key = randomBytes(32)
      const accepted: number[] = []
      for (const gap of gaps) {
        nowMs += gap
        const inWindow = accepted.filter((timeMs) => nowMs - timeMs < WINDOW_MS).length
        const verdict = limit.take(key)
        if (verdict.allowed !== inWindow < REQUESTS_PER_WINDOW) return false
        if (verdict.allowed) accepted.push(nowMs)
        if (verdict.remaining !== REQUESTS_PER_WINDOW - inWindow - (verdict.allowed ? 1 : 0)) return false
        if (!verdict.allowed) {
          const freeAtMs = (accepted.at(-REQUESTS_PER_WINDOW) ?? 0) + WINDOW_MS
          if (verdict.resetSeconds !== Math.ceil((freeAtMs - nowMs) / 1000)) return false
        }
      }
      return true
    }),
    { numRuns: 50 },
  )
  t.pass('held')
})

t.test('a bucket whose rows are all in use refuses another key, until one has been idle for a window', async (t) => {
  let nowMs = 1
  const limit = new RateLimit(makeRateTable(), () => nowMs)
  // Bytes 8 to 11 choose the bucket: all of these fall into one.
  const keys = Array.from({ length: ROWS + 1 }, () => Buffer.concat([randomBytes(8), Buffer.alloc(4), randomBytes(20)]))
  for (const key of keys.slice(0, ROWS)) t.equal(limit.take(key).allowed, true)
  t.same(limit.take(keys[ROWS] as Buffer), { allowed: false, remaining: 0, resetSeconds: 60 })
  nowMs += WINDOW_MS
  t.same(limit.take(keys[ROWS] as Buffer), { allowed: true, remaining: 59, resetSeconds: 60 })
})

t.test('four threads on one table accept 60 requests of a key together', async (t) => {
  const table = makeRateTable()
  const accepted = new Int32Array(new SharedArrayBuffer(4))
  const file = new URL('../../api/rate-limit.js', import.meta.url).href
  const code = `
    const { workerData } = require('node:worker_threads')
    import(workerData.file).then(({ RateLimit }) => {
      const limit = new RateLimit(workerData.table)
      const key = Buffer.alloc(32, 7)
      for (let i = 0; i < 20000; i++) if (limit.take(key).allowed) Atomics.add(workerData.accepted, 0, 1)
    })`
  const workers = Array.from(
    { length: 4 },
    () => new Worker(code, { eval: true, workerData: { table, accepted, file } }),
  )
  await Promise.all(
    workers.map((worker) => new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve))),
  )
  t.equal(accepted[0], 60)
})
