import { randomBytes } from 'node:crypto'
import t from 'tap'
import { ClusterRate } from '../../../api/rate-limit/cluster-rate.ts'
import { makeRateTable, RateLimit, REQUESTS_PER_WINDOW, ROWS, WINDOW_MS } from '../../../api/rate-limit/rate-limit.ts'
import { MESSAGE_USES_MAX, makeUseQueues, QUEUE_USES_MAX, UseQueue } from '../../../api/rate-limit/uses.ts'
import * as fc from '../../support/property.ts'

/** A node whose published messages stay in `published`, with a clock that differs by `aheadMs`. */
function nodeAt(clock: { ms: number }, aheadMs = 0) {
  const nowMs = (): number => clock.ms + aheadMs
  const uses = makeUseQueues(1)
  const queue = new UseQueue(uses, 0)
  const table = makeRateTable()
  const published: Buffer[] = []
  const link = { isConnected: true }
  const rate = new ClusterRate({
    limit: new RateLimit(table, nowMs),
    messages: {
      get isConnected() {
        return link.isConnected
      },
      publish: (message: Uint8Array) => void published.push(Buffer.from(message)),
      subscribe: () => {},
      stop: () => {},
    },
    ...{ uses, nowMs },
  })
  const limit = new RateLimit(table, nowMs, (keyHash, at) => queue.add(keyHash, at))
  const counts = (): unknown => rate.rows().map(([, , , values]) => values)
  return { rate, limit, queue, published, link, counts }
}

/** What a node of the model has counted: its own uses, and those that have arrived. */
type Counted = number[]

const step = fc.record({
  gapMs: fc.nat({ max: 3000 }),
  node: fc.nat({ max: 2 }),
  /** Afterwards all publish. 'lost': no message arrives. */
  next: fc.constantFrom('nothing', 'publish', 'deliver', 'lost'),
  delayMs: fc.nat({ max: 400 }),
})

t.test('each node counts its own uses, and those of others from when it hears of them', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 300 }), (steps) => {
      const clock = { ms: 1_000_000 }
      // One clock is about to exceed 32 bits.
      const nodes = [0, 5_000_000, 2 ** 32 - 1_010_000].map((aheadMs) => nodeAt(clock, aheadMs))
      const counted: Counted[] = nodes.map(() => [])
      let unpublished: { from: number; atMs: number }[] = []
      let arriving: { from: number; message: Buffer; uses: number[]; sentMs: number }[] = []
      const key = randomBytes(32)
      for (const { gapMs, node, next, delayMs } of steps) {
        clock.ms += gapMs
        const own = counted[node] as Counted
        const inWindow = own.filter((atMs) => clock.ms - atMs < WINDOW_MS).length
        const { allowed, remaining } = nodes[node]?.limit.take(key) ?? {}
        if (allowed !== inWindow < REQUESTS_PER_WINDOW) return false
        if (remaining !== Math.max(0, REQUESTS_PER_WINDOW - inWindow - 1)) return false
        if (allowed) {
          own.push(clock.ms)
          unpublished.push({ from: node, atMs: clock.ms })
        }
        if (next === 'nothing') continue
        clock.ms += 25
        for (const [from, { rate, published }] of nodes.entries()) {
          rate.publish()
          const uses = unpublished.filter((use) => use.from === from).map(({ atMs }) => atMs)
          if (published.length !== Math.min(1, uses.length)) return false
          for (const message of published.splice(0)) arriving.push({ from, message, uses, sentMs: clock.ms })
        }
        unpublished = []
        if (next === 'publish') continue
        clock.ms += delayMs
        for (const { from, message, uses, sentMs } of next === 'deliver' ? arriving : []) {
          for (const [to, { rate }] of nodes.entries()) {
            if (to === from) continue
            rate.receive(message)
            // Its age when it was sent, counted from the arrival on.
            const all = [...(counted[to] as Counted), ...uses.map((atMs) => clock.ms - (sentMs - atMs))]
            counted[to] = all.sort((a, b) => a - b).slice(-REQUESTS_PER_WINDOW)
          }
        }
        arriving = []
      }
      return true
    }),
    { numRuns: 50 },
  )
  t.pass('held')
})

t.test('a node without brokers counts alone, and reports the last window afterwards', async (t) => {
  const clock = { ms: 1_000_000 }
  const [cut, other] = [nodeAt(clock), nodeAt(clock)]
  const [old, recent] = [randomBytes(32), randomBytes(32)]
  cut.link.isConnected = false
  cut.limit.take(old)
  cut.rate.publish()
  clock.ms += WINDOW_MS
  for (let use = 0; use < 20; use++) t.ok(cut.limit.take(recent).allowed)
  cut.rate.publish()
  t.same(cut.published, [])
  cut.link.isConnected = true
  cut.rate.publish()
  t.equal(cut.published.length, 1)
  for (const message of cut.published) other.rate.receive(message)
  t.equal(other.limit.take(recent).remaining, 39)
  t.equal(other.limit.take(old).remaining, 59)
  t.match(cut.counts(), [
    { sent: 1, full: 0 },
    { sent: 20, lost: 1 },
  ])
})

t.test('a message is bounded, the rest follows, and a full queue loses the newest', async (t) => {
  const { rate, queue, published, link, counts } = nodeAt({ ms: 1_000_000 })
  link.isConnected = false
  for (let use = 0; use < QUEUE_USES_MAX + 5; use++) queue.add(randomBytes(32), 999_990)
  link.isConnected = true
  for (let left = QUEUE_USES_MAX; left > 0; left -= MESSAGE_USES_MAX) rate.publish()
  rate.publish()
  t.equal(published.length, QUEUE_USES_MAX / MESSAGE_USES_MAX)
  t.match(counts(), [{ full: published.length - 1 }, { sent: QUEUE_USES_MAX, lost: 5 }])
})

t.test('a key without a row is counted', async (t) => {
  const clock = { ms: 1_000_000 }
  const [from, to] = [nodeAt(clock), nodeAt(clock)]
  for (let use = 0; use < 2 * ROWS + 3; use++) {
    const key = randomBytes(32)
    key.writeUInt32LE(0, 8)
    key.writeUInt32LE(1, 12)
    from.queue.add(key, clock.ms)
  }
  from.rate.publish()
  for (const message of from.published) to.rate.receive(message)
  t.match(to.counts(), [{ received: 1 }, { received: 2 * ROWS + 3, no_row: 3 }])
})

t.test('malformed messages do nothing', async (t) => {
  const clock = { ms: 1_000_000 }
  const [from, to] = [nodeAt(clock), nodeAt(clock)]
  const key = randomBytes(32)
  from.limit.take(key)
  from.rate.publish()
  const [message = Buffer.alloc(0)] = from.published
  const changed = (at: number, value: number): Buffer => {
    const bytes = Buffer.from(message)
    bytes[at] = value
    return bytes
  }
  const malformed = [
    ...Array.from({ length: message.length }, (_, length) => message.subarray(0, length)),
    Buffer.concat([message, Buffer.from([0])]),
    changed(0, 2),
    Buffer.concat([message.subarray(0, 8), ...Array(MESSAGE_USES_MAX + 1).fill(message.subarray(8))]),
  ]
  for (const bytes of malformed) to.rate.receive(bytes)
  t.match(to.counts(), [{ received: 0, malformed: malformed.length }, { received: 0 }])
  // An age beyond a window, as of a forged time, does not count.
  to.rate.receive(changed(6, (message[6] ?? 0) + 1))
  t.equal(to.limit.take(key).remaining, 59)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => to.rate.receive(Buffer.from(bytes)) === undefined),
  )
})
