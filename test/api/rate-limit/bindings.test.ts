import { randomBytes } from 'node:crypto'
import t from 'tap'
import { Allowance, makeAllowanceTable } from '../../../api/rate-limit/allowance.ts'
import { Bindings } from '../../../api/rate-limit/bindings.ts'
import { Lease } from '../../../api/rate-limit/lease.ts'
import { Lessees } from '../../../api/rate-limit/lessees.ts'
import {
  type Answer,
  BIND_WAIT_MS,
  BOUND_MS,
  FREE_AFTER_MS,
  GRANT_MS,
  HASH_BYTES,
  HOLD_MS,
  LEASE_MS,
  type LeaseQuestion,
  NO_HOLD_MS,
  packUses,
  type Question,
  REBIND_MS,
  shareOf,
} from '../../../api/rate-limit/protocol.ts'

const leaseOf = (from: string, allowance = 0, instance = 'first'): LeaseQuestion => ({
  kind: 'lease',
  ...{ from, instance, allowance, freeInMs: 0 },
})

function homeAt(inherited: readonly string[]) {
  const now = { ms: 1_000_000 }
  const nowMs = (): number => now.ms
  const lessees = new Lessees({ nowMs, shareOf, inherited })
  const asked: { node: string; hashes: Uint8Array; answer: (answer: Answer | undefined) => void }[] = []
  const added: number[] = []
  const counts = { isFull: false }
  const bindings = new Bindings({
    nowMs,
    lessees,
    ask: (node, question: Question, answer, timeoutMs) => {
      t.equal(timeoutMs, BIND_WAIT_MS)
      if (question.kind === 'bind') asked.push({ node, hashes: question.hashes, answer })
    },
    counts: {
      take: () => ({ allowed: true, remaining: 0, resetSeconds: 0 }),
      add: (_key, ageMs) => !counts.isFull && added.push(ageMs) > 0,
      clear: () => {},
    },
  })
  const bound = { count: 0 }
  const bind = (...keys: Buffer[]): void => bindings.bind(Buffer.concat(keys), () => bound.count++)
  /** Answers the oldest open question. */
  const answer = (...uses: (number[] | undefined)[]): string | undefined => {
    const open = asked.shift()
    open?.answer({ kind: 'bind', isComplete: true, uses: packUses(uses) })
    return open?.node
  }
  return { now, lessees, bindings, asked, added, counts, bound, bind, answer }
}

t.test('a key is bound when every node has answered, once for all that ask for it', async (t) => {
  const { bindings, asked, added, bound, bind, answer, now } = homeAt(['a', 'b'])
  const [key, other] = [randomBytes(HASH_BYTES), randomBytes(HASH_BYTES)]
  bind(key, other, key)
  bind(other)
  t.same(
    asked.map(({ node, hashes }) => [node, hashes]),
    ['a', 'b'].map((node) => [node, Buffer.concat([key, other])]),
  )
  answer([100, 50], [])
  t.equal(bindings.reserved(key), undefined)
  now.ms += 10
  answer([], [7])
  t.equal(bound.count, 2)
  t.same(added, [110, 60, 7], 'the age of a use includes the wait for other nodes')
  t.equal(bindings.reserved(key), 0)
  bind(key)
  t.equal(bound.count, 3)
  t.equal(asked.length, 0)
})

t.test('a key is bound again before its end, and uses are counted once', async (t) => {
  const { now, asked, added, bound, bind, answer, bindings, lessees } = homeAt(['a'])
  const key = randomBytes(HASH_BYTES)
  bind(key)
  answer([10])
  now.ms += REBIND_MS - 1
  bind(key)
  t.equal(asked.length, 0)
  now.ms += 1
  bind(key)
  t.equal(bound.count, 3, 'the request does not wait')
  bind(key)
  t.equal(asked.length, 1)
  answer([50_010])
  t.same(added, [10])
  lessees.lease(leaseOf('a', 14))
  now.ms += BOUND_MS - 1
  t.equal(bindings.reserved(key), 0)
  now.ms += 1
  t.equal(bindings.reserved(key), undefined)
  bind(key)
  t.equal(bound.count, 4, 'it waits')
  answer([])
  t.equal(bound.count, 5)
})

t.test('a node that does not answer counts as one that has used all, until it answers or its uses end', async (t) => {
  const { now, asked, added, bound, bind, answer, bindings, lessees } = homeAt(['a', 'b'])
  const [key, other] = [randomBytes(HASH_BYTES), randomBytes(HASH_BYTES)]
  bind(key)
  answer([])
  asked.shift()?.answer(undefined)
  t.equal(bound.count, 1)
  t.equal(bindings.reserved(key), 14)
  bind(other)
  t.equal(asked.length, 1, 'the node is not asked again at once')
  answer([])
  t.equal(bindings.reserved(other), 14)
  now.ms += NO_HOLD_MS
  bind(key)
  bind(other)
  t.equal(bound.count, 4, 'requests do not wait for it')
  t.same(
    asked.map(({ node }) => node),
    ['a', 'b'],
    'one question is enough to try',
  )
  answer([9])
  asked.shift()?.answer({ kind: 'bind', isComplete: false, uses: packUses([[]]) })
  t.equal(bindings.reserved(key), 14, 'a node that may have lost uses counts the same')
  now.ms += NO_HOLD_MS
  bind(key)
  answer([9])
  answer([3, 2])
  t.same(added, [3, 2])
  t.equal(bindings.reserved(key), 0)
  now.ms += LEASE_MS + GRANT_MS - 2 * NO_HOLD_MS - 1
  lessees.lease(leaseOf('b', 14))
  now.ms += 1
  t.same(
    lessees.all().map(({ node }) => node),
    ['b'],
  )
})

t.test('a node that is lost after it held a key has used nothing of it since', async (t) => {
  const { now, asked, added, bind, answer, bindings } = homeAt(['a', 'b'])
  const key = randomBytes(HASH_BYTES)
  bind(key)
  answer([10])
  answer([20])
  now.ms += REBIND_MS
  bind(key)
  answer([50_010])
  asked.shift()?.answer(undefined)
  t.equal(bindings.reserved(key), 0)
  now.ms += BOUND_MS - REBIND_MS - 1
  t.equal(bindings.reserved(key), 0)
  now.ms += 1
  t.equal(bindings.reserved(key), 14, 'it may use its allowance again while grants of now count')
  bind(key)
  answer([])
  answer([50_020])
  t.equal(bindings.reserved(key), 0)
  t.same(added, [10, 20], 'uses are counted once')
})

t.test('a key whose uses find no place in the counts is not bound until they do', async (t) => {
  const { asked, added, counts, bound, bind, answer, bindings } = homeAt(['a', 'b'])
  const [key, unused] = [randomBytes(HASH_BYTES), randomBytes(HASH_BYTES)]
  counts.isFull = true
  bind(key, unused)
  answer([30, 20], [])
  answer([10], [])
  t.equal(bound.count, 1)
  t.equal(bindings.reserved(key), undefined)
  t.equal(bindings.reserved(unused), 0)
  t.equal(bindings.full, 1)
  counts.isFull = false
  bind(key)
  t.same(
    asked.map(({ node }) => node),
    ['a', 'b'],
  )
  answer([31, 21])
  answer([11])
  t.equal(bindings.reserved(key), 0)
  t.same(added, [31, 21, 11])
})

t.test('a bound key whose later uses find no place stays bound as before', async (t) => {
  const { now, added, counts, asked, bind, answer, bindings } = homeAt(['a', 'b'])
  const key = randomBytes(HASH_BYTES)
  bind(key)
  answer([5])
  asked.shift()?.answer(undefined)
  now.ms += NO_HOLD_MS
  counts.isFull = true
  bind(key)
  answer([NO_HOLD_MS + 5])
  answer([3])
  t.equal(bindings.reserved(key), 14, 'the uses of one node are still reserved')
  counts.isFull = false
  bind(key)
  answer([NO_HOLD_MS + 5])
  answer([3])
  t.equal(bindings.reserved(key), 0)
  t.same(added, [5, 3], 'uses are counted once')
})

t.test('a new node has used nothing before it is nearly free', async (t) => {
  const { now, lessees } = homeAt([])
  const passAfterLease = (periodMs: number, allowance: number, instance = 'first'): boolean => {
    lessees.lease(leaseOf('a', allowance, instance))
    now.ms += periodMs
    return lessees.all().some((lessee) => lessees.mayUse(lessee))
  }
  t.notOk(passAfterLease(FREE_AFTER_MS - (HOLD_MS - BOUND_MS) - 1, 0))
  t.ok(passAfterLease(1, 14), 'it becomes free while grants of now count')
  t.ok(passAfterLease(1, 0, 'second'), 'uses of its former process count')
})

t.test('a node that was replaced never counts as one that has used all', async (t) => {
  const { now, lessees, asked, bind, bindings } = homeAt([])
  const nowMs = (): number => now.ms
  const key = randomBytes(HASH_BYTES)
  const lease = new Lease({
    ...{ id: 'a', instance: 'first', nowMs, allowance: new Allowance(makeAllowanceTable(), nowMs) },
    completeFromMs: now.ms + GRANT_MS,
    ask: (_node, question, done) => question.kind === 'lease' && done(lessees.lease(question)),
  })
  const reserved = new Set<number | undefined>()
  for (const endMs = now.ms + 2 * FREE_AFTER_MS; now.ms < endMs; now.ms += 500) {
    lease.tick('home', undefined)
    bind(key)
    for (const { hashes, answer } of asked.splice(0)) answer(lease.hold(hashes))
    reserved.add(bindings.reserved(key))
  }
  t.same([...reserved], [0])
  t.equal(lessees.all().length, 1, 'it has a lease')
})

t.test('a key without a row on a node counts all of its allowance, and a malformed answer is none', async (t) => {
  const { asked, bind, answer, bindings } = homeAt(['a', 'b'])
  const [key, other] = [randomBytes(HASH_BYTES), randomBytes(HASH_BYTES)]
  bind(key, other)
  answer(undefined, [])
  answer([], [])
  t.equal(bindings.reserved(key), 14)
  t.equal(bindings.reserved(other), 0)
  const third = randomBytes(HASH_BYTES)
  bind(third)
  asked.shift()?.answer({ kind: 'bind', isComplete: true, uses: Buffer.from([9, 1]) })
  answer([])
  t.equal(bindings.reserved(third), 14)
})

t.test('a new node waits, and one with a lease of an earlier home goes on', async (t) => {
  const { now, lessees } = homeAt(['a'])
  t.match(lessees.lease(leaseOf('new')), { allowance: 14, others: 42, freeInMs: FREE_AFTER_MS })
  t.match(lessees.lease({ ...leaseOf('a', 14), freeInMs: 500 }), { allowance: 14, freeInMs: 500 })
  now.ms += 1000
  t.match(lessees.lease(leaseOf('a', 14)), { freeInMs: 0 })
  t.match(lessees.lease(leaseOf('new', 14)), { freeInMs: FREE_AFTER_MS - 1000 })
  t.match(lessees.lease(leaseOf('a', 0, 'second')), { freeInMs: FREE_AFTER_MS }, 'after a restart')
})

t.test('allowances become smaller with more nodes, and larger when they have gone', async (t) => {
  const { now, lessees } = homeAt(['a', 'b', 'c', 'd'])
  const names = ['a', 'b', 'c', 'd', 'e']
  const renew = (nodes: readonly string[], had: number): number[] =>
    nodes.map((node) => lessees.lease(leaseOf(node, had)).allowance)
  const pass = (periodMs: number, nodes: readonly string[], had: number): void => {
    for (let passedMs = 0; passedMs < periodMs; passedMs += 1000) {
      now.ms += 1000
      renew(nodes, had)
    }
  }
  t.same(renew(names, 14), [14, 14, 14, 14, 0], 'the shares of the last home may still be in use')
  pass(LEASE_MS + GRANT_MS, names.slice(0, 4), 14)
  t.same(renew(['e'], 0), [6])
  t.same(renew(['a'], 14), [6])
  t.equal(lessees.usesMax, 14, 'a node that does not answer may have the former allowance')
  pass(LEASE_MS + GRANT_MS, names, 6)
  t.equal(lessees.usesMax, 6)
  pass(LEASE_MS + GRANT_MS, names.slice(0, 4), 6)
  t.same(renew(['a'], 6), [6], 'not yet')
  t.equal(lessees.usesMax, 14)
  pass(GRANT_MS, names.slice(0, 4), 6)
  t.same(renew(['a'], 6), [14])
})

t.test('at most 16 nodes have an allowance', async (t) => {
  const { lessees } = homeAt(Array.from({ length: 20 }, (_, number) => `node ${number}`))
  t.match(lessees.lease(leaseOf('node 1', 2)), { allowance: 2, freeInMs: 0 }, 'it has one')
  t.match(lessees.lease(leaseOf('node 2')), { allowance: 0 })
  t.match(lessees.lease(leaseOf('another')), { allowance: 0 })
})
