import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { basesOf, basisText } from '../../../engine/assess/basis.ts'
import { carriedOver, currentItems } from '../../../engine/assess/items.ts'
import { readAssessment, writeAssessment } from '../../../engine/assess/transfer.ts'
import { ITEM_CHANGES_MAX, ITEM_COMMENTS_MAX, type ReviewStep } from '../../../engine/assess/work.ts'
import type { Assessment, AssessmentItem } from '../../../engine/store/assessments.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { content, publishedList } from '../../support/assessments.ts'
import { NOON, type openStore } from '../../support/store.ts'

function assessed(t: Parameters<typeof openStore>[0]) {
  const opened = acmeSite(t)
  const { organization: acme, administration } = opened
  const { assessments } = administration
  const made = assessments.import(acme, content('cis-v8', { '1.1': 'unanswered', '1.2': 'unanswered' }))
  const itemOf = (assessment: Assessment = made) => opened.store.assessments.categories(assessment)[0]?.items[0]
  return { ...opened, acme, administration, assessments, made, itemOf }
}

const LINK = 'https://wiki.acme.example/policy'

t.test('an item has an owner, a due date, links, and a history of its changes', async (t) => {
  const { assessments, acme, made, itemOf, clock, store } = assessed(t)
  t.notOk(itemOf()?.work)
  assessments.assign(acme, made.id, '1.1', { owner: 'grace@acme.example', dueOn: '2026-12-01', links: [LINK] })
  clock.add(1000)
  assessments.answer(acme, made.id, '1.1', 'partial', 'draft of May')
  assessments.answer(acme, made.id, '1.1', 'partial', 'draft of June')
  const by = /^operator /
  t.match(itemOf(), {
    answer: 'partial',
    note: 'draft of June',
    work: {
      owner: 'grace@acme.example',
      dueOn: '2026-12-01',
      links: [LINK],
      history: [
        { atMs: NOON, by, field: 'owner', to: 'grace@acme.example' },
        { atMs: NOON, by, field: 'due', to: '2026-12-01' },
        { atMs: NOON, by, field: 'links', to: '1' },
        { atMs: NOON + 1000, by, field: 'answer', to: 'partial' },
        { atMs: NOON + 1000, by, field: 'note', to: 'draft of May' },
        { atMs: NOON + 1000, by, field: 'note', to: 'draft of June' },
      ],
    },
  })
  const entry = store.auditLog.ofOrganization(acme.id).find(({ action }) => action === 'assessment.assign')
  t.match(entry, { details: { item: '1.1', owner: 'grace@acme.example', due: '2026-12-01', links: 1 } })
  assessments.assign(acme, made.id, '1.1', { owner: '' })
  t.match(itemOf()?.work, { owner: '', dueOn: '2026-12-01', links: [LINK] }, 'absent fields stay')
  for (let at = 0; at < ITEM_CHANGES_MAX; at++) assessments.answer(acme, made.id, '1.1', at)
  const history = itemOf()?.work?.history
  t.equal(history?.length, ITEM_CHANGES_MAX)
  t.match(history?.[0], { field: 'answer', to: '0' }, 'the oldest are removed')
})

const REFUSED = [
  { given: { owner: 'x'.repeat(256) }, message: /^owner: .*up to 255 bytes/ },
  { given: { owner: 'two\nlines' }, message: /^owner: / },
  { given: { dueOn: 'tomorrow' }, message: /^due date: found "tomorrow", expected a date such as 2026-12-01/ },
  { given: { dueOn: '2026-02-30' }, message: /^due date: / },
  { given: { links: ['javascript:alert(1)'] }, message: /^links: .*http or https address/ },
  { given: { links: ['https://'] }, message: /^links: / },
  { given: { links: [`https://a.example/${'x'.repeat(500)}`] }, message: /^links: / },
  { given: { links: Array.from({ length: 6 }, (_, at) => `https://a.example/${at}`) }, message: /at most 5 links/ },
] as const

t.test('wrong values are refused, and so is a completed assessment', async (t) => {
  const { assessments, acme, made, itemOf } = assessed(t)
  for (const { given, message } of REFUSED) t.throws(() => assessments.assign(acme, made.id, '1.1', given), { message })
  t.notOk(itemOf()?.work)
  t.throws(() => assessments.assign(acme, made.id, 'none', { owner: 'Grace' }), { code: 'NOT_FOUND' })
  for (const item of ['1.1', '1.2']) assessments.answer(acme, made.id, item, 'no')
  assessments.complete(acme, made.id)
  t.throws(() => assessments.assign(acme, made.id, '1.1', { owner: 'Grace' }), { code: 'CONFLICT' })
})

const SEEN = { owner: 'Grace', dueOn: '2026-12-01', links: [LINK] }
const LOST = [
  { given: { owner: 'Ada' }, now: { owner: 'Alan' }, message: '1.1 was changed in the meantime: Alan' },
  { given: { dueOn: '' }, now: { dueOn: '2027-01-15' }, message: '1.1 was changed in the meantime: 2027-01-15' },
  {
    given: { links: [] },
    now: { links: [LINK, `${LINK}/2`] },
    message: `1.1 was changed in the meantime: ${LINK},${LINK}/2`,
  },
  { given: { links: [] }, now: { links: [] } },
  { given: { owner: 'Ada' }, now: { dueOn: '' } },
  { given: { owner: 'Ada' }, now: { owner: 'Ada' } },
] as const

t.test('nobody overwrites an owner, a due date or links without seeing them', async (t) => {
  for (const { given, now, ...expected } of LOST) {
    const { assessments, acme, made, itemOf } = assessed(t)
    assessments.assign(acme, made.id, '1.1', { ...SEEN, ...now })
    const assign = () => assessments.assign(acme, made.id, '1.1', given, SEEN)
    if ('message' in expected) t.throws(assign, { code: 'CONFLICT', ...expected })
    else assign()
    t.match(itemOf()?.work, { ...('message' in expected ? {} : given), ...now })
  }
})

t.test('recommendations get the owner and the due date of their item, and keep them without', async (t) => {
  const { administration, assessments, acme, made, store } = assessed(t)
  const ofItem = (id: string) => store.recommendations.ofOrganization(acme.id).find(({ itemId }) => itemId === id)
  assessments.assign(acme, made.id, '1.1', { owner: 'Grace', dueOn: '2026-12-01' })
  for (const item of ['1.1', '1.2']) assessments.answer(acme, made.id, item, 'no')
  assessments.complete(acme, made.id)
  t.match(ofItem('1.1'), { owner: 'Grace', dueOn: '2026-12-01' })
  t.match(ofItem('1.2'), { owner: '', dueOn: '' })
  administration.recommendations.assign(acme, String(ofItem('1.2')?.id), { owner: 'Ada', dueOn: '2027-01-15' })
  const again = assessments.import(acme, content('cis-v8', { '1.1': 'no', '1.2': 'no' }))
  assessments.assign(acme, again.id, '1.1', { owner: 'Alan' })
  assessments.complete(acme, again.id)
  t.match(ofItem('1.1'), { owner: 'Alan', dueOn: '2026-12-01' })
  t.match(ofItem('1.2'), { owner: 'Ada', dueOn: '2027-01-15' })
  t.notMatch(JSON.stringify(publishedList(store, acme.id, 'recommendations')), /Alan|due/, 'not in the API')
  const recommendation = String(ofItem('1.1')?.id)
  t.throws(() => administration.recommendations.assign(acme, recommendation, { dueOn: 'soon' }), { code: 'USAGE' })
})

t.test('files carry the work of items, and fill an open assessment with it', async (t) => {
  const { assessments, acme, made, store, itemOf } = assessed(t)
  const links = [LINK, `${LINK}/2 2027-01-31`]
  assessments.assign(acme, made.id, '1.1', { owner: '=Grace', dueOn: '2026-12-01', links })
  assessments.answer(acme, made.id, '1.1', 'yes')
  assessments.review(acme, made.id, '1.1', 'submit')
  const categories = store.assessments.categories(made)
  const json = readAssessment(Buffer.from(writeAssessment(made, categories, 'json')))
  const csv = readAssessment(Buffer.from(writeAssessment(made, categories, 'csv')), { frameworkId: 'cis-v8' })
  const oscal = readAssessment(Buffer.from(writeAssessment(made, categories, 'oscal')))
  t.same(oscal.skipped, [])
  const { history: _, ...work } = itemOf()?.work ?? { history: [] }
  t.match(work, { links, review: { state: 'submitted', by: /^operator / } })
  for (const file of [json, csv, oscal]) {
    t.same(file.categories[0]?.items[0]?.work, { ...work, history: [] }, 'all but the history')
  }
  const other = assessments.import(acme, content('cis-v8', { '1.1': 'yes', '1.2': 'unanswered' }))
  assessments.fill(acme, other.id, csv)
  t.match(itemOf(other), {
    answer: 'yes',
    work: { owner: '=Grace', dueOn: '2026-12-01', links, history: [{}, {}, {}] },
  })
})

t.test('an update to other items keeps the work by id; a new assessment carries owner and links over', async (t) => {
  const { assessments, acme, itemOf } = assessed(t)
  const own = assessments.create(acme, 'cis-v8', 'Own', ['1.1'])
  assessments.assign(acme, own.id, '1.1', { owner: 'Grace' })
  t.match(itemOf(assessments.update(acme, own.id))?.work, { owner: 'Grace' })
  assessments.assign(acme, own.id, '1.1', { dueOn: '2026-12-01', links: [LINK] })
  assessments.answer(acme, own.id, '1.1', 'yes')
  assessments.complete(acme, own.id)
  const { categories } = carriedOver(currentItems('cis-v8', ['1.1']).categories, [itemOf(own) as AssessmentItem])
  t.same(categories[0]?.items[0]?.work, { owner: 'Grace', dueOn: '', links: [LINK], history: [] })
})

interface Step {
  readonly by: string
  readonly step: ReviewStep
  /** The state after it, or why it is refused. */
  readonly after: 'submitted' | 'approved' | undefined | RegExp
}

const ALICE = 'alice'
const BOB = 'bob'
const REVIEWS: readonly { readonly name: string; readonly steps: readonly Step[] }[] = [
  {
    name: 'submitted, approved and reopened',
    steps: [
      { by: ALICE, step: 'submit', after: 'submitted' },
      { by: BOB, step: 'approve', after: 'approved' },
      { by: ALICE, step: 'reopen', after: undefined },
    ],
  },
  {
    name: 'submitted and returned',
    steps: [
      { by: ALICE, step: 'submit', after: 'submitted' },
      { by: BOB, step: 'reopen', after: undefined },
    ],
  },
  { name: 'never submitted', steps: [{ by: BOB, step: 'approve', after: /1.1: it was not submitted for review/ }] },
  {
    name: 'approved by the same person',
    steps: [
      { by: ALICE, step: 'submit', after: 'submitted' },
      { by: ALICE, step: 'approve', after: /member alice submitted it, so somebody else approves it/ },
    ],
  },
  {
    name: 'submitted and approved twice',
    steps: [
      { by: ALICE, step: 'submit', after: 'submitted' },
      { by: BOB, step: 'submit', after: /it is submitted already/ },
      { by: BOB, step: 'approve', after: 'approved' },
      { by: BOB, step: 'approve', after: /it is approved already/ },
    ],
  },
]

function reviewed(t: Parameters<typeof openStore>[0]) {
  const given = assessed(t)
  const { administration, store, clock, acme } = given
  const by = (memberName: string): Administration['assessments'] => {
    return new Administration(store, clock, { kind: 'member', name: memberName }).assessments
  }
  for (const name of [ALICE, BOB]) administration.members.add(acme, name, 'admin')
  return { ...given, by }
}

for (const { name, steps } of REVIEWS) {
  t.test(`an answer is ${name}`, async (t) => {
    const { acme, made, assessments, itemOf, by } = reviewed(t)
    assessments.answer(acme, made.id, '1.1', 'yes')
    for (const { by: person, step, after } of steps) {
      if (after instanceof RegExp) {
        t.throws(() => by(person).review(acme, made.id, '1.1', step), { code: 'CONFLICT', message: after })
        continue
      }
      by(person).review(acme, made.id, '1.1', step)
      t.equal(itemOf()?.work?.review?.state, after)
      t.match(itemOf()?.work?.history.at(-1), { by: `member ${person}`, field: 'review', to: after ?? 'reopened' })
    }
  })
}

t.test('an approved item is locked until it is reopened, and a change withdraws a submission', async (t) => {
  const { acme, made, assessments, itemOf, by, store } = reviewed(t)
  t.throws(() => by(ALICE).review(acme, made.id, '1.1', 'submit'), { message: /it has no answer to review/ })
  assessments.answer(acme, made.id, '1.1', 'yes')
  by(ALICE).review(acme, made.id, '1.1', 'submit')
  assessments.assign(acme, made.id, '1.1', { owner: 'Grace', dueOn: '2026-12-01' })
  t.equal(itemOf()?.work?.review?.state, 'submitted', 'its owner is not what is reviewed')
  assessments.answer(acme, made.id, '1.1', 'partial')
  t.equal(itemOf()?.work?.review, undefined)
  by(ALICE).review(acme, made.id, '1.1', 'submit')
  by(BOB).review(acme, made.id, '1.1', 'approve')
  const locked = { code: 'CONFLICT', message: '1.1: member bob has approved it. Reopen it before you change it' }
  t.throws(() => assessments.answer(acme, made.id, '1.1', 'no'), locked)
  t.throws(() => assessments.assign(acme, made.id, '1.1', { owner: 'Ada' }), locked)
  t.throws(() => assessments.fill(acme, made.id, content('cis-v8', { '1.1': 'no' })), locked)
  assessments.fill(acme, made.id, content('cis-v8', { '1.1': 'partial', '1.2': 'yes' }))
  const before = itemOf()
  const { categories } = carriedOver(currentItems('cis-v8', ['1.1']).categories, [before as AssessmentItem])
  t.equal(categories[0]?.items[0]?.work?.review, undefined, 'another assessment is reviewed again')
  assessments.complete(acme, made.id)
  t.match(itemOf()?.work?.review, { state: 'approved', by: 'member bob', atMs: NOON })
  t.throws(() => by(BOB).review(acme, made.id, '1.1', 'reopen'), { message: /is completed/ })
  const actions = store.auditLog.ofOrganization(acme.id).map(({ action }) => action)
  t.ok(actions.includes('assessment.submit') && actions.includes('assessment.approve'))
})

t.test('comments stay with their item, also if it is approved, until it has too many', async (t) => {
  const { acme, made, assessments, itemOf, by, store } = reviewed(t)
  assessments.answer(acme, made.id, '1.1', 'yes')
  by(ALICE).review(acme, made.id, '1.1', 'submit')
  by(BOB).review(acme, made.id, '1.1', 'approve')
  by(ALICE).comment(acme, made.id, '1.1', 'first\nsecond line')
  t.match(itemOf()?.work, {
    review: { state: 'approved' },
    history: [{}, {}, {}, { atMs: NOON, by: 'member alice', field: 'comment', to: 'first\nsecond line' }],
  })
  t.match(store.auditLog.ofOrganization(acme.id).at(-1), { action: 'assessment.comment', details: { item: '1.1' } })
  by(BOB).review(acme, made.id, '1.1', 'reopen')
  for (let at = 0; at < 2 * ITEM_CHANGES_MAX; at++) assessments.answer(acme, made.id, '1.1', at)
  const fields = () => itemOf()?.work?.history.map(({ field }) => field) ?? []
  t.same(fields(), ['comment', ...Array(ITEM_CHANGES_MAX).fill('answer')], 'changes are removed, comments are not')
  for (const text of ['', ' blank ', 'x'.repeat(1001), 'bell\x07']) {
    t.throws(() => assessments.comment(acme, made.id, '1.1', text), { code: 'USAGE', message: /^comment: / })
  }
  for (let at = 1; at < ITEM_COMMENTS_MAX; at++) assessments.comment(acme, made.id, '1.1', `number ${at}`)
  t.throws(() => assessments.comment(acme, made.id, '1.1', 'too many'), { code: 'CONFLICT', message: /50 comments/ })
  assessments.answer(acme, made.id, '1.2', 'yes')
  assessments.complete(acme, made.id)
  t.throws(() => assessments.comment(acme, made.id, '1.2', 'late'), { code: 'CONFLICT', message: /is completed/ })
})

t.test('a yes whose evidence has expired is shown beside the score', async (t) => {
  const { acme, made, assessments, store, clock } = assessed(t)
  const basis = () => {
    const now = store.assessments.get(acme.id, made.id) as Assessment
    return basesOf(store, acme.id, clock.nowMs())(now)
  }
  assessments.assign(acme, made.id, '1.1', { links: [`${LINK} 2026-11-21`, LINK] })
  assessments.assign(acme, made.id, '1.2', { links: [`${LINK} 2026-11-21`] })
  assessments.answer(acme, made.id, '1.1', 'yes')
  assessments.answer(acme, made.id, '1.2', 'partial')
  clock.add(86_400_000)
  t.same(basis().expired, [], 'on its last day')
  clock.add(86_400_000)
  t.match(basis().caveats, [
    { itemId: '1.1', kind: 'evidence expired', reason: `Answered yes. Expired: ${LINK} 2026-11-21` },
  ])
  t.match(basisText(basis()), /, 1 with expired evidence/)
})

t.test('not applicable and dismissed need a reason, and no due date is in the past', async (t) => {
  const { acme, made, assessments, administration, store } = assessed(t)
  t.throws(() => assessments.answer(acme, made.id, '1.1', 'not_applicable'), {
    code: 'USAGE',
    message: /give the reason/,
  })
  assessments.answer(acme, made.id, '1.1', 'not_applicable', 'We have no devices')
  t.throws(() => assessments.answer(acme, made.id, '1.1', undefined, ''), { code: 'USAGE' })
  t.throws(() => assessments.assign(acme, made.id, '1.1', { dueOn: '2026-11-19' }), { message: /is in the past/ })
  assessments.assign(acme, made.id, '1.1', { dueOn: '2026-11-20' })
  assessments.answer(acme, made.id, '1.2', 'no')
  assessments.complete(acme, made.id)
  const { recommendations } = administration
  const now = () => store.recommendations.ofOrganization(acme.id)[0]
  const id = String(now()?.id)
  t.throws(() => recommendations.assign(acme, id, { dueOn: '2026-11-19' }), { message: /is in the past/ })
  t.throws(() => recommendations.setStatus(acme, id, 'dismissed'), { code: 'USAGE', message: /give the reason/ })
  recommendations.setStatus(acme, id, 'dismissed', 'Out of scope')
  t.match(now(), { status: 'dismissed', reason: 'Out of scope' })
  t.notMatch(JSON.stringify(publishedList(store, acme.id, 'recommendations')), /Out of scope/)
  recommendations.setStatus(acme, id, 'open')
  t.equal(now()?.reason, undefined)
})
