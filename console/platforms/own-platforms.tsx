import { z } from 'zod'
import { registryFileOf } from '../../engine/admin/own-platforms.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { OWN_PLATFORMS_MAX } from '../../engine/limits.ts'
import { SERVICE_WIDE } from '../../engine/store/own-platforms.ts'
import { checkChanges } from '../../registry/catalog.ts'
import { hostNameFault, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import {
  type ChangedEntry,
  lineOfError,
  type RegistryFile,
  RegistryFileError,
  readRegistryText,
} from '../../registry/registry-file.ts'
import { platformId } from '../../registry/schema-parts.ts'
import { Field, FileContent, FormError, Select, TextArea, TwoStep } from '../design/form.tsx'
import { CsvLink, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead, Risk, Tag, type Tone } from '../design/parts.tsx'
import { type Column, csvOnly, Table, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, FormFields, type FormState, readForm, refusedForm } from '../form.ts'
import { type Answer, jsonFileAnswer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

interface OwnPlatformRow {
  readonly id: string
  readonly name: string
  readonly change: 'added' | 'changed' | 'disabled'
  readonly type: string
  readonly domains: readonly string[]
  /** undefined if the built-in registry no longer has the platform. */
  readonly risk: number | undefined
  readonly addedAtMs: number
}

/** The platforms that the organization added, changed or disabled, by name. */
function ownPlatformsView({ site, organization }: Visit): readonly OwnPlatformRow[] {
  const builtIn = new Map(site.registry.base.platforms.map((platform) => [platform.id, platform]))
  return site.store.ownPlatforms
    .ofOrganization(organization.id)
    .map(({ entry, disabled, addedAtMs }): OwnPlatformRow => {
      const known = builtIn.get(entry.id)
      const type = entry.platform_type ?? known?.platformType
      return {
        id: entry.id,
        name: entry.name ?? known?.name ?? entry.id,
        change: disabled ? 'disabled' : known === undefined ? 'added' : 'changed',
        type: type === undefined ? '' : PLATFORM_TYPES[type].category,
        domains: (entry.domains ?? known?.domains ?? []).map(({ domain }) => domain),
        risk: entry.risk?.score ?? known?.risk.score,
        addedAtMs,
      }
    })
    .sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
}

const PATH = '/own-platforms'
const DOMAINS_SHOWN = 3
/** A name on one line of a registry file. */
const LABEL_CHARS_MAX = 80

interface OwnPlatformsProps {
  readonly entries: Paged<OwnPlatformRow>
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly mayAdd: boolean
  readonly mayRemove: boolean
  /** The form of one platform. */
  readonly form: FormState
  /** The form of a registry file. */
  readonly fileForm: FormState
  readonly done: string
}

const APPLIES = 'It applies to events from now on. A scan was requested, which shows it'
const DONE: Readonly<Record<string, string>> = {
  added: `The registry is changed. ${APPLIES}`,
  removed: 'The entry is removed. Events from now on match the built-in registry again',
}

/** What this organization adds to the registry, changes in it or leaves out of it. */
function OwnPlatforms(props: OwnPlatformsProps) {
  const { entries, query, nowMs, mayAdd, mayRemove, form, fileForm, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead
        title="Custom platforms"
        about="What this organization adds to the registry of AI platforms, changes in it or leaves out"
      >
        {entries.total > 0 && <CsvLink path={PATH} />}
      </PageHead>
      {title !== undefined && <Notice title={title} />}
      <div class={mayAdd ? 'wide' : undefined}>
        <div class="column">
          {entries.total === 0 ? (
            <Empty title="No custom platform">
              <p class="muted">
                {mayAdd
                  ? 'Add an AI service that the built-in registry does not know, such as one that runs in your network.'
                  : 'An admin of the organization can add AI services that the built-in registry does not know.'}
              </p>
            </Empty>
          ) : (
            <>
              <Card title="Entries" note={`${countText(entries.total)} of ${countText(OWN_PLATFORMS_MAX)}`} bare>
                <Table
                  id="own-platforms"
                  label="Custom platforms"
                  columns={columns(nowMs, mayRemove)}
                  rows={entries.rows}
                />
              </Card>
              <NumberedPages of={entries} query={query} />
              <p class="small muted">
                Logs match these entries at once. Collectors match at the edge: give each the{' '}
                <a href={`${PATH}/registry.json`}>registry file</a> with <code>--registry-file</code>.
              </p>
            </>
          )}
          {mayAdd && <RegistryFileForm form={fileForm} />}
        </div>
        {mayAdd && <PlatformForm form={form} />}
      </div>
    </>
  )
}

function PlatformForm({ form }: { readonly form: FormState }) {
  return (
    <Card title="Add platform">
      <form class="stack" method="post" action={PATH}>
        <FormError form={form} />
        <Field name="name" label="Name" form={form} required maxLength={LABEL_CHARS_MAX} />
        <TextArea
          name="domains"
          label="Domains"
          form={form}
          rows={3}
          required
          hint="One per line, such as llm.corp.example. Each includes the names below it."
        />
        <Select
          name="type"
          label="Category"
          form={form}
          options={Object.entries(PLATFORM_TYPES).map(([id, { category }]) => [id, category])}
        />
        <Field name="vendor" label="Vendor" form={form} maxLength={LABEL_CHARS_MAX} hint="The name if empty." />
        <Field name="risk" label="Risk" type="number" form={form} value="50" required hint="0 (none) to 100." />
        <Field
          name="why"
          label="Why"
          form={form}
          required
          maxLength={300}
          hint="The reason for the risk, in one line."
        />
        <button class="first" type="submit">
          Add Platform
        </button>
      </form>
    </Card>
  )
}

function RegistryFileForm({ form }: { readonly form: FormState }) {
  return (
    <Card title="Add a registry file" note="YAML or JSON: adds, changes and disables platforms">
      <form class="stack" method="post" action={`${PATH}/file`}>
        <FormError form={form} />
        <FileContent form={form} accept=".yaml,.yml,.json" hint="Entries with an id that is here already replace it." />
        <div>
          <button type="submit">Add File</button>
        </div>
      </form>
    </Card>
  )
}

const TONES: Readonly<Record<OwnPlatformRow['change'], Tone>> = { added: 'good', changed: 'warn', disabled: 'plain' }

function ownPlatformColumns(nowMs: number): readonly Column<OwnPlatformRow>[] {
  return [
    {
      ...textColumn('name', 'Platform', ({ name }: OwnPlatformRow) => name),
      cell: ({ name, type, domains }) => (
        <>
          <strong>{name}</strong>
          {type !== '' && <span class="small muted"> {type}</span>}
          <p class="small muted break">
            {domains.slice(0, DOMAINS_SHOWN).join(', ')}
            {domains.length > DOMAINS_SHOWN && ` and ${countText(domains.length - DOMAINS_SHOWN)} more`}
          </p>
        </>
      ),
    },
    { id: 'id', name: 'Id', csv: ({ id }) => id },
    {
      ...textColumn('change', 'Change', ({ change }: OwnPlatformRow) => change),
      cell: ({ change }) => <Tag tone={TONES[change]}>{change}</Tag>,
    },
    { id: 'type', name: 'Category', csv: ({ type }) => type },
    {
      id: 'risk',
      name: 'Risk',
      cell: ({ risk, change }) => (risk === undefined || change === 'disabled' ? '' : <Risk score={risk} />),
      csv: ({ risk }) => risk ?? '',
      number: true,
      wide: true,
    },
    { id: 'domains', name: 'Domains', csv: ({ domains }) => domains.join(' ') },
    csvOnly(timeColumn('added', 'Added', nowMs, ({ addedAtMs }) => addedAtMs)),
  ]
}

function columns(nowMs: number, mayRemove: boolean): readonly Column<OwnPlatformRow>[] {
  if (!mayRemove) return ownPlatformColumns(nowMs)
  return [
    ...ownPlatformColumns(nowMs),
    {
      id: 'remove',
      name: 'Remove',
      cell: ({ id, name }) => (
        <TwoStep action={`${PATH}/${id}/remove`} verb="Remove" label={name} effect="from the custom platforms" />
      ),
      quiet: true,
    },
  ]
}

/** Reading YAML of this size takes 100 ms. posture-admin registry add reads larger files. */
const TEXT_BYTES_MAX = 128 * 1024
/** In a form, one byte takes up to three. */
const FORM_BYTES_MAX = 3 * TEXT_BYTES_MAX + 1024
/** What errors and the audit log call the pasted file. */
const FILE_NAME = 'console'

export const OWN_PLATFORM_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => ownPlatformsPage(visit, {}, 200)),
  csvFile({
    path: PATH,
    access: 'discovery.read',
    columns: ({ nowMs }) => ownPlatformColumns(nowMs),
    rows: ownPlatformsView,
  }),
  page(`${PATH}/registry.json`, 'discovery.read', ({ site: { registry, store }, organization }) => {
    const { ownPlatforms } = store
    const serviceWide = ownPlatforms.changes(SERVICE_WIDE)
    const own = ownPlatforms.changes(organization.id)
    return jsonFileAnswer('registry.json', registryFileOf(registry.base.platforms, serviceWide, own))
  }),
  form(PATH, 'registry.add', addOne),
  form(`${PATH}/file`, 'registry.add', addFile, { bodyBytesMax: FORM_BYTES_MAX }),
  form(`${PATH}/:id/remove`, 'registry.remove', async (visit, { id }) => {
    await visit.change('registry.remove', { ids: [id] })
    return redirect(`${PATH}?done=removed`)
  }),
]

const domainLines = z
  .string('Enter a domain')
  .transform((text) => text.split(/[\s,]+/).filter((each) => each !== ''))
  .superRefine((domains, context) => {
    if (domains.length === 0) context.addIssue({ code: 'custom', message: 'Enter a domain' })
    for (const [at, domain] of domains.entries()) {
      const fault = hostNameFault(domain)
      if (fault !== undefined) context.addIssue({ code: 'custom', message: `Line ${at + 1}, ${domain}: ${fault}` })
    }
  })

const newPlatform = z.object({
  name: z.string('Enter a name').trim().min(1, 'Enter a name').max(80, 'At most 80 characters'),
  domains: domainLines,
  type: z.enum(Object.keys(PLATFORM_TYPES) as [PlatformType, ...PlatformType[]], 'Choose a category'),
  vendor: z.string().trim().max(80, 'At most 80 characters').default(''),
  risk: z.coerce.number('Enter a number').int('Enter a whole number').min(0, 'At least 0').max(100, 'At most 100'),
  why: z.string('Enter a reason').trim().min(1, 'Enter a reason').max(300, 'At most 300 characters'),
})

async function addOne(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const read = readForm(newPlatform, fields)
  const again = (errors: FormState['errors'], status = 400): Answer =>
    ownPlatformsPage(visit, { form: { values: fields, errors } }, status)
  if ('state' in read) return again(read.state.errors)
  const { name, domains, type, vendor, risk, why } = read.data
  const id = idOf(name)
  if (!platformId.safeParse(id).success) return again({ name: 'Use letters or digits from a to z' })
  const known = visit.site.registry.catalogOf(visit.organization.id).platforms.find((each) => each.id === id)
  if (known !== undefined) {
    return again({ name: `The registry has ${known.name} already. To change it, add a registry file` }, 409)
  }
  const entry: ChangedEntry = {
    id,
    name,
    vendor: vendor === '' ? name : vendor,
    platform_type: type,
    url: `https://${domains[0]}`,
    risk: { score: risk, why },
    source: [`console of ${visit.organization.name}`.slice(0, 300)],
    domains: domains.map((domain) => {
      return { domain, match: 'suffix', role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' }
    }),
  }
  try {
    const changes = checked(visit, readRegistryText(FILE_NAME, JSON.stringify({ platforms: [entry] })))
    await visit.change('registry.add', { name: FILE_NAME, changes })
    return redirect(`${PATH}?done=added`)
  } catch (error) {
    if (error instanceof RegistryFileError) return again({ '': messageOf(error) })
    const { state, status } = refusedForm(asConflict(error), fields)
    return ownPlatformsPage(visit, { form: state }, status)
  }
}

async function addFile(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const text = fields.text('text')
  const again = (problem: string): Answer =>
    ownPlatformsPage(visit, { fileForm: { values: fields, errors: { text: problem } } }, 400)
  if (text.trim() === '') return again('Paste a registry file')
  if (Buffer.byteLength(text) > TEXT_BYTES_MAX) {
    return again(`At most ${TEXT_BYTES_MAX / 1024} KiB. posture-admin registry add reads larger files`)
  }
  try {
    const changes = checked(visit, readRegistryText(FILE_NAME, text))
    if (changes.platforms.length + changes.disable.length === 0) return again('The file has no entry')
    await visit.change('registry.add', { name: FILE_NAME, changes })
    return redirect(`${PATH}?done=added`)
  } catch (error) {
    if (error instanceof RegistryFileError) {
      const line = lineOfError(text, error)
      return again(line === undefined ? messageOf(error) : `Line ${line}: ${messageOf(error)}`)
    }
    const { state, status } = refusedForm(asConflict(error), fields)
    return ownPlatformsPage(visit, { fileForm: state }, status)
  }
}

/** @throws RegistryFileError for changes that contradict each other or the registry. */
function checked({ site }: Visit, changes: RegistryFile): RegistryFile {
  const { registry } = site
  checkChanges(registry.catalogOf(SERVICE_WIDE).platforms, FILE_NAME, changes, registry.base.platforms)
  return changes
}

/** A registry file that the writing thread refuses, such as a domain of another custom platform. */
function asConflict(error: unknown): unknown {
  if (!(error instanceof Fault) || error.code !== 'REGISTRY_FILE') return error
  return new Fault('CONFLICT', withoutFile(error.message))
}

function messageOf(error: RegistryFileError): string {
  return withoutFile(error.message)
}

function withoutFile(message: string): string {
  return message.startsWith(`${FILE_NAME}: `) ? message.slice(FILE_NAME.length + 2) : message
}

/** `Corp LLM` has the id `corp-llm`. */
function idOf(name: string): string {
  return name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 64)
    .replace(/-$/, '')
}

/** What a link to the form fills in, such as that of a candidate. */
function givenFields(query: URLSearchParams): FormFields {
  return new FormFields(['name', 'domains'].map((name) => [name, (query.get(name) ?? '').slice(0, NAME_CHARS_MAX)]))
}

interface Forms {
  readonly form?: FormState
  readonly fileForm?: FormState
}

function ownPlatformsPage(visit: Visit, forms: Forms, status: number): Answer {
  const { query } = visit.request
  const content = OwnPlatforms({
    entries: paged(
      visit.site.store.environment.read(() => ownPlatformsView(visit)),
      query,
    ),
    query,
    nowMs: visit.nowMs,
    mayAdd: visit.may('registry.add'),
    mayRemove: visit.may('registry.remove'),
    form: forms.form ?? { values: givenFields(query), errors: {} },
    fileForm: forms.fileForm ?? EMPTY_FORM,
    done: query.get('done') ?? '',
  })
  return visit.page('Custom platforms', PATH, content, { status })
}
