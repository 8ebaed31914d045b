import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { open } from 'lmdb'
import t from 'tap'
import { Administration, OPERATOR } from '../../../engine/admin/administration.ts'
import { seal } from '../../../engine/admin/backup-file.ts'
import type { RestoreOptions } from '../../../engine/admin/restore.ts'
import { copyRecords } from '../../../engine/kernel/lmdb/copy-records.ts'
import { Environment } from '../../../engine/kernel/lmdb/environment.ts'
import { Fault } from '../../../engine/kernel/process/error-codes.ts'
import { tryHold } from '../../../engine/kernel/process/exclusive.ts'
import { SCANS } from '../../../engine/scan/scan-now.ts'
import { hashSecret } from '../../../engine/store/access-key.ts'
import { SCHEMA_VERSION } from '../../../engine/store/migrate.ts'
import { Store } from '../../../engine/store/store.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { backUpTo, restoreFrom, sealOf, unsealFile } from '../../support/backups.ts'
import * as fc from '../../support/property.ts'
import { findingsOf, makeOrganization, NOON, openStore, testClock } from '../../support/store.ts'

const PAGE_BYTES = 4096
const SEAL_BYTES = 48
const never = new AbortController().signal
const BACKUP = { force: false, onProgress: () => {}, signal: never, actor: OPERATOR, clock: testClock(NOON) }
const RESTORE: RestoreOptions = BACKUP

/** All files, except the directory of the store and its locks. */
function filesIn(dataDirectory: string): string[] {
  const names = readdirSync(dataDirectory, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => !/^store(\/in-use\.[^/]+)?$/.test(name))
}

t.test('a failed backup is one error line and leaves no file', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  makeOrganization(opened, 'A')
  const file = join(directory, 'a.backup')
  writeFileSync(file, 'mine')
  await t.rejects(backUpTo(store, file, BACKUP), { code: 'CONFLICT', message: `${file} exists; --force replaces it` })
  t.equal(readFileSync(file, 'utf8'), 'mine')
  await t.rejects(backUpTo(store, directory, BACKUP), { code: 'BACKUP_FILE', message: /is a directory. Name a file/ })
  await t.rejects(backUpTo(store, join(directory, 'no/a'), BACKUP), {
    code: 'BACKUP_FILE',
    message: /no such directory/,
  })
  await t.rejects(backUpTo(store, '/proc/a', BACKUP), { code: 'BACKUP_FILE' })
  const signal = AbortSignal.abort()
  t.equal(await backUpTo(store, file, { ...BACKUP, force: true, signal }), undefined)
  t.equal(readFileSync(file, 'utf8'), 'mine', 'an interrupted backup changes nothing')
  const release = await tryHold(store.environment.path, 'backup')
  await t.rejects(backUpTo(store, file, { ...BACKUP, force: true }), { code: 'STORE_IN_USE' })
  await release?.()
  t.ok(await backUpTo(store, file, { ...BACKUP, force: true }))
  t.same(
    readdirSync(directory).filter((name) => /part|backing/.test(name)),
    [],
  )
})

t.test('a damaged store cannot be backed up', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { store, directory } = opened
  const { id } = makeOrganization(opened, 'A')
  store.environment.write(() => store.environment.table('scans').putSync(Buffer.from(id), Buffer.of(1)))
  const file = join(directory, 'a.backup')
  await t.rejects(backUpTo(store, file, BACKUP), {
    code: 'STORE_CHECK_FAILED',
    message: /the store is damaged: 1 findings, the first: scans of .*; run posture-admin doctor for details/,
  })
  t.notOk(existsSync(file))
})

t.test('a failed restore is one error line and changes nothing', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  makeOrganization(opened, 'A')
  const file = join(directory, 'a.backup')
  await backUpTo(store, file, BACKUP)
  const empty = join(directory, 'empty')
  await t.rejects(restoreFrom(join(directory, 'no'), empty, RESTORE), { code: 'BACKUP_FILE', message: /no such file/ })
  await t.rejects(restoreFrom(directory, empty, RESTORE), { code: 'BACKUP_FILE' })
  const foreign = join(directory, 'foreign')
  writeFileSync(foreign, 'a text')
  await t.rejects(restoreFrom(foreign, empty, RESTORE), {
    code: 'BACKUP_FILE',
    message: /not a complete backup of posture-admin/,
  })
  t.equal(await restoreFrom(file, empty, { ...RESTORE, signal: AbortSignal.abort() }), undefined)
  t.same(filesIn(empty), [], 'no file remains')

  const newer = join(directory, 'newer')
  await new Environment(join(newer, 'store'), {
    setting: '',
    schemaVersion: SCHEMA_VERSION + 1,
    freeBytesMin: 0,
  }).close()
  const newerFile = join(newer, 'store/data.mdb')
  appendFileSync(newerFile, sealOf(readFileSync(newerFile)))
  await t.rejects(restoreFrom(newerFile, empty, RESTORE), {
    code: 'STORE_VERSION',
    message: `${newerFile}: written by a newer release (schema ${SCHEMA_VERSION + 1}), this one reads up to ${SCHEMA_VERSION}; install the newer release`,
  })

  await t.rejects(restoreFrom(file, directory, RESTORE), {
    code: 'CONFLICT',
    message: /already contains a store. --force/,
  })
  for (const what of [SCANS, 'ingest file']) {
    const release = await tryHold(store.environment.path, what)
    await t.rejects(restoreFrom(file, directory, { ...RESTORE, force: true }), { code: 'STORE_IN_USE' })
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
  await backUpTo(opened.store, file, BACKUP)
  makeOrganization(opened, 'New')
  await opened.store.close()
  const restored = await restoreFrom(file, directory, { ...RESTORE, force: true })
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
  t.equal(await backUpTo(store, file, { ...BACKUP, signal: AbortSignal.abort() }), undefined)
  await backUpTo(store, file, { ...BACKUP, actor: { kind: 'operator', name: 'root' } })
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
  await backUpTo(opened.store, file, BACKUP)
  clock.add(5000)
  administration.apiKeys.revoke(organization, keys[2]?.record.id ?? '')
  administration.tokens.revoke(organization, tokens[1]?.record.id ?? '')
  const late = administration.apiKeys.create(organization, 'made and revoked after', ['scores:read'])
  administration.apiKeys.revoke(organization, late.record.id)
  await opened.store.close()

  const restored = await restoreFrom(file, directory, { ...RESTORE, force: true, clock: testClock(NOON + 9000) })
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
    await backUpTo(store, file, BACKUP)
    const removal = administration.organizations.remove(acme, () => {})
    if (isFinished) for (const _step of store.removals.finish(removal));
    t.same(findingsOf(store), [])
    await store.close()

    const restored = await restoreFrom(file, directory, { ...RESTORE, force: true, clock })
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
  await backUpTo(opened.store, file, BACKUP)
  apiKeys.rotate(organization, rotated ?? '', { graceMs: 5000 })
  opened.store.environment.write(() => opened.store.apiKeys.replace({ ...early, expiresAtMs: NOON + 90_000 }))
  await opened.store.close()

  t.match(await restoreFrom(file, directory, { ...RESTORE, force: true, clock }), { revoked: 0, unreadable: '' })
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
    await backUpTo(opened.store, file, BACKUP)
    apiKeys.revoke(organization, record.id)
    await opened.store.close()
    const data = join(directory, 'store/data.mdb')
    const bytes = readFileSync(data)
    writeFileSync(data, damage(bytes))
    const restored = await restoreFrom(file, directory, { ...RESTORE, force: true })
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
        const parts: Uint8Array[] = []
        const size = await seal(file, { write: (part) => void parts.push(Buffer.from(part)) }, () => {}, never)
        const sealed = Buffer.concat(parts)
        writeFileSync(file, sealed)
        if (size !== sealed.length) throw new Error(`${size} is not ${sealed.length}`)
        await unsealFile(file, copy(++run), () => {}, never)
        if (!readFileSync(copy(run)).equals(bytes)) throw new Error('other bytes')
        const at = place % sealed.length
        const other = openSync(file, 'r+')
        writeSync(other, Buffer.of((sealed[at] ?? 0) ^ (1 << bit)), 0, 1, at)
        closeSync(other)
        await t.rejects(
          unsealFile(file, copy(++run), () => {}, never),
          { code: 'BACKUP_FILE' },
        )
        writeFileSync(file, sealed.subarray(0, at))
        await t.rejects(
          unsealFile(file, copy(++run), () => {}, never),
          { code: 'BACKUP_FILE' },
        )
      },
    ),
    { numRuns: 60 },
  )
})

t.test('a backup that somebody has altered and sealed again ends at most the process that reads it', async (t) => {
  const { store, directory, sender, buffer } = acmeSite(t)
  const events = Array.from({ length: 2000 }, () => sender.event('claude.ai', NOON))
  buffer(events)
  const file = join(directory, 'a.backup')
  await backUpTo(store, file, BACKUP)
  const data = readFileSync(file).subarray(0, -SEAL_BYTES)
  const pages = data.length / PAGE_BYTES
  // Numerical Recipes' generator, from 0 to below `end`.
  let state = 20_261_120
  const random = (end: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * end)
  }
  const alterations: readonly { name: string; alter: (bytes: Buffer) => void; outcome: RegExp }[] = [
    {
      // mdb.c: MDB_meta has the size of the map at 40, the root of the main table at 136, and the
      // number of the last page at 144. LMDB believes the newer one of two.
      name: 'a root after the end of the file',
      alter: (bytes) => {
        for (const meta of [0, PAGE_BYTES]) {
          bytes.writeBigUInt64LE(2n ** 34n, meta + 40)
          bytes.writeBigUInt64LE(2n ** 20n, meta + 136)
          bytes.writeBigUInt64LE(2n ** 21n, meta + 144)
        }
      },
      outcome: /^BACKUP_FILE \S+ damaged: its reader ended by SIG(BUS|SEGV|ABRT)\. Name another backup$/,
    },
    {
      // mdb.c: MDB_node has its flags (F_SUBDATA) at 4, the size of its key at 6, and the key at 8.
      name: 'a record with the name of a table',
      alter: (bytes) => {
        const name = Buffer.from('organizations\0')
        for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1)) {
          if (bytes.readUInt16LE(at - 4) === 2 && bytes.readUInt16LE(at - 2) === name.length)
            bytes.writeUInt16LE(0, at - 4)
        }
      },
      outcome: /^BACKUP_FILE \S+ damaged: .*INCOMPATIBLE.*\. Name another backup$/,
    },
    ...Array.from({ length: 12 }, (_, index) => ({
      name: `random words ${index}`,
      // The words after the flags of a page are its offsets and nodes.
      alter: (bytes: Buffer) => {
        const page = 2 + random(pages - 2)
        for (let words = 0; words < 6; words++) {
          bytes.writeUInt32LE(random(2 ** 32), page * PAGE_BYTES + 20 + 4 * random(1000))
        }
      },
      outcome: /^(restored|(BACKUP_FILE|STORE_CHECK_FAILED|STORE_DAMAGED|STORE_VERSION) )/,
    })),
  ]
  for (const [index, { name, alter, outcome }] of alterations.entries()) {
    const altered = Buffer.from(data)
    alter(altered)
    const hostile = join(directory, 'hostile.backup')
    writeFileSync(hostile, Buffer.concat([altered, sealOf(altered)]))
    const place = join(directory, `restored-${index}`)
    const found = await restoreFrom(hostile, place, RESTORE).then(
      () => 'restored',
      (error: Error) => (error instanceof Fault ? `${error.code} ${error.message}` : `${error.stack}`),
    )
    t.match(found, outcome, name)
    if (found !== 'restored') t.same(filesIn(place), [], 'nothing is left')
  }
})

t.test('a backup whose pages lead back to themselves, or whose records share pages, ends', async (t) => {
  const directory = t.testdir()
  const [from, to] = [join(directory, 'from'), join(directory, 'to')]
  const environment = new Environment(from, { setting: '', schemaVersion: 1, freeBytesMin: 0 })
  const table = environment.table('table')
  environment.write(() => {
    for (let index = 0; index < 1000; index++) table.putSync(Buffer.from(`key ${index}`), Buffer.alloc(100))
  })
  await environment.close()
  mkdirSync(to)
  await t.rejects(
    copyRecords({ from, to, bytesMax: 1000 }, () => {}),
    { message: 'its records are larger than the file' },
  )
  const withoutTables = join(directory, 'without-tables')
  const root = open<Buffer, Buffer>({ path: withoutTables, noSubdir: false, keyEncoding: 'binary', encoding: 'binary' })
  for (let index = 0; index < 1000; index++) root.putSync(Buffer.from(`key ${index}`), Buffer.alloc(100))
  await root.close()
  await t.rejects(
    copyRecords({ from: withoutTables, to: join(directory, 'records'), bytesMax: 1000 }, () => {}),
    { message: 'its records are larger than the file' },
  )
  const data = readFileSync(join(from, 'data.mdb'))
  let branches = 0
  for (let page = 2 * PAGE_BYTES; page < data.length; page += PAGE_BYTES) {
    // mdb.c: MDB_page has its flags (P_BRANCH) at 18, and from 24 on the places of its nodes after
    // the 24th byte. The first 6 bytes of a node are the number of a page.
    if (data.readUInt16LE(page + 18) !== 1) continue
    const node = (index: number): number => page + 24 + data.readUInt16LE(page + 24 + 2 * index)
    const [first, second] = [node(0), node(1)]
    data.copy(data, second, first, first + 6)
    branches++
  }
  t.ok(branches > 0)
  writeFileSync(join(from, 'data.mdb'), data)
  mkdirSync(join(directory, 'again'))
  await t.rejects(
    copyRecords({ from, to: join(directory, 'again'), bytesMax: data.length }, () => {}),
    { message: 'keys are not in order' },
  )
})

t.test('a backup is not read without a limit of memory', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  makeOrganization(opened, 'Acme')
  const file = join(directory, 'a.backup')
  await backUpTo(store, file, BACKUP)
  writeFileSync(join(directory, 'prlimit'), '#!/bin/sh\necho not permitted >&2\nexit 1\n', { mode: 0o755 })
  const { PATH } = process.env
  process.env['PATH'] = `${directory}:${PATH}`
  t.teardown(() => {
    process.env['PATH'] = PATH
  })
  await t.rejects(restoreFrom(file, join(directory, 'restored'), RESTORE), {
    code: 'BACKUP_FILE',
    message: /its reader has no memory limit: not permitted/,
  })
})
