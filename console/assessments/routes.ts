import { z } from 'zod'
import { scoreChanges } from '../../engine/assess/compare.ts'
import { readProfile } from '../../engine/assess/profiles.ts'
import { answer as answerRule, checkRule, itemKey, note as noteRule, readAnswer } from '../../engine/assess/rules.ts'
import { acceptedNote } from '../../engine/assess/suggestions.ts'
import { noteMark, REVIEW_STEPS, workOf } from '../../engine/assess/work.ts'
import type { Answer as AnswerGiven, AssessmentItem } from '../../engine/store/assessments.ts'
import { asFrameworkId } from '../../engine/store/framework.ts'
import { EMPTY_FORM, FormFields, type FormState, rejectedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ItemPage, pathOf, readMark } from './item.tsx'
import { Assessments, assessmentColumns, PROFILE_LENGTH_MAX } from './list.tsx'
import { assessmentsView, type ItemView, itemView } from './read.ts'

const PATH = '/assessments'
const ITEM_PATH = `${PATH}/:id/categories/:at/items/:place` as const

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

export const ITEM_ROUTES: readonly Route[] = [
  page(PATH, 'assessment.read', (visit) => listPage(visit, EMPTY_FORM)),
  csvFile(
    PATH,
    'assessment.read',
    ({ site, organization }) => assessmentColumns(scoreChanges(site.store.assessments.completed(organization.id))),
    (visit) => {
      const { open, completed, rowOf } = assessmentsView(visit)
      return [...open, ...completed].map(rowOf)
    },
  ),
  form(
    PATH,
    'assessment.create',
    async (visit) => {
      const { framework, title, profile, carry } = visit.read(newAssessment)
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
    },
    { again: (visit, state) => listPage(visit, state) },
  ),
  page(`${PATH}/:id/categories/:at`, 'assessment.read', (visit, given) => itemPage(visit, given)),
  page(ITEM_PATH, 'assessment.read', (visit, given) => itemPage(visit, given)),
  form(ITEM_PATH, 'assessment.change', saveItem),
]

function listPage(visit: Visit, form: FormState): Answer {
  return visit.page('Assessments', PATH, Assessments({ visit, form }), { form })
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
  return visit.site.store.environment.read(() => itemView(visit, given, show))
}

function itemPage(visit: Visit, given: ItemPlace, rejected = EMPTY_FORM): Answer {
  const view = existingItem(visit, given)
  const { owner, dueOn, links } = workOf(view.item)
  const values = new FormFields([
    ...rejected.values.without(),
    ['note', view.item.note],
    ['owner', owner],
    ['due', dueOn],
    ['links', links.join('\n')],
  ])
  const form = { ...rejected, values }
  return visit.page(view.item.title, PATH, ItemPage({ visit, view, form }), { form })
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
    const form = rejectedForm(error, new FormFields([...sent, ...shown]))
    // The form of comments has no other field.
    const errors = fields.text('comment') === '' ? form.errors : { comment: form.errors[''] ?? '' }
    return itemPage(visit, given, { ...form, errors })
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
