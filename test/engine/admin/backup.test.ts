import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration, OPERATOR } from '../../../engine/admin/administration.ts'
import { backUp } from '../../../engine/admin/backup.ts'
import { seal, unseal } from '../../../engine/admin/backup-file.ts'
import { type RestoreOptions, restore } from '../../../engine/admin/restore.ts'
import { Environment } from '../../../engine/lmdb/environment.ts'
import { tryHold } from '../../../engine/process/exclusive.ts'
import { SCANS } from '../../../engine/scan/scan-now.ts'
import { hashSecret } from '../../../engine/store/access-key.ts'
import { SCHEMA_VERSION } from '../../../engine/store/migrate.ts'
import { Store } from '../../../engine/store/store.ts'
import * as fc from '../../support/property.ts'
import { findingsOf, makeOrganization, NOON, openStore, testClock } from '../../support/store.ts'

const never = new AbortController().signal
const BACKUP = { force: false, onProgress: () => {}, signal: never, actor: OPERATOR, clock: testClock(NOON) }
const RESTORE: RestoreOptions = BACKUP

t.test('a failed backup is one error line and leaves no file', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  makeOrganization(opened, 'A')
  const file = join(directory, 'a.backup')
  writeFileSync(file, 'mine')
  await t.rejects(backUp(store, file, BACKUP), { code: 'CONFLICT', message: `${file} exists; --force replaces it` })
  t.equal(readFileSync(file, 'utf8'), 'mine')
  await t.rejects(backUp(store, directory, BACKUP), { code: 'BACKUP_FILE', message: /is a directory. Name a file/ })
  await t.rejects(backUp(store, join(directory, 'no/a'), BACKUP), {
    code: 'BACKUP_FILE',
    message: /no such directory/,
  })
  await t.rejects(backUp(store, '/proc/a', BACKUP), { code: 'BACKUP_FILE' })
  const signal = AbortSignal.abort()
  t.equal(await backUp(store, file, { ...BACKUP, force: true, signal }), undefined)
  t.equal(readFileSync(file, 'utf8'), 'mine', 'an interrupted backup changes nothing')
  const release = await tryHold(directory, 'backup a.backup')
  await t.rejects(backUp(store, file, { ...BACKUP, force: true }), { code: 'STORE_IN_USE' })
  await release?.()
  t.ok(await backUp(store, file, { ...BACKUP, force: true }))
  t.same(
    readdirSync(directory).filter((name) => name.includes('partial')),
    [],
  )
})

t.test('a damaged store cannot be backed up', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { store, directory } = opened
  const { id } = makeOrganization(opened, 'A')
  store.environment.write(() => store.environment.table('scans').putSync(Buffer.from(id), Buffer.of(1)))
  const file = join(directory, 'a.backup')
  await t.rejects(backUp(store, file, BACKUP), {
    code: 'STORE_UNSOUND',
    message: /the store is damaged: 1 findings, the first: scans of .*; run posture-admin doctor for details/,
  })
  t.notOk(existsSync(file))
})

t.test('a failed restore is one error line and changes nothing', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  makeOrganization(opened, 'A')
  const file = join(directory, 'a.backup')
  await backUp(store, file, BACKUP)
  const empty = join(directory, 'empty')
  await t.rejects(restore(join(directory, 'no'), empty, RESTORE), { code: 'BACKUP_FILE', message: /no such file/ })
  await t.rejects(restore(directory, empty, RESTORE), { code: 'BACKUP_FILE' })
  const foreign = join(directory, 'foreign')
  writeFileSync(foreign, 'a text')
  await t.rejects(restore(foreign, empty, RESTORE), {
    code: 'BACKUP_FILE',
    message: /not a complete backup of posture-admin/,
  })
  t.equal(await restore(file, empty, { ...RESTORE, signal: AbortSignal.abort() }), undefined)
  t.same(readdirSync(empty), [], 'no file remains')

  const newer = join(directory, 'newer')
  await new Environment(join(newer, 'store'), {
    setting: '',
    schemaVersion: SCHEMA_VERSION + 1,
    freeBytesMin: 0,
  }).close()
  const newerFile = join(newer, 'store/data.mdb')
  await seal(newerFile, () => {}, never)
  await t.rejects(restore(newerFile, empty, RESTORE), {
    code: 'STORE_VERSION',
    message: `${newerFile}: written by a newer release (schema ${SCHEMA_VERSION + 1}), this one reads up to ${SCHEMA_VERSION}; install the newer release`,
  })

  await t.rejects(restore(file, directory, RESTORE), { code: 'CONFLICT', message: /already contains a store. --force/ })
  for (const what of [SCANS, 'ingest file']) {
    const release = await tryHold(store.environment.path, what)
    await t.rejects(restore(file, directory, { ...RESTORE, force: true }), { code: 'STORE_IN_USE' })
    await release?.()
  }
  t.same(
    readdirSync(directory).filter((name) => name.startsWith('store')),
    ['store'],
  )
})

t.test('a forced restore keeps the previous store intact in another directory', async (t) => {
  const directory = t.testdir()
  const opened = { store: new Store(directory), directory, clock: testClock(NOON) }
  makeOrganization(opened, 'Old')
  const file = join(directory, 'a.backup')
  await backUp(opened.store, file, BACKUP)
  makeOrganization(opened, 'New')
  await opened.store.close()
  const restored = await restore(file, directory, { ...RESTORE, force: true })
  t.equal(restored?.kept, join(directory, 'store.before-restore-2026-11-20T12-00-00-000Z'))
  const store = new Store(directory, { mustExist: true })
  t.same(
    store.organizations.all().map(({ name }) => name),
    ['Old'],
  )
  await store.close()
  const kept = new Environment(restored?.kept ?? '', { setting: '', schemaVersion: SCHEMA_VERSION, freeBytesMin: 0 })
  t.equal(kept.tableRecords('organizations'), 2)
  await kept.close()
})

t.test('a backup is in the audit log of every organization, but not in its own copy', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  const organizations = ['A', 'B'].map((name) => makeOrganization(opened, name))
  const file = join(directory, 'monday.backup')
  t.equal(await backUp(store, file, { ...BACKUP, signal: AbortSignal.abort() }), undefined)
  await backUp(store, file, { ...BACKUP, actor: { kind: 'operator', name: 'root' } })
  for (const { id } of organizations) {
    const entries = store.auditLog.ofOrganization(id)
    t.match(entries, [{ actor: 'operator root', action: 'store.backup', subject: 'monday.backup', timeMs: NOON }])
    t.equal(entries.length, 1)
  }
})

t.test('what was revoked after the backup stays revoked', async (t) => {
  const directory = t.testdir()
  const clock = testClock(NOON)
  const opened = { store: new Store(directory), directory, clock }
  const organization = makeOrganization(opened, 'Acme')
  const administration = new Administration(opened.store, clock)
  const keys = ['stays', 'revoked before', 'revoked after'].map((label) =>
    administration.apiKeys.create(organization, label, ['scores:read']),
  )
  const tokens = ['stays', 'revoked after'].map((label) => administration.tokens.generate(organization, label))
  administration.apiKeys.revoke(organization, keys[1]?.record.id ?? '')
  const file = join(directory, 'a.backup')
  await backUp(opened.store, file, BACKUP)
  clock.add(5000)
  administration.apiKeys.revoke(organization, keys[2]?.record.id ?? '')
  administration.tokens.revoke(organization, tokens[1]?.record.id ?? '')
  const late = administration.apiKeys.create(organization, 'made and revoked after', ['scores:read'])
  administration.apiKeys.revoke(organization, late.record.id)
  await opened.store.close()

  const restored = await restore(file, directory, { ...RESTORE, force: true, clock: testClock(NOON + 9000) })
  t.match(restored, { revoked: 2, unreadable: '' })
  const store = new Store(directory, { mustExist: true })
  const active = [...keys, ...tokens].map(({ raw }) => {
    const hash = hashSecret(raw)
    return store.apiKeys.isActive(hash) || store.monitoringTokens.isActive(hash)
  })
  t.same(active, [true, false, false, true, false])
  t.equal(store.apiKeys.get(organization.id, keys[2]?.record.id ?? '')?.revokedAtMs, NOON + 5000)
  t.match(store.auditLog.ofOrganization(organization.id).slice(-3), [
    { action: 'store.restore', timeMs: NOON + 9000 },
    { action: 'api-key.revoke', subject: 'revoked after', details: { revoked_before_restore: '2026-11-20T12:00:05Z' } },
    { action: 'token.revoke', subject: 'revoked after' },
  ])
  t.same(findingsOf(store), [])
  await store.close()
})

for (const isFinished of [true, false]) {
  const records = isFinished ? 'without records' : 'with records left to delete'
  t.test(`a restored organization that was removed after the backup, ${records}, has no active key`, async (t) => {
    const directory = t.testdir()
    const clock = testClock(NOON)
    const store = new Store(directory)
    const opened = { store, directory, clock }
    const [acme, other] = [makeOrganization(opened, 'Acme'), makeOrganization(opened, 'Other')]
    const administration = new Administration(store, clock)
    const secrets = [
      administration.apiKeys.create(acme, 'key', ['scores:read']),
      administration.tokens.generate(acme, 'token'),
      administration.apiKeys.create(other, 'key', ['scores:read']),
    ]
    const file = join(directory, 'a.backup')
    await backUp(store, file, BACKUP)
    const removal = administration.organizations.remove(acme, () => {})
    if (isFinished) for (const _step of store.removals.finish(removal));
    t.same(findingsOf(store), [])
    await store.close()

    const restored = await restore(file, directory, { ...RESTORE, force: true, clock })
    t.match(restored, { organizations: 2, revoked: 2, removedOrganizations: 1, unreadable: '' })
    const after = new Store(directory, { mustExist: true })
    const active = secrets.map(({ raw }) => {
      return after.apiKeys.isActive(hashSecret(raw)) || after.monitoringTokens.isActive(hashSecret(raw))
    })
    t.same(active, [false, false, true])
    t.same(findingsOf(after), [])
    await after.close()
  })
}

t.test('a key that was rotated after the backup expires when it did, and none expires later', async (t) => {
  const directory = t.testdir()
  const clock = testClock(NOON)
  const opened = { store: new Store(directory), directory, clock }
  const organization = makeOrganization(opened, 'Acme')
  const { apiKeys } = new Administration(opened.store, clock)
  const [rotated, kept] = ['rotated', 'kept'].map(
    (label) => apiKeys.create(organization, label, ['scores:read']).record.id,
  )
  const early = apiKeys.create(organization, 'early', ['scores:read'], NOON + 60_000).record
  const file = join(directory, 'a.backup')
  await backUp(opened.store, file, BACKUP)
  apiKeys.rotate(organization, rotated ?? '', { graceMs: 5000 })
  opened.store.environment.write(() => opened.store.apiKeys.replace({ ...early, expiresAtMs: NOON + 90_000 }))
  await opened.store.close()

  t.match(await restore(file, directory, { ...RESTORE, force: true, clock }), { revoked: 0, unreadable: '' })
  const store = new Store(directory, { mustExist: true })
  const expiries = [rotated, kept, early.id].map((id) => store.apiKeys.get(organization.id, id ?? '')?.expiresAtMs)
  t.same(expiries, [NOON + 5000, undefined, NOON + 60_000])
  t.match(store.auditLog.ofOrganization(organization.id).slice(-2), [
    { action: 'store.restore', subject: 'a.backup' },
    { action: 'store.restore', subject: 'rotated', details: { expires: '2026-11-20T12:00:05Z' } },
  ])
  t.same(findingsOf(store), [])
  await store.close()
})

for (const [name, damage] of [
  ['of zeros behind its first page', (bytes: Buffer) => bytes.fill(0, 8192)],
  ['cut in its middle', (bytes: Buffer) => bytes.subarray(0, 12_288)],
  ['that is none', () => Buffer.from('a text')],
] as const) {
  t.test(`a store ${name} is replaced, too, and the output says what may be active again`, async (t) => {
    const directory = t.testdir()
    const opened = { store: new Store(directory), directory, clock: testClock(NOON) }
    const { apiKeys } = new Administration(opened.store, opened.clock)
    const organization = makeOrganization(opened, 'Acme')
    const { record } = apiKeys.create(organization, 'test', ['scores:read'])
    const file = join(directory, 'a.backup')
    await backUp(opened.store, file, BACKUP)
    apiKeys.revoke(organization, record.id)
    await opened.store.close()
    const data = join(directory, 'store/data.mdb')
    const bytes = readFileSync(data)
    writeFileSync(data, damage(bytes))
    const restored = await restore(file, directory, { ...RESTORE, force: true })
    t.match(restored, { revoked: 0, unreadable: /./ })
    const store = new Store(directory, { mustExist: true })
    t.equal(store.organizations.all().length, 1)
    await store.close()
  })
}

t.test('a seal detects every changed bit and every missing byte', async (t) => {
  const directory = t.testdir()
  const file = join(directory, 'file')
  const copy = (run: number): string => join(directory, `copy-${run}`)
  let run = 0
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 3000 }),
      fc.nat(),
      fc.nat(7),
      async (bytes, place, bit) => {
        writeFileSync(file, bytes)
        const size = await seal(file, () => {}, never)
        const sealed = readFileSync(file)
        if (size !== sealed.length) throw new Error(`${size} is not ${sealed.length}`)
        await unseal(file, copy(++run), () => {}, never)
        if (!readFileSync(copy(run)).equals(bytes)) throw new Error('other bytes')
        const at = place % sealed.length
        const other = openSync(file, 'r+')
        writeSync(other, Buffer.of((sealed[at] ?? 0) ^ (1 << bit)), 0, 1, at)
        closeSync(other)
        await t.rejects(
          unseal(file, copy(++run), () => {}, never),
          { code: 'BACKUP_FILE' },
        )
        writeFileSync(file, sealed.subarray(0, at))
        await t.rejects(
          unseal(file, copy(++run), () => {}, never),
          { code: 'BACKUP_FILE' },
        )
      },
    ),
    { numRuns: 60 },
  )
})
