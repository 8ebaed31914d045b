import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import type { Caller } from '../../api/callers.ts'
import { KEY_USE_PRECISION_MS, KeyUseWriter, RecentKeyUses } from '../../api/key-uses.ts'
import { addKeyUses } from '../../engine/ingest/node-counters.ts'
import { Store } from '../../engine/store/store.ts'
import { skipNamespaces as skip } from '../support/namespace.ts'
import { SmallDisk } from '../support/small-disk.ts'
import { quietLog } from '../support/store.ts'

const NOON = Date.UTC(2026, 10, 20, 12)

function caller(keyId: string): Caller {
  const organization = { id: 'o', key: Buffer.alloc(16), version: 1, versionOfAll: 1, isEnterprise: true, lists: [] }
  const expiresAtMs = Number.POSITIVE_INFINITY
  return { keyId, visible: '', keyHash: Buffer.alloc(32), expiresAtMs, scopes: 0, organization, usedMs: 0 }
}

t.test("a key's use is recorded at first, and then once a minute", async (t) => {
  const uses = new RecentKeyUses()
  const asking = caller('a')
  const rows: readonly { atMs: number; noted: boolean; why: string }[] = [
    { atMs: NOON, noted: true, why: 'its first use' },
    { atMs: NOON + 1, noted: false, why: 'within the minute' },
    { atMs: NOON + KEY_USE_PRECISION_MS - 1, noted: false, why: 'within the minute' },
    { atMs: NOON + KEY_USE_PRECISION_MS, noted: true, why: 'a minute later' },
    { atMs: NOON - 3_600_000, noted: true, why: 'the clock was set back' },
  ]
  for (const { atMs, noted, why } of rows) {
    uses.note(asking, atMs)
    const use = { organizationId: 'o', keyId: 'a', timeMs: atMs }
    t.same(uses.take(), noted ? [use] : [], why)
  }
  t.same(uses.take(), [], 'each once')
})

t.test('a use that does not fit is recorded at the next use', async (t) => {
  const uses = new RecentKeyUses()
  for (let key = 0; key < 100_000; key++) uses.note(caller(String(key)), NOON)
  const late = caller('late')
  uses.note(late, NOON)
  t.equal(uses.take().length, 100_000)
  uses.note(late, NOON + 1)
  t.match(uses.take(), [{ keyId: 'late', timeMs: NOON + 1 }])
})

t.test('a use that a full disk rejected is written when there is space', { skip }, async (t) => {
  const disk = new SmallDisk(t, 100)
  const store = new Store(disk.directory)
  const writer = new KeyUseWriter((uses) => store.environment.write(() => addKeyUses(store, uses)), quietLog)
  const given = { name: 'Acme', domain: 'acme.example', plan: 'enterprise' } as const
  const { id } = store.environment.write(() => store.organizations.create(given, NOON))
  const use = { organizationId: id, keyId: '018f0000-0000-7000-8000-000000000002' }
  disk.fillUpTo(0)
  // The store checks the disk once a second.
  while (!store.environment.full) await later(50)
  await writer.write([{ ...use, timeMs: NOON }])
  t.equal(store.keyUses.lastUseMs(use.organizationId, use.keyId), 0)
  disk.free()
  while (store.environment.full) await later(50)
  await writer.write([])
  t.equal(store.keyUses.lastUseMs(use.organizationId, use.keyId), NOON)
  await store.close()
})
