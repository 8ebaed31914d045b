import { z } from 'zod'
import { scoreChanges } from '../../engine/assess/compare.ts'
import { AssessmentFileFault } from '../../engine/assess/file-fault.ts'
import { readProfile } from '../../engine/assess/profiles.ts'
import { answer as answerRule, checkRule, itemKey, note as noteRule, readAnswer } from '../../engine/assess/rules.ts'
import { acceptedNote } from '../../engine/assess/suggestions.ts'
import { byDueDate, noteMark, openItems, REVIEW_STEPS, workOf } from '../../engine/assess/work.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import type { Answer as AnswerGiven, AssessmentItem } from '../../engine/store/assessments.ts'
import { asFrameworkId } from '../../engine/store/framework.ts'
import { paged } from '../design/list.tsx'
import { EMPTY_FORM, FormFields, type FormState, readForm, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile, csvTable } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { AssessmentItems, AssessmentPage, ComparisonPage, differenceColumns } from './assessment.tsx'
import { Frameworks } from './frameworks.tsx'
import { ItemPage, pathOf, readMark } from './item.tsx'
import { Assessments, assessmentColumns, PROFILE_LENGTH_MAX } from './list.tsx'
import {
  type AssessmentView,
  allAssessments,
  assessmentsView,
  assessmentView,
  type ComparisonView,
  comparisonView,
  type ItemView,
  itemView,
} from './read.ts'

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
  page(`${PATH}/items`, 'assessment.read', itemsPage),
  page(`${PATH}/:id`, 'assessment.read', (visit, { id }) => assessmentPage(visit, id, '', 200)),
  page(`${PATH}/:id/compare`, 'assessment.read', comparisonPage),
  page(`${PATH}/:id/compare.csv`, 'assessment.read', (visit, { id }) =>
    csvTable('assessment-comparison', differenceColumns(), comparison(visit, id).items),
  ),
  page(`${PATH}/:id/categories/:at`, 'assessment.read', (visit, given) => itemPage(visit, given)),
  page(`${PATH}/:id/categories/:at/items/:place`, 'assessment.read', (visit, given) => itemPage(visit, given)),
  form(`${PATH}/:id/categories/:at/items/:place`, 'assessment.change', saveItem),
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

interface ItemPlace {
  readonly id: string
  readonly at: string
  /** Absent: the first item to work on. */
  readonly place?: string
}

function existingItem(visit: Visit, given: ItemPlace): ItemView {
  const { query, fields, method } = visit.request
  const show = method === 'POST' ? fields.text('show') : (query.get('show') ?? '')
  const view = visit.site.store.environment.read(() => itemView(visit, given, show))
  if (view === undefined) throw new Fault('NOT_FOUND', 'The assessment has no such item')
  return view
}

function itemPage(visit: Visit, given: ItemPlace, rejected = EMPTY_FORM, status = 200): Answer {
  const view = existingItem(visit, given)
  const { owner, dueOn, links } = workOf(view.item)
  const values = new FormFields([
    ...rejected.values.without(),
    ['note', view.item.note],
    ['owner', owner],
    ['due', dueOn],
    ['links', links.join('\n')],
  ])
  const { query } = visit.request
  const content = ItemPage({
    view,
    form: { ...rejected, values },
    query,
    nowMs: visit.nowMs,
    mayAnswer: visit.may('assessment.change'),
    mayApprove: visit.may('assessment.approve'),
    done: query.get('done') ?? '',
  })
  return visit.page(view.item.title, PATH, content, { status })
}

/**
 * Saves what the person changed. If that is rejected, such as a conflict with somebody else, the
 * page shows what was typed beside what is stored.
 */
async function saveItem(visit: Visit, given: ItemPlace): Promise<Answer> {
  const { fields } = visit.request
  const view = existingItem(visit, given)
  const { id } = view.assessment
  const typed = typedFields(view.item, fields)
  try {
    const answered = answerChange(view, fields, typed)
    if (answered !== undefined) await visit.change('assessment.change', { id, ...answered })
    const assigned = workChange(fields, typed)
    if (assigned !== undefined) await visit.change('assessment.assign', { id, item: view.item.id, ...assigned })
    const text = fields.text('comment').replace(/\r\n?/g, '\n').trim()
    if (text !== '') await visit.change('assessment.comment', { id, item: view.item.id, text })
    const step = REVIEW_STEPS.find((each) => each === fields.text('review'))
    if (step === 'submit') await visit.change('assessment.submit', { id, item: view.item.id })
    else if (step !== undefined) await visit.change('assessment.approve', { id, item: view.item.id, step })
    return redirect(pathOf(id, view, view.show, 'saved'))
  } catch (error) {
    const sent = [...typed, ...['answer', 'comment'].map((name) => [name, fields.text(name)] as const)]
    const shown = sent.map(([name, text]) => [`typed-${name}`, text] as const)
    const { state, status } = refusedForm(error, new FormFields([...sent, ...shown]))
    // The form of comments has no other field.
    const errors = fields.text('comment') === '' ? state.errors : { comment: state.errors[''] ?? '' }
    return itemPage(visit, given, { ...state, errors }, status)
  }
}

/** The fields that the person changed: somebody else may have changed the others since. */
function typedFields(item: AssessmentItem, fields: FormFields): ReadonlyMap<string, string> {
  const seen = readMark(fields.text('was'))
  return new Map(
    ['note', 'owner', 'due', 'links'].flatMap((name) => {
      const [given] = fields.all(name)
      if (given === undefined) return []
      const text = given.replace(/\r\n?/g, '\n').trim()
      const isKept =
        name === 'note'
          ? noteMark(text) === (seen?.note ?? noteMark(item.note))
          : text === fields.text(`was-${name}`).replace(/\r\n?/g, '\n')
      return isKept ? [] : [[name, text] as const]
    }),
  )
}

/** The answer that the person chose or accepted, and the note. undefined: neither changed. */
function answerChange({ item, suggestions }: ItemView, fields: FormFields, typed: ReadonlyMap<string, string>) {
  const isAccepted = fields.text('accept') !== '' && item.answer === 'unanswered'
  const accepted = isAccepted ? suggestions.get(itemKey(item.id)) : undefined
  const [given] = fields.all('answer')
  const answer = accepted?.answer ?? (given === undefined ? undefined : checkedAnswer(given))
  const note =
    accepted?.answer === undefined ? typed.get('note') : acceptedNote(accepted, typed.get('note') ?? item.note)
  checkRule('evidence', noteRule, note)
  if ((answer === undefined || answer === item.answer) && note === undefined) return undefined
  return { item: item.id, answer, note, seen: readMark(fields.text('was')) }
}

/** @throws Fault USAGE */
function checkedAnswer(text: string): AnswerGiven {
  const answer = readAnswer(text)
  checkRule('answer', answerRule, answer)
  return answer as AnswerGiven
}

/** Who works on the item, until when, and its links. undefined: nothing changed. */
function workChange(fields: FormFields, typed: ReadonlyMap<string, string>) {
  const [owner, dueOn, links] = ['owner', 'due', 'links'].map((name) => typed.get(name))
  if (owner === undefined && dueOn === undefined && links === undefined) return undefined
  return {
    ...(owner === undefined ? {} : { owner }),
    ...(dueOn === undefined ? {} : { dueOn }),
    ...(links === undefined ? {} : { links: linesOf(links) }),
    seen: { owner: fields.text('was-owner'), dueOn: fields.text('was-due'), links: linesOf(fields.text('was-links')) },
  }
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((each) => each.trim())
    .filter((each) => each !== '')
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

function itemsPage(visit: Visit): Answer {
  const { request, site, organization, identity, nowMs } = visit
  const { query } = request
  const all = openItems(site.store, organization.id)
  const owner = query.get('owner') ?? identity.member.name
  const owners = new Set([identity.member.name, ...all.map(({ item }) => workOf(item).owner), owner])
  owners.delete('')
  const items = paged(byDueDate(all.filter(({ item }) => workOf(item).owner === owner)), query)
  const content = AssessmentItems({ items, owner, owners: [...owners].sort(), query, nowMs })
  return visit.page('Items by owner', PATH, content)
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
