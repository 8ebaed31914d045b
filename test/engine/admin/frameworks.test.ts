import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { OWN_FRAMEWORKS_MAX } from '../../../engine/admin/frameworks.ts'
import { readFrameworkFile } from '../../../engine/assess/framework-file.ts'
import { itemChanges, newerItems } from '../../../engine/assess/items.ts'
import { itemsOf } from '../../../engine/assess/states.ts'
import { guidanceOf, templateOf } from '../../../engine/assess/templates.ts'
import { readAssessment, writeAssessment } from '../../../engine/assess/transfer.ts'
import { publishedList } from '../../support/assessments.ts'
import { frameworkFile } from '../../support/framework-file.ts'
import { makeOrganization, openStore } from '../../support/store.ts'

function read(items: readonly Readonly<Record<string, unknown>>[], id = 'own-acme') {
  return readFrameworkFile(Buffer.from(frameworkFile(items, { id })))
}

function open(t: Parameters<typeof openStore>[0]) {
  const opened = openStore(t)
  const administration = new Administration(opened.store, opened.clock)
  return { ...opened, administration, acme: makeOrganization(opened, 'Acme'), other: makeOrganization(opened, 'Other') }
}

t.test('an own framework is assessed like a built-in one, and the API does not have it', async (t) => {
  const { store, administration, acme } = open(t)
  const { assessments, frameworks } = administration
  frameworks.add(acme, read([{ id: 'A-1' }, { id: 'A-2', baselines: ['low'] }]))
  const made = assessments.create(acme, 'own-acme')
  t.match(made, { frameworkId: 'own-acme', frameworkName: 'Acme baseline', title: 'Acme baseline', status: 'draft' })
  const [first] = itemsOf(store.assessments.categories(made))
  if (first === undefined) throw new Error('no item')
  const template = templateOf(store, acme.id, 'own-acme')
  t.match(guidanceOf('own-acme', first, template)?.guidance, { yes: 'Each account names a person.' })
  t.equal(itemsOf(store.assessments.categories(assessments.create(acme, 'own-acme', 'Low', ['low']))).length, 1)
  t.throws(() => assessments.create(acme, 'own-acme', 'None', ['high']), { message: /has the profiles low/ })

  assessments.answer(acme, made.id, 'A-1', 'no')
  assessments.answer(acme, made.id, 'A-2', 'yes')
  const completed = assessments.complete(acme, made.id)
  t.match(completed.result, { overallScore: 50, grade: 'F' })
  t.match(store.recommendations.ofOrganization(acme.id), [{ frameworkId: 'own-acme', itemId: 'A-1' }])
  for (const list of ['scores', 'assessments', 'recommendations'] as const) {
    t.same(publishedList(store, acme.id, list), [], `clients of ${list} know the frameworks of the specification only`)
  }
  for (const format of ['json', 'oscal'] as const) {
    const text = writeAssessment(completed, store.assessments.categories(completed), format)
    const content = readAssessment(Buffer.from(text))
    t.match(assessments.import(acme, content), { frameworkId: 'own-acme', frameworkName: 'Acme baseline' })
  }
})

t.test('a new version of a file is offered to open assessments, and completed ones stay', async (t) => {
  const { store, administration, acme } = open(t)
  const { assessments, frameworks } = administration
  const first = frameworks.add(acme, read([{ id: 'A-1' }, { id: 'A-2' }]))
  const made = assessments.create(acme, 'own-acme')
  for (const id of ['A-1', 'A-2']) assessments.answer(acme, made.id, id, 'yes')
  const done = assessments.import(
    acme,
    { ...made, categories: store.assessments.categories(made), title: 'Done' },
    { complete: true },
  )
  const second = frameworks.add(acme, read([{ id: 'A-1' }, { id: 'A-2', question: 'Other?' }, { id: 'A-3' }]))
  t.not(second.version, first.version)
  t.match(store.auditLog.ofOrganization(acme.id).at(-1), {
    action: 'framework.add',
    details: { id: 'own-acme', was: first.version, version: second.version, items: 3 },
  })
  const template = templateOf(store, acme.id, 'own-acme')
  t.same(newerItems(made, store.assessments.categories(made), template), { kept: 2, added: 1, removed: 0, changed: 1 })
  const updated = assessments.update(acme, made.id)
  t.equal(updated.template, second.version)
  t.same(
    itemsOf(store.assessments.categories(updated)).map(({ answer }) => answer),
    ['yes', 'yes', 'unanswered'],
  )
  t.equal(itemsOf(store.assessments.categories(done)).length, 2)
  t.equal(itemChanges(done, store.assessments.categories(done), template).length, 2)
  const carried = assessments.create(acme, 'own-acme', 'Next', undefined, done.id)
  t.same(
    itemsOf(store.assessments.categories(carried)).map(({ answer }) => answer),
    ['yes', 'unanswered', 'unanswered'],
  )
})

t.test('a removed framework leaves its assessments', async (t) => {
  const { store, administration, acme } = open(t)
  const { assessments, frameworks } = administration
  frameworks.add(acme, read([{ id: 'A-1' }]))
  const made = assessments.create(acme, 'own-acme')
  frameworks.remove(acme, 'own-acme')
  t.same(store.ownFrameworks.ofOrganization(acme.id), [])
  t.equal(newerItems(made, store.assessments.categories(made)), undefined)
  t.throws(() => assessments.create(acme, 'own-acme'), { code: 'NOT_FOUND', message: /no framework own-acme/ })
  t.throws(() => assessments.update(acme, made.id), { code: 'NOT_FOUND' })
  t.throws(() => frameworks.remove(acme, 'own-acme'), { code: 'NOT_FOUND' })
  assessments.answer(acme, made.id, 'A-1', 'yes')
  t.match(assessments.complete(acme, made.id), { status: 'completed', frameworkName: 'Acme baseline' })
})

t.test('frameworks belong to one organization, and their number is limited', async (t) => {
  const { store, administration, acme, other } = open(t)
  const { frameworks, assessments } = administration
  for (let at = 0; at < OWN_FRAMEWORKS_MAX; at++) frameworks.add(acme, read([{ id: 'A' }], `own-${at}`))
  t.throws(() => frameworks.add(acme, read([{ id: 'A' }], 'own-more')), {
    code: 'CONFLICT',
    message: /remove one first/,
  })
  t.equal(frameworks.add(acme, read([{ id: 'B' }], 'own-0')).items, 1, 'replacing needs no room')
  t.same(store.ownFrameworks.ofOrganization(other.id), [])
  t.throws(() => assessments.create(other, 'own-0'), { code: 'NOT_FOUND' })
  t.throws(() => frameworks.remove(other, 'own-0'), { code: 'NOT_FOUND' })
})

t.test('only admins add and remove frameworks', async (t) => {
  const { store, clock, administration, acme } = open(t)
  for (const role of ['viewer', 'member', 'admin'] as const) {
    administration.members.add(acme, role, role)
    const { frameworks } = new Administration(store, clock, { kind: 'member', name: role })
    const add = (): unknown => frameworks.add(acme, read([{ id: 'A' }]))
    if (role === 'admin') t.ok(add())
    else t.throws(add, { code: 'NOT_ALLOWED' })
  }
})
