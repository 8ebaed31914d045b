import { Fault } from '../../engine/process/error-codes.ts'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { hostNameOf } from '../http/host-name.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { SetupGuide } from '../pages/setup-guide.tsx'
import { certificateView, setupGuideView } from '../views/setup-guide.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/setup-guide'

interface Chosen {
  readonly tokenId: string
  /** The token itself, if it was just generated. */
  readonly raw?: string
}

/** Three steps to the first findings: a token, a sender, and the verification. */
export const SETUP_GUIDE_ROUTES: readonly Route[] = [
  page(PATH, 'token.read', (visit) =>
    guidePage(visit, { tokenId: visit.request.query.get('token') ?? '' }, EMPTY_FORM, 200),
  ),
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
    return guidePage(visit, { tokenId: '' }, { values: fields, errors: { label: 'Enter a label' } }, 400)
  }
  try {
    const { record, raw } = await visit.change('token.generate', { label })
    return guidePage(visit, { tokenId: record.id, raw }, EMPTY_FORM, 200)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return guidePage(visit, { tokenId: '' }, state, status)
  }
}

function guidePage(visit: Visit, { tokenId, raw = '' }: Chosen, state: FormState, status: number): Answer {
  const content = SetupGuide({
    view: visit.site.store.environment.read(() => setupGuideView(visit, tokenId, raw)),
    form: state,
    raw,
    mayGenerate: visit.may('token.generate'),
    open: visit.request.query.get('sender') ?? '',
  })
  return visit.page('Setup', PATH, content, { status, showsSecret: raw !== '' })
}
