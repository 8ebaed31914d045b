import { options } from 'preact'
import t, { type Test } from 'tap'
import { ASSESSMENTS_MAX, MEMBERS_MAX, OWN_PLATFORMS_MAX } from '../../engine/limits.ts'
import { FRAMEWORK_IDS } from '../../engine/store/framework.ts'
import { newUuid } from '../../engine/store/keys.ts'
import { newCounts } from '../../engine/store/outcomes.ts'
import type { SourceDelta } from '../../engine/store/sources.ts'
import { type Browser, serveConsole, type TestConsole } from '../support/console.ts'
import { plainWords, populate } from '../support/console-data.ts'
import { platform } from '../support/own-platforms.ts'

/*
 * The work of pages, counted where a duration would depend on the machine: elements that the
 * renderer gets, reads of the store, and rows.
 */

/**
 * Templates of a row: the row, the box that selects it, the name, the risk, and the time. The
 * filter may have more options. Without templates, they were 17.
 */
const ELEMENTS_PER_ROW_MAX = 6
const ROWS_MAX = 100
const PAGE_BYTES_MAX = 40 * 1024

/** The elements that pages make while `work` runs. */
async function elementsOf(work: () => Promise<unknown>): Promise<number> {
  const before = options.vnode
  let count = 0
  options.vnode = () => {
    count++
  }
  try {
    await work()
  } finally {
    if (before === undefined) delete options.vnode
    else options.vnode = before
  }
  return count
}

/** The reads of each table while `work` runs, by name; a range is as many as its entries. */
async function readsOf({ store }: TestConsole, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const reads: Record<string, number> = {}
  const restored: (() => void)[] = []
  for (const [name, table] of store.environment.tables) {
    const note = (): void => {
      reads[name] = (reads[name] ?? 0) + 1
    }
    // get() of lmdb-js calls getBinaryFast().
    const { getBinaryFast, getRange } = table
    table.getBinaryFast = ((...given: Parameters<typeof getBinaryFast>) => {
      note()
      return getBinaryFast.apply(table, given)
    }) as typeof getBinaryFast
    table.getRange = ((...given: Parameters<typeof getRange>) => {
      return getRange.apply(table, given).map((entry) => {
        note()
        return entry
      })
    }) as typeof getRange
    restored.push(() => Object.assign(table, { getBinaryFast, getRange }))
  }
  try {
    await work()
  } finally {
    for (const restore of restored) restore()
  }
  return reads
}

async function siteWith(t: Test, platforms: number): Promise<{ site: TestConsole; owner: Browser }> {
  const site = await serveConsole(t, { unchecked: true })
  return { site, owner: populate(site, site.organization, plainWords(), { platforms, sources: 3 }) }
}

const rowsOf = (text: string): number => text.split('<tr>').length - 1

t.test('a row of the platforms is a few templates, not an element for each tag', async (t) => {
  const few = await siteWith(t, 20)
  const many = await siteWith(t, 60)
  const text = (await many.owner.get('/platforms')).text
  const rows = rowsOf(text) - rowsOf((await few.owner.get('/platforms')).text)
  t.ok(rows >= 30, `${rows} more rows`)
  const elements =
    (await elementsOf(() => many.owner.get('/platforms'))) - (await elementsOf(() => few.owner.get('/platforms')))
  t.ok(elements <= rows * ELEMENTS_PER_ROW_MAX, `${elements} more elements for ${rows} more rows`)
  t.match(text, /<input type="checkbox" name="platform" value="[^"]+" aria-label="Select [^"]+"\/>/)
})

t.test('the second request of a page reads neither the published list nor custom platforms again', async (t) => {
  const { site, owner } = await siteWith(t, 60)
  for (const path of ['/platforms', '/overview', '/report']) {
    await owner.get(path)
    const reads = await readsOf(site, () => owner.get(path))
    t.equal(reads['own-platforms'], undefined, `${path}: ${JSON.stringify(reads)}`)
    t.equal(reads['published'], 1, `${path}: only the head of the list; ${JSON.stringify(reads)}`)
  }
})

const SOURCES = 1000

function newSource(organizationId: string, at: number): SourceDelta {
  const counters = {
    received: 10,
    counts: [...newCounts()],
    formats: {},
    sample: '',
    zoneMinutes: 0,
    timesUnread: 0,
  }
  const sender = { tokenId: newUuid(), listener: 'tls', address: '192.0.2.1', host: `fw-${at}`, hasUnknownToken: false }
  return { organizationId, ...sender, lastSeenMs: 1000 + at, ...counters }
}

t.test('lists of a thousand have pages', async (t) => {
  const { site, owner } = await siteWith(t, 6)
  const { store, organization, clock } = site
  const { id: organizationId } = organization
  const [sample] = store.assessments.ofOrganization(organizationId)
  if (sample === undefined) throw new Error('no assessment')
  const categories = store.assessments.categories(sample)
  store.environment.write(() => {
    for (let at = 0; at < MEMBERS_MAX; at++) {
      const name = `person ${String(at).padStart(4, '0')} <b>@acme.example`
      store.members.put({ organizationId, name, role: 'member', createdAtMs: clock.nowMs() })
    }
    for (let at = 0; at < ASSESSMENTS_MAX; at++) {
      const isOpen = at % 2 === 0
      const place = { completion: isOpen ? 0 : at + 10, completedAtMs: isOpen ? 0 : clock.nowMs() }
      const state = { ...place, status: isOpen ? ('in_progress' as const) : ('completed' as const) }
      store.assessments.put({ ...sample, ...state, id: newUuid(), title: `Assessment ${at}` }, categories)
    }
    store.sources.add(Array.from({ length: SOURCES }, (_, at) => newSource(organizationId, at)))
    for (let at = 0; at < OWN_PLATFORMS_MAX; at++) {
      const entry = platform(`own-${at}`, `own-${at}.corp.example`)
      store.ownPlatforms.put(organizationId, { entry, disabled: false, addedAtMs: 1, provisioned: false })
    }
  })
  const lists: readonly (readonly [path: string, tables: number])[] = [
    ['/members', 3],
    ['/assessments', 3],
    ['/own-platforms', 1],
    ['/sources', 1],
  ]
  for (const [path, tables] of lists) {
    const { status, text } = await owner.get(path)
    t.equal(status, 200, path)
    t.ok(rowsOf(text) <= tables * (ROWS_MAX + 1), `${path}: ${rowsOf(text)} rows`)
    const { length } = (await owner.get(path, { 'accept-encoding': 'gzip' })).bytes
    t.ok(length <= PAGE_BYTES_MAX, `${path}: ${length} bytes`)
  }
  const reads = await readsOf(site, () => owner.get('/assessments'))
  const shown = 2 * ROWS_MAX + 2 * FRAMEWORK_IDS.length
  t.ok((reads['assessment-answers'] ?? 0) <= shown, `${reads['assessment-answers']}: those on other pages are not read`)
  t.match((await owner.get('/members?page=11')).text, /person 0999 &lt;b>@acme\.example/)
  t.match((await owner.get('/members?page=2&done=role')).text, /href="\?page=1".*href="\?page=3"/s)
  t.match((await owner.get('/members?waiting=2')).text, /href="\?waiting=1".*href="\?waiting=3"/s)
  const found = (await owner.get('/members?q=Person+0500')).text
  t.match(found, /1 of 1,0\d\d.*person 0500/s)
  t.notMatch(found, /person 0501/)
  t.match((await owner.get('/members?q=nobody')).text, /No member matches.*Show all 1,0/s)
  t.match((await owner.get('/assessments?open=5')).text, /href="\?open=4"/)
  t.match((await owner.get('/assessments?completed=2')).text, /href="\?completed=1".*href="\?completed=3"/s)
  for (const [path, wholeRecords] of [
    ['/sources', ROWS_MAX],
    ['/overview', 5],
    ['/monitoring-tokens', 0],
  ] as const) {
    const { sources = 0 } = await readsOf(site, () => owner.get(path))
    t.equal(sources, store.environment.tableRecords('sources') + wholeRecords, `${path} reads few sources as a whole`)
  }
  t.match((await owner.get('/sources?page=11')).text, /fw-0\b.*href="\?page=10"/s, 'the first of them was active first')
  t.match((await owner.get('/own-platforms?page=99')).text, /href="\?page=10"/, 'beyond the last page is the last page')
})
