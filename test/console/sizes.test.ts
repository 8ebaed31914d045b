import { randomBytes, randomInt } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { assessmentView } from '../../console/assessments/read.ts'
import { GZIP_LEVEL } from '../../console/http/answer.ts'
import { Administration } from '../../engine/admin/administration.ts'
import { currentItems } from '../../engine/assess/items.ts'
import { FRAMEWORK_IDS } from '../../engine/store/framework.ts'
import { category, item } from '../support/assessments.ts'
import { serveConsole } from '../support/console.ts'
import { crawl } from '../support/console-crawl.ts'
import { populate } from '../support/console-data.ts'
import { cpuMsOf } from '../support/wait.ts'

const PAGE_GZIP_BYTES_MAX = 40 * 1024
/** About 10 ms on a machine without other work; work that grows with the square takes seconds. */
const PAGE_CPU_MS_MAX = 60

t.test('every page of an organization with 800 platforms has at most 40 KB', async (t) => {
  const site = await serveConsole(t)
  const random = (): string => randomBytes(8).toString('hex')
  const words = {
    text: (what: string) => `${what} ${random()} ${random()} ${random()}`,
    host: () => `${random()}.example`,
    address: () => Array.from({ length: 4 }, () => randomInt(256)).join('.'),
  }
  const owner = populate(site, site.organization, words, { platforms: 800, sources: 1000 })
  const { answers } = await crawl(owner)
  for (const [path, { text, headers }] of answers) {
    if (!String(headers['content-type']).startsWith('text/html')) continue
    const bytes = gzipSync(text, { level: GZIP_LEVEL }).length
    t.ok(bytes <= PAGE_GZIP_BYTES_MAX, `${path}: ${bytes} bytes`)
  }
})

t.test('the pages of the largest framework are small, with every framework completed before', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  const evidence = () => Array.from({ length: 8 }, () => randomBytes(4).toString('hex')).join(' ')
  const answers = ['yes', 'partial', 'no'] as const
  for (const frameworkId of FRAMEWORK_IDS) {
    const { categories } = currentItems(frameworkId)
    const answered = categories.map((category) => ({
      ...category,
      items: category.items.map((item, at) => ({ ...item, answer: answers[at % 3] ?? 'no', note: evidence() })),
    }))
    assessments.import(organization, { frameworkId, title: 'Spring', categories: answered }, { complete: true })
  }
  const made = assessments.create(organization, 'nist-800-53', 'Autumn')
  const admin = site.signIn('a', 'admin')
  const view = { site: { store }, organization, nowMs: clock.nowMs() } as never
  const times = [1, 2, 3, 4, 5].map(() => cpuMsOf(() => assessmentView(view, made.id)))
  t.comment(times.map((ms) => ms.toFixed(1)).join(' '))
  t.ok(Math.min(...times) <= PAGE_CPU_MS_MAX, `${times} ms`)
  const places = store.assessments.categories(made).keys()
  for (const path of [
    `/assessments/${made.id}`,
    ...Array.from(places, (at) => `/assessments/${made.id}/categories/${at}`),
  ]) {
    const { status, text } = await admin.get(path)
    t.equal(status, 200)
    const bytes = gzipSync(text, { level: GZIP_LEVEL }).length
    t.ok(bytes <= PAGE_GZIP_BYTES_MAX, `${path}: ${bytes} bytes`)
  }
})

const ITEMS = 1200

t.test(`the pages of a category with ${ITEMS} items are small`, async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  const words = () => Array.from({ length: 12 }, () => randomBytes(4).toString('hex')).join(' ')
  const items = Array.from({ length: ITEMS }, (_, at) =>
    item(`A.${at}`, 'partial', { title: words(), question: words(), recommendation: words(), note: words() }),
  )
  const content = { frameworkId: 'soc-2', title: 'Large', categories: [category('All', 1, items)] } as const
  const made = assessments.import(organization, content)
  const admin = site.signIn('a', 'admin')
  const times = [1, 2, 3, 4, 5].map(() =>
    cpuMsOf(() => assessmentView({ site: { store }, organization, nowMs: clock.nowMs() } as never, made.id)),
  )
  t.ok(Math.min(...times) <= PAGE_CPU_MS_MAX, `${times} ms`)
  for (const path of ['', '/categories/0', '/categories/0/items/599', '/categories/0?page=24']) {
    const { status, text } = await admin.get(`/assessments/${made.id}${path}`)
    t.equal(status, 200)
    const bytes = gzipSync(text, { level: GZIP_LEVEL }).length
    t.ok(bytes <= PAGE_GZIP_BYTES_MAX, `${path}: ${bytes} bytes`)
  }
  t.match((await admin.get(`/assessments/${made.id}/categories/0?page=24`)).text, 'A.1199')
})
