import { randomBytes, randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { Allowance, makeAllowanceTable } from '../../../api/rate-limit/allowance.ts'
import { ClusterRate, type ClusterRateOptions } from '../../../api/rate-limit/cluster-rate.ts'
import type { ResumedRates } from '../../../api/rate-limit/kept-rates.ts'
import { monotonicMs } from '../../../api/rate-limit/key-table.ts'
import { type Answer, GRANT_MS, HASH_BYTES, packUses, UNAVAILABLE } from '../../../api/rate-limit/protocol.ts'
import { makeRateTable, RateLimit } from '../../../api/rate-limit/rate-limit.ts'
import { packAnswer, unpackQuestion } from '../../../api/rate-limit/wire.ts'
import { openStore, quietLog } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

const OWN = randomUUID()

/** A cluster of this node and others, each of which has made one use of each key. */
function nodesOf(t: Test, others: readonly string[]) {
  const { store } = openStore(t, { unchecked: true })
  const rows = [OWN, ...others].map((id) => ({
    ...{ id, name: id, isPrimary: id === OWN, version: '0.1.0', knowsAllowances: true },
    ...{ roles: ['api'] as const, sequence: 1, lastSequence: 1, reportedAtMs: Date.now() },
  }))
  const report = (): void =>
    store.environment.write(() => {
      for (const row of rows) store.nodes.put({ ...row, reportedAtMs: Date.now() })
    })
  const answerOf = (bytes: Uint8Array): Answer | undefined => {
    const question = unpackQuestion(bytes)
    if (question.kind === 'witness') return { kind: 'witness', isKept: true }
    if (question.kind === 'collect')
      return { kind: 'collect', isComplete: true, instance: '', grants: new Uint8Array(0), part: 0 }
    if (question.kind !== 'bind') return undefined
    const uses = Array.from({ length: question.hashes.length / HASH_BYTES }, () => [100])
    return { kind: 'bind', isComplete: true, uses: packUses(uses) }
  }
  const counts = new RateLimit(makeRateTable(), monotonicMs, GRANT_MS)
  /** The node takes over as soon as its process has started. */
  const start = (generation: number, resumed: ResumedRates): ClusterRate => {
    const rate = new ClusterRate({
      ...{ store, name: OWN, log: quietLog, counts, resumed },
      allowance: new Allowance(makeAllowanceTable()),
      member: {
        state: { node: OWN, generation },
        primary: { node: OWN, generation, sinceMs: performance.now() },
        isOnlyPrimary: true,
      } as ClusterRateOptions['member'],
      messages: {
        listen: () => {},
        stop: () => {},
        ask: async (_id: string, bytes: Uint8Array) => {
          const answer = answerOf(bytes)
          return answer && packAnswer(answer)
        },
      } as unknown as ClusterRateOptions['messages'],
    })
    report()
    rate.start()
    const previous = { node: OWN, generation: generation - 1, sinceMs: performance.now() }
    const isFirst = generation === 1
    rate.takeOver({ generation, previous: isFirst ? undefined : previous, isFirst } as never)
    return rate
  }
  const remaining = async (rate: ClusterRate, key: Buffer): Promise<number | undefined> => {
    const verdicts = await new Promise<Uint8Array>((resolve) => rate.permits(key, resolve))
    return verdicts[0]
  }
  /** The node stops in order, and the next process starts. */
  const restart = async (rate: ClusterRate, generation: number): Promise<ClusterRate> => {
    await rate.stop()
    const kept = rate.kept()
    if (kept === undefined) throw new Error('nothing is kept')
    return start(generation, { isFound: true, kept: { ...kept, elapsedMs: 5 } })
  }
  return { report, start, remaining, restart }
}

t.test('the only node answers at once after a restart, and knows what it has granted', async (t) => {
  const { start, remaining, restart } = nodesOf(t, [])
  const key = randomBytes(HASH_BYTES)
  const first = start(1, { isFound: false })
  t.equal(await remaining(first, key), 59)
  const second = await restart(first, 2)
  t.equal(await remaining(second, key), 58)
  const third = await restart(second, 3)
  t.equal(await remaining(third, key), 57)
  await third.stop()
})

t.test('uses that another node reports again after a restart of the primary count once', async (t) => {
  const { start, report, remaining, restart } = nodesOf(t, [randomUUID()])
  const key = randomBytes(HASH_BYTES)
  const first = start(1, { isFound: false })
  report()
  t.equal(await remaining(first, key), 58, 'a grant and a use')
  t.equal(await remaining(first, key), 57)
  const second = await restart(first, 2)
  const left = await until('it does not answer', async () => {
    const verdict = await remaining(second, key)
    return verdict === UNAVAILABLE ? undefined : verdict
  })
  t.equal(left, 56)
  await second.stop()
})

t.test('a node that was killed answers when all that it may have granted has ended', async (t) => {
  const { start, remaining } = nodesOf(t, [])
  const rate = start(2, { isFound: true })
  t.equal(await remaining(rate, randomBytes(HASH_BYTES)), UNAVAILABLE)
  await rate.stop()
})
