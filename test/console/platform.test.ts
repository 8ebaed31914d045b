import t from 'tap'
import { riskSum } from '../../console/platforms/read-platform.ts'
import { Administration } from '../../engine/admin/administration.ts'
import { confidence, domainStrength } from '../../engine/scan/confidence.ts'
import { effectiveRisk } from '../../engine/scan/risk.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { ratedRisk } from '../../registry/risk-sum.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { makeOrganization, NOON, Sender, scanEvents } from '../support/store.ts'

/** Chats of three clients with a platform, on two days. */
function useDeepSeek(site: TestConsole): void {
  const sender = new Sender()
  const yesterday = NOON - 86_400_000
  scanEvents(site, site.organization, [
    sender.event('chat.deepseek.com', yesterday, { client: '192.0.2.1', count: 5 }),
    sender.event('chat.deepseek.com', NOON - 60_000, { client: '192.0.2.2', count: 2, blocked: 1, method: 'tls' }),
    sender.event('api.deepseek.com', NOON - 60_000, { client: '192.0.2.3' }),
  ])
}

const scan = (site: TestConsole) => scanEvents(site, site.organization, [])

t.test('a platform has its risk as a sum, its confidence by kind, its names and its days', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const { status, text } = await site.signIn('v', 'viewer').get('/platforms/DeepSeek')
  t.equal(status, 200)
  t.same(points(text), expectedPoints(false))
  t.match(text, /a confidence of 0\.85/)
  t.ok(text.includes('It is not approved, so all of it counts'))
  t.match(text, /chat\.deepseek\.com<\/span><\/td><td class="n">7</)
  t.match(text, /api\.deepseek\.com<\/span><\/td><td class="n">1</)
  t.match(text, /3 clients, 7 used matches, 2 days/)
  t.match(text, /1 blocked by the device/)
  t.match(text, /19 Nov: 1 client not approved, 0 approved/)
  t.match(text, /20 Nov: 2 clients not approved, 0 approved/)
  t.match(text, /Name: 0\.70 of 1/)
  t.ok(text.includes('first detected'))
  t.notMatch(text, /<form[^>]+(approve|withdraw)/, 'a viewer is offered no decision')
})

t.test('the tables of a platform are CSV files, too', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const viewer = site.signIn('v', 'viewer')
  const { text } = await viewer.get('/platforms/DeepSeek')
  for (const table of ['risk', 'names', 'days']) t.match(text, `href="/platforms/DeepSeek/${table}.csv"`)
  t.match(await viewer.rows('/platforms/DeepSeek/risk.csv'), [
    ...TERMS.map(({ input, text: reason, points: each }) => ({ Input: input, Reason: reason, Points: String(each) })),
    { Input: '', Points: String(RISK.score), Reason: 'Risk of the platform' },
    { Input: 'evidence', Reason: 'The evidence of use has a confidence of 0.85' },
    { Input: 'decision', Points: '0' },
    { Input: '' },
  ])
  t.ok(
    TERMS.some(({ source = '', date }) => source !== '' && date !== undefined),
    'a fact has its page and day',
  )
  t.same(await viewer.rows('/platforms/DeepSeek/names.csv'), [
    { Name: 'chat.deepseek.com', Matches: '7' },
    { Name: 'api.deepseek.com', Matches: '1' },
  ])
  t.match((await viewer.rows('/platforms/DeepSeek/days.csv')).slice(-2), [
    { Day: '2026-11-19', 'Clients of platforms that are not approved': '1', 'Clients of approved platforms only': '0' },
    { Day: '2026-11-20', 'Clients of platforms that are not approved': '2' },
  ])
  t.same(await viewer.rows('/platforms/ChatGPT/names.csv'), [], 'not seen')
  t.equal((await viewer.get('/platforms/Nobody/names.csv')).status, 404)
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get('/platforms/DeepSeek/names.csv')).text, /deepseek\.com/)
})

const DEEPSEEK = loadCatalog().platforms.find(({ id }) => id === 'deepseek')
const RISK = DEEPSEEK === undefined ? { score: 0, why: '' } : ratedRisk(DEEPSEEK)
const TERMS = RISK.terms ?? []

/** The same as text, from the registry and the evidence of useDeepSeek(). */
function expectedPoints(approved: boolean): string[] {
  const { evidence, decision, total } = riskSum({
    risk: RISK.score,
    confidence: confidence({ domainStrength: domainStrength(1), clients: 3, matches: 7, days: 2 }),
    approved,
  })
  const text = (value: number): string => (value < 0 ? `−${-value}` : String(value))
  return [...TERMS.map(({ points: each }) => each), RISK.score, evidence, decision, total].map(text)
}

/** The points of the risk, and their sum at the end. */
function points(text: string): string[] {
  const table = /<table id="risk">.*?<\/table>/s.exec(text)?.[0] ?? ''
  return [...table.matchAll(/<td class="n">(?:<strong[^>]*>)?([^<]*)/g)].map(([, each = '']) => each)
}

t.test('the terms of the risk add up, for any values', async (t) => {
  for (let risk = 0; risk <= 100; risk++) {
    for (const confidence of [0, 0.005, 0.3333, 0.5, 0.8157, 0.9999, 1]) {
      for (const approved of [false, true]) {
        const { registry, evidence, decision, total } = riskSum({ risk, confidence, approved })
        const isRight =
          registry + evidence + decision === total &&
          evidence <= 0 &&
          decision <= 0 &&
          total === Math.round(effectiveRisk({ risk, confidence, approved }))
        if (!isRight) t.fail(`${risk} ${confidence} ${approved}: ${registry} ${evidence} ${decision} ${total}`)
      }
    }
  }
})

t.test('an approval shows at once, and its risk after the next scan; then it can be withdrawn', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const admin = site.signIn('a', 'admin')
  const before = (await admin.get('/platforms/DeepSeek')).text
  t.match(before, /action="\/platforms\/DeepSeek\/approve"/)
  const terms = { note: ' Pilot until spring ', owner: 'ada@acme.example', expires: '2027-03-31' }
  const approved = await admin.post('/platforms/DeepSeek/approve', terms)
  t.match(approved, { status: 303, headers: { location: '/platforms/DeepSeek?done=approved' } })
  const waiting = (await admin.get('/platforms/DeepSeek?done=approved')).text
  t.match(waiting, /DeepSeek is approved/)
  t.match(waiting, /The next scan updates the risk/)
  t.match(waiting, /not approved<\/span>/, 'the figures are still those of the last scan')
  t.match(waiting, /Pilot until spring/)
  t.match(waiting, /ada@acme\.example/)
  t.match(waiting, /title="2027-03-31T00:00:00Z">in 130 days/)
  t.match(waiting, /You decided about DeepSeek .*does not recall alerts.*name="from" value="DeepSeek"/s)
  scan(site)
  const after = (await admin.get('/platforms/DeepSeek')).text
  t.same(points(after), expectedPoints(true))
  t.notMatch(after, /waits for the next scan/)
  t.match(after, /name="expires"[^>]+value="2027-03-31"/, 'the form has the terms')
  t.match(await admin.post('/platforms/DeepSeek/withdraw'), { status: 303 })
  t.match((await admin.get('/platforms/DeepSeek')).text, /waits for the next scan/)
  const withdrawn = (await admin.get('/platforms/DeepSeek?done=withdrawn')).text
  t.match(withdrawn, /DeepSeek waits for a decision again/)
  const actions = site.store.auditLog.ofOrganization(site.organization.id).map(({ action }) => action)
  t.same(actions, ['approval.add', 'approval.remove'])
})

t.test('undo restores the decisions before, for ten minutes, and only those of the member', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  useDeepSeek(site)
  const { approvals } = new Administration(store, clock)
  const catalog = loadCatalog()
  const undoFields = (text: string): Record<string, string> | undefined => {
    const [, form] = /action="\/decisions\/undo">(.*?)<\/form>/s.exec(text) ?? []
    const fields = form?.matchAll(/name="(\w+)" value(?:="([^"]*)")?/g)
    return fields && Object.fromEntries([...fields].map(([, name = '', value = '']) => [name, value]))
  }
  approvals.add(organization, catalog, ['deepseek'], { note: 'a "note"', expiresAtMs: NOON + 3_600_000 })
  const admin = site.signIn('a', 'admin')
  t.equal(undoFields((await admin.get('/platforms')).text), undefined, 'somebody else decided')
  clock.add(1000)
  t.equal((await admin.post('/decisions/reject', { platform: 'DeepSeek', note: 'Leaves the country' })).status, 303)
  const { text } = await admin.get('/platforms/DeepSeek?done=rejected')
  t.match(text, /DeepSeek is rejected/)
  t.equal(undoFields((await site.signIn('b', 'admin').get('/overview')).text), undefined)
  t.match(undoFields((await admin.get('/overview')).text), { from: 'overview' })
  const fields = undoFields(text) ?? {}
  t.equal((await site.signIn('b', 'admin').post('/decisions/undo', fields)).status, 409)
  clock.add(1000)
  const undone = await admin.post('/decisions/undo', fields)
  t.match(undone, { status: 303, headers: { location: '/platforms/DeepSeek?done=undone' } })
  t.match((await admin.get('/platforms/DeepSeek?done=undone')).text, /The decision is undone/)
  t.match(store.decisions.history(organization.id, 'deepseek'), [
    {
      kind: 'approved',
      note: 'a "note"',
      expiresAtMs: NOON + 3_600_000,
      decidedBy: 'operator operator',
      decidedAtMs: NOON,
    },
    { kind: 'rejected', note: 'Leaves the country' },
    { kind: 'approved', decidedBy: 'operator operator' },
  ])
  clock.add(1000)
  t.equal((await admin.post('/decisions/undo', fields)).status, 409, 'once')
  const selection = { platform: ['Claude', 'DeepSeek', 'GitHub Copilot', 'ChatGPT'] }
  t.equal((await admin.post('/decisions/reject', selection)).status, 303)
  const bulk = (await admin.get('/platforms')).text
  t.match(bulk, /You decided about ChatGPT, Claude, DeepSeek and 1 more </)
  t.equal(undoFields((await admin.get('/platforms/Kimi')).text), undefined, 'not about this platform')
  t.match(undoFields((await admin.get('/platforms/Claude')).text), { from: 'Claude' })
  t.equal((await admin.post('/decisions/undo', undoFields(bulk) ?? {})).status, 303)
  const states = Object.fromEntries(store.decisions.inForce(organization.id, clock.nowMs()).states)
  t.match(states, { claude: 'waiting', deepseek: 'approved' })
  t.equal(undoFields((await admin.get('/platforms')).text), undefined, 'an undo is not undone')
  t.equal((await admin.post('/decisions/reject', selection)).status, 303)
  const late = undoFields((await admin.get('/platforms')).text) ?? {}
  clock.add(10 * 60_000)
  t.equal(undoFields((await admin.get('/platforms')).text), undefined)
  t.equal((await admin.post('/decisions/undo', late)).status, 409)
})

t.test('a rejection leads to block lists', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  scan(site)
  const { approvals, blockListLinks } = new Administration(site.store, site.clock)
  const admin = site.signIn('a', 'admin')
  t.notMatch((await admin.get('/platforms/DeepSeek')).text, /used DeepSeek in the last 30 days/)
  approvals.reject(site.organization, loadCatalog(), ['deepseek'])
  t.match(
    (await admin.get('/platforms/DeepSeek')).text,
    /\d clients? used DeepSeek in the last 30 days\..*No link of a block list selects it/s,
  )
  blockListLinks.create(site.organization, 'firewall', { blocks: 'rejected', riskMin: 50 })
  blockListLinks.create(site.organization, 'highest', { blocks: 'rejected', riskMin: 100 })
  const { text } = await admin.get('/platforms/DeepSeek')
  t.match(text, /href="\/block-lists\/preview\?blocks=rejected&amp;risk=50">firewall<.*Change, or set a date/s)
  t.notMatch(text, /highest<\/a>/)
  t.notMatch((await site.signIn('v', 'viewer').get('/platforms/DeepSeek')).text, /firewall/)
})

t.test('a decision that expired is shown as expired, and is in the history', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const admin = site.signIn('a', 'admin')
  await admin.post('/platforms/DeepSeek/reject', { owner: 'Legal', expires: '2026-11-21' })
  scan(site)
  t.match((await admin.get('/platforms/DeepSeek')).text, /<span class="tag bad">rejected/)
  site.clock.set(Date.parse('2026-11-21T00:00:00Z'))
  const { text } = await site.signIn('a', 'admin').get('/platforms/DeepSeek')
  t.match(text, /<span class="tag warn">expired/)
  t.match(text, /Expired<\/span>/)
  t.match(text, /action="\/platforms\/DeepSeek\/approve"/, 'it waits for a decision again')
  t.notMatch(text, /DeepSeek\/withdraw/)
  const [, history = ''] = /<h2>History(.*?)<\/section>/s.exec(text) ?? []
  t.same(
    [...history.matchAll(/<span class="tag[^>]*>([^<]+)/g)].map(([, event]) => event),
    ['expired', 'rejected', 'first detected'],
  )
})

const REFUSED = [
  { name: 'a day that has begun', fields: { expires: '2026-11-20' }, message: /This day has begun already/ },
  { name: 'not a day', fields: { expires: '2026-02-30' }, message: /Enter a day such as/ },
  { name: 'a day in twelve years', fields: { expires: '2038-01-01' }, message: /within ten years/ },
  { name: 'a long note', fields: { note: 'é'.repeat(600) }, message: /At most 1000 bytes/ },
  { name: 'a long owner', fields: { owner: 'x'.repeat(256) }, message: /At most 255 bytes/ },
  { name: 'a note of two lines', fields: { note: 'one\ntwo' }, message: /note: expected one line/ },
]

t.test('wrong terms are refused with what was typed', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  for (const { name, fields, message } of REFUSED) {
    for (const word of ['approve', 'reject']) {
      const { status, text } = await admin.post(`/platforms/Claude/${word}`, { note: 'kept', ...fields })
      t.equal(status, 400, name)
      t.match(text, message, name)
      if (!('note' in fields)) t.match(text, /value="kept"/, name)
    }
  }
  t.same(site.store.decisions.ofOrganization(site.organization.id), [])
})

t.test('a platform of the registry that was not seen says so; an unknown one is not found', async (t) => {
  const { signIn } = await serveConsole(t)
  const viewer = signIn('v', 'viewer')
  t.match((await viewer.get('/platforms/ChatGPT')).text, /Not seen in the last 30 days/)
  t.equal((await viewer.get('/platforms/%3Cscript%3E')).status, 404)
  t.equal((await signIn('a', 'admin').post('/platforms/Nothing/approve')).status, 404)
})

t.test('another organization sees nothing of it', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const other = makeOrganization(site, 'Globex')
  const { text } = await site.signIn('g', 'owner', other).get('/platforms/DeepSeek')
  t.match(text, /Not seen/)
  t.notMatch(text, /chat\.deepseek\.com/)
})
