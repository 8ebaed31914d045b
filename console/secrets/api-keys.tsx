import { z } from 'zod'
import { ACTIVE_API_KEYS_MAX } from '../../engine/admin/api-keys.ts'
import { DAY_MS, HOUR_MS, isoDay } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { type ApiKey, SCOPES, type Scope } from '../../engine/store/secrets.ts'
import { Checks, Field, Form, Select, TwoStep } from '../design/form.tsx'
import { NarrowCard, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, RejectedForm } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  type CreatedSecret,
  labelColumn,
  type SecretRow,
  secretCsvColumns,
  secretRoutes,
  secretRow,
} from './secrets.tsx'

const PATH = '/api-keys'
const PREFIX = 'svc_pk_'
/** A key is marked if it was not used for this many days. */
const UNUSED_DAYS = 90

/** A key, and when it was last used; 0: never. */
type ApiKeyRow = ApiKey & SecretRow & { readonly lastUsedMs: number }

function apiKeyRows({ site, organization, nowMs }: Visit): readonly ApiKeyRow[] {
  const { apiKeys, keyUses } = site.store
  return apiKeys.ofOrganization(organization.id).map((key) => {
    return { ...secretRow(key, nowMs), lastUsedMs: keyUses.lastUseMs(organization.id, key.id) }
  })
}

const SCOPE_NAMES: Readonly<Record<Scope, string>> = {
  'discovery:read': 'Discovery',
  'scores:read': 'Scores',
  'recommendations:read': 'Recommendations',
  'assessments:read': 'Assessments',
}

const DESCRIBING: readonly Column<ApiKeyRow>[] = [
  labelColumn(PREFIX, ({ createdAtMs }, { nowMs }) => <Time ms={createdAtMs} nowMs={nowMs} />),
  {
    id: 'scopes',
    name: 'Scopes',
    cell: ({ scopes }) =>
      scopes.length === SCOPES.length ? 'All' : scopes.map((scope) => SCOPE_NAMES[scope]).join(', '),
    csv: ({ scopes }) => scopes.join(' '),
    wide: true,
  },
]

const COLUMNS: readonly Column<ApiKeyRow>[] = [
  ...DESCRIBING,
  {
    ...timeColumn('used', 'Last used', ({ lastUsedMs }: ApiKeyRow) => lastUsedMs),
    cell: ({ lastUsedMs, createdAtMs }, { nowMs }) => (
      <>
        {nowMs - Math.max(lastUsedMs, createdAtMs) > UNUSED_DAYS * DAY_MS && (
          <>
            <Tag tone="warn">unused</Tag>{' '}
          </>
        )}
        <Time ms={lastUsedMs} nowMs={nowMs} />
      </>
    ),
  },
  ...secretCsvColumns<ApiKeyRow>(PREFIX),
  {
    id: 'change',
    name: 'Change',
    action: 'api-key.revoke',
    quiet: true,
    cell: ({ id, label }) => (
      <div class="row end">
        <a class="button quiet" href={`${PATH}/${id}/rotate`} aria-label={`Rotate ${label}`}>
          Rotate
        </a>
        <TwoStep action={`${PATH}/${id}/revoke`} verb="Revoke" label={label} />
      </div>
    ),
  },
]

/** For how many hours the old key stays valid, so that programs can switch meanwhile. */
const GRACE_HOURS: Readonly<Record<string, string>> = {
  0: 'Now',
  24: 'In 24 hours',
  168: 'In 7 days',
  720: 'In 30 days',
}

interface RotateKeyProps {
  readonly apiKey: ApiKeyRow
  readonly form: FormState
  readonly nowMs: number
}

/** Replaces an API key by a new one. */
function RotateKey({ apiKey: { id, label, visible, expiresAtMs, lastUsedMs }, form, nowMs }: RotateKeyProps) {
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href={PATH}>API Keys</a> / {label}
          </>
        }
        title={`Rotate ${label}`}
        about={
          <>
            <span class="mono">
              {PREFIX}
              {visible}…
            </span>
            , last used <Time ms={lastUsedMs} nowMs={nowMs} />
          </>
        }
      />
      <NarrowCard>
        <Form action={`${PATH}/${id}/rotate`} form={form} submit="Rotate" cancel={PATH}>
          <p class="muted">The new key has the same label and scopes. It is shown once, on the next page.</p>
          <Select name="grace" label="The old key ends" form={form} options={Object.entries(GRACE_HOURS)} value="24" />
          {expiresAtMs > 0 && (
            <Field
              name="expires"
              label="The new key expires after"
              type="date"
              form={form}
              required
              hint={`The old key expires on ${isoDay(expiresAtMs)} (UTC).`}
            />
          )}
        </Form>
      </NarrowCard>
    </>
  )
}

const newKey = z.object({
  label: z.string('Enter a label').trim().min(1, 'Enter a label'),
  scopes: z.array(z.enum(SCOPES, 'This scope does not exist')).min(1, 'Choose at least one'),
})

export const API_KEY_ROUTES: readonly Route[] = [
  ...secretRoutes<ApiKeyRow>({
    path: PATH,
    title: 'API Keys',
    about: 'Programs read the findings of this organization with a key',
    noun: 'key',
    verb: 'Create',
    actions: { read: 'api-key.read', create: 'api-key.create', revoke: 'api-key.revoke' },
    rows: apiKeyRows,
    columns: COLUMNS,
    endedColumns: DESCRIBING,
    max: ACTIVE_API_KEYS_MAX,
    why: 'Create a key for each program that reads the API, so that you can revoke one without the others.',
    hint: 'The program that will use it.',
    fields: (form) => (
      <Checks
        name="scopes"
        label="What it can read"
        form={form}
        options={SCOPES.map((scope) => [scope, SCOPE_NAMES[scope]])}
      />
    ),
    use: (
      <>
        Send it in the header <code>X-API-Key</code>.
      </>
    ),
    remark: (
      <p class="small muted">
        An active key without a request for {UNUSED_DAYS} days is marked as unused: revoke it. At most{' '}
        {ACTIVE_API_KEYS_MAX} keys are active at a time. To replace a key without an interruption, rotate it.
      </p>
    ),
    revoked: 'The key is revoked. Its next request is rejected',
    create: (visit) => visit.change('api-key.create', visit.read(newKey, ['scopes'])),
  }),
  page(`${PATH}/:id/rotate`, 'api-key.rotate', (visit, { id }) => rotatePage(visit, id, EMPTY_FORM)),
  form(`${PATH}/:id/rotate`, 'api-key.rotate', (visit, { id }) => rotate(visit, id), {
    confirmed: true,
    again: (visit, state, { id }) => rotatePage(visit, id, state),
  }),
]

const DATE = 'Enter a date in the future'
const rotation = z.object({
  grace: z.enum(Object.keys(GRACE_HOURS), 'Choose when the old key ends').default('0'),
  /** A day, at whose end in UTC the new key expires. '' if it does not. */
  expires: z.iso.date(DATE).or(z.literal('')).default(''),
})

async function rotate(visit: Visit, id: string): Promise<Answer> {
  const { label, expiresAtMs: oldExpiresAtMs } = activeKey(visit, id)
  const { grace, expires } = visit.read(rotation)
  const expiresAtMs = expires === '' ? undefined : Date.parse(`${expires}T23:59:59Z`)
  if (expiresAtMs === undefined ? oldExpiresAtMs > 0 : expiresAtMs <= visit.nowMs) {
    throw new RejectedForm({ expires: DATE })
  }
  const { raw, record } = await visit.change('api-key.rotate', { id, graceMs: Number(grace) * HOUR_MS, expiresAtMs })
  return visit.redirectToShow(PATH, { label, raw, id: record.id } satisfies CreatedSecret)
}

/** @throws Fault NOT_FOUND. */
function activeKey(visit: Visit, id: string): ApiKeyRow {
  const key = apiKeyRows(visit).find((each) => each.id === id && each.status === 'active')
  if (key === undefined) throw new Fault('NOT_FOUND', 'This organization has no such active key')
  return key
}

function rotatePage(visit: Visit, id: string, form: FormState): Answer {
  const apiKey = activeKey(visit, id)
  return visit.page(`Rotate ${apiKey.label}`, PATH, RotateKey({ apiKey, form, nowMs: visit.nowMs }), { form })
}
