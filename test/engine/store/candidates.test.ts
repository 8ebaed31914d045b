import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import {
  addToSketch,
  type CandidateDelta,
  Candidates,
  clientsOf,
  SKETCH_BYTES,
} from '../../../engine/store/candidates.ts'
import { acmeSite } from '../../support/acme-site.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, NOON, openStore } from '../../support/store.ts'

function delta(over: Partial<CandidateDelta> & Pick<CandidateDelta, 'organizationId'>): CandidateDelta {
  const clients = new Uint8Array(SKETCH_BYTES)
  addToSketch(clients, 0x12345678)
  return { name: 'acme.ai', requests: 1, withAi: 0, firstSeenMs: NOON, lastSeenMs: NOON, clients, ...over }
}

const keeps = (): boolean => true

t.test('counts of a name add up, by organization', async (t) => {
  const opened = openStore(t)
  const { store } = opened
  const acme = makeOrganization(opened, 'Acme').id
  const other = makeOrganization(opened, 'Other').id
  const otherClient = new Uint8Array(SKETCH_BYTES)
  addToSketch(otherClient, 0x7f000000)
  store.environment.write(() => {
    store.candidates.add([delta({ organizationId: acme, requests: 2 }), delta({ organizationId: other })], keeps)
    const later = { lastSeenMs: NOON + 5, firstSeenMs: NOON - 5, requests: 3, withAi: 1, clients: otherClient }
    store.candidates.add([delta({ organizationId: acme, ...later })], keeps)
  })
  const [candidate] = store.candidates.ofOrganization(acme)
  t.match(candidate, { requests: 5, withAi: 1, firstSeenMs: NOON - 5, lastSeenMs: NOON + 5, dismissedAtMs: 0 })
  t.equal(candidate && clientsOf(candidate), 2)
  t.match(store.candidates.ofOrganization(other), [{ requests: 1 }])
})

t.test('an organization that keeps no addresses has no sketch of them', async (t) => {
  const { store, id } = acmeSite(t)
  store.environment.write(() => store.candidates.add([delta({ organizationId: id })], () => false))
  const [candidate] = store.candidates.ofOrganization(id)
  t.ok(candidate?.clients.every((byte) => byte === 0))
  t.equal(candidate && clientsOf(candidate), undefined)
})

t.test('an organization that stops keeping addresses has no sketch of earlier ones', async (t) => {
  const { store, clock, organization } = acmeSite(t)
  store.environment.write(() => store.candidates.add([delta({ organizationId: organization.id })], keeps))
  new Administration(store, clock).organizations.set(organization, { clients: 'off' })
  t.match(store.candidates.ofOrganization(organization.id), [{ requests: 1 }])
  t.ok(store.candidates.ofOrganization(organization.id).every((candidate) => clientsOf(candidate) === undefined))
})

t.test('the table of an organization never exceeds its limit, and dismissed names stay', async (t) => {
  const opened = openStore(t)
  const { store } = opened
  const max = 20
  const candidates = new Candidates(store.environment, max)
  const { id } = makeOrganization(opened, 'Acme')
  const { id: other } = makeOrganization(opened, 'Other')
  store.environment.write(() => {
    candidates.add([delta({ organizationId: id, name: 'dismissed.ai' })], keeps)
    candidates.put(id, { ...delta({ organizationId: id, name: 'dismissed.ai' }), dismissedAtMs: NOON })
    candidates.add([delta({ organizationId: other })], keeps)
  })
  const step = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 50 })
  let nowMs = NOON
  fc.assert(
    fc.property(step, (numbers) => {
      const names = [...new Set(numbers)].map((number) => `n${number}.ai`)
      nowMs++
      store.environment.write(() =>
        candidates.add(
          names.map((name) => delta({ organizationId: id, name, firstSeenMs: nowMs, lastSeenMs: nowMs })),
          keeps,
        ),
      )
      const stored = candidates.ofOrganization(id)
      return stored.length <= max && stored.some(({ dismissedAtMs }) => dismissedAtMs > 0)
    }),
  )
  t.ok(candidates.removed > 0, `${candidates.removed} removed`)
  t.equal(candidates.ofOrganization(other).length, 1, 'another organization is not affected')
})
