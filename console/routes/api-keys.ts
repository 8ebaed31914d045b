import { z } from 'zod'
import { HOUR_MS } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { SCOPES } from '../../engine/store/api-keys.ts'
import { EMPTY_FORM, type FormState, readForm } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ApiKeys, apiKeyColumns, GRACE_HOURS, RotateKey } from '../pages/api-keys.tsx'
import type { CreatedSecret } from '../pages/secrets.tsx'
import { type ApiKeyRow, apiKeysView } from '../views/api-keys.ts'
import { refusedForm } from './refused-form.ts'
import { type SecretPages, secretRoutes } from './secrets.ts'

const PATH = '/api-keys'

const newKey = z.object({
  label: z.string('Enter a label').trim().min(1, 'Enter a label'),
  scopes: z.array(z.enum(SCOPES, 'This scope does not exist')).min(1, 'Choose at least one'),
})

const PAGES: SecretPages<ApiKeyRow> = {
  path: PATH,
  title: 'API Keys',
  actions: { read: 'api-key.read', create: 'api-key.create', revoke: 'api-key.revoke' },
  view: apiKeysView,
  content: ApiKeys,
  columns: apiKeyColumns,
  readNew: (visit) => {
    const read = readForm(newKey, visit.request.fields, ['scopes'])
    if ('state' in read) return read
    return { label: read.data.label, create: () => visit.change('api-key.create', read.data) }
  },
  revoke: (visit, id) => visit.change('api-key.revoke', { id }),
}

export const API_KEY_ROUTES: readonly Route[] = [
  ...secretRoutes(PAGES),
  page(`${PATH}/:id/rotate`, 'api-key.rotate', (visit, { id }) => rotatePage(visit, id, EMPTY_FORM, 200)),
  form(`${PATH}/:id/rotate`, 'api-key.rotate', (visit, { id }) => rotate(visit, id), { confirmed: true }),
]

const DATE = 'Enter a date in the future'
const rotation = z.object({
  grace: z.enum(Object.keys(GRACE_HOURS), 'Choose when the old key ends').default('0'),
  /** A day, at whose end in UTC the new key expires. '' if it does not. */
  expires: z.iso.date(DATE).or(z.literal('')).default(''),
})

async function rotate(visit: Visit, id: string): Promise<Answer> {
  const { fields } = visit.request
  const { label, expiresAtMs: oldExpiresAtMs } = activeKey(visit, id)
  const read = readForm(rotation, fields)
  if ('state' in read) return rotatePage(visit, id, read.state, 400)
  const { grace, expires } = read.data
  const expiresAtMs = expires === '' ? undefined : Date.parse(`${expires}T23:59:59Z`)
  if (expiresAtMs === undefined ? oldExpiresAtMs > 0 : expiresAtMs <= visit.nowMs) {
    return rotatePage(visit, id, { values: fields, errors: { expires: DATE } }, 400)
  }
  try {
    const { raw, record } = await visit.change('api-key.rotate', { id, graceMs: Number(grace) * HOUR_MS, expiresAtMs })
    return visit.redirectToShow(PATH, { label, raw, id: record.id } satisfies CreatedSecret)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return rotatePage(visit, id, state, status)
  }
}

/** @throws Fault NOT_FOUND. */
function activeKey(visit: Visit, id: string): ApiKeyRow {
  const { active } = visit.site.store.environment.read(() => apiKeysView(visit))
  const key = active.find((each) => each.id === id)
  if (key === undefined) throw new Fault('NOT_FOUND', 'This organization has no such active key')
  return key
}

function rotatePage(visit: Visit, id: string, state: FormState, status: number): Answer {
  const apiKey = activeKey(visit, id)
  return visit.page(`Rotate ${apiKey.label}`, PATH, RotateKey({ apiKey, form: state, nowMs: visit.nowMs }), { status })
}
