import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { OPERATOR } from '../../../engine/admin/administration.ts'
import { backUp } from '../../../engine/admin/backup.ts'
import { seal, unseal } from '../../../engine/admin/backup-file.ts'
import { type RestoreOptions, restore } from '../../../engine/admin/restore.ts'
import { Environment } from '../../../engine/lmdb/environment.ts'
import { tryHold } from '../../../engine/process/exclusive.ts'
import { SCANS } from '../../../engine/scan/scan-now.ts'
import { SCHEMA_VERSION } from '../../../engine/store/migrate.ts'
import { Store } from '../../../engine/store/store.ts'
import fc from '../../support/property.ts'
import { makeOrganization, NOON, openStore, testClock } from '../../support/store.ts'

const never = new AbortController().signal
const BACKUP = { force: false, onProgress: () => {}, signal: never }
const RESTORE: RestoreOptions = { ...BACKUP, actor: OPERATOR, clock: testClock(NOON) }

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
  t.equal(readFileSync(file, 'utf8'), 'mine', 'who gives up changes nothing')
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
  t.same(readdirSync(empty), [], 'nothing is left')

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
