import { Fault } from '../../engine/process/error-codes.ts'
import { EMPTY_FORM, FormFields, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Tokens, type TokensProps } from '../pages/tokens.tsx'
import { reloadSeconds, Verification, verificationTitle } from '../pages/verification.tsx'
import { tokensView } from '../views/tokens.ts'
import { startOf, verificationView } from '../views/verification.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/monitoring-tokens'

export const TOKEN_ROUTES: readonly Route[] = [
  page(PATH, 'token.read', (visit) => tokensPage(visit, EMPTY_FORM, 200)),
  form(PATH, 'token.generate', generate, { confirmed: true }),
  form(
    `${PATH}/:id/revoke`,
    'token.revoke',
    async (visit, { id }) => {
      await visit.change('token.revoke', { id })
      return redirect(`${PATH}?done=revoked`)
    },
    { confirmed: true },
  ),
  page(`${PATH}/:id/verify`, 'token.verify', (visit, { id }) => verificationPage(visit, id)),
]

/** Without a start in the query, a new verification begins. */
function verificationPage(visit: Visit, id: string): Answer {
  const { site, organization, request, nowMs } = visit
  const token = site.store.monitoringTokens.ofOrganization(organization.id).find((each) => each.id === id)
  if (token === undefined) throw new Fault('NOT_FOUND', 'There is no such token')
  const startedMs = startOf(request.query, nowMs)
  if (startedMs === undefined) return redirect(`${PATH}/${id}/verify?started=${nowMs}`)
  const view = verificationView(visit, token, startedMs)
  const content = Verification({ view, nowMs })
  return visit.page(verificationTitle(view), PATH, content, { reloadSeconds: reloadSeconds(view) })
}

async function generate(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const label = fields.text('label').trim()
  if (label === '') {
    return tokensPage(visit, { values: fields, errors: { label: 'Enter a label' } }, 400)
  }
  try {
    const { raw } = await visit.change('token.generate', { label })
    return tokensPage(visit, { values: new FormFields(), errors: {} }, 200, { label, raw })
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return tokensPage(visit, state, status)
  }
}

function tokensPage(visit: Visit, state: FormState, status: number, generated?: TokensProps['generated']): Answer {
  const { site, nowMs, request } = visit
  const content = Tokens({
    view: site.store.environment.read(() => tokensView(visit)),
    form: state,
    nowMs,
    mayGenerate: visit.may('token.generate'),
    mayVerify: visit.may('token.verify'),
    mayRevoke: visit.may('token.revoke'),
    generated,
    done: request.query.get('done') ?? '',
  })
  return visit.page('Monitoring tokens', PATH, content, { status, showsSecret: generated !== undefined })
}
