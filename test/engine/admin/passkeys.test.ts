import { join } from 'node:path'
import t from 'tap'
import { OwnPasskeys } from '../../../engine/admin/passkeys.ts'
import { Store } from '../../../engine/store/store.ts'
import { admin } from '../../support/programs.ts'
import { makeOrganization, openStore } from '../../support/store.ts'

/** A user with passkeys of these names. */
function userWith(store: Store, names: readonly string[]): string {
  const id = 'c56a4180-65aa-42ec-a945-5fd21dec0538'
  const [organization] = store.organizations.all()
  store.environment.write(() => {
    store.users.put({ id, name: 'ada@acme.example', passwordHash: 'x', createdAtMs: 1, browsers: [] })
    store.members.put({
      ...{ organizationId: String(organization?.id), name: 'ada', role: 'owner', createdAtMs: 1, userId: id },
    })
  })
  // One second apart, because the list begins with the oldest.
  let nowMs = 1_780_000_000_000
  const own = new OwnPasskeys(store, {
    nowMs: () => {
      nowMs += 1000
      return nowMs
    },
  })
  for (const name of names) {
    const credentialId = Buffer.from(name).toString('base64url')
    const rest = {
      publicKey: 'AQ',
      rpId: 'posture.example',
      counter: 0,
      transports: [],
      isSyncable: true,
      isSynced: true,
    }
    own.add({ userId: id, credentialId, name, ...rest })
  }
  return id
}

t.test('posture-admin lists the passkeys of a user and removes one', async (t) => {
  const directory = join(t.testdir(), 'service')
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const store = new Store(directory)
  userWith(store, ['laptop', 'phone'])
  await store.close()
  const listed = await admin('passkey', 'list', 'ADA@acme.example', ...data)
  t.match(listed, [
    { name: 'laptop', host: 'posture.example', synced: true, last_used_at: null, blocked_at: null },
    { name: 'phone' },
  ])
  const id = String(listed[1]?.['id'])
  t.match(await admin('passkey', 'remove', 'ada@acme.example', id.slice(0, 8), ...data), [{ name: 'phone', id }])
  t.match(await admin('passkey', 'list', 'ada@acme.example', ...data), [{ name: 'laptop' }])
  await t.rejects(admin('passkey', 'remove', 'ada@acme.example', id, ...data), /no passkey/)
  await t.rejects(admin('passkey', 'list', 'nobody', ...data), /no user "nobody"/)
})

t.test('a passkey is not used before its counter is stored, nor after it was removed', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  makeOrganization(opened, 'Acme')
  const userId = userWith(store, ['laptop'])
  const own = new OwnPasskeys(store, clock)
  const [passkey] = store.passkeys.ofUser(userId)
  const id = String(passkey?.id)
  const uses = [0, 0, 5, 6].map((counter) => own.use({ userId, id, counter, isSynced: true }))
  t.same(uses, [true, true, true, true])
  t.notOk(own.use({ userId, id, counter: 0, isSynced: true }), 'a counter that returns to 0')
  t.match(store.passkeys.get({ userId, id }), { counter: 6, blockedAtMs: clock.nowMs() })
  t.notOk(own.use({ userId, id, counter: 7, isSynced: true }))
  own.remove({ userId, id })
  t.throws(() => own.use({ userId, id, counter: 8, isSynced: true }), { code: 'NOT_FOUND' })
  t.throws(() => own.remove({ userId, id: '../../users' }), { code: 'NOT_FOUND' })
})
