import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { SetupGuide } from '../pages/setup-guide.tsx'
import { certificateView, hostNameOf, setupGuideView } from '../views/setup-guide.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/setup-guide'

/** Three steps to the first findings: a token, a sender, and the verification. */
export const SETUP_GUIDE_ROUTES: readonly Route[] = [
  page(PATH, 'token.read', (visit) => guidePage(visit, visit.request.query.get('token') ?? '', EMPTY_FORM, 200)),
  form(PATH, 'token.generate', generate, { confirmed: true }),
  page(`${PATH}/certificate.pem`, 'token.read', ({ site, request }) => {
    const pem = certificateView(site.ingest, hostNameOf(request.origin))?.pem ?? ''
    if (pem === '') throw new Fault('NOT_FOUND', 'The service has no self-signed certificate')
    return { kind: 'file', type: 'application/x-pem-file', name: 'posture-ca.pem', body: pem, cookies: [] }
  }),
]

async function generate(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const label = fields.text('label').trim()
  if (label === '') {
    return guidePage(visit, '', { values: fields, errors: { label: 'Enter a label' } }, 400)
  }
  try {
    const { record, raw } = await visit.change('token.generate', { label })
    return visit.redirectToShow(`${PATH}?token=${record.id}`, raw)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return guidePage(visit, '', state, status)
  }
}

function guidePage(visit: Visit, tokenId: string, state: FormState, status: number): Answer {
  const raw = visit.shownOnce<string>() ?? ''
  const content = SetupGuide({
    view: visit.site.store.environment.read(() => setupGuideView(visit, tokenId, raw)),
    form: state,
    raw,
    mayGenerate: visit.may('token.generate'),
    open: visit.request.query.get('sender') ?? '',
  })
  return visit.page('Setup', PATH, content, { status, showsSecret: raw !== '' })
}
