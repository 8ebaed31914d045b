import t from 'tap'
import { composed, mappedItems, type Relation } from '../../../engine/assess/mappings.ts'
import { itemKey } from '../../../engine/assess/rules.ts'
import { itemsOf } from '../../../engine/assess/states.ts'
import { crosswalk, evidenceText, suggestionsFor } from '../../../engine/assess/suggestions.ts'
import { loadFrameworks } from '../../../engine/assess/templates.ts'
import type { Answer } from '../../../engine/store/assessments.ts'
import { FRAMEWORK_IDS, type FrameworkId } from '../../../engine/store/framework.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { content } from '../../support/assessments.ts'
import { makeOrganization, NOON } from '../../support/store.ts'

const CASES: readonly { name: string; answers: readonly Answer[]; suggested: string | undefined }[] = [
  { name: 'all sources fulfilled', answers: ['yes', 100], suggested: 'yes' },
  { name: 'no source fulfilled', answers: ['no', 0], suggested: 'no' },
  { name: 'one source fulfilled', answers: ['yes', 'no'], suggested: 'partial' },
  { name: 'a source fulfilled in part', answers: ['partial'], suggested: 'partial' },
  { name: 'a source that does not apply', answers: ['yes', 'not_applicable'], suggested: 'yes' },
  { name: 'only sources that do not apply', answers: ['not_applicable'], suggested: undefined },
  { name: 'no source', answers: [], suggested: undefined },
]

for (const { name, answers, suggested } of CASES) {
  t.test(`supersets, ${name}: the suggestion is ${suggested ?? 'none'}`, async (t) => {
    const opened = acmeSite(t)
    const { organization: acme, administration } = opened
    const { assessments } = administration
    const sources = mappedItems(loadFrameworks().mappings, 'cis-v8', '15.4', 'iso-27001')
    t.ok(Object.keys(sources).length >= 2)
    t.same([...new Set(Object.values(sources))], ['superset'])
    const answered = Object.fromEntries(answers.map((answer, at) => [String(Object.keys(sources)[at]), answer]))
    if (answers.length > 0) {
      assessments.import(acme, content('iso-27001', { other: 'yes', ...answered }), { complete: true })
    }
    const made = assessments.create(acme, 'cis-v8', 'Autumn', ['15.4'])
    const suggestion = suggestionsFor(opened.store, made, opened.store.assessments.categories(made), NOON).get('15.4')
    t.equal(suggestion?.answer, suggested)
    if (suggestion !== undefined) {
      const [itemId] = Object.keys(sources)
      t.match(suggestion.sources[0], { frameworkId: 'iso-27001', itemId, relation: 'superset', completedAtMs: NOON })
    }
  })
}

/** One source that is `yes`, by how it relates to the item. */
const RELATED: readonly { from: FrameworkId; source: string; to: FrameworkId; item: string; relation: Relation }[] = [
  { from: 'iso-27001', source: 'A.5.9', to: 'cis-v8', item: '1.1', relation: 'superset' },
  { from: 'cis-v8', source: '6.8', to: 'iso-27001', item: 'A.5.3', relation: 'superset' },
  { from: 'cis-v8', source: '1.1', to: 'iso-27001', item: 'A.5.9', relation: 'subset' },
  { from: 'iso-27001', source: 'A.8.13', to: 'cis-v8', item: '11.2', relation: 'superset' },
  { from: 'nist-csf-2', source: 'GV.SC-05', to: 'cis-v8', item: '15.4', relation: 'intersects' },
  { from: 'soc-2', source: 'CC9.2', to: 'cis-v8', item: '15.5', relation: 'intersects' },
]
for (const { from, source, to, item, relation } of RELATED) {
  const expected = relation === 'superset' ? 'yes' : undefined
  t.test(`${from} ${source} is ${relation} to ${to} ${item}: ${expected ?? 'a hint'}`, async (t) => {
    const { store, organization: acme, administration } = acmeSite(t)
    const { assessments } = administration
    assessments.import(acme, content(from, { [source]: 'yes' }), { complete: true })
    const made = assessments.create(acme, to, 'Autumn', [item])
    const found = suggestionsFor(store, made, store.assessments.categories(made), NOON).get(itemKey(item))
    t.match(found, { itemId: item, sources: [{ itemId: source, relation }] })
    t.equal(found?.answer, expected)
    if (found !== undefined) t.equal(evidenceText(found).includes('intersects'), relation === 'intersects')
  })
}

const HOPS: readonly [Relation, Relation, Relation][] = [
  ['equal', 'equal', 'equal'],
  ['equal', 'superset', 'superset'],
  ['superset', 'equal', 'superset'],
  ['superset', 'superset', 'superset'],
  ['subset', 'subset', 'subset'],
  ['superset', 'subset', 'intersects'],
  ['subset', 'superset', 'intersects'],
  ['intersects', 'equal', 'intersects'],
  ['superset', 'intersects', 'intersects'],
]
t.test('a relation over two hops', async (t) => {
  for (const [first, second, both] of HOPS) t.equal(composed(first, second), both, `${first}, ${second}`)
})

t.test('AI Security, all yes, suggests yes for few items of others, and never for tested backups', async (t) => {
  const { store, organization: acme, administration } = acmeSite(t)
  const { assessments } = administration
  const all = itemsOf(loadFrameworks().templates['ai-security'].categories as never)
  const answers = Object.fromEntries(all.map(({ id }) => [id, 'yes' as const]))
  assessments.import(acme, content('ai-security', answers), { complete: true })
  for (const framework of FRAMEWORK_IDS.filter((id) => id !== 'ai-security')) {
    const made = assessments.create(acme, framework)
    const suggestions = [...suggestionsFor(store, made, store.assessments.categories(made), NOON).values()]
    t.ok(suggestions.filter(({ answer }) => answer === 'yes').length <= 10, framework)
    if (framework !== 'nist-csf-2') continue
    const backups = suggestions.find(({ itemId }) => itemId === 'PR.DS-11')
    t.equal(backups?.answer, undefined)
    t.ok((backups?.sources.length ?? 0) > 0, 'a hint')
  }
})

t.test('the same framework comes first; answered items and completed assessments get no suggestion', async (t) => {
  const opened = acmeSite(t)
  const { store, organization: acme, administration } = opened
  const { assessments } = administration
  assessments.import(acme, content('iso-27001', { 'A.5.20': 'no' }), { complete: true })
  assessments.import(acme, content('cis-v8', { '15.4': 'yes' }), { complete: true })
  const globex = makeOrganization(opened, 'Globex')
  const made = assessments.create(acme, 'cis-v8', 'Autumn', ['15.4', '15.5'])
  const suggestions = (from?: FrameworkId) =>
    suggestionsFor(store, made, store.assessments.categories(made), NOON, from)
  t.match(suggestions().get('15.4'), { answer: 'yes', sources: [{ frameworkId: 'cis-v8' }] })
  t.match(suggestions('iso-27001').get('15.4'), { answer: 'no', sources: [{ frameworkId: 'iso-27001' }] })
  const foreign = assessments.create(globex, 'cis-v8', 'Autumn', ['15.4'])
  t.equal(suggestionsFor(store, foreign, store.assessments.categories(foreign), NOON).size, 0)
  assessments.answer(acme, made.id, '15.4', 'partial')
  t.notOk(suggestions().has('15.4'))
  assessments.answer(acme, made.id, '15.5', 'no')
  const completed = assessments.complete(acme, made.id)
  t.equal(suggestionsFor(store, completed, store.assessments.categories(completed), NOON).size, 0)
})

t.test('a crosswalk names every item, and frameworks without a mapping are related through a third one', async (t) => {
  for (const from of FRAMEWORK_IDS) {
    for (const to of FRAMEWORK_IDS) {
      if (from === to) continue
      const { rows } = crosswalk(from, to)
      const expected = itemsOf(loadFrameworks().templates[to].categories as never).map(({ id }) => id)
      t.same(
        rows.map(({ itemId }) => itemId),
        expected,
      )
    }
  }
  t.match(crosswalk('nist-csf-2', 'nist-800-53'), { isDirect: true })
  const soc2 = crosswalk('nist-csf-2', 'soc-2')
  t.equal(soc2.isDirect, false)
  t.ok(soc2.rows.filter(({ from }) => Object.keys(from).length > 0).length > 10)
})
