import { z } from 'zod'
import { scoreChanges } from '../../engine/assess/compare.ts'
import { AssessmentFileFault } from '../../engine/assess/file-fault.ts'
import { readProfile } from '../../engine/assess/profiles.ts'
import { answer as answerRule, itemKey, note as noteRule, readAnswer } from '../../engine/assess/rules.ts'
import { acceptedNote, type Suggestion } from '../../engine/assess/suggestions.ts'
import { noteMark, workOf } from '../../engine/assess/work.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import type { AssessmentItem } from '../../engine/store/assessments.ts'
import { asFrameworkId } from '../../engine/store/framework.ts'
import { paged } from '../design/paged.ts'
import { EMPTY_FORM, FormFields, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { AssessmentPage } from '../pages/assessment.tsx'
import { CategoryPage, type RejectedAnswer, type RejectedAnswers, readMark } from '../pages/assessment-category.tsx'
import { ComparisonPage, differenceColumns } from '../pages/assessment-comparison.tsx'
import { ItemPage } from '../pages/assessment-item.tsx'
import { Assessments, assessmentColumns, PROFILE_LENGTH_MAX } from '../pages/assessments.tsx'
import { Frameworks } from '../pages/frameworks.tsx'
import {
  type AssessmentView,
  allAssessments,
  assessmentsView,
  assessmentView,
  type ComparisonView,
  comparisonView,
} from '../views/assessments.ts'
import { csvFile, csvTable } from './csv.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/assessments'

export const ASSESSMENT_ROUTES: readonly Route[] = [
  page(PATH, 'assessment.read', (visit) => listPage(visit, EMPTY_FORM, 200)),
  csvFile({
    path: PATH,
    access: 'assessment.read',
    columns: ({ nowMs, site, organization }) =>
      assessmentColumns(nowMs, scoreChanges(site.store.assessments.completed(organization.id))),
    rows: allAssessments,
  }),
  form(PATH, 'assessment.create', create),
  page(`${PATH}/:id`, 'assessment.read', (visit, { id }) => assessmentPage(visit, id, '', 200)),
  page(`${PATH}/:id/compare`, 'assessment.read', comparisonPage),
  page(`${PATH}/:id/compare.csv`, 'assessment.read', (visit, { id }) =>
    csvTable('assessment-comparison', differenceColumns(), comparison(visit, id).items),
  ),
  page(`${PATH}/:id/categories/:at`, 'assessment.read', (visit, given) => categoryPage(visit, given)),
  form(`${PATH}/:id/categories/:at`, 'assessment.change', saveCategory),
  page(`${PATH}/:id/categories/:at/items/:place`, 'assessment.read', (visit, given) => itemPage(visit, given)),
  form(`${PATH}/:id/categories/:at/items/:place`, 'assessment.assign', saveItem),
  form(`${PATH}/:id/update`, 'assessment.update', async (visit, { id }) => {
    await visit.change('assessment.update', { id: existing(visit, id).assessment.id })
    return redirect(`${PATH}/${id}?done=updated`)
  }),
  form(`${PATH}/:id/complete`, 'assessment.complete', async (visit, { id }) => {
    try {
      await visit.change('assessment.complete', { id: existing(visit, id).assessment.id })
      return redirect(`${PATH}/${id}?done=completed`)
    } catch (error) {
      if (!isFault(error, 'CONFLICT')) throw error
      return assessmentPage(visit, id, error.message, 409)
    }
  }),
]

const newAssessment = z.object({
  framework: z.string().transform((id, context) => {
    const known = asFrameworkId(id)
    if (known !== undefined) return known
    context.addIssue({ code: 'custom', message: 'Choose a framework' })
    return z.NEVER
  }),
  title: z.string().trim().default(''),
  profile: z.string().trim().max(PROFILE_LENGTH_MAX).default(''),
  carry: z.literal('yes').optional(),
})

async function create(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const read = readForm(newAssessment, fields)
  if ('state' in read) return listPage(visit, read.state, 400)
  const { framework, title, profile, carry } = read.data
  try {
    const last = visit.site.store.assessments
      .completed(visit.organization.id)
      .find(({ frameworkId }) => frameworkId === framework)
    const { id } = await visit.change('assessment.create', {
      framework,
      title: title === '' ? undefined : title,
      profile: readProfile(profile),
      from: carry === undefined ? undefined : last?.id,
    })
    return redirect(`${PATH}/${id}`)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return listPage(visit, state, status)
  }
}

/**
 * Saves what the person changed on the page, each item as a change of its own. A rejected one, such
 * as a conflict with somebody else, is shown again with what was typed; the others are saved.
 */
async function saveCategory(visit: Visit, given: CategoryPlace): Promise<Answer> {
  const { fields } = visit.request
  const { assessment, categories, suggestions } = existing(visit, given.id)
  const category = categories[Number(given.at)]
  if (category === undefined) throw new Fault('NOT_FOUND', 'The assessment has no such category')
  const rejected = new Map<number, RejectedAnswer>()
  let saved = -1
  let status = 400
  for (const [index, item] of category.items.entries()) {
    const [answer] = fields.all(`answer-${index}`)
    // An absent field changes nothing, and neither does one that this page did not change.
    if (answer === undefined) continue
    const note = fields.all(`note-${index}`)[0] ?? item.note
    const accepts = answer === 'unanswered' && fields.text(`accept-${index}`) === 'yes'
    const suggestion = accepts ? suggestions.get(itemKey(item.id)) : undefined
    try {
      const change = changeOf(item, { answer, note, seen: fields.text(`was-${index}`), suggestion })
      if (change === undefined) continue
      await visit.change('assessment.change', { id: assessment.id, ...change })
      if (saved < 0 || accepts) saved = index
    } catch (error) {
      if (!isFault(error, 'CONFLICT') && !isFault(error, 'USAGE')) throw error
      rejected.set(index, { answer, note, message: error.message })
      if (error.code === 'CONFLICT') status = 409
    }
  }
  if (rejected.size > 0) return categoryPage(visit, given, rejected, status)
  const page = Number.parseInt(fields.text('page'), 10) || 1
  const place = saved < 0 ? '' : `#item-${saved}`
  return redirect(`${PATH}/${given.id}/categories/${given.at}?page=${page}&done=saved${place}`)
}

interface TypedAnswer {
  readonly answer: string
  readonly note: string
  /** The mark of the item when the page was made; '' if it has none. */
  readonly seen: string
  /** That the person accepts. */
  readonly suggestion: Suggestion | undefined
}

/** The change that a person typed. undefined: none. @throws Fault USAGE */
function changeOf(item: AssessmentItem, { answer: answerText, note: noteText, seen: mark, suggestion }: TypedAnswer) {
  const seen = readMark(mark)
  const answer = answerRule.safeParse(suggestion?.answer ?? readAnswer(answerText))
  const note = noteRule.safeParse(noteText.trim())
  if (!answer.success) throw new Fault('USAGE', `${item.id}: ${answer.error.issues[0]?.message}`)
  if (!note.success) throw new Fault('USAGE', `${item.id}: ${note.error.issues[0]?.message}`)
  const noted = suggestion?.answer === undefined ? note.data : acceptedNote(suggestion, note.data)
  const isAnswerKept = answer.data === (seen?.answer ?? item.answer)
  const isNoteKept = seen === undefined ? noted === item.note : noteMark(noted) === seen.note
  if (isAnswerKept && isNoteKept) return undefined
  return {
    item: item.id,
    answer: isAnswerKept ? undefined : answer.data,
    note: isNoteKept ? undefined : noted,
    seen,
  }
}

function existing(visit: Visit, id: string): AssessmentView {
  const view = visit.site.store.environment.read(() => assessmentView(visit, id))
  if (view === undefined) throw new Fault('NOT_FOUND', 'This organization has no such assessment')
  return view
}

function listPage(visit: Visit, state: FormState, status: number): Answer {
  const { nowMs, request, site } = visit
  const view = site.store.environment.read(() => assessmentsView(visit))
  const mayCreate = visit.may('assessment.create')
  const content = Assessments({ view, query: request.query, form: state, nowMs, mayCreate })
  return visit.page('Assessments', PATH, content, { status })
}

/** Items of a page: their forms stay below the maximum size with notes of any length. */
const ITEMS_PER_PAGE = 25

function categoryPage(
  visit: Visit,
  { id, at: place }: CategoryPlace,
  rejected: RejectedAnswers = new Map(),
  status = 200,
): Answer {
  const view = existing(visit, id)
  const at = Number(place)
  const category = view.categories[at]
  if (category === undefined) throw new Fault('NOT_FOUND', 'The assessment has no such category')
  const { query, fields } = visit.request
  const shown = new URLSearchParams(query)
  if (rejected.size > 0) shown.set('page', fields.text('page'))
  const content = CategoryPage({
    view,
    category,
    at,
    items: paged([...category.items.entries()], shown, 'page', ITEMS_PER_PAGE),
    rejected,
    query,
    mayAnswer: visit.may('assessment.change'),
    done: query.get('done') ?? '',
  })
  return visit.page(category.name, PATH, content, { status })
}

interface CategoryPlace {
  readonly id: string
  readonly at: string
}

interface ItemPlace {
  readonly id: string
  readonly at: string
  readonly place: string
}

function itemPage(visit: Visit, { id, at, place }: ItemPlace, form = EMPTY_FORM, status = 200): Answer {
  const view = existing(visit, id)
  const category = view.categories[Number(at)]
  const item = category?.items[Number(place)]
  if (category === undefined || item === undefined) throw new Fault('NOT_FOUND', 'The assessment has no such item')
  const { owner, dueOn, links } = workOf(item)
  const values = new FormFields([
    ...form.values.without(),
    ['owner', owner],
    ['due', dueOn],
    ['links', links.join('\n')],
  ])
  const content = ItemPage({
    view,
    category,
    at: Number(at),
    item,
    place: Number(place),
    form: { ...form, values },
    nowMs: visit.nowMs,
    mayAssign: visit.may('assessment.assign'),
    done: visit.request.query.get('done') ?? '',
  })
  return visit.page(item.title, PATH, content, { status })
}

async function saveItem(visit: Visit, given: ItemPlace): Promise<Answer> {
  const { fields } = visit.request
  const { assessment, categories } = existing(visit, given.id)
  const item = categories[Number(given.at)]?.items[Number(given.place)]
  if (item === undefined) throw new Fault('NOT_FOUND', 'The assessment has no such item')
  // Somebody else may have changed the other fields.
  const changed = ['owner', 'due', 'links'].filter((name) => fields.text(name) !== fields.text(`was-${name}`))
  const linksOf = (name: string): string[] =>
    fields
      .text(name)
      .split(/\s+/)
      .filter((each) => each !== '')
  try {
    await visit.change('assessment.assign', {
      id: assessment.id,
      item: item.id,
      ...(changed.includes('owner') ? { owner: fields.text('owner').trim() } : {}),
      ...(changed.includes('due') ? { dueOn: fields.text('due').trim() } : {}),
      ...(changed.includes('links') ? { links: linksOf('links') } : {}),
      seen: { owner: fields.text('was-owner'), dueOn: fields.text('was-due'), links: linksOf('was-links') },
    })
    return redirect(`${PATH}/${given.id}/categories/${given.at}/items/${given.place}?done=saved`)
  } catch (error) {
    const { state, status } = refusedForm(error, new FormFields(changed.map((name) => [name, fields.text(name)])))
    return itemPage(visit, given, state, status)
  }
}

function comparison(visit: Visit, id: string): ComparisonView {
  const { environment } = visit.site.store
  const view = environment.read(() => comparisonView(visit, id, visit.request.query.get('with') ?? ''))
  if (view === undefined) throw new Fault('NOT_FOUND', 'This organization has no such assessment to compare')
  return view
}

function comparisonPage(visit: Visit, { id }: { readonly id: string }): Answer {
  const { query } = visit.request
  const view = comparison(visit, id)
  const content = ComparisonPage({ view, items: paged(view.items, query, 'page'), query })
  return visit.page('What changed', PATH, content)
}

function assessmentPage(visit: Visit, id: string, error: string, status: number): Answer {
  const view = existing(visit, id)
  const content = AssessmentPage({
    view,
    nowMs: visit.nowMs,
    mayAnswer: visit.may('assessment.change'),
    mayComplete: visit.may('assessment.complete'),
    error,
    done: visit.request.query.get('done') ?? '',
  })
  return visit.page(view.assessment.title, PATH, content, { status })
}

const FRAMEWORKS_PATH = '/frameworks'
/**
 * 1,200 items. Reading YAML of this size takes 300 to 600 ms. posture-admin framework add reads
 * larger files.
 */
const TEXT_BYTES_MAX = 1024 * 1024
/** In a form, one byte takes up to three. */
const FORM_BYTES_MAX = 3 * TEXT_BYTES_MAX + 1024

export const FRAMEWORK_ROUTES: readonly Route[] = [
  page(FRAMEWORKS_PATH, 'assessment.read', (visit) => frameworksPage(visit, EMPTY_FORM, 200)),
  form(FRAMEWORKS_PATH, 'framework.add', addFramework, { bodyBytesMax: FORM_BYTES_MAX }),
  form(`${FRAMEWORKS_PATH}/:id/remove`, 'framework.remove', async (visit, { id }) => {
    await visit.change('framework.remove', { id })
    return redirect(`${FRAMEWORKS_PATH}?done=removed`)
  }),
]

async function addFramework(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const text = fields.text('text')
  const again = (problem: string): Answer => frameworksPage(visit, { values: fields, errors: { text: problem } }, 400)
  if (text.trim() === '') return again('Choose or paste a framework file')
  if (Buffer.byteLength(text) > TEXT_BYTES_MAX) {
    return again(`At most ${TEXT_BYTES_MAX / 1024} KiB. posture-admin framework add reads larger files`)
  }
  // The YAML parser is loaded only here, because few visits need it.
  const { readFrameworkFile } = await import('../../engine/assess/framework-file.ts')
  try {
    await visit.change('framework.add', readFrameworkFile(Buffer.from(text)))
    return redirect(`${FRAMEWORKS_PATH}?done=added`)
  } catch (error) {
    if (error instanceof AssessmentFileFault) return again(error.lines.join('\n'))
    const { state, status } = refusedForm(error, fields)
    return frameworksPage(visit, state, status)
  }
}

function frameworksPage(visit: Visit, form: FormState, status: number): Answer {
  const { site, organization, request, nowMs } = visit
  const content = Frameworks({
    frameworks: site.store.environment.read(() => site.store.ownFrameworks.ofOrganization(organization.id)),
    form,
    nowMs,
    mayAdd: visit.may('framework.add'),
    mayRemove: visit.may('framework.remove'),
    done: request.query.get('done') ?? '',
  })
  return visit.page('Own frameworks', '/assessments', content, { status })
}
