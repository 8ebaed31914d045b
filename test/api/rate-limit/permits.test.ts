import { randomBytes } from 'node:crypto'
import t from 'tap'
import { type AskPermits, PERMITS_WAITING_MAX, Permits, type Verdict } from '../../../api/rate-limit/permits.ts'
import { HASH_BYTES, PERMIT_MS, REFUSED, UNAVAILABLE } from '../../../api/rate-limit/protocol.ts'
import { until } from '../../support/wait.ts'

const ALLOWED = { allowed: true, remaining: 9, resetSeconds: 61 }

function permitsAt() {
  const now = { ms: 1000 }
  const posted: AskPermits[] = []
  const allowed: Buffer[] = []
  const counted = { answered: 0, unavailable: 0 }
  const permits = new Permits(
    (message) => posted.push(message),
    {
      take: (keyHash) => (allowed.includes(keyHash) ? ALLOWED : undefined),
      countPermits: (answered, unavailable) => {
        counted.answered += answered
        counted.unavailable += unavailable
      },
    },
    () => now.ms,
  )
  const answer = (batch: number, ...verdicts: number[]): void =>
    permits.receive({ kind: 'verdicts', batch, verdicts: Uint8Array.from(verdicts) })
  const posts = (count: number): Promise<AskPermits> =>
    until('nothing was posted', async () => (posted.length >= count ? posted[count - 1] : undefined))
  return { now, allowed, counted, posted, permits, answer, posts }
}

t.test('the permits of one turn are asked for together', async (t) => {
  const { permits, counted, answer, posts, posted } = permitsAt()
  const keys = Array.from({ length: 3 }, () => randomBytes(32))
  const verdicts: Verdict[] = []
  for (const key of keys)
    t.equal(
      permits.ask(key, (verdict) => verdicts.push(verdict)),
      undefined,
    )
  const { batch, hashes } = await posts(1)
  t.equal(posted.length, 1)
  t.same(Buffer.from(hashes), Buffer.concat(keys.map((key) => key.subarray(0, HASH_BYTES))))
  answer(batch, 59, 61, REFUSED, 7, UNAVAILABLE, 30)
  t.same(verdicts, [
    { allowed: true, remaining: 59, resetSeconds: 61 },
    { allowed: false, remaining: 0, resetSeconds: 7 },
    { retrySeconds: 30 },
  ])
  answer(batch, 59, 61)
  t.equal(verdicts.length, 3, 'each is answered once')
  t.same(counted, { answered: 2, unavailable: 1 })
})

t.test('a verdict that comes a second after its question does not count', async (t) => {
  for (const [elapsedMs, expected] of [
    [PERMIT_MS - 1, { allowed: true, remaining: 5, resetSeconds: 9 }],
    [PERMIT_MS, { retrySeconds: 1 }],
  ] as const) {
    const { permits, counted, answer, posts, now } = permitsAt()
    const verdicts: Verdict[] = []
    permits.ask(randomBytes(32), (verdict) => verdicts.push(verdict))
    const { batch } = await posts(1)
    now.ms += elapsedMs
    answer(batch, 5, 9)
    t.same(verdicts, [expected])
    const isLate = elapsedMs === PERMIT_MS
    t.same(counted, { answered: Number(!isLate), unavailable: Number(isLate) })
  }
})

t.test('without an answer, a request gets 503 after a second', async (t) => {
  const { permits, counted, answer, posts, now } = permitsAt()
  const verdicts: Verdict[] = []
  permits.ask(randomBytes(32), (verdict) => verdicts.push(verdict))
  const { batch } = await posts(1)
  now.ms += PERMIT_MS
  await until('no verdict', async () => verdicts.length === 1 || undefined)
  t.same(verdicts, [{ retrySeconds: 1 }])
  answer(batch, 5, 9)
  t.equal(verdicts.length, 1)
  t.same(counted, { answered: 0, unavailable: 1 })
})

t.test('few batches are in flight, and a bounded number of permits waits', async (t) => {
  const { permits, counted, answer, posts, posted } = permitsAt()
  let answered = 0
  for (let number = 0; number < PERMITS_WAITING_MAX; number++) permits.ask(randomBytes(32), () => answered++)
  t.same(
    permits.ask(randomBytes(32), () => t.fail('not asked')),
    { retrySeconds: 1 },
  )
  t.same(counted, { answered: 0, unavailable: 1 })
  await posts(4)
  permits.ask(randomBytes(32), () => answered++)
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(posted.length, 4)
  for (let count = 1; answered <= PERMITS_WAITING_MAX; count++) answer((await posts(count)).batch)
  t.equal(posted.length, 5)
})

t.test('a refused key is remembered until a second before its end, and costs no message', async (t) => {
  const { permits, answer, posts, posted, now } = permitsAt()
  const key = randomBytes(32)
  t.equal(permits.take(key), undefined)
  permits.ask(key, () => {})
  const { batch } = await posts(1)
  now.ms += 100
  answer(batch, REFUSED, 10)
  t.same(permits.take(key), { allowed: false, remaining: 0, resetSeconds: 10 })
  now.ms += 8899
  t.same(permits.take(key), { allowed: false, remaining: 0, resetSeconds: 2 })
  t.equal(posted.length, 1)
  now.ms += 1
  t.equal(permits.take(key), undefined, 'the home is asked again')
})

t.test('a request within the allowance needs no message', async (t) => {
  const { permits, allowed, posted } = permitsAt()
  const key = randomBytes(32)
  allowed.push(key)
  t.same(permits.take(key), ALLOWED)
  allowed.pop()
  t.equal(permits.take(key), undefined)
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(posted.length, 0)
})
