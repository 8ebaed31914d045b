import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import {
  makeRateTable,
  monotonicMs,
  RateLimit,
  REQUESTS_PER_WINDOW,
  ROWS,
  WINDOW_MS,
} from '../../../api/rate-limit/rate-limit.ts'
import * as fc from '../../support/property.ts'

t.test('the limiter never allows more than 60 in any 60 s, and never fewer than a log of times would', async (t) => {
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

t.test('requests that were accepted elsewhere count as if they had been here', async (t) => {
  const ages = fc.array(fc.integer({ min: 0, max: WINDOW_MS + 5000 }), { maxLength: 80 })
  fc.assert(
    fc.property(ages, fc.integer({ min: 0, max: WINDOW_MS }), (agesMs, laterMs) => {
      let nowMs = 1_000_000
      const limit = new RateLimit(makeRateTable(), () => nowMs)
      const key = randomBytes(32)
      for (const ageMs of agesMs) if (!limit.add(key, 0, ageMs)) return false
      nowMs += laterMs
      const newest = agesMs.sort((a, b) => a - b).slice(0, REQUESTS_PER_WINDOW)
      const inWindow = newest.filter((ageMs) => ageMs + laterMs < WINDOW_MS).length
      const { allowed, remaining } = limit.take(key)
      if (allowed !== inWindow < REQUESTS_PER_WINDOW) return false
      return remaining === REQUESTS_PER_WINDOW - inWindow - (allowed ? 1 : 0)
    }),
    { numRuns: 50 },
  )
  const limit = new RateLimit(makeRateTable(), () => 1)
  for (let count = 0; count < 2 * ROWS; count++) limit.take(keyOf(0, 1))
  t.equal(limit.add(keyOf(0, 1), 0, 0), false, 'no row')
})

/** Bytes 8 to 11 of a hash select a key's first bucket, bytes 12 to 15 its second. */
function keyOf(first: number, second: number): Buffer {
  const key = randomBytes(32)
  key.writeUInt32LE(first, 8)
  key.writeUInt32LE(second, 12)
  return key
}

t.test(
  'a key fits into two buckets; with both in use the key is rejected and counted until one is idle for a window',
  async (t) => {
    let nowMs = 1
    const table = makeRateTable()
    const limit = new RateLimit(table, () => nowMs)
    const refused = { allowed: false, remaining: 0, resetSeconds: 60 }
    for (let count = 0; count < 2 * ROWS; count++) t.equal(limit.take(keyOf(0, 1)).allowed, true, `key ${count}`)
    t.equal(limit.full, 0)
    const late = keyOf(0, 1)
    t.same(limit.take(late), refused)
    t.same(limit.take(keyOf(1, 0)), refused, 'the same two buckets')
    t.same(limit.take(keyOf(1, 1)), refused, 'both choices are the same full bucket')
    t.equal(limit.full, 3)
    t.equal(limit.take(keyOf(1, 2)).allowed, true, 'the second bucket has space')
    nowMs += WINDOW_MS
    t.same(limit.take(late), { allowed: true, remaining: 59, resetSeconds: 60 })
    t.equal(limit.full, 3)
  },
)

t.test('a key in its second bucket keeps its count when its first bucket has space again', async (t) => {
  let nowMs = 1
  const limit = new RateLimit(makeRateTable(), () => nowMs)
  for (let count = 0; count < ROWS; count++) limit.take(keyOf(0, 2))
  nowMs += WINDOW_MS / 2
  const key = keyOf(0, 1)
  t.equal(limit.take(key).remaining, 59)
  nowMs += WINDOW_MS / 2
  t.equal(limit.take(keyOf(0, 2)).allowed, true, 'the first bucket has space')
  t.equal(limit.take(key).remaining, 58)
})

/** Pseudorandom hashes, the same in every run. Each is valid until the next one. */
function* hashes(count: number): Generator<Buffer> {
  let state = 1
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 8
  }
  const key = Buffer.alloc(32)
  for (let made = 0; made < count; made++) {
    for (let at = 0; at < 16; at += 4) key.writeUInt32LE(((next() << 8) ^ next()) >>> 0, at)
    yield key
  }
}

t.test('100,000 keys in use fit', async (t) => {
  const table = makeRateTable()
  const limit = new RateLimit(table, () => 1)
  for (const key of hashes(100_000)) {
    if (!limit.take(key).allowed) break
  }
  t.equal(limit.full, 0)
})

t.test('the rows of keys in use at once are contiguous, and keys of a later window reuse them', async (t) => {
  const table = makeRateTable()
  let nowMs = 1
  const limit = new RateLimit(table, () => nowMs)
  const usedBytes = (): number => {
    const bytes = Buffer.from(table)
    let end = bytes.length
    while (bytes[end - 1] === 0) end--
    return end
  }
  const keys = Array.from(hashes(20_000), (key) => Buffer.from(key))
  limit.take(keys[0] ?? Buffer.alloc(0))
  const ofOne = usedBytes()
  for (const key of keys.slice(0, 10_000)) limit.take(key)
  const ringBytes = REQUESTS_PER_WINDOW * 8
  t.equal(usedBytes() - ofOne, 9_999 * ringBytes)
  nowMs += WINDOW_MS
  for (const key of keys.slice(10_000)) limit.take(key)
  const more = (usedBytes() - ofOne) / ringBytes - 9_999
  t.ok(more < 6_000, `${more} of 10,000 keys use rows that were never used before`)
})

t.test('the clock is the same in every thread', async (t) => {
  const systemMs = (): number => Number(process.hrtime.bigint()) / 1e6
  for (let time = 0; time < 100; time++) {
    const [before, asked, after] = [systemMs(), monotonicMs(), systemMs()]
    if (before > asked || asked > after) t.fail(`${before} ${asked} ${after}`)
  }
  t.pass('between two reads of the clock')
})

t.test('four threads on one table together accept 60 requests per key', async (t) => {
  const THREADS = 4
  /**
   * All threads request the same key at the same time, for one key after the other. First, each
   * thread requests its own keys, which allocates their rows.
   */
  const COMMON = 2000
  const OWN = 2000
  const KEYS = COMMON + THREADS * OWN
  const ASKED = 20
  t.ok(THREADS * ASKED > REQUESTS_PER_WINDOW)
  const shared = {
    table: makeRateTable(),
    keys: Buffer.concat(Array.from(hashes(KEYS), (key) => Buffer.from(key))),
    accepted: new Int32Array(new SharedArrayBuffer(4 * KEYS)),
    // Number of threads that are ready.
    start: new Int32Array(new SharedArrayBuffer(4)),
    file: new URL('../../../api/rate-limit/rate-limit.js', import.meta.url).href,
  }
  const code = `
    const { workerData: { table, keys, accepted, start, file } } = require('node:worker_threads')
    import(file).then(({ RateLimit }) => {
      const limit = new RateLimit(table)
      const ask = (key, times) => {
        const hash = Buffer.from(keys.buffer, keys.byteOffset + 32 * key, 32)
        for (let asked = 0; asked < times; asked++) if (limit.take(hash).allowed) Atomics.add(accepted, key, 1)
      }
      const own = ${COMMON} + ${OWN} * Atomics.add(start, 0, 1)
      while (Atomics.load(start, 0) < ${THREADS}) {}
      for (let key = own; key < own + ${OWN}; key++) ask(key, 1)
      for (let key = 0; key < ${COMMON}; key++) ask(key, ${ASKED})
      for (let key = own; key < own + ${OWN}; key++) ask(key, ${REQUESTS_PER_WINDOW})
    })`
  const workers = Array.from({ length: THREADS }, () => new Worker(code, { eval: true, workerData: shared }))
  await Promise.all(
    workers.map((worker) => new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve))),
  )
  const wrong = [...shared.accepted].filter((count) => count !== REQUESTS_PER_WINDOW)
  t.same(wrong, [], `of ${KEYS} keys`)
})
