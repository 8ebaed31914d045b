import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { CLIENTS_EXPORT } from '../../../engine/export/client-rows.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { DAY_MS, isoSeconds } from '../../../engine/kernel/process/clock.ts'
import { CLIENTS_PER_DAY_MAX } from '../../../engine/limits.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { jsonLines, runAdmin } from '../../support/programs.ts'
import * as fc from '../../support/property.ts'
import { type openStore, quietLog, Sender } from '../../support/store.ts'

/** The command reads the real clock. */
const NOW = Math.floor(Date.now() / 1000) * 1000
/** Yesterday at noon: a scan takes events of whole days, and none of the future. */
const USED = Math.floor(NOW / DAY_MS) * DAY_MS - DAY_MS / 2

type Row = Record<string, unknown>

function site(test: Parameters<typeof openStore>[0]) {
  const opened = acmeSite(test, { startMs: NOW })
  const { directory, sender, buffer, scan } = opened
  return {
    ...opened,
    use(uses: readonly (readonly [name: string, timeMs: number, more?: Partial<Event>])[]): void {
      const events = uses.map(([name, timeMs, more]) => sender.event(name, timeMs, more))
      buffer(events)
      scan('administrator')
    },
    async exported(format: string, ...args: readonly string[]): Promise<string> {
      const out = join(directory, 'out')
      const ended = await runAdmin([
        'export',
        'clients',
        '--format',
        format,
        '--out',
        out,
        '--data-dir',
        directory,
        ...args,
      ])
      if (ended.status !== 0) throw new Error(ended.stderr)
      return readFileSync(out, 'utf8')
    },
  }
}

t.test('clients with their names, by platform and day, in each format', async (t) => {
  const { use, exported, administration, organization, store } = site(t)
  use([
    ['claude.ai', USED, { client: '10.2.0.7', user: '=cmd|jdoe', bytesSent: 7, count: 3 }],
    ['claude.ai', USED - DAY_MS, { client: '10.2.0.7' }],
    ['claude.ai', USED, { client: '::', user: 'ada' }],
  ])
  administration.clientNames.addNetwork(organization, '10.2.0.0/16', '<b>Berlin')
  administration.clientNames.importHosts(organization, readHostNames('10.2.0.7,laptop', 'names').names)
  const day = isoSeconds(USED).slice(0, 10)
  const rows = jsonLines(await exported('ndjson'))
  t.equal(rows.length, 3)
  t.match(
    rows.find(({ user }) => user === '=cmd|jdoe'),
    {
      ...{ day, platform_id: 'claude', platform_name: 'Claude', client: '10.2.0.7', client_name: 'laptop' },
      ...{ network: '<b>Berlin', methods: ['dns'], matches: 3, bytes_sent: 7, bytes_received: 0 },
      ...{ first_seen: isoSeconds(USED), last_seen: isoSeconds(USED) },
    },
  )
  t.match(
    rows.find(({ user }) => user === 'ada'),
    { client: null, client_name: null, network: null },
  )
  const csv = parse(await exported('csv'), { columns: true }) as Row[]
  t.same(
    Object.keys(csv[0] ?? {}),
    CLIENTS_EXPORT.columns.map(({ name }) => name),
  )
  t.same(new Set(csv.map(({ user }) => user)), new Set(["'=cmd|jdoe", '', 'ada']), 'no cell is a formula')
  const html = await exported('html')
  t.match(html, '<h1>clients of Acme</h1>')
  t.match(html, '<td>&lt;b&gt;Berlin</td>')
  t.equal(jsonLines(await exported('ndjson', '--since', isoSeconds(USED))).length, 2, 'used since then')
  const reads = store.auditLog.ofOrganization(organization.id).filter(({ action }) => action === 'client.read')
  t.match(reads, [{ subject: 'export of clients' }], 'one audit entry for each reader and hour')
})

t.test('what is exported follows the setting', async (t) => {
  const { use, exported, administration, organization, store, clock } = site(t)
  const uses = [['claude.ai', USED, { client: '10.2.0.7', user: 'jdoe' }]] as const
  use(uses)
  const pseudonymous = administration.organizations.set(organization, { clients: 'pseudonym' })
  t.same(jsonLines(await exported('ndjson')), [], 'what is left to erase is not exported')
  for (const _step of administration.organizations.eraseClients(pseudonymous));
  t.same(jsonLines(await exported('ndjson')), [])
  const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
  const accept = async (): Promise<void> => {
    await acceptor.accept(organization.id, [
      new Sender().event('claude.ai', USED, { client: '10.2.0.7', user: 'jdoe' }),
    ])
    use([])
  }
  await accept()
  t.match(jsonLines(await exported('ndjson')), [{ client: /^p-/, user: /^u-/, client_name: null }])
  const off = administration.organizations.set(organization, { clients: 'off' })
  for (const _step of administration.organizations.eraseClients(off));
  await accept()
  t.same(jsonLines(await exported('ndjson')), [], 'no client is kept')
})

t.test('the clients that are not kept are one row', async (t) => {
  const { use, exported } = site(t)
  use(
    Array.from({ length: CLIENTS_PER_DAY_MAX + 5 }, (_, at) => {
      return ['claude.ai', USED, { client: `10.2.${at >> 8}.${at & 255}`, count: at < 5 ? 1 : 2 }] as const
    }),
  )
  const rows = jsonLines(await exported('ndjson'))
  t.equal(rows.length, CLIENTS_PER_DAY_MAX + 1)
  t.match(
    rows.filter(({ client, user }) => client === null && user === null),
    [{ matches: 5, first_seen: null, platform_id: 'claude' }],
  )
})

interface Use {
  readonly name: string
  readonly client: string
  readonly user: string
  readonly daysAgo: number
}
const anyUse: fc.Arbitrary<Use> = fc.record({
  name: fc.constantFrom('claude.ai', 'chatgpt.com'),
  client: fc.constantFrom('10.2.0.1', '10.2.0.2', '2001:db8::1', '::'),
  user: fc.constantFrom('', '', 'ada', 'jdoe'),
  daysAgo: fc.nat(2),
})
type Step =
  | { readonly kind: 'scan'; readonly uses: readonly Use[] }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'export' | 'killed' | 'recent' }
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('scan' as const), uses: fc.array(anyUse, { maxLength: 6 }) }),
  fc.record({ kind: fc.constant('name' as const), name: fc.constantFrom('office', 'lab') }),
  fc.record({ kind: fc.constantFrom('export' as const, 'killed' as const, 'recent' as const) }),
)

t.test('with a cursor, any sequence of scans and exports misses and repeats nothing', async (t) => {
  const { use, exported, administration, organization, directory } = site(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 12 }), async (steps) => {
      const cursor = join(directory, `cursor-${++run}`)
      /** What a reader of all exports knows. */
      const known = new Map<string, string>()
      const take = async (...args: readonly string[]): Promise<void> => {
        for (const row of jsonLines(await exported('ndjson', '--cursor', cursor, ...args))) {
          const key = [row['day'], row['platform_id'], row['client'], row['user']].join(' ')
          const content = JSON.stringify(row)
          if (known.get(key) === content) throw new Error(`${key} is repeated`)
          known.set(key, content)
        }
      }
      for (const step of steps) {
        if (step.kind === 'scan') {
          use(
            step.uses.map(({ name, client, user, daysAgo }) => {
              return [name, USED - daysAgo * DAY_MS, { client, ...(user === '' ? {} : { user }) }] as const
            }),
          )
        } else if (step.kind === 'name') {
          administration.clientNames.addNetwork(organization, '10.2.0.0/31', step.name)
        } else if (step.kind === 'killed') {
          const before = existsSync(cursor) ? readFileSync(cursor, 'utf8') : ''
          const words = ['clients', '--format', 'csv', '--cursor', cursor, '--data-dir', directory]
          const ended = await runAdmin(['export', ...words, '--out', join(directory, 'no/such/file')])
          if (ended.status !== 4) throw new Error('the export was written')
          if (before !== (existsSync(cursor) ? readFileSync(cursor, 'utf8') : '')) throw new Error('the cursor changed')
        } else if (step.kind === 'recent') await take('--since', isoSeconds(USED))
        else await take()
      }
      await take()
      const all = jsonLines(await exported('ndjson')).map((row) => JSON.stringify(row))
      t.same([...known.values()].sort(), all.sort())
      return t.passing()
    }),
    { numRuns: 25 },
  )
})
