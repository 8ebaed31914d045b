import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as othersTurn } from 'node:timers/promises'
import t from 'tap'
import { OPERATOR } from '../../../engine/admin/administration.ts'
import type { RestoreOptions } from '../../../engine/admin/restore.ts'
import { Store } from '../../../engine/store/store.ts'
import { backUpTo, restoreFrom } from '../../support/backups.ts'
import {
  findingsOf,
  makeOrganization,
  NOON,
  openStore,
  Sender,
  type TestStore,
  testClock,
} from '../../support/store.ts'

const GIVEN_UP = new AbortController().signal
const BACKUP = { force: false, onProgress: () => {}, signal: GIVEN_UP, actor: OPERATOR, clock: testClock(NOON) }
const RESTORE: RestoreOptions = BACKUP

/** Events of a transaction, and transactions whose events stay. */
const [BATCH, KEPT] = [200, 100]

/**
 * Two organizations get the same events in the same transaction, so in every snapshot their counts
 * are equal.
 */
function append({ store }: TestStore, ids: readonly string[], sender: Sender): void {
  const events = Array.from({ length: BATCH }, () => sender.event('claude.ai', NOON))
  store.environment.write(() => {
    for (const id of ids) store.buffer.append(id, events)
  })
}

t.test('a backup under full write load is one consistent snapshot and can be restored', async (t) => {
  const opened = openStore(t)
  const { store, directory } = opened
  const ids = ['A', 'B'].map((name) => makeOrganization(opened, name).id)
  const sender = new Sender()
  let done = false
  let written = 0
  const writing = (async () => {
    for (; !done; written++) {
      append(opened, ids, sender)
      // Frees pages, which a copy must not see half done, and keeps the store small: a backup on a slow
      // machine would otherwise have more to copy the longer it takes.
      if (written % 7 === 6)
        store.environment.write(() => ids.map((id) => store.buffer.removeThrough(id, (written - KEPT) * BATCH)))
      await othersTurn()
    }
  })()
  while (written < 50) await othersTurn()
  for (let round = 0; round < 5; round++) {
    const before = written
    const file = join(directory, `${round}.backup`)
    const made = await backUpTo(store, file, BACKUP)
    t.ok(written > before, 'the writers continued')
    t.equal(statSync(file).mode & 0o777, 0o600)
    t.equal(statSync(file).size, made?.bytes)
    const elsewhere = join(directory, `restored-${round}`)
    t.match(await restoreFrom(file, elsewhere, RESTORE), { organizations: 2, records: made?.records, kept: '' })
    const copy = new Store(elsewhere, { mustExist: true })
    const [a, b] = ids.map((id) => [copy.buffer.next(id), copy.buffer.count(id)])
    t.same(a, b, 'both organizations have the state of one instant')
    t.ok((a?.[0] ?? 0) > before * BATCH)
    t.same(findingsOf(copy), [])
    t.match(
      copy.auditLog
        .all()
        .map(({ action, subject }) => `${action} ${subject}`)
        .sort(),
      // The backups before it, and its restore, of two organizations each.
      [
        ...Array.from({ length: round * 2 }, (_, entry) => `store.backup ${entry >> 1}.backup`),
        ...[`store.restore ${round}.backup`, `store.restore ${round}.backup`],
      ],
    )
    await copy.close()
  }
  done = true
  await writing
  t.notOk(readdirSync(directory).some((name) => name.endsWith('.partial')))
})
