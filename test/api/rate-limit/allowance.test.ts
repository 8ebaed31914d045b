import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { Allowance, makeAllowanceTable } from '../../../api/rate-limit/allowance.ts'
import { ROWS } from '../../../api/rate-limit/key-table.ts'
import {
  ALLOWANCE_MAX,
  FREE_AFTER_MS,
  GRANT_MS,
  HOLD_MS,
  LEASE_MS,
  packUses,
  shareOf,
  unpackUses,
} from '../../../api/rate-limit/protocol.ts'
import { REQUESTS_PER_WINDOW } from '../../../api/rate-limit/rate-limit.ts'

const SHARE = shareOf(1) ?? { allowance: 0, others: 0 }

function allowanceAt(memory = makeAllowanceTable()) {
  const now = { ms: 5_000_000 }
  const allowance = new Allowance(memory, () => now.ms)
  const lease = (freeInMs = 0, share = SHARE): void => allowance.setLease({ ...share, freeInMs }, LEASE_MS)
  return { now, allowance, lease }
}

t.test('the shares of all nodes together are within the limit, and leave some of it', async (t) => {
  for (let nodes = 1; nodes <= 16; nodes++) {
    const { allowance, others } = shareOf(nodes) ?? { allowance: 0, others: 0 }
    t.ok(allowance >= 2 && allowance <= ALLOWANCE_MAX)
    t.ok(others >= (nodes - 1) * allowance)
    t.ok(allowance + others < REQUESTS_PER_WINDOW)
  }
  t.equal(shareOf(17), undefined)
})

t.test('a node uses its allowance, and then asks the home', async (t) => {
  const { now, allowance, lease } = allowanceAt()
  const [key, other] = [randomBytes(32), randomBytes(32)]
  t.equal(allowance.take(key), undefined, 'without a lease')
  lease()
  t.same(allowance.take(key), { allowed: true, remaining: 17, resetSeconds: 61 })
  now.ms += 1000
  for (let number = 2; number <= SHARE.allowance; number++) {
    t.same(allowance.take(key), { allowed: true, remaining: 18 - number, resetSeconds: 60 })
  }
  t.equal(allowance.take(key), undefined)
  t.match(allowance.take(other), { allowed: true }, 'each key has its own')
  now.ms += GRANT_MS - 1001
  lease()
  t.equal(allowance.take(key), undefined)
  now.ms += 1
  t.match(allowance.take(key), { allowed: true }, 'the first use no longer counts')
  t.equal(allowance.take(key), undefined)
  allowance.countPermits(3, 1)
  allowance.countPermits(0, 1)
  t.same(allowance.counters, { used: SHARE.allowance + 2, full: 0, answered: 3, unavailable: 2 })
})

t.test('a lease ends by itself, and a new one has to wait', async (t) => {
  const { now, allowance, lease } = allowanceAt()
  lease(FREE_AFTER_MS)
  t.match(allowance.lease, { allowance: SHARE.allowance, freeInMs: FREE_AFTER_MS })
  const key = randomBytes(32)
  for (let elapsedMs = 0; elapsedMs < FREE_AFTER_MS; elapsedMs += 5000) {
    lease(FREE_AFTER_MS - elapsedMs)
    t.equal(allowance.take(key), undefined)
    now.ms += 5000
  }
  t.match(allowance.take(key), { allowed: true })
  now.ms += 51
  lease()
  t.match(allowance.take(key), { allowed: true }, 'a renewal does not interrupt the use')
  now.ms += LEASE_MS - 51 - 1
  t.match(allowance.take(key), { allowed: true })
  now.ms += 51
  t.equal(allowance.take(key), undefined, 'the node is cut off')
  t.same(allowance.lease, { allowance: 0, freeInMs: 0 })
})

t.test('a key that is held reports its uses, and has no more', async (t) => {
  const { now, allowance, lease } = allowanceAt()
  const [key, unused] = [randomBytes(32), randomBytes(32)]
  lease()
  allowance.take(key)
  now.ms += 300
  allowance.take(key)
  now.ms += 1000.7
  const ages = allowance.hold(key)
  t.equal(ages?.length, 2)
  t.same(unpackUses(packUses([ages, undefined, []]), 3), [[1300, 1000], undefined, []])
  t.same(allowance.hold(unused), [])
  const heldMs = now.ms
  for (const elapsedMs of [0, 60_000, HOLD_MS - 1]) {
    now.ms = heldMs + elapsedMs
    lease()
    for (const each of [key, unused]) t.equal(allowance.take(each), undefined)
  }
  now.ms = heldMs + HOLD_MS
  for (const each of [key, unused]) t.match(allowance.take(each), { allowed: true })
})

/** Bytes 8 to 11 of a hash select a key's first bucket, bytes 12 to 15 its second. */
function keyOf(first: number, second: number): Buffer {
  const key = randomBytes(32)
  key.writeUInt32LE(first, 8)
  key.writeUInt32LE(second, 12)
  return key
}

t.test('without a row, a key has no allowance and cannot be held; a held row is kept', async (t) => {
  const { now, allowance, lease } = allowanceAt()
  lease()
  for (let count = 0; count < 2 * ROWS; count++) t.same(allowance.hold(keyOf(0, 1)), [])
  t.equal(allowance.take(keyOf(0, 1)), undefined)
  t.equal(allowance.hold(keyOf(1, 0)), undefined)
  t.match(allowance.counters, { used: 0, full: 2 })
  now.ms += HOLD_MS - 1
  lease()
  t.equal(allowance.take(keyOf(0, 1)), undefined)
  now.ms += 1
  t.match(allowance.take(keyOf(0, 1)), { allowed: true })
})

t.test('the uses outlast a restart', async (t) => {
  const { now, allowance, lease } = allowanceAt()
  lease()
  const [key, old] = [randomBytes(32), randomBytes(32)]
  allowance.take(old)
  now.ms += 30_000
  lease()
  for (let count = 0; count < 3; count++) allowance.take(key)
  const next = allowanceAt()
  next.allowance.resume(allowance.all(), 40_000)
  t.same(next.allowance.hold(key), [40_000, 40_000, 40_000])
  t.same(next.allowance.hold(old), [], 'it no longer counts')
})

t.test('a use and a hold of a key exclude each other, over all threads', async (t) => {
  const memory = makeAllowanceTable()
  const keys = Array.from({ length: 2000 }, () => randomBytes(32))
  const allowance = new Allowance(memory)
  allowance.setLease({ ...SHARE, freeInMs: 0 }, LEASE_MS)
  const file = new URL('../../../api/rate-limit/allowance.js', import.meta.url).href
  const source = `
    const { parentPort, workerData } = require('node:worker_threads')
    import(workerData.file).then(({ Allowance }) => {
      const allowance = new Allowance(workerData.memory)
      parentPort.postMessage('ready')
      const used = workerData.keys.map(() => 0)
      // Ends when the main thread holds all keys.
      for (let left = workerData.keys.length; left > 0; ) {
        left = 0
        for (const [index, key] of workerData.keys.entries()) {
          const isAllowed = allowance.take(Buffer.from(key)) !== undefined
          if (isAllowed) used[index]++
          if (isAllowed || Atomics.load(workerData.ended, 0) === 0) left++
        }
      }
      parentPort.postMessage(used)
    })`
  const ended = new Int32Array(new SharedArrayBuffer(4))
  const workers = [0, 1].map(() => new Worker(source, { eval: true, workerData: { file, memory, keys, ended } }))
  const messages = workers.map((worker) => {
    const received: unknown[] = []
    worker.on('message', (message) => received.push(message))
    const exited = new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
    return { received, exited }
  })
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))))
  const held = keys.map((key) => allowance.hold(key)?.length ?? -1)
  Atomics.store(ended, 0, 1)
  await Promise.all(messages.map(({ exited }) => exited))
  const used = keys.map((_, index) =>
    messages.reduce((sum, { received }) => sum + ((received[1] as readonly number[])[index] ?? 0), 0),
  )
  t.same(held, used, 'every use was reported')
  t.equal(
    allowance.counters.used,
    used.reduce((sum, each) => sum + each, 0),
  )
})
