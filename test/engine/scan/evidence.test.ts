import t from 'tap'
import { METHODS } from '../../../engine/kernel/event/event.ts'
import { DistinctClients } from '../../../engine/scan/distinct-clients.ts'
import { Evidence } from '../../../engine/scan/evidence.ts'
import { type DayEvidence, type EvidenceSum, packDay } from '../../../engine/store/evidence.ts'
import { EvidenceReader } from '../../../engine/store/packed-evidence.ts'
import { ACCESS_KINDS } from '../../../registry/contact.ts'
import { PURPOSES, ROLES } from '../../../registry/platform.ts'
import { acmeSite } from '../../support/acme-site.ts'
import * as fc from '../../support/property.ts'

const count = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 2 ** 53 - 1 }))
const counts = <K extends string>(keys: readonly K[]) => fc.dictionary(fc.constantFrom(...keys), count)
const hashes = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 32 - 1 }), { maxLength: 40 })
const host = fc.string({ unit: fc.constantFrom(...'abc.-'), minLength: 1, maxLength: 253 })

/** A sketch, and one of some of its clients. */
const sketches = fc.tuple(hashes, fc.nat(40), fc.nat(40), fc.boolean()).map(([all, web, api, isLarge]) => {
  const sketch = (some: readonly number[]): Uint8Array => {
    const clients = new DistinctClients()
    for (const hash of some) clients.add(hash)
    if (isLarge) for (let hash = 1; hash < 300; hash++) clients.add(hash * 7919)
    return clients.toBytes()
  }
  return { clients: sketch(all), interactiveClients: sketch(all.slice(0, web)), apiClients: sketch(all.slice(0, api)) }
})

const day = fc
  .record({
    firstSeenMs: fc.integer({ min: 0, max: 2e12 }),
    lastSeenMs: fc.integer({ min: 0, max: 2e12 }),
    matches: count,
    used: fc.nat(),
    blocked: fc.nat(),
    byMethod: counts(METHODS),
    bySource: fc.option(counts(['0a0b0c0d', '00000000000000aa']), { nil: undefined }),
    byRole: counts(ROLES),
    byPurpose: counts(PURPOSES),
    byAccess: counts(ACCESS_KINDS),
    byName: fc.dictionary(host, count, { maxKeys: 70 }),
    otherNames: fc.nat(),
    domainStrength: fc.constantFrom(0, 0.2, 0.855, 1),
    specificity: fc.constantFrom(0, 0.6, 0.95, 1),
    sketches,
    hasParts: fc.boolean(),
  })
  .map(({ sketches: { clients, ...parts }, hasParts, bySource, ...rest }): DayEvidence => {
    return { ...rest, ...(bySource && { bySource }), clients, ...(hasParts ? parts : {}) }
  })

const sumOf = (...days: readonly DayEvidence[]): Evidence => {
  const sum = new Evidence()
  for (const each of days) sum.addDay(each)
  return sum
}

t.test('evidence that is read and written in place is the same as unpacked evidence', async (t) => {
  const { store, id } = acmeSite(t, { unchecked: true })
  fc.assert(
    fc.property(day, day, (first, second) => {
      const unpacked = sumOf(first, second)
      const read = new Evidence()
      store.environment.write(() => {
        store.evidence.putDay(id, 1, 'claude', first)
        store.evidence.putDay(id, 2, 'claude', second)
        for (const each of [1, 2]) store.evidence.addDayTo(id, each, 'claude', read)
        store.evidence.putPackedDay(id, 3, 'claude', packDay(read, read.sketches()))
      })
      t.strictSame(read.toDay(), unpacked.toDay())
      t.equal(read.days, unpacked.days)
      const stored = store.evidence.day(id, 3, 'claude')
      t.same(stored && sumOf(stored).toDay(), sumOf(unpacked.toDay()).toDay())
    }),
    { numRuns: 200 },
  )
})

t.test('the sum of a day begins a window like its record', async (t) => {
  fc.assert(
    fc.property(day, day, (first, second) => {
      const window = new Evidence(512)
      for (const each of [first, second]) window.addDay(sumOf(each).toDay())
      const begun = sumOf(first)
      begun.beginWindow(512)
      begun.addSumOfDay(sumOf(second))
      t.strictSame(begun.toDay(), window.toDay())
      t.equal(begun.days, window.days)
    }),
    { numRuns: 200 },
  )
})

t.test('a record in another form is unpacked', async (t) => {
  const { store, id } = acmeSite(t, { unchecked: true })
  const [evidence] = fc.sample(day, 1) as [DayEvidence]
  const added: string[] = []
  const sum: EvidenceSum = { addDay: () => added.push('unpacked'), addReadDay: () => added.push('read') }
  for (const other of [{}, { later: 1 }, { byName: { x: -1.5 } }, { specificity: 'high' }]) {
    store.environment.write(() => store.evidence.putDay(id, 1, 'claude', { ...evidence, ...other } as DayEvidence))
    store.evidence.addDayTo(id, 1, 'claude', sum)
  }
  t.same(added, ['read', 'unpacked', 'unpacked', 'unpacked'])
  t.equal(store.evidence.addDayTo(id, 1, 'other', sum), false)
  const reader = new EvidenceReader()
  for (const bytes of ['', '80', '81a161', 'df00', 'ffffff']) t.equal(reader.read(Buffer.from(bytes, 'hex')), false)
})
