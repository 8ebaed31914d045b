import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import t, { type Test } from 'tap'
import { EXPORT_OF, EXPORTS, type ExportKind } from '../../../engine/export/rows.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import type { Scan } from '../../../engine/store/scans.ts'
import { Store } from '../../../engine/store/store.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { admin, runAdmin } from '../../support/programs.ts'
import * as fc from '../../support/property.ts'

const TIME_MS = Date.UTC(2026, 10, 20, 9, 15, 2)

/** An organization whose last scan found these platforms. */
async function site(t: Test, name = 'Acme') {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'data')]
  const [organization] = await admin('organization', 'create', name, '--domain', 'acme.example', ...data)
  const organizationId = String(organization?.['id'])
  const out = join(directory, 'out')
  const withStore = async <T>(work: (store: Store) => T): Promise<T> => {
    const store = new Store(join(directory, 'data'))
    try {
      return store.environment.write(() => work(store))
    } finally {
      await store.close()
    }
  }
  const exported = async (...args: readonly string[]): Promise<string> => {
    const ended = await runAdmin(['export', ...args, '--out', out, ...data])
    if (ended.status !== 0) throw new Error(ended.stderr)
    return readFileSync(out, 'utf8')
  }
  return { directory, data, organizationId, withStore, exported }
}

const PLATFORMS = loadCatalog().platforms.slice(0, 300)

/** A platform as a scan publishes it. */
function published(at: number, over: Readonly<Record<string, unknown>> = {}): string {
  const platform = PLATFORMS[at]
  return JSON.stringify({
    id: `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`,
    platform_name: platform?.name,
    platform_type: platform?.platformType,
    url: platform?.url,
    confidence: 0.7,
    metadata: {
      vendor: platform?.vendor,
      category: platform?.category,
      approved: false,
      decision: 'waiting',
      risk: platform?.risk,
      use: 'ai',
      access: [
        { kind: 'web', matches: 30, domains: ['one.test'] },
        { kind: 'api', matches: 11, domains: ['two.test'] },
      ],
      programmatic_clients: 1,
      matches: 41,
      clients: 3,
      clients_error: 0,
      days: 2,
      first_seen: '2026-11-19T09:15:02Z',
      last_seen: '2026-11-20T09:15:02Z',
      domains: ['one.test', 'two.test'],
      domains_total: 2,
      ...over,
    },
    created_at: '2026-11-19T10:00:00Z',
  })
}

function publish(store: Store, organizationId: string, elements: readonly string[], scan = 'scan-1'): void {
  const head = JSON.stringify({ id: scan, completed_at: '2026-11-20T10:00:00Z' })
  store.published.replace(organizationId, PublishedList.discovery, head, elements)
}

function scanOf(organizationId: string, over: Partial<Scan>): Scan {
  return {
    ...{ id: '', organizationId, status: 'completed', trigger: 'schedule', domain: 'acme.example' },
    ...{ requestedAtMs: TIME_MS, startedAtMs: TIME_MS, completedAtMs: TIME_MS + 1000, failure: '' },
    ...{ eventsAdded: 7, eventsUnmatched: 1, eventsDamaged: 0, eventsTooOld: 0 },
    summary: { platformsDiscovered: 2, aiCapableCount: 0, shadowAiCount: 1, overallRiskScore: 60 },
    ...over,
  }
}

t.test('platforms in each format', async (t) => {
  const { organizationId, withStore, exported } = await site(t, '=Acme <b>')
  await withStore((store) => {
    const all = PLATFORMS.map((_, at) => published(at, at === 1 ? { vendor: '=HYPERLINK("x")' } : {}))
    publish(store, organizationId, all)
  })
  const csv = await exported('platforms', '--format', 'csv')
  t.ok(csv.includes('\r\n'))
  const rows = parse(csv, { columns: true }) as Record<string, string>[]
  t.equal(rows.length, 300, 'of all published parts')
  t.same(
    Object.keys(rows[0] ?? {}),
    EXPORT_OF.platforms.columns.map(({ name }) => name),
  )
  t.match(rows[0], {
    platform_id: PLATFORMS[0]?.id,
    decision: 'waiting',
    domains: 'one.test two.test',
    last_seen: '2026-11-20T09:15:02Z',
    scan_id: 'scan-1',
  })
  t.equal(rows[1]?.['vendor'], `'=HYPERLINK("x")`, 'no cell is a formula')
  t.equal(rows[1]?.['platform_id'], '', 'no platform of the registry has this vendor')

  const lines = (await exported('platforms', '--format', 'ndjson')).trimEnd().split('\n')
  t.equal(lines.length, 300)
  t.match(JSON.parse(lines[0] ?? ''), {
    platform_name: PLATFORMS[0]?.name,
    clients: 3,
    domains: ['one.test', 'two.test'],
  })
  t.match(JSON.parse(lines[1] ?? ''), { vendor: '=HYPERLINK("x")', platform_id: null, decision_note: null })

  const html = await exported('platforms', '--format', 'html')
  t.match(html, '<h1>platforms of =Acme &lt;b&gt;</h1>')
  t.match(html, '<td>=HYPERLINK(&quot;x&quot;)</td>')
  t.notMatch(html, /<script|https?:\/\/[^<]*"/)

  for (const [format, begin] of Object.entries({ cef: 'CEF:0|', leef: 'LEEF:2.0|', ocsf: '{"activity_id":1,' })) {
    const events = (await exported('platforms', '--format', format)).trimEnd().split('\n')
    t.equal(events.length, 300, format)
    t.ok(
      events.every((line) => line.startsWith(begin)),
      format,
    )
  }
})

t.test('scans, assessments and recommendations', async (t) => {
  const { data, directory, organizationId, withStore, exported } = await site(t)
  await withStore(({ scans, recommendations }) => {
    scans.put(scanOf(organizationId, { id: '00000000-0000-4000-8000-000000000001' }))
    scans.put(scanOf(organizationId, { id: '00000000-0000-4000-8000-000000000002', status: 'failed', failure: 'x' }))
    recommendations.put({
      ...{ id: '00000000-0000-4000-8000-000000000003', organizationId, frameworkId: 'soc-2', itemId: 'CC6.1' },
      ...{ title: '@all: enable MFA', priority: 1, status: 'open', category: 'Access', owner: '' },
      ...{ createdAtMs: TIME_MS, statusChangedAtMs: 0 },
    })
  })
  await admin('assessment', 'create', '--title', 'Spring', '--framework', 'soc-2', ...data)
  const rowsOf = async (kind: ExportKind) => {
    return parse(await exported(kind, '--format', 'csv'), { columns: true }) as Record<string, string>[]
  }
  const scans = await rowsOf('scans')
  t.equal(scans.length, 1, 'only completed ones')
  t.match(scans[0], { completed_at: '2026-11-20T09:15:03Z', platforms_discovered: '2', overall_risk_score: '60' })
  t.match(await rowsOf('assessments'), [{ title: 'Spring', status: 'draft', overall_score: '', completed_at: '' }])
  t.match(await rowsOf('recommendations'), [{ title: "'@all: enable MFA", owner: '', status_changed_at: '' }])
  for (const kind of EXPORTS) {
    const [header = ''] = (await exported(kind, '--format', 'csv')).split('\r\n')
    t.equal(header, EXPORT_OF[kind].columns.map(({ name }) => name).join(','), kind)
  }
  t.equal(await exported('scans', '--format', 'ndjson', '--since', '2026-11-20T09:15:04Z'), '')
  t.not(await exported('scans', '--format', 'ndjson', '--since', '2026-11-20T09:15:03Z'), '')
  mkdirSync(join(directory, 'folder'))
  const cases: readonly { readonly args: readonly string[]; readonly status: number; readonly error: RegExp }[] = [
    { args: ['scans', '--format', 'cef'], status: 2, error: /--format cef is for platforms; use csv, ndjson or html/ },
    { args: ['users', '--format', 'csv'], status: 2, error: /expected one of platforms, clients, scans/ },
    { args: ['scans', '--format', 'csv', '--cursor', 'c'], status: 2, error: /--cursor needs --out/ },
    { args: ['scans', '--format', 'csv', '--since', 'monday'], status: 2, error: /expected a date/ },
    {
      args: ['scans', '--format', 'csv', '--out', join(directory, 'folder')],
      status: 4,
      error: /--out .*folder: cannot write: is a directory/,
    },
  ]
  for (const { args, status, error } of cases) {
    const ended = await runAdmin(['export', ...args, ...data])
    t.equal(ended.status, status, ended.stderr)
    t.match(ended.stderr, error)
  }
})

t.test('a cursor of another export, or no cursor at all', async (t) => {
  const { directory, data, organizationId, withStore, exported } = await site(t)
  const cursor = join(directory, 'cursor')
  await withStore((store) => publish(store, organizationId, [published(0)]))
  await exported('platforms', '--format', 'ndjson', '--cursor', cursor)
  const fails = async (kind: string, error: RegExp, ...args: readonly string[]) => {
    const words = ['export', kind, '--format', 'ndjson', '--cursor', cursor, '--out', join(directory, 'o')]
    const ended = await runAdmin([...words, ...args, ...data])
    t.equal(ended.status, 4)
    t.match(ended.stderr, error)
  }
  await fails('scans', /is a cursor of platforms, expected one of scans; name another file/)
  await admin('organization', 'create', 'Other', '--domain', 'other.example', ...data)
  await fails('platforms', /is a cursor of another organization/, '--org', 'Other')
  for (const text of ['', '{}', '[]', readFileSync(cursor, 'utf8').replace('"version":1', '"version":2')]) {
    writeFileSync(cursor, text)
    await fails('platforms', /is not a cursor/, '--org', 'Acme')
  }
})

/** What happens between exports. */
type Step =
  | { readonly kind: 'scan'; readonly platforms: readonly number[]; readonly matches: number }
  | { readonly kind: 'completed'; readonly requestedAtMs: number }
  | { readonly kind: 'export'; readonly isKilled: boolean }
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('scan' as const),
    platforms: fc.uniqueArray(fc.nat(5)),
    matches: fc.integer({ min: 1, max: 3 }),
  }),
  // Clocks are set back, so scans are not stored in the order of their completion.
  fc.record({ kind: fc.constant('completed' as const), requestedAtMs: fc.integer({ min: 1, max: 1000 }) }),
  fc.record({ kind: fc.constant('export' as const), isKilled: fc.boolean() }),
)

t.test('with a cursor, any sequence of scans and exports misses and repeats nothing', async (t) => {
  const { directory, data, organizationId, withStore, exported } = await site(t)
  let run = 0
  let scans = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
      run++
      const cursors = { platforms: join(directory, `p${run}`), scans: join(directory, `s${run}`) }
      // What a reader of all exports knows, and what the store has.
      const known = new Map<string, unknown>()
      const stored = new Map<string, number>()
      const seenScans = new Set<string>()
      const storedScans = new Set<string>(
        (await exported('scans', '--format', 'ndjson', '--cursor', cursors.scans))
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line).id as string),
      )
      for (const id of storedScans) seenScans.add(id)
      await withStore((store) => publish(store, organizationId, []))
      const takeAll = async (): Promise<void> => {
        for (const line of (await exported('platforms', '--format', 'ndjson', '--cursor', cursors.platforms)).split(
          '\n',
        )) {
          if (line === '') continue
          const { id, matches } = JSON.parse(line)
          if (known.get(id) === matches) throw new Error(`${id} is repeated`)
          known.set(id, matches)
        }
        for (const line of (await exported('scans', '--format', 'ndjson', '--cursor', cursors.scans)).split('\n')) {
          if (line === '') continue
          const { id } = JSON.parse(line)
          if (seenScans.has(id)) throw new Error(`the scan ${id} is repeated`)
          seenScans.add(id)
        }
        for (const [id, matches] of stored) if (known.get(id) !== matches) throw new Error(`${id} is missed`)
        // A platform that comes back after an export without it is new.
        for (const id of [...known.keys()]) if (!stored.has(id)) known.delete(id)
        for (const id of storedScans) if (!seenScans.has(id)) throw new Error(`the scan ${id} is missed`)
      }
      for (const [at, each] of steps.entries()) {
        if (each.kind === 'scan') {
          stored.clear()
          const elements = each.platforms.map((platform) => published(platform, { matches: each.matches }))
          for (const element of elements) stored.set(JSON.parse(element).id, each.matches)
          await withStore((store) => publish(store, organizationId, elements, `scan-${run}-${at}`))
        } else if (each.kind === 'completed') {
          const id = `00000000-0000-4000-8000-${String(++scans).padStart(12, '0')}`
          const { requestedAtMs } = each
          await withStore((store) => store.scans.put(scanOf(organizationId, { id, requestedAtMs })))
          storedScans.add(id)
        } else if (each.isKilled) {
          // The rows are not written completely: the cursor stays as it was.
          const words = ['platforms', '--format', 'ndjson', '--cursor', cursors.platforms]
          const ended = await runAdmin(['export', ...words, '--out', join(directory, 'no/such/file'), ...data])
          if (ended.status !== 4) throw new Error('the export was written')
        } else await takeAll()
      }
      await takeAll()
    }),
    { numRuns: 25 },
  )
  t.pass()
})
