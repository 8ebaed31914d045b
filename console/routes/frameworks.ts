import { AssessmentFileFault } from '../../engine/assess/file-fault.ts'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Frameworks } from '../pages/frameworks.tsx'
import { refusedForm } from './refused-form.ts'

const PATH = '/frameworks'
/**
 * 1,200 items. Reading YAML of this size takes 300 to 600 ms. posture-admin framework add reads
 * larger files.
 */
const TEXT_BYTES_MAX = 1024 * 1024
/** In a form, one byte takes up to three. */
const FORM_BYTES_MAX = 3 * TEXT_BYTES_MAX + 1024

export const FRAMEWORK_ROUTES: readonly Route[] = [
  page(PATH, 'assessment.read', (visit) => frameworksPage(visit, EMPTY_FORM, 200)),
  form(PATH, 'framework.add', addFramework, { bodyBytesMax: FORM_BYTES_MAX }),
  form(`${PATH}/:id/remove`, 'framework.remove', async (visit, { id }) => {
    await visit.change('framework.remove', { id })
    return redirect(`${PATH}?done=removed`)
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
    return redirect(`${PATH}?done=added`)
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
