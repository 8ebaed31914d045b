import t from 'tap'
import { statusRows, streamRows } from '../../../engine/admin/cluster.ts'
import { REPORT_EVERY_MS } from '../../../engine/cluster/replication/limits.ts'
import type { ClusterNode } from '../../../engine/store/nodes.ts'
import { NOON } from '../../support/store.ts'

const node = (name: string, row: Partial<ClusterNode>): ClusterNode => ({
  ...{ id: name, name, isPrimary: false, roles: ['ingest', 'api'], version: '0.1.0' },
  ...{ sequence: 10, lastSequence: 10, reportedAtMs: NOON },
  ...row,
})

const SILENT_MS = 6 * REPORT_EVERY_MS
const NODES = [
  node('one', { isPrimary: true, sequence: 90, lastSequence: 90, reportedAtMs: NOON - 1000 }),
  node('two', { sequence: 85, lastSequence: 88, reportedAtMs: NOON - SILENT_MS }),
  node('three', { isPrimary: true, sequence: 40, lastSequence: 40, reportedAtMs: NOON - SILENT_MS - 1 }),
  node('four', { sequence: 93, lastSequence: 93, reportedAtMs: NOON + SILENT_MS + 1 }),
]

t.test('the state of a node at a time', async (t) => {
  const cases = [
    {
      title: 'a reporting node shows what it had not read then, a silent one what it lacks now',
      nowMs: NOON,
      rows: [
        ['one', 'primary', 'reporting', 0],
        ['two', 'replica', 'reporting', 3],
        ['three', 'replica', 'silent', 53],
        ['four', 'replica', 'unknown', null],
      ],
    },
    {
      title: 'during an outage of the brokers, no node reports, and nothing is known',
      nowMs: NOON + 75_000,
      rows: [
        ['one', 'primary', 'unknown', null],
        ['two', 'replica', 'unknown', null],
        ['three', 'replica', 'unknown', null],
        ['four', 'replica', 'unknown', null],
      ],
    },
  ]
  for (const { title, nowMs, rows } of cases) {
    t.same(
      statusRows(NODES, 'one', nowMs).map(({ name, role, state, unread }) => [name, role, state, unread]),
      rows,
      title,
    )
  }
  t.match(statusRows(NODES, 'one', NOON)[0], {
    roles: 'ingest, api',
    version: '0.1.0',
    sequence: 90,
    reported_at: '2026-11-20T11:59:59Z',
  })
})

t.test('which brokers have a stream is unknown without a current report', async (t) => {
  const streams = [
    { name: 'POSTURE', leader: 'broker-1', current: 3, replicas: 3, messages: 7, bytes: 700, bytesMax: -1 },
  ]
  const primary = node('one', { isPrimary: true, streams })
  t.match(streamRows(primary, NOON + SILENT_MS), [{ leader: 'broker-1', current: 3, messages: 7, bytes_max: null }])
  t.match(streamRows(primary, NOON + SILENT_MS + 1), [{ leader: null, current: null, messages: 7 }])
})

t.test('without a report there are no rows', async (t) => {
  t.same(statusRows([], 'one', NOON), [])
})
