import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { confirmChanges } from '../../../engine/store/confirm-changes.ts'
import { makeOrganization, openStore } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

/** A primary with a change that the brokers do not have yet. */
function primary(t: Test, unchecked = false) {
  const opened = openStore(t, { unchecked })
  const { environment } = opened.store
  const { replication } = environment
  const state = { node: 'a', primary: 'a', generation: 1, change: 0, unpublishedBytes: 0, created: 'now', sequence: 1 }
  environment.writeUnrecorded(() => replication.putState({ ...state, mode: 'primary' }))
  makeOrganization(opened, 'Acme')
  return opened
}

t.test('returns when the brokers have the changes', async (t) => {
  const { store } = primary(t)
  const { environment } = store
  let isConfirmed = false
  const confirmed = confirmChanges(store).then(() => {
    isConfirmed = true
  })
  const { lastRecorded } = environment.replication
  t.ok(lastRecorded > 0)
  environment.writeUnrecorded(() => environment.replication.removeTo(lastRecorded - 1, environment.replication.state))
  await later(100)
  t.notOk(isConfirmed, 'one is left')
  environment.writeUnrecorded(() => environment.replication.removeTo(lastRecorded, environment.replication.state))
  await until('it does not return', () => isConfirmed)
  await confirmed
})

t.test('ends when the store is closed', async (t) => {
  const { store } = primary(t, true)
  const confirmed = confirmChanges(store)
  await store.close()
  await t.rejects(confirmed, { code: 'NOT_REPLICATED' })
})
