import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { currentItems } from '../../engine/assess/items.ts'
import { byPriority } from '../../engine/assess/publish.ts'
import { itemsOf } from '../../engine/assess/states.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { content, publishedList } from '../support/assessments.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { makeOrganization, registries, Sender, scanEvents } from '../support/store.ts'

/** Starts an assessment as an admin, and answers every item. */
async function assessed(site: TestConsole, answer: string): Promise<string> {
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  const { headers } = await admin.post('/assessments', { framework: 'ai-security', title: '' })
  const path = String(headers['location'])
  const assessment = store.assessments.get(organization.id, path.slice('/assessments/'.length))
  if (assessment === undefined) throw new Error('no assessment')
  for (const [at, { items }] of store.assessments.categories(assessment).entries()) {
    for (const place of items.keys()) {
      const saved = await admin.post(`${path}/categories/${at}/items/${place}`, { answer, note: 'seen' })
      t.equal(saved.status, 303)
    }
  }
  return path
}

t.test('an assessment goes from its draft to a score, and its recommendations to the API', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/assessments')).text, /No assessment is in progress/)
  t.match((await admin.get('/recommendations')).text, /No recommendation yet/)
  const path = await assessed(site, 'partial')
  t.match((await admin.get('/assessments')).text, /In progress/)
  t.match((await admin.get(path)).text, /action="[^"]+\/complete"/)
  t.match(await admin.post(`${path}/complete`), { status: 303, headers: { location: `${path}?done=completed` } })
  t.match((await admin.get(path)).text, />50 · F</)
  t.match((await admin.get('/assessments')).text, />50 · F</)
  const entries = store.auditLog.ofOrganization(organization.id)
  const items = store.assessments.categories(store.assessments.ofOrganization(organization.id)[0] as never)
  const count = items.reduce((sum, each) => sum + each.items.length, 0)
  t.equal(entries.filter(({ action }) => action === 'assessment.change').length, count)

  const [first] = store.recommendations.ofOrganization(organization.id)
  const dismissed = { status: 'dismissed', reason: 'Out of scope' }
  const changed = await admin.post(`/recommendations/${first?.id}?status=open`, dismissed)
  t.match(changed, { status: 303, headers: { location: '/recommendations?status=open&done=saved' } })
  const published = JSON.stringify(publishedList(store, organization.id, 'recommendations'))
  t.match(published, /dismissed/)
  t.match((await admin.get('/recommendations?status=dismissed')).text, new RegExp(`/recommendations/${first?.id}`))
  t.notMatch((await admin.get('/recommendations')).text, new RegExp(`/recommendations/${first?.id}`))
  t.equal((await admin.post(`/recommendations/${first?.id}`, { status: 'gone' })).status, 400)
})

/** The fields of the form as a browser sends them. */
function fieldsOf(text: string): Record<string, string> {
  const form = /<form id="item".*?<\/form>/s.exec(text)?.[0] ?? ''
  const inputs = [...form.matchAll(/<input [^>]*name="([\w-]+)"[^>]*/g)].map(([input, name = '']) => [
    name,
    /value="([^"]*)"/.exec(input)?.[1] ?? '',
  ])
  const texts = [...form.matchAll(/<textarea [^>]*name="(\w+)"[^>]*>(.*?)<\/textarea>/gs)]
  return Object.fromEntries([...inputs, ...texts.map(([, name, value]) => [name, value])])
}

interface Race {
  readonly name: string
  /** What two people who see `yes`, `old` and no owner send, the first one first. */
  readonly first: Readonly<Record<string, string>>
  readonly second: Readonly<Record<string, string>>
  readonly stored: readonly [answer: string, note: string, owner: string]
  readonly isConflict?: boolean
}

const RACES: readonly Race[] = [
  { name: 'an answer and a note', first: { answer: 'no' }, second: { note: 'new' }, stored: ['no', 'new', ''] },
  { name: 'a note and an answer', first: { note: 'new' }, second: { answer: 'no' }, stored: ['no', 'new', ''] },
  { name: 'an owner and a note', first: { owner: 'Alan' }, second: { note: 'new' }, stored: ['yes', 'new', 'Alan'] },
  {
    name: 'two answers',
    first: { answer: 'no' },
    second: { answer: 'partial' },
    stored: ['no', 'old', ''],
    isConflict: true,
  },
  {
    name: 'two notes',
    first: { note: 'new' },
    second: { note: 'other' },
    stored: ['yes', 'new', ''],
    isConflict: true,
  },
  {
    name: 'two owners',
    first: { owner: 'Alan', due: '2026-12-01' },
    second: { owner: 'Ada' },
    stored: ['yes', 'old', 'Alan'],
    isConflict: true,
  },
  { name: 'the same answer twice', first: { answer: 'no' }, second: { answer: 'no' }, stored: ['no', 'old', ''] },
]

for (const { name, first, second, stored, isConflict = false } of RACES) {
  t.test(`two people change one item, ${name}: ${isConflict ? 'both are shown' : 'both are kept'}`, async (t) => {
    const site = await serveConsole(t)
    const { store, organization } = site
    const { assessments } = new Administration(store, site.clock)
    const made = assessments.import(organization, content('cis-v8', { '1.1': 'yes', '1.2': 'yes' }))
    assessments.answer(organization, made.id, '1.1', 'yes', 'old')
    const path = `/assessments/${made.id}/categories/0/items/0`
    const [alice, bob] = [site.signIn('alice', 'member'), site.signIn('bob', 'member')]
    const shown = fieldsOf((await alice.get(path)).text)
    t.match(shown, { note: 'old', owner: '', due: '', links: '' })
    t.equal((await alice.post(path, { ...shown, ...first })).status, 303)
    const answer = await bob.post(path, { ...shown, ...second })
    const itemNow = () => store.assessments.categories(made)[0]?.items[0]
    t.match(itemNow(), { answer: stored[0], note: stored[1], work: { owner: stored[2] } })
    const by = itemNow()?.work?.history.map((change) => `${change.by} ${change.field}`) ?? []
    t.ok(by.some((each) => each.startsWith('member alice')))
    if (!isConflict) {
      t.match(answer, { status: 303, headers: { location: `${path}?done=saved` } })
      return
    }
    t.match(answer, { status: 409, text: /1.1 was changed in the meantime.*Stored now: (Yes|No), “(old|new)”/s })
    const again = fieldsOf(answer.text)
    const { answer: pressed, ...typed } = second
    t.match(again, typed, 'what was typed is shown')
    t.equal((await bob.post(path, { ...again, ...(pressed === undefined ? {} : { answer: pressed }) })).status, 303)
    const { owner, ...answered } = second
    t.match(itemNow(), answered, 'after seeing both, the later one may replace the earlier one')
    if (owner !== undefined) t.match(itemNow()?.work, { owner, dueOn: '2026-12-01' })
  })
}

t.test('after the end of a session, what was typed is saved at its item', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const made = new Administration(store, site.clock).assessments.create(organization, 'cis-v8', 'Autumn', ['1.1'])
  const path = `/assessments/${made.id}/categories/0/items/0`
  const admin = site.signIn('a', 'admin')
  const typed = {
    ...fieldsOf((await admin.get(`${path}?show=must-pass`)).text),
    ...{ answer: 'partial', note: 'a long text', owner: 'Grace' },
  }
  const ended = await site.browser().post(path, { ...typed, 'confirm-password': 'of a user' })
  t.match(ended, { status: 401, text: /Nothing is lost/ })
  t.notMatch(ended.text, /of a user/)
  t.match(ended.text, `action="${path}"`)
  const kept = Object.fromEntries(
    Object.keys(typed).map((name) => [name, new RegExp(`name="${name}" value="([^"]*)"`).exec(ended.text)?.[1] ?? '']),
  )
  t.same(kept, typed, 'all of it is on the page that asks for a sign-in')
  const again = await admin.post(path, kept)
  t.match(again, { status: 303, headers: { location: `${path}?show=must-pass&done=saved` } })
  t.match(store.assessments.categories(made)[0]?.items[0], {
    answer: 'partial',
    note: 'a long text',
    work: { owner: 'Grace', history: [{ field: 'answer' }, { field: 'note', to: 'a long text' }, { field: 'owner' }] },
  })
})

t.test('saving an item again changes nothing, and neither does a wrong answer or a missing field', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const path = `${await assessed(site, 'yes')}/categories`
  const admin = site.signIn('a', 'admin')
  const before = store.auditLog.lastSequence(organization.id)
  t.equal((await admin.post(`${path}/0/items/0`, { answer: 'yes', note: 'seen' })).status, 303)
  t.equal((await admin.post(`${path}/0/items/0`, {})).status, 303)
  t.match(await admin.post(`${path}/0/items/0`, { answer: '101' }), { status: 400, text: /from 0 to 100/ })
  t.equal((await admin.post(`${path}/99/items/0`, {})).status, 404)
  t.equal((await admin.post(`${path}/0/items/99`, {})).status, 404)
  t.equal(store.auditLog.lastSequence(organization.id), before)
})

t.test('a category opens at its first unanswered item, and filters list items of all categories', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  const made = assessments.create(organization, 'ai-security', 'Autumn', ['GOV-1', 'GOV-2', 'INV-2', 'INV-3'])
  assessments.answer(organization, made.id, 'GOV-1', 'yes', '')
  assessments.assign(organization, made.id, 'INV-3', { owner: 'ada' })
  const ada = site.signIn('ada', 'member')
  const path = `/assessments/${made.id}/categories`
  const first = (await ada.get(`${path}/0`)).text
  t.match(first, /<h2>[^<]*<\/h2><p><span class="facts"><span class="mono">GOV-2<\/span>/)
  t.match(first, /1 of 2 answered/)
  t.match(first, /data-key="1"[^>]*aria-keyshortcuts="1"[^>]*>\s*Yes/)
  t.match(first, new RegExp(`data-key="n" href="${path}/1/items/0">\\s*Next unanswered`))
  const listed = async (show: string): Promise<string[]> => {
    const { text } = await ada.get(`${path}/0?show=${show}`)
    const list = /aria-label="Items">.*?<\/nav>/s.exec(text)?.[0] ?? ''
    return [...list.matchAll(/<span class="mono">([^<]+)</g)].map(([, id = '']) => id)
  }
  t.same(await listed('all'), ['GOV-1', 'GOV-2'])
  t.same(await listed('mine'), ['INV-3'])
  t.same(await listed('unanswered'), ['GOV-2', 'INV-2', 'INV-3'])
  t.same(await listed('must-pass'), ['INV-2', 'INV-3'])
  t.same(await listed('unsupported'), [])
  t.same(await listed('none'), ['GOV-1', 'GOV-2'])
  t.match((await ada.get(`${path}/0?show=unsupported`)).text, /No item of the assessment matches/)
  t.match((await ada.get(`${path}/1/items/0`)).text, new RegExp(`data-key="n" href="${path}/1/items/1"`))
  t.match(
    (await ada.get(`${path}/1/items/1`)).text,
    new RegExp(`data-key="n" href="${path}/0/items/1"`),
    'from the start',
  )
})

t.test('an unfinished assessment is not completed; a member answers and does not complete', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  const { headers } = await admin.post('/assessments', { framework: 'cis-v8', title: 'Autumn' })
  const path = String(headers['location'])
  t.match(await admin.post(`${path}/complete`), { status: 409, text: /unanswered/ })
  t.match((await admin.get(path)).text, /Autumn/)
  t.equal((await site.signIn('m', 'member').post(`${path}/complete`)).status, 403)
  t.match((await admin.get(`${path}/categories/0`)).text, /<button[^>]*name="answer" value="yes"/)
  t.notMatch((await site.signIn('v', 'viewer').get(`${path}/categories/0`)).text, /<button[^>]*name="answer"/)
  t.equal((await admin.get(`${path}/categories/99`)).status, 404)
  t.match(await admin.post('/assessments', { framework: 'none' }), { status: 400, text: /Choose a framework/ })
})

t.test('recommendations have owners, which filter the list; the API does not show them', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const path = await assessed(site, 'no')
  const admin = site.signIn('a', 'admin')
  await admin.post(`${path}/complete`)
  // The first page has those of the highest priority.
  const [first, second] = store.recommendations.ofOrganization(organization.id).sort(byPriority)
  const before = store.auditLog.lastSequence(organization.id)
  const firstOf = () => store.recommendations.ofOrganization(organization.id).find(({ id }) => id === first?.id)
  const change = { status: 'open', owner: ' grace@acme.example ' }
  t.match(await admin.post(`/recommendations/${first?.id}`, change), { status: 303 })
  const [entry, ...others] = store.auditLog.ofOrganization(organization.id).slice(before)
  t.match(entry, { action: 'recommendation.owner', details: { owner: 'grace@acme.example', was: '' } })
  t.same(others, [], 'the status did not change')
  const of = async (owner: string) => (await admin.get(`/recommendations?owner=${encodeURIComponent(owner)}`)).text
  t.match(await of('grace@acme.example'), `/recommendations/${first?.id}`)
  t.notMatch(await of('grace@acme.example'), `/recommendations/${second?.id}`)
  t.notMatch(await of('-'), `/recommendations/${first?.id}`)
  const rows = await admin.rows('/recommendations.csv?owner=grace%40acme.example')
  t.match(rows, [{ Owner: 'grace@acme.example', Status: 'open' }])
  t.equal(rows.length, 1)
  t.notMatch(JSON.stringify(publishedList(store, organization.id, 'recommendations')), /grace|"owner"/)
  const long = 'x'.repeat(300)
  const refused = { status: 'completed', owner: long }
  const wrong = await admin.post(`/recommendations/${first?.id}?status=all`, refused)
  t.match(wrong, { status: 400, text: /owner: expected one line of 1 to 255 bytes/ })
  t.match(wrong.text, `value="${long}"`, 'the form keeps what was typed')
  t.equal(wrong.text.split(long).length, 2, 'only in its own form')
  t.match(wrong.text, `action="/recommendations/${first?.id}?status=all"`, 'with the filters of the list')
  t.equal(firstOf()?.status, 'open', 'nothing is changed')
  await admin.post(`/recommendations/${first?.id}`, { status: 'open', owner: '' })
  t.equal(firstOf()?.owner, '')
  // A later assessment keeps the owner.
  await admin.post(`/recommendations/${first?.id}`, { status: 'open', owner: 'grace@acme.example' })
  const again = await assessed(site, 'no')
  await admin.post(`${again}/complete`)
  t.equal(firstOf()?.owner, 'grace@acme.example')
})

t.test('an assessment is compared with the one that was completed before', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  const first = await assessed(site, 'no')
  t.notMatch((await admin.get(first)).text, /Compared with/)
  await admin.post(`${first}/complete`)
  const second = await assessed(site, 'yes')
  t.match((await admin.get(second)).text, /Compared with the last assessment/)
  t.match((await admin.get(`${second}/categories/0`)).text, /was: No/)
  await admin.post(`${second}/complete`)
  const { text } = await admin.get(second)
  t.match(text, /Score 0 → 100 \(\+100\)/)
  t.match(text, /(\d+) better, 0 worse, 0 unchanged of the \1 items that both answer/)
  t.notMatch((await admin.get(first)).text, /Compared with/, 'the earlier one has no comparison')
  t.match((await admin.get('/assessments')).text, /1 of 8 assessed/)
  const rows = await admin.rows('/assessments.csv')
  t.match(rows, [
    { Framework: 'AI Security', Status: 'completed', Score: '100', Grade: 'A' },
    { Framework: 'AI Security', Status: 'completed', Score: '0', Grade: 'F' },
  ])
})

t.test('a suggested answer is stored only if somebody accepts it, with its source', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  assessments.import(organization, content('iso-27001', { 'A.5.20': 'yes', 'A.5.21': 'no' }), { complete: true })
  const made = assessments.create(organization, 'cis-v8', 'Autumn', ['15.4', '15.5'])
  const admin = site.signIn('a', 'admin')
  const path = `/assessments/${made.id}`
  t.match((await admin.get(path)).text, /Completed assessments and discovery suggest 1 answer/)
  const [first, second] = [`${path}/categories/0/items/0`, `${path}/categories/0/items/1`]
  t.match(
    (await admin.get(first)).text,
    /name="accept" value="partial".*Accept: Partial.*ISO 27001 A.5.20 \(yes, 2026-/s,
  )
  const answers = () => store.assessments.categories(made)[0]?.items.map(({ answer, note }) => [answer, note])
  await admin.post(first, { note: '' })
  t.match(answers(), [
    ['unanswered', ''],
    ['unanswered', ''],
  ])
  await admin.post(first, { accept: 'partial' })
  await admin.post(second, { accept: 'yes' })
  t.match(answers(), [
    ['partial', /^Accepted from ISO 27001 A.5.20 \(yes, 2026-.*A.5.21 \(no/],
    ['unanswered', ''],
  ])
  await admin.post(first, { answer: 'no', note: 'checked', accept: 'partial' })
  t.match(answers()?.[0], ['no', 'checked'], 'a chosen answer counts, not the suggestion')
})

t.test('discovery suggests an answer with its evidence, and says later that it no longer holds', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const sender = new Sender()
  const scan = (name: string): void => {
    scanEvents(site, organization, [sender.event(name, clock.nowMs())])
  }
  const { approvals } = new Administration(store, clock)
  approvals.add(organization, loadCatalog(), ['claude'], { owner: 'grace@acme.example' })
  scan('claude.ai')
  const admin = site.signIn('a', 'admin')
  const { headers } = await admin.post('/assessments', { framework: 'ai-security', profile: 'INV-3' })
  const path = String(headers['location'])
  t.match((await admin.get(path)).text, /Completed assessments and discovery suggest 1 answer/)
  const { text } = await admin.get(`${path}/categories/0`)
  t.match(
    text,
    /name="accept" value="yes"[^>]*>\s*Accept: Yes.*discovery: AI platforms found: 1; not approved: 0; without a decision: 0; /s,
  )
  const item = `${path}/categories/0/items/0`
  await admin.post(item, { note: '' })
  const itemNow = () => {
    const [assessment] = store.assessments.ofOrganization(organization.id)
    return assessment && store.assessments.categories(assessment)[0]?.items[0]
  }
  t.equal(itemNow()?.answer, 'unanswered', 'saving accepts nothing')
  t.match(await admin.post(item, { note: '', accept: 'yes' }), { status: 303 })
  t.match(itemNow(), {
    answer: 'yes',
    note: /^Accepted from discovery: AI platforms found: 1; not approved: 0; without a decision: 0; /,
  })
  await admin.post(`${path}/complete`)
  t.match((await admin.get(`${path}/categories/0`)).text, /Discovery at completion: AI platforms found: 1/)
  t.notMatch((await admin.get(path)).text, /no longer supports/)
  scan('chatgpt.com')
  t.match(
    (await admin.get(path)).text,
    /Discovery no longer supports 1 answer.*AI platforms found: 2; not approved: 1/s,
  )
  t.match((await admin.get(`${path}/categories/0`)).text, /no longer supported/)
})

t.test('a new assessment carries answers over, and new and changed items are marked', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const admin = site.signIn('a', 'admin')
  const { assessments } = new Administration(store, clock)
  const [first, ...others] = currentItems('nist-csf-2').categories
  const [kept, changed, added] = first?.items ?? []
  if (first === undefined || kept === undefined || changed === undefined || added === undefined) throw new Error('none')
  const categories = [
    {
      ...first,
      items: [
        { ...kept, answer: 'yes' as const, note: 'seen' },
        { ...changed, question: 'Was it asked differently?', answer: 'no' as const },
      ],
    },
    ...others.map((each) => ({ ...each, items: each.items.map((item) => ({ ...item, answer: 'yes' as const })) })),
  ]
  const given = { frameworkId: 'nist-csf-2', title: 'Spring', template: '00000000', categories } as const
  const old = assessments.import(organization, given, { complete: true })
  const page = (await admin.get(`/assessments/${old.id}`)).text
  t.match(page, /The framework has other items now: \d+ new, 1 changed, 0 removed/)
  t.match(page, added.id)
  t.notMatch(page, `/assessments/${old.id}/update`, 'a completed assessment stays')

  const answer = await admin.post('/assessments', { framework: 'nist-csf-2', title: 'Autumn', carry: 'yes' })
  const path = String(answer.headers['location'])
  const itemPage = async (place: number) => (await admin.get(`${path}/categories/0/items/${place}`)).text
  t.match(await itemPage(2), new RegExp(`${added.title}</h2>.*<span class="tag">New<`))
  t.match(await itemPage(1), new RegExp(`${changed.title}</h2>.*<span class="tag">Question changed<`))
  const made = store.assessments.get(organization.id, path.slice('/assessments/'.length))
  if (made === undefined) throw new Error('no assessment')
  const [carried, again] = itemsOf(store.assessments.categories(made))
  t.match([carried, again], [{ answer: 'yes', note: 'seen' }, { answer: 'unanswered' }])
})

t.test('the page of an item assigns it, and shows its links and changes', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  const made = assessments.create(organization, 'cis-v8', 'Autumn', ['1.1'])
  const admin = site.signIn('a', 'admin')
  const category = `/assessments/${made.id}/categories/0`
  const path = `${category}/items/0`
  const work = {
    owner: 'grace@acme.example',
    due: '2026-12-01',
    links: 'https://a.example/1\r\n\r\nhttps://a.example/2',
  }
  t.match(await admin.post(path, work), { status: 303, headers: { location: `${path}?done=saved` } })
  await admin.post(path, { answer: 'no', note: 'seen' })
  const { text } = await admin.get(path)
  t.match(text, /value="grace@acme.example".*value="2026-12-01"/s)
  t.match(text, /https:\/\/a.example\/1\nhttps:\/\/a.example\/2<\/textarea>/)
  t.match(text, /Changes.*Answer<\/td><td>no<\/td>.*Owner<\/td><td>grace@acme.example/s)
  const wrong = await admin.post(path, { ...work, links: 'javascript:alert(1)', due: '2027-01-01' })
  t.match(wrong, { status: 400, text: /http or https address.*value="2027-01-01"/s })
  t.equal((await admin.get(`${category}/items/9`)).status, 404)
  const viewer = site.signIn('v', 'viewer')
  t.match((await viewer.get(path)).text, /grace@acme.example, due 2026-12-01/)
  t.equal((await viewer.post(path, work)).status, 403)
  await admin.post(`/assessments/${made.id}/complete`)
  t.notMatch((await admin.get(path)).text, /<input[^>]*name="owner"/)
  t.equal((await admin.post(path, work)).status, 409)
  const [recommendation] = store.recommendations.ofOrganization(organization.id)
  const list = `/recommendations/${recommendation?.id}`
  t.match((await admin.get('/recommendations')).text, /name="due" type="date" value="2026-12-01"/)
  t.match(await admin.post(list, { status: 'open', owner: 'Grace', due: '2027-01-15' }), { status: 303 })
  t.match(store.recommendations.ofOrganization(organization.id), [{ owner: 'Grace', dueOn: '2027-01-15' }])
  t.match(await admin.post(list, { status: 'open', owner: 'Grace', due: 'soon' }), {
    status: 400,
    text: /expected a date/,
  })
  t.match((await admin.get('/recommendations.csv')).text, /Owner,Due,.*Grace,2027-01-15/s)
})

t.test('a comparison says what changed and why the score moved, and a trend shows all scores', async (t) => {
  const site = await serveConsole(t)
  const { organization, clock } = site
  const { assessments } = new Administration(site.store, clock)
  const complete = (answer: 'yes' | 'no' | 'partial') => {
    clock.add(86_400_000)
    return assessments.import(organization, content('cis-v8', { '1.1': answer, '1.2': 'yes' }), { complete: true }).id
  }
  const [first, second, third] = [complete('no'), complete('partial'), complete('yes')]
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get(`/assessments/${third}`)).text, `<a href="/assessments/${third}/compare">`)
  const path = `/assessments/${third}/compare`
  const { text } = await admin.get(path)
  t.match(text, /75 → 100\s*\(\+25\).*1 item changed, 1 unchanged/s)
  t.match(text, /Check 1\.1.*Partial<\/td><td>Yes<\/td><td[^>]*>\+25</s)
  t.match((await admin.get(`${path}?with=${first}`)).text, /50 → 100\s*\(\+50\)/)
  t.match((await admin.get(`${path}.csv?with=${first}`)).text, /Item,Before,After,Points\r\n1\.1,no,yes,50/)
  t.equal((await admin.get(`/assessments/${first}/compare`)).status, 404, 'nothing before it')
  t.match((await admin.get(`/assessments/${first}/compare?with=${second}`)).text, /75 → 50/)
  const day = /\(\d{4}-\d\d-\d\d\)/.source
  const trend = new RegExp(`class="trend"[^>]*aria-label="Scores of CIS Controls v8: 50 ${day}, 75 ${day}, 100 ${day}"`)
  t.match((await admin.get('/assessments')).text, trend)
  t.match(
    (await admin.get('/assessments.csv')).text,
    /Change of the score.*,100,A,"[^"]*",25,.*,75,C,"[^"]*",25,.*,50,F,"[^"]*",,/s,
  )
})

t.test('an answer is submitted by one person and approved by another, and then locked', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  const made = assessments.create(organization, 'cis-v8', 'Autumn', ['1.1'])
  const path = `/assessments/${made.id}/categories/0/items/0`
  const [ada, bob] = [site.signIn('ada', 'member'), site.signIn('bob', 'admin')]
  t.notMatch((await ada.get(path)).text, /Submit for review/)
  t.match((await ada.get(path)).text, /<datalist id="owner-list">.*<option value="bob"/s)
  t.match(await ada.post(path, { answer: 'not_applicable' }), { status: 400, text: /give the reason/ })
  const typed = { answer: 'yes', note: 'seen', links: 'https://a.example/1 2026-11-19' }
  t.equal((await ada.post(path, { ...typed, review: 'submit' })).status, 303)
  const submitted = (await ada.get(`${path}?show=unsupported`)).text
  t.match(submitted, /submitted<.*by member ada/s)
  t.match(submitted, /no longer supported<\/span> Expired: https:\/\/a.example\/1 2026-11-19/)
  t.match(submitted, /href="https:\/\/a.example\/1" rel="noreferrer"/)
  t.notMatch(submitted, /value="approve"/)
  t.equal((await ada.post(path, { review: 'approve' })).status, 403)
  t.match((await bob.get(path)).text, /value="approve".*value="reopen"/s)
  t.equal((await bob.post(path, { review: 'approve' })).status, 303)
  const locked = (await ada.get(path)).text
  t.match(locked, /approved<.*by member bob.*Answer: Yes/s)
  t.notMatch(locked, /<textarea[^>]*name="note"|name="answer"|Reopen/)
  const late = {
    ...typed,
    answer: 'no',
    note: 'a long text',
    owner: 'Ada',
    due: '2027-01-31',
    links: 'https://a.example/2',
  }
  const { status, text } = await ada.post(path, late)
  t.equal(status, 409)
  t.match(text, /member bob has approved it/)
  for (const sent of [
    'Answer</dt><dd class="break">no<',
    '>a long text<',
    '>Ada<',
    '>2027-01-31<',
    '>https://a.example/2<',
  ]) {
    t.match(text, sent, 'what was sent is on the page')
  }
  t.equal((await ada.post(path, { comment: ' See ticket 7 ' })).status, 303)
  t.match((await bob.get(path)).text, /member ada<\/p><\/td><td>Comment<\/td><td>See ticket 7<.*approved</s)
  const long = 'x'.repeat(1001)
  const refused = await ada.post(path, { comment: long })
  t.match(refused, { status: 400, text: new RegExp(`>${long}</textarea>.*id="comment-error".*1 to 1000 bytes`, 's') })
  t.notMatch(refused.text, /Stored now/)
  t.match((await bob.get(path)).text, /Reopen the item/)
  await bob.post(path, { review: 'reopen' })
  t.match((await ada.get(path)).text, /<textarea[^>]*name="note"/)
})

t.test('a member sees the own items of all assessments in progress', async (t) => {
  const site = await serveConsole(t)
  const { organization, clock } = site
  const { assessments } = new Administration(site.store, clock)
  const [first, second, done] = (['cis-v8', 'soc-2', 'hipaa'] as const).map((framework) =>
    assessments.import(organization, content(framework, { '1.1': 'no', '1.2': 'no' })),
  )
  for (const made of [first, second, done]) assessments.assign(organization, String(made?.id), '1.2', { owner: 'ada' })
  assessments.assign(organization, String(first?.id), '1.1', { owner: 'bob' })
  assessments.assign(organization, String(second?.id), '1.2', { dueOn: '2026-11-20' })
  assessments.complete(organization, String(done?.id))
  clock.add(86_400_000)
  const ada = site.signIn('ada', 'member')
  t.match((await ada.get('/assessments')).text, 'href="/assessments/items"')
  const { text } = await ada.get('/assessments/items')
  const links = [...text.matchAll(/href="\/assessments\/([^/"]+)\/categories\/0\/items\/1"/g)].map(([, id]) => id)
  t.same(links, [second?.id, first?.id], 'due first, and without the completed one')
  t.match(text, /2026-11-20 <span class="tag warn">Overdue/)
  t.match((await ada.get('/assessments/items?owner=bob')).text, /1 item<.*categories\/0\/items\/0/s)
  t.match((await ada.get('/assessments/items?owner=nobody')).text, /No item of an assessment in progress/)
  const foreign = site.signIn('ada', 'owner', makeOrganization(site, 'Globex'))
  t.match((await foreign.get('/assessments/items')).text, /No item of an assessment in progress/)
})

t.test('an item and its recommendation are marked until the law applies', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  // The report needs a scan.
  runScan(store, registries, organization.id, 'administrator', clock)
  const { assessments } = new Administration(store, clock)
  const made = assessments.create(organization, 'ai-security', 'Autumn', ['PEO-5', 'PRV-1'])
  const admin = site.signIn('a', 'admin')
  const path = `/assessments/${made.id}/categories`
  const { text } = await admin.get(`${path}/0/items/0`)
  t.match(text, /Not in force until 2027-12-02/)
  t.match(
    text,
    /href="https:\/\/eur-lex[^"]+2026\/1744\/oj"[^>]*>\s*AIACT Art. 26\(2\)\s*<\/a> applies from 2027-12-02/,
  )
  const inForce = (await admin.get(`${path}/1/items/0`)).text
  t.match(inForce, /AIACT Art. 50\(1\)\s*<\/a> applies from 2026-08-02/)
  t.notMatch(inForce, /Not in force/)
  for (const item of ['PEO-5', 'PRV-1']) assessments.answer(organization, made.id, item, 'no')
  assessments.complete(organization, made.id)
  const list = (await admin.get('/recommendations')).text
  t.equal(list.split('Not in force until').length, 2)
  t.match((await admin.get('/report')).text, /law from 2027-12-02/)
  const rows = await admin.rows('/recommendations.csv')
  t.match(rows, [{ 'Law from': '2027-12-02' }, { 'Law from': '' }])
  clock.add(Date.parse('2027-12-02') - clock.nowMs())
  t.notMatch((await site.signIn('b', 'admin').get('/recommendations')).text, /Not in force until/)
})

t.test('several recommendations get a status at once, and need a reason to be dismissed', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const { assessments } = new Administration(store, clock)
  assessments.import(organization, content('cis-v8', { '1.1': 'no', '1.2': 'no', '1.3': 'no' }), { complete: true })
  const admin = site.signIn('a', 'member')
  const statuses = () => store.recommendations.ofOrganization(organization.id).map(({ status }) => status)
  const [first, second] = store.recommendations.ofOrganization(organization.id).map(({ id }) => id)
  const page = (await admin.get('/recommendations')).text
  t.match(page, `<input type="checkbox" form="bulk" name="id" value="${first}"`)
  const send = (fields: Record<string, string>) =>
    admin.post('/recommendations?framework=cis-v8', { id: [String(first), String(second)], ...fields })
  t.match(await send({ status: 'dismissed' }), { status: 400, text: /give the reason/ })
  t.match(await admin.post('/recommendations', { status: 'completed' }), {
    status: 400,
    text: /Select recommendations/,
  })
  t.same(statuses(), ['open', 'open', 'open'])
  const done = await send({ status: 'dismissed', reason: 'Out of scope' })
  t.match(done, { status: 303, headers: { location: '/recommendations?framework=cis-v8&done=saved' } })
  t.same(statuses(), ['dismissed', 'dismissed', 'open'])
  t.match((await site.signIn('v', 'viewer').get('/recommendations?status=dismissed')).text, /Dismissed: Out of scope/)
})
