import t from 'tap'
import { statusRows } from '../../../engine/admin/cluster.ts'
import { REPORT_EVERY_MS } from '../../../engine/replication/limits.ts'
import type { ClusterNode } from '../../../engine/store/nodes.ts'
import { NOON } from '../../support/store.ts'

const node = (name: string, row: Partial<ClusterNode>): ClusterNode => ({
  ...{ id: name, name, isPrimary: false, roles: ['ingest', 'api'], version: '0.1.0' },
  ...{ sequence: 10, lastSequence: 10, reportedAtMs: NOON },
  ...row,
})

t.test('a node that reports shows what it had not read then, a silent one what it lacks now', async (t) => {
  const rows = statusRows(
    [
      node('one', { isPrimary: true, sequence: 90, lastSequence: 90, reportedAtMs: NOON - 1000 }),
      node('two', { sequence: 85, lastSequence: 88, reportedAtMs: NOON - 6 * REPORT_EVERY_MS }),
      node('three', { isPrimary: true, sequence: 40, lastSequence: 40, reportedAtMs: NOON - 6 * REPORT_EVERY_MS - 1 }),
      node('four', { sequence: 93, lastSequence: 93 }),
    ],
    'one',
  )
  t.same(
    rows.map(({ name, role, state, unread }) => [name, role, state, unread]),
    [
      ['one', 'primary', 'reporting', 0],
      ['two', 'replica', 'reporting', 3],
      ['three', 'replica', 'silent', 53],
      ['four', 'replica', 'reporting', 0],
    ],
  )
  t.match(rows[0], { roles: 'ingest, api', version: '0.1.0', sequence: 90, reported_at: '2026-11-20T11:59:59Z' })
})

t.test('without a report there are no rows', async (t) => {
  t.same(statusRows([], 'one'), [])
})
