import { z } from 'zod'
import { ACTIVE_API_KEYS_MAX } from '../../engine/admin/api-keys.ts'
import { DAY_MS, HOUR_MS, isoSeconds } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { SCOPES, type Scope } from '../../engine/store/secrets.ts'
import { Checks, Field, FormError, Select, SubmitOrCancel, TwoStep } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, readForm, refusedForm } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  ActiveSecrets,
  type CreatedSecret,
  EndedSecrets,
  SecretLabel,
  SecretNotice,
  type SecretPages,
  type SecretRow,
  type SecretsProps,
  type SecretsView,
  secretCsvColumns,
  secretRoutes,
  secretRow,
  secretsView,
} from './secrets.tsx'

/** A key is marked if it was not used for this many days. */
const UNUSED_DAYS = 90

interface ApiKeyRow extends SecretRow {
  readonly scopes: readonly Scope[]
  /** 0: never. */
  readonly lastUsedMs: number
  readonly isUnused: boolean
}

/** API keys, newest first. */
function apiKeysView({ site, organization, nowMs }: Visit): SecretsView<ApiKeyRow> {
  const { apiKeys, keyUses } = site.store
  const rows = apiKeys.ofOrganization(organization.id).map((key): ApiKeyRow => {
    const lastUsedMs = keyUses.lastUseMs(organization.id, key.id)
    const isUnused = nowMs - Math.max(lastUsedMs, key.createdAtMs) > UNUSED_DAYS * DAY_MS
    return { ...secretRow(key, nowMs), scopes: key.scopes, lastUsedMs, isUnused }
  })
  return secretsView(rows)
}

const SCOPE_NAMES: Readonly<Record<Scope, string>> = {
  'discovery:read': 'Discovery',
  'scores:read': 'Scores',
  'recommendations:read': 'Recommendations',
  'assessments:read': 'Assessments',
}

const PATH = '/api-keys'

function ApiKeys(props: SecretsProps<ApiKeyRow>) {
  const { view, form, nowMs, mayCreate, mayRevoke, created, done } = props
  const { active, ended } = view
  return (
    <>
      <PageHead title="API Keys" about="Programs read the findings of this organization with a key">
        {active.length + ended.length > 0 && <CsvLink path={PATH} />}
      </PageHead>
      {done === 'revoked' && <Notice title="The key is revoked. Its next request is rejected" />}
      <SecretNotice kind="key" created={created}>
        Send it in the header <code>X-API-Key</code>.
      </SecretNotice>
      <ActiveSecrets
        {...{ path: PATH, verb: 'Create', noun: 'key', rows: active, max: ACTIVE_API_KEYS_MAX, form, mayCreate }}
        columns={apiKeyColumns(nowMs, mayRevoke)}
        why="Create a key for each program that reads the API, so that you can revoke one without the others."
        hint="The program that will use it."
      >
        <Checks
          name="scopes"
          label="What it can read"
          form={form}
          options={SCOPES.map((scope) => [scope, SCOPE_NAMES[scope]])}
        />
      </ActiveSecrets>
      {active.length > 0 && (
        <p class="small muted">
          An active key without a request for {UNUSED_DAYS} days is marked as unused: revoke it. At most{' '}
          {ACTIVE_API_KEYS_MAX} keys are active at a time. To replace a key without an interruption, rotate it.
        </p>
      )}
      <EndedSecrets label="Revoked and expired keys" columns={describingColumns(nowMs)} rows={ended} nowMs={nowMs} />
    </>
  )
}

function scopesText({ scopes }: ApiKeyRow): string {
  return scopes.length === SCOPES.length ? 'All' : scopes.map((scope) => SCOPE_NAMES[scope]).join(', ')
}

function describingColumns(nowMs: number): readonly Column<ApiKeyRow>[] {
  return [
    {
      id: 'label',
      name: 'Label',
      cell: (row) => (
        <SecretLabel row={row} prefix="svc_pk_" nowMs={nowMs}>
          <Time ms={row.createdAtMs} nowMs={nowMs} />
        </SecretLabel>
      ),
      csv: ({ label }) => label,
    },
    { id: 'scopes', name: 'Scopes', cell: scopesText, csv: ({ scopes }) => scopes.join(' '), wide: true },
  ]
}

function apiKeyColumns(nowMs: number, mayRevoke: boolean): readonly Column<ApiKeyRow>[] {
  return [
    ...describingColumns(nowMs),
    {
      ...timeColumn('used', 'Last used', nowMs, ({ lastUsedMs }: ApiKeyRow) => lastUsedMs),
      cell: ({ lastUsedMs, isUnused }) => (
        <>
          {isUnused && (
            <>
              <Tag tone="warn">unused</Tag>{' '}
            </>
          )}
          <Time ms={lastUsedMs} nowMs={nowMs} />
        </>
      ),
    },
    ...secretCsvColumns<ApiKeyRow>('svc_pk_', nowMs),
    ...(mayRevoke ? [CHANGE] : []),
  ]
}

const CHANGE: Column<ApiKeyRow> = {
  id: 'change',
  name: 'Change',
  cell: ({ id, label }) => (
    <div class="row end">
      <a class="button quiet" href={`${PATH}/${id}/rotate`} aria-label={`Rotate ${label}`}>
        Rotate
      </a>
      <TwoStep action={`${PATH}/${id}/revoke`} verb="Revoke" label={label} />
    </div>
  ),
  quiet: true,
}

/** For how many hours the old key stays valid, so that programs can switch meanwhile. */
const GRACE_HOURS: Readonly<Record<string, string>> = {
  0: 'Now',
  24: 'In 24 hours',
  168: 'In 7 days',
  720: 'In 30 days',
}

const DATE_CHARACTERS = 10

interface RotateKeyProps {
  readonly apiKey: ApiKeyRow
  readonly form: FormState
  readonly nowMs: number
}

/** Replaces an API key by a new one. */
function RotateKey({ apiKey: { id, label, visible, expiresAtMs, lastUsedMs }, form, nowMs }: RotateKeyProps) {
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/api-keys">API Keys</a> / {label}
        </p>
        <PageHead
          title={`Rotate ${label}`}
          about={
            <>
              <span class="mono">svc_pk_{visible}…</span>, last used <Time ms={lastUsedMs} nowMs={nowMs} />
            </>
          }
        />
      </div>
      <section class="card narrow">
        <form class="stack body" method="post" action={`/api-keys/${id}/rotate`}>
          <FormError form={form} />
          <p class="muted">The new key has the same label and scopes. It is shown once, on the next page.</p>
          <Select name="grace" label="The old key ends" form={form} options={Object.entries(GRACE_HOURS)} value="24" />
          {expiresAtMs > 0 && (
            <Field
              name="expires"
              label="The new key expires after"
              type="date"
              form={form}
              required
              hint={`The old key expires on ${isoSeconds(expiresAtMs).slice(0, DATE_CHARACTERS)} (UTC).`}
            />
          )}
          <SubmitOrCancel cancel="/api-keys">Rotate</SubmitOrCancel>
        </form>
      </section>
    </>
  )
}

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
