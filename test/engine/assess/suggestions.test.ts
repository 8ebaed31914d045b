import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { itemsOf } from '../../../engine/assess/states.ts'
import { crosswalk, mappedItems, suggestionsFor } from '../../../engine/assess/suggestions.ts'
import { loadFrameworks } from '../../../engine/assess/templates.ts'
import type { Answer } from '../../../engine/store/assessments.ts'
import { FRAMEWORK_IDS, type FrameworkId } from '../../../engine/store/framework.ts'
import { content } from '../../support/assessments.ts'
import { makeOrganization, NOON, openStore } from '../../support/store.ts'

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
  t.test(`${name}: the suggestion is ${suggested ?? 'none'}`, async (t) => {
    const opened = openStore(t)
    const { assessments } = new Administration(opened.store, opened.clock)
    const acme = makeOrganization(opened, 'Acme')
    const sources = mappedItems('cis-v8', '15.4', 'nist-csf-2')
    t.ok(sources.length >= 2)
    const answered = Object.fromEntries(answers.map((answer, at) => [String(sources[at]), answer]))
    if (answers.length > 0) {
      const other = { 'GV.OC-01': 'yes' as const }
      assessments.import(acme, content('nist-csf-2', { ...other, ...answered }), { complete: true })
    }
    const made = assessments.create(acme, 'cis-v8', 'Autumn', ['15.4'])
    const suggestion = suggestionsFor(opened.store, made, opened.store.assessments.categories(made), NOON).get('15.4')
    t.equal(suggestion?.answer, suggested)
    if (suggestion !== undefined)
      t.match(suggestion.sources[0], { frameworkId: 'nist-csf-2', itemId: sources[0], completedAtMs: NOON })
  })
}

t.test('the same framework comes first; answered items and completed assessments get no suggestion', async (t) => {
  const opened = openStore(t)
  const { store } = opened
  const { assessments } = new Administration(store, opened.clock)
  const acme = makeOrganization(opened, 'Acme')
  const [iso = ''] = mappedItems('cis-v8', '15.4', 'nist-csf-2')
  assessments.import(acme, content('nist-csf-2', { [iso]: 'no' }), { complete: true })
  assessments.import(acme, content('cis-v8', { '15.4': 'yes' }), { complete: true })
  const globex = makeOrganization(opened, 'Globex')
  const made = assessments.create(acme, 'cis-v8', 'Autumn', ['15.4', '15.5'])
  const suggestions = (from?: FrameworkId) =>
    suggestionsFor(store, made, store.assessments.categories(made), NOON, from)
  t.match(suggestions().get('15.4'), { answer: 'yes', sources: [{ frameworkId: 'cis-v8' }] })
  t.match(suggestions('nist-csf-2').get('15.4'), { answer: 'no', sources: [{ frameworkId: 'nist-csf-2' }] })
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
      const { items, mapped, rows } = crosswalk(from, to)
      const expected = itemsOf(loadFrameworks().templates[to].categories as never).map(({ id }) => id)
      t.same(
        rows.map(({ itemId }) => itemId),
        expected,
      )
      t.equal(items, expected.length)
      t.equal(mapped, rows.filter((row) => row.from.length > 0).length)
    }
  }
  t.match(crosswalk('nist-csf-2', 'nist-800-53'), { isDirect: true })
  const soc2 = crosswalk('nist-csf-2', 'soc-2')
  t.equal(soc2.isDirect, false)
  t.ok(soc2.mapped > 10)
})
