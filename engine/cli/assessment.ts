import { z } from 'zod'
import { itemIn } from '../admin/assessments.ts'
import { type AssessmentComparison, compareAssessments } from '../assess/compare.ts'
import { CLAIMS } from '../assess/discovery-facts.ts'
import { itemChanges } from '../assess/items.ts'
import { contains } from '../assess/mappings.ts'
import { readProfile } from '../assess/profiles.ts'
import { answer, itemKey, note, readAnswer } from '../assess/rules.ts'
import { scaleOf } from '../assess/score.ts'
import {
  acceptedNote,
  type CrosswalkRow,
  crosswalk,
  evidenceText,
  type Suggestion,
  suggestionsFor,
} from '../assess/suggestions.ts'
import { loadTemplates, templateOf } from '../assess/templates.ts'
import { byDueDate, isOverdue, type OpenItem, openItems, REVIEW_STEPS, reviewText, workOf } from '../assess/work.ts'
import { DAY_MS, isoDay } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { oneOf } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import type { AssessmentItem } from '../store/assessments.ts'
import { FRAMEWORK_IDS, FRAMEWORKS, type FrameworkId, PROFILES, type Template } from '../store/framework.ts'
import {
  ASSESSMENT,
  ASSESSMENT_ID,
  exportCommand,
  FRAMEWORK,
  frameworkOption,
  importCommand,
} from './assessment-file.ts'
import {
  assessments,
  categoryScores,
  caveats,
  changes,
  items,
  oneItem,
  progress,
  rated,
  unsupported,
  withCaveats,
} from './assessment-show.ts'
import {
  argument,
  type Commands,
  change,
  defined,
  flag,
  JSON_OUTPUT,
  option,
  plain,
  query,
  table,
  timeText,
} from './command.ts'

const ITEM = argument('<item>', 'Id of the item')

const work = table<AssessmentItem>([
  ['Item', 'item_id', { of: ({ id }) => id }],
  ['Check', 'title', { hide: 1, wrap: true }],
  ['Owner', 'owner', { of: (item) => workOf(item).owner }],
  ['Due', 'due_on', { of: (item) => workOf(item).dueOn }],
  ['Links', 'links', { wrap: true, of: (item) => workOf(item).links }],
  ['Review', 'review', { wrap: true, of: (item) => reviewText(workOf(item).review) }],
])

const templates = table<Template & { readonly id: FrameworkId }>([
  ['Framework', 'framework_id', { of: ({ id }) => id }],
  ['Name', 'name', { of: ({ id }) => FRAMEWORKS[id] }],
  ['Categories', 'categories', { of: ({ categories }) => categories.length }],
  ['Items', 'items', { of: (template) => template.categories.reduce((count, { items }) => count + items.length, 0) }],
  ['Profiles', 'profiles', { hide: 2, wrap: true, of: ({ id }) => PROFILES[id] }],
  ['Version', 'version', { hide: 1 }],
])

const differences = table<{ item_id: string; title: string; before: unknown; after: unknown; effect: number | null }>([
  ['Item', 'item_id'],
  ['Check', 'title', { hide: 1, wrap: true }],
  [null, 'category'],
  ['Before', 'before'],
  ['After', 'after'],
  ['Points', 'effect'],
])

function differenceRows(found: AssessmentComparison): Shown {
  const { scoreBefore, score, otherEffects, unchanged } = found
  const change = scoreBefore === null || score === null ? null : score - scoreBefore
  return differences([
    ...found.items.map(({ itemId, was = 'absent', now = 'absent', effect = null, ...item }) => {
      return { ...item, item_id: itemId, before: was, after: now, effect }
    }),
    {
      item_id: 'Other effects',
      title: `${unchanged} items are unchanged`,
      before: '',
      after: '',
      effect: otherEffects,
    },
    { item_id: 'Score', title: '', before: scoreBefore, after: score, effect: change },
  ])
}

function suggestionRows(suggestions: readonly Suggestion[], accepted: boolean, nowMs: number): Shown {
  return table<Suggestion>([
    ['Item', 'item_id'],
    [
      'Suggested',
      'answer',
      { text: (value) => (value === null ? 'hint' : String(value)), of: ({ answer = null }) => answer },
    ],
    [null, 'accepted', { of: () => accepted }],
    [
      'Age (days)',
      'age_days',
      {
        hide: 1,
        of: ({ sources }) =>
          Math.max(0, ...sources.map(({ completedAtMs }) => Math.floor((nowMs - completedAtMs) / DAY_MS))),
      },
    ],
    ['Evidence', 'source_text', { wrap: true, of: evidenceText }],
    [
      null,
      'discovery',
      { of: ({ facts }) => (facts ? { topic: facts.topic, claim: CLAIMS[facts.topic], text: facts.text } : null) },
    ],
    [
      null,
      'sources',
      {
        of: ({ sources }) =>
          sources.map((source) => ({
            assessment_id: source.assessmentId,
            framework_id: source.frameworkId,
            item_id: source.itemId,
            relation: source.relation,
            answer: source.answer,
            completed_at: timeText(source.completedAtMs),
          })),
      },
    ],
  ])(suggestions)
}

function mappedItems(rows: readonly CrosswalkRow[], from: FrameworkId): Shown {
  return table<CrosswalkRow>([
    ['Item', 'item_id'],
    ['Check', 'title', { hide: 1, wrap: true }],
    [null, 'category'],
    [FRAMEWORKS[from], 'from', { wrap: true, of: (row) => Object.keys(row.from) }],
    ['Relations', 'relations', { wrap: true, of: (row) => Object.values(row.from) }],
  ])(rows)
}

/** How many items of each category have mapped items. */
function mappedShares(rows: readonly CrosswalkRow[], to: FrameworkId, mapping: string): Shown {
  const names = loadTemplates()[to].categories.map(({ name }) => name)
  const ofCategory = (category: string, of: readonly CrosswalkRow[]) => {
    const mapped = of.filter(({ from }) => Object.keys(from).length > 0).length
    const answered = of.filter(({ from }) => Object.values(from).some(contains)).length
    const share = of.length === 0 ? 0 : Math.round((100 * mapped) / of.length)
    return { category, items: of.length, mapped, share, answered }
  }
  return table<ReturnType<typeof ofCategory>>([
    [`Category of ${FRAMEWORKS[to]}`, 'category', { wrap: true }],
    ['Items', 'items'],
    ['Mapped', 'mapped'],
    ['Percent', 'share'],
    ['Answered', 'answered'],
    ['Mapping', 'mapping', { hide: 1, of: () => mapping }],
  ])([
    ...names.map((name) =>
      ofCategory(
        name,
        rows.filter(({ category }) => category === name),
      ),
    ),
    ofCategory('All', rows),
  ])
}

export const commands: Commands = {
  create: change("Create an assessment with a framework's items", {
    params: {
      framework: frameworkOption('Assess against this framework', FRAMEWORK),
      title: option('--title <title>', "Set the title; by default the framework's name"),
      profile: option(
        '--profile <profile>',
        'Use only these profiles or ids of items, comma-separated; by default all',
      ),
      from: option('--from <id>', 'Carry over the answers of this assessment, where the question is the same'),
    },
    run(context, { framework, title, profile, from }) {
      const { administration, organization } = context
      const made = administration.assessments.create(organization, framework, title, readProfile(profile), from)
      return withCaveats(context, made)
    },
  }),
  list: query('List assessments, newest first', {
    run(context) {
      const all = context.store.assessments.ofOrganization(context.organization.id)
      all.sort((a, b) => b.startedAtMs - a.startedAtMs || (a.id < b.id ? -1 : 1))
      return assessments(rated(context, all))
    },
  }),
  show: query('Show the progress and score of an assessment', {
    params: {
      id: ASSESSMENT,
      items: flag('--items', 'Show every item with its answer instead'),
      item: option('--item <item>', 'Show the question of one item and what counts as each answer instead'),
      changes: flag('--changes', "Show how the framework's current items differ instead"),
    },
    run(context, { id, items: showsItems, item, changes: showsChanges }) {
      const { store, administration, organization, output } = context
      const nowMs = context.clock.nowMs()
      const found = administration.assessments.find(organization, id)
      const categories = store.assessments.categories(found)
      const template = templateOf(store, found.organizationId, found.frameworkId)
      if (showsItems) return items(found, categories, template, nowMs)
      if (showsChanges) return changes(itemChanges(found, categories, template))
      if (item !== undefined) return oneItem(found, itemIn(categories, item), template, nowMs)
      const about = progress(context, found)
      const scores = categoryScores(found.frameworkId, categories)
      const [known] = rated(context, [found])
      const listed = caveats(known?.basis.caveats ?? [])
      if (!output.isTable) {
        const contradicted = unsupported(known?.basis.unsupported ?? [])
        const more = { categories: scores.rows, unsupported: contradicted.rows, caveats: listed.rows }
        return { ...about, rows: [{ ...about.rows[0], ...more }] }
      }
      output.show(about)
      output.show(scores)
      return listed.rows.length > 0 ? listed : undefined
    },
  }),
  answer: change('Answer an item of an assessment', {
    params: {
      id: ASSESSMENT,
      item: ITEM,
      answer: argument(
        '<answer>',
        'One of yes, partial, no, not_applicable, unanswered, or 0 to 100',
        z.string().transform(readAnswer).pipe(answer),
      ),
      note: option('--note <text>', 'Record the evidence for the answer', note.optional()),
    },
    run(context, given) {
      const { administration, organization } = context
      const { id, item, answer, note } = given
      return progress(context, administration.assessments.answer(organization, id, item, answer, note))
    },
  }),
  assign: change('Assign an item of an assessment to a person, with a due date and links', {
    params: {
      id: ASSESSMENT,
      item: ITEM,
      owner: option('--owner <name>', "Set the owner, by name or e-mail address; '' for nobody"),
      dueOn: option('--due <day>', "Set the due date, such as 2026-12-01; '' for none"),
      link: option(
        '--link <urls...>',
        "Replace the links; '' for none; a day after a blank is when one expires",
        z.array(z.string()).optional(),
      ),
    },
    run({ store, administration, organization }, { id, item, owner, dueOn, link }) {
      const given = defined({ owner, dueOn, links: link?.filter((each) => each !== '') })
      const changed = administration.assessments.assign(organization, id, item, given)
      return work([itemIn(store.assessments.categories(changed), item)])
    },
  }),
  comment: change('Add a comment to an item of an assessment', {
    params: {
      id: ASSESSMENT,
      item: ITEM,
      text: argument('<text>', 'Text of the comment'),
    },
    run(context, { id, item, text }) {
      const { store, administration, organization, clock } = context
      const changed = administration.assessments.comment(organization, id, item, text)
      const template = templateOf(store, organization.id, changed.frameworkId)
      return oneItem(changed, itemIn(store.assessments.categories(changed), item), template, clock.nowMs())
    },
  }),
  items: query('List the items of all assessments in progress, those that are due first', {
    params: {
      owner: option('--owner <name>', "Show only those of this owner; '' for those without one"),
    },
    run({ store, organization, clock }, { owner }) {
      const today = isoDay(clock.nowMs())
      const all = store.environment.read(() => openItems(store, organization.id))
      const found = all.filter(({ item }) => owner === undefined || workOf(item).owner === owner)
      return table<OpenItem>([
        ['Assessment', 'assessment_id', { of: ({ assessment }) => assessment.id }],
        [null, 'framework_id', { of: ({ assessment }) => assessment.frameworkId }],
        ['Item', 'item_id', { of: ({ item }) => item.id }],
        ['Check', 'title', { hide: 1, wrap: true, of: ({ item }) => item.title }],
        ['Answer', 'answer', { of: ({ item }) => item.answer }],
        ['Owner', 'owner', { hide: 2, of: ({ item }) => workOf(item).owner }],
        ['Due', 'due_on', { of: ({ item }) => workOf(item).dueOn }],
        ['Overdue', 'overdue', { of: ({ assessment, item }) => isOverdue(assessment, item, today) }],
      ])(byDueDate(found))
    },
  }),
  review: change('Send the answer to an item for review, approve it, or reopen it', {
    params: {
      id: ASSESSMENT,
      item: ITEM,
      step: argument('<step>', 'Step: submit, approve or reopen', oneOf(REVIEW_STEPS)),
    },
    run({ store, administration, organization }, { id, item, step }) {
      const changed = administration.assessments.review(organization, id, item, step)
      return work([itemIn(store.assessments.categories(changed), item)])
    },
  }),
  suggest: change('Show the answers that completed assessments and discovery suggest, or accept them', {
    params: {
      id: ASSESSMENT,
      from: option(
        '--from <source>',
        'Use only assessments of this framework, or only discovery',
        oneOf([...FRAMEWORK_IDS, 'discovery']).optional(),
      ),
      accept: option(
        '--accept <items...>',
        'Answer these items as suggested; to change one, use assessment answer',
        z.array(z.string()).optional(),
      ),
    },
    run({ store, administration, organization, clock }, { id, from, accept }) {
      const found = administration.assessments.find(organization, id)
      const categories = store.assessments.categories(found)
      const nowMs = clock.nowMs()
      const suggestions = store.environment.read(() => suggestionsFor(store, found, categories, nowMs, from))
      const accepted = accept?.map((item) => {
        const suggestion = suggestions.get(itemKey(item))
        if (suggestion?.answer !== undefined) return { ...suggestion, answer: suggestion.answer }
        throw new Fault(
          'NOT_FOUND',
          `no suggested answer for item ${JSON.stringify(item)}; assessment suggest lists all`,
        )
      })
      for (const suggestion of accepted ?? []) {
        const { itemId, answer } = suggestion
        const text = acceptedNote(suggestion, itemIn(categories, itemId).note)
        administration.assessments.answer(organization, found.id, itemId, answer, text)
      }
      return suggestionRows(accepted ?? [...suggestions.values()], accepted !== undefined, nowMs)
    },
  }),
  crosswalk: plain(
    'Show which items of a framework have mapped items in another one',
    {
      ...JSON_OUTPUT,
      from: argument('<from>', 'Framework that was assessed', oneOf(FRAMEWORK_IDS)),
      to: argument('<to>', 'Framework to assess', oneOf(FRAMEWORK_IDS)),
      items: flag('--items', 'Show every item with its mapped items instead'),
    },
    ({ from, to, items: showsItems }) => {
      const { rows, isDirect } = crosswalk(from, to)
      if (showsItems) return mappedItems(rows, from)
      return mappedShares(rows, to, isDirect ? 'published' : 'through a third framework')
    },
  ),
  compare: query('Show what changed between two assessments of a framework, and why the score moved', {
    params: {
      before: argument('<before>', ASSESSMENT_ID),
      after: argument('<after>', ASSESSMENT_ID),
    },
    run({ store, administration, organization }, given) {
      const before = administration.assessments.find(organization, given.before)
      const after = administration.assessments.find(organization, given.after)
      if (before.frameworkId !== after.frameworkId) {
        throw new Fault('CONFLICT', `the first is of ${before.frameworkId}, the second of ${after.frameworkId}`)
      }
      const [was, now] = [before, after].map((each) => store.assessments.categories(each))
      return differenceRows(compareAssessments(was ?? [], now ?? [], scaleOf(before.frameworkId)))
    },
  }),
  update: change("Give an open assessment its framework's current items and keep its answers", {
    params: { id: ASSESSMENT },
    run: (context, { id }) => progress(context, context.administration.assessments.update(context.organization, id)),
  }),
  complete: change('Complete an assessment permanently and publish its score', {
    params: { id: ASSESSMENT },
    run: (context, { id }) =>
      withCaveats(context, context.administration.assessments.complete(context.organization, id)),
  }),
  remove: change('Remove an assessment that is not completed', {
    params: { id: ASSESSMENT },
    run: ({ administration, organization }, { id }) =>
      assessments([administration.assessments.remove(organization, id)]),
  }),
  export: exportCommand,
  import: importCommand,
  frameworks: plain('List the built-in frameworks', JSON_OUTPUT, () => {
    const all = loadTemplates()
    return templates(FRAMEWORK_IDS.map((id) => ({ ...all[id], id })))
  }),
}
