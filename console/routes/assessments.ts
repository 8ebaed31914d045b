import { z } from 'zod'
import { answer as answerRule, note as noteRule, readAnswer } from '../../engine/assess/rules.ts'
import { Fault, isFault } from '../../engine/process/error-codes.ts'
import { FRAMEWORK_IDS, FRAMEWORKS } from '../../engine/store/framework.ts'
import { EMPTY_FORM, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { AssessmentPage } from '../pages/assessment.tsx'
import { Assessments, assessmentColumns } from '../pages/assessments.tsx'
import { type AssessmentView, allAssessments, assessmentsView, assessmentView } from '../views/assessments.ts'
import { csvFile } from './csv.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/assessments'

export const ASSESSMENT_ROUTES: readonly Route[] = [
  page(PATH, 'assessment.read', (visit) => listPage(visit, EMPTY_FORM, 200)),
  csvFile({
    path: PATH,
    access: 'assessment.read',
    columns: ({ nowMs }) => assessmentColumns(nowMs),
    rows: allAssessments,
  }),
  form(PATH, 'assessment.create', create),
  page(`${PATH}/:id`, 'assessment.read', (visit, { id }) => assessmentPage(visit, id, '', 200)),
  form(`${PATH}/:id/categories/:at`, 'assessment.change', saveCategory),
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
  framework: z.enum(FRAMEWORK_IDS, 'Choose a framework'),
  title: z.string().trim().default(''),
})

async function create(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const read = readForm(newAssessment, fields)
  if ('state' in read) return listPage(visit, read.state, 400)
  const { framework, title } = read.data
  try {
    const given = { framework, title: title === '' ? FRAMEWORKS[framework] : title }
    const { id } = await visit.change('assessment.create', given)
    return redirect(`${PATH}/${id}`)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return listPage(visit, state, status)
  }
}

/** Saves each answer of a category that differs from the stored one, as a separate change. */
async function saveCategory(visit: Visit, given: { readonly id: string; readonly at: string }): Promise<Answer> {
  const { fields } = visit.request
  const { assessment, categories } = existing(visit, given.id)
  const category = categories[Number(given.at)]
  if (category === undefined) throw new Fault('NOT_FOUND', 'The assessment has no such category')
  const changes = category.items.flatMap((item, index) => {
    const [answerText] = fields.all(`answer-${index}`)
    // An absent field changes nothing.
    if (answerText === undefined) return []
    const answer = answerRule.safeParse(readAnswer(answerText))
    const note = noteRule.safeParse((fields.all(`note-${index}`)[0] ?? item.note).trim())
    if (!answer.success) throw new Fault('USAGE', `${item.id}: ${answer.error.issues[0]?.message}`)
    if (!note.success) throw new Fault('USAGE', `${item.id}: ${note.error.issues[0]?.message}`)
    return { item, answer: answer.data, note: note.data }
  })
  for (const { item, answer, note } of changes) {
    if (item.answer === answer && item.note === note) continue
    await visit.change('assessment.change', { id: assessment.id, item: item.id, answer, note })
  }
  return redirect(`${PATH}/${given.id}?done=saved`)
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
