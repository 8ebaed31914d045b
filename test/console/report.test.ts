import { parse } from 'csv-parse/sync'
import t from 'tap'
import { scanWith, serveConsole } from '../support/console.ts'
import { plainWords, populate } from '../support/console-data.ts'
import { report } from '../support/coverage.ts'
import { makeOrganization, NOON } from '../support/store.ts'

const DAY_MS = 86_400_000

t.test('before the first scan, the report names the next step', async (t) => {
  const { signIn } = await serveConsole(t)
  t.match((await signIn('v', 'viewer').get('/report')).text, /No scan has completed yet.*href="\/overview"/s)
})

t.test('the report says in words what was found, what was not seen, and what is to do', async (t) => {
  const site = await serveConsole(t)
  const { clock, store, organization } = site
  clock.set(NOON - 31 * DAY_MS)
  scanWith(site, ['claude.ai'])
  clock.set(NOON)
  const counters = { packets: 1000, names: 90, hellos_named: 90, hellos_unnamed: 10 }
  store.environment.write(() => store.coverage.add(organization.id, report({ counters }), NOON))
  const admin = site.signIn('a', 'admin')
  await admin.post('/platforms/Claude/approve')
  scanWith(site, ['chat.deepseek.com', 'claude.ai'])
  const { text } = await site.signIn('v', 'viewer').get('/report')
  t.match(text, /Use of AI at Acme/)
  t.match(text, /October 21, 2026 to November 20, 2026 \(UTC\)/)
  t.match(text, /2 AI platforms were used at Acme\. 1 is not approved\. The overall risk is \d+ of 100 \(\w+\)\./)
  t.match(text, /Change since October 21, 2026.*The overall risk is \d+ points? (higher|lower) than then\./s)
  t.match(text, /1 new platform: DeepSeek\./)
  const changes = async (query: string) => (await admin.get(`/report?${query}`)).text
  const today = await changes('days=1')
  t.match(today, /November 20, 2026 to November 20, 2026.*Change since November 20, 2026.*1 new platform: DeepSeek\./s)
  const past = await changes('from=2026-11-01&to=2026-11-10')
  t.match(past, /November 1, 2026 to November 10, 2026 \(UTC\)/)
  t.match(past, /Change from November 1, 2026 to November 10, 2026.*No new platform was found.*0 platforms approved/s)
  t.match(past, /href="\/report\.html\?from=2026-11-01&amp;to=2026-11-10"/)
  t.match(
    (await admin.get('/report.html?from=2026-11-01&to=2026-11-10')).text,
    /Change from November 1, 2026 to November 10, 2026/,
  )
  t.match(text, /Sensors could see 90 % of the traffic/)
  t.match(text, /DeepSeek.*waiting.*Claude.*approved/s, 'the highest risk first')
  t.match(text, /No framework was assessed yet/)
  t.match(text, /No recommendation is open/)
  const file = await admin.get('/report.html')
  t.match(file.headers, { 'content-disposition': 'attachment; filename="report.html"' })
  const [article = ''] = /<article[\s\S]*<\/article>/.exec(text) ?? []
  const [written = ''] = /<article[\s\S]*<\/article>/.exec(file.text) ?? []
  t.ok(written.length > 2000)
  t.equal(written, article.replace(/<a href="[^"]*">([^<]*)<\/a>/g, '$1'), 'the file has the article of the page')
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get('/report')).text, /DeepSeek|Acme/)
})

t.test('the tables of the report are CSV files, with all rows', async (t) => {
  const site = await serveConsole(t)
  const owner = populate(site, site.organization, plainWords(), { platforms: 12, sources: 1 })
  const { text } = await owner.get('/report')
  const rows = async (table: string) => {
    t.match(text, `href="/report/${table}.csv"`)
    const answer = await owner.get(`/report/${table}.csv`)
    t.match(answer.headers['content-disposition'], `filename="report-${table}.csv"`)
    return parse(answer.text, { columns: true }) as Record<string, string>[]
  }
  const platforms = await rows('platforms')
  t.ok(platforms.length > 7, `${platforms.length} platforms`)
  t.match(platforms[0], { Platform: /./, Risk: /^\d+$/, Clients: /^\d+$/, Decision: 'waiting', Owner: '' })
  t.match(await rows('assessments'), [{ Framework: 'AI Security', Score: '0', Completed: /^2026-/ }])
  const open = await rows('recommendations')
  t.ok(open.length > 5, `${open.length} recommendations`)
  t.match(open[0], { Priority: /^[1-5]$/, Recommendation: /./, Item: /^AI Security /, Status: /^(open|in_progress)$/ })
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.same(await foreign.rows('/report/platforms.csv'), [])
})
