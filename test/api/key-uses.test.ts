import t from 'tap'
import type { Caller } from '../../api/callers.ts'
import { KEY_USE_PRECISION_MS, RecentKeyUses } from '../../api/key-uses.ts'

const NOON = Date.UTC(2026, 10, 20, 12)

function caller(keyId: string): Caller {
  const organization = { id: 'o', key: Buffer.alloc(16), version: 1, versionOfAll: 1, isEnterprise: true, lists: [] }
  return { keyId, visible: '', keyHash: Buffer.alloc(32), scopes: 0, organization, usedMs: 0 }
}

t.test('a key is noted at its first use, and once a minute while it asks on', async (t) => {
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

t.test('what finds no room is noted at its next use', async (t) => {
  const uses = new RecentKeyUses()
  for (let key = 0; key < 100_000; key++) uses.note(caller(String(key)), NOON)
  const late = caller('late')
  uses.note(late, NOON)
  t.equal(uses.take().length, 100_000)
  uses.note(late, NOON + 1)
  t.match(uses.take(), [{ keyId: 'late', timeMs: NOON + 1 }])
})
