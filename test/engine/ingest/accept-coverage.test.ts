import t from 'tap'
import { CoverageAcceptor } from '../../../engine/ingest/accept-coverage.ts'
import { OrganizationRate } from '../../../engine/ingest/organization-rate.ts'
import { COVERAGE_PER_SECOND_MAX } from '../../../engine/limits.ts'
import { report } from '../../support/coverage.ts'
import { makeOrganization, NOON, openStore, quietLog } from '../../support/store.ts'

const instance = (number: number): string => number.toString(16).padStart(16, '0')

t.test('what comes in a moment is one transaction, and each is answered', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const [acme, other] = [makeOrganization(opened, 'Acme'), makeOrganization(opened, 'Other')]
  const acceptor = new CoverageAcceptor(store, clock, quietLog)
  let writes = 0
  const { environment } = store
  const write = environment.write.bind(environment)
  environment.write = (work) => {
    writes++
    return write(work)
  }
  const some = [acme, other, acme].map(({ id }, index) =>
    acceptor.accept(id, report({ instance: instance(index), madeMs: NOON, counters: { packets: 1 + index } })),
  )
  // The same instance twice in one transaction: the second finds the first.
  some.push(acceptor.accept(acme.id, report({ instance: instance(0), madeMs: NOON + 1, counters: { packets: 9 } })))
  t.match(await Promise.all(some), [
    { kind: 'stored' },
    { kind: 'stored' },
    { kind: 'stored' },
    { kind: 'tooOften', afterSeconds: 10 },
  ])
  t.equal(writes, 1)
  t.match(store.coverage.sumSince(acme.id, 0), { sensors: 2, counters: { packets: 4 } })
  t.match(store.coverage.sumSince(other.id, 0), { sensors: 1, counters: { packets: 2 } })
})

t.test('who claims many instances is held to a rate, and others are not', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const [acme, other] = [makeOrganization(opened, 'Acme'), makeOrganization(opened, 'Other')]
  const acceptor = new CoverageAcceptor(store, clock, quietLog)
  const flood = (from: number) =>
    Promise.all(
      Array.from({ length: COVERAGE_PER_SECOND_MAX + 50 }, (_, index) =>
        acceptor.accept(acme.id, report({ instance: instance(from + index), madeMs: NOON })),
      ),
    )
  const first = await flood(0)
  t.equal(first.filter(({ kind }) => kind === 'stored').length, COVERAGE_PER_SECOND_MAX)
  t.match(first.at(-1), { kind: 'tooOften', afterSeconds: 1 })
  t.match(await acceptor.accept(other.id, report({ madeMs: NOON })), { kind: 'stored' })
  clock.add(1000)
  t.equal((await flood(10_000)).filter(({ kind }) => kind === 'stored').length, COVERAGE_PER_SECOND_MAX)
})

t.test('what waits is stored when the service ends', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const acme = makeOrganization(opened, 'Acme')
  const acceptor = new CoverageAcceptor(store, clock, quietLog)
  const answer = acceptor.accept(acme.id, report({ madeMs: NOON }))
  acceptor.flush()
  t.match(store.coverage.sumSince(acme.id, 0), { sensors: 1 })
  t.match(await answer, { kind: 'stored' })
})

t.test('a rate counts by organization and second, for so many organizations', async (t) => {
  const rate = new OrganizationRate(2, 2)
  t.same(
    ['a', 'a', 'a', 'b', 'c', 'b', 'b'].map((organization) => rate.take(organization, 1000)),
    [true, true, false, true, false, true, false],
  )
  t.equal(rate.take('a', 1999), false)
  t.equal(rate.take('c', 2000), true, 'another second')
  t.equal(rate.take('a', 500), true, 'a clock that was set back')
})
