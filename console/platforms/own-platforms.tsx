import { z } from 'zod'
import { type ReadRegistryFile, registryFileOf } from '../../engine/admin/own-platforms.ts'
import { OWN_PLATFORMS_MAX } from '../../engine/limits.ts'
import { SERVICE_WIDE } from '../../engine/store/own-platforms.ts'
import { checkChanges } from '../../registry/catalog.ts'
import { hostNameFault, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { type ChangedEntry, lineOfError, RegistryFileError, readRegistryText } from '../../registry/registry-file.ts'
import { platformId } from '../../registry/schema-parts.ts'
import { Field, FileContent, Form, Select, TextArea, TwoStep } from '../design/form.tsx'
import { CsvLink, PagedTable, paged } from '../design/list.tsx'
import { Card, countText, Empty, PageHead, Risk, Tag, type Tone } from '../design/parts.tsx'
import { type Column, csvOnly, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, FormFields, type FormState, fileText, formBytesMax, RejectedForm } from '../form.ts'
import { type Answer, fileAnswer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
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

const APPLIES = 'It applies to events from now on. A scan was requested, which shows it'
const DONE: Readonly<Record<string, string>> = {
  added: `The registry is changed. ${APPLIES}`,
  removed: 'The entry is removed. Events from now on match the built-in registry again',
}

interface OwnPlatformsProps {
  readonly visit: Visit
  /** The form of one platform. */
  readonly form: FormState
  /** The form of a registry file. */
  readonly fileForm: FormState
}

/** What this organization adds to the registry, changes in it or leaves out of it. */
function OwnPlatforms({ visit, form, fileForm }: OwnPlatformsProps) {
  const rows = paged(ownPlatformsView(visit), visit.request.query)
  const mayAdd = visit.may('registry.add')
  return (
    <>
      <PageHead
        title="Custom platforms"
        about="What this organization adds to the registry of AI platforms, changes in it or leaves out"
      >
        {rows.total > 0 && <CsvLink path={PATH} />}
      </PageHead>
      <div class={mayAdd ? 'wide' : undefined}>
        <div class="column">
          <PagedTable
            {...{ visit, id: 'own-platforms', label: 'Custom platforms', title: 'Entries', columns: COLUMNS, rows }}
            note={`${countText(rows.total)} of ${countText(OWN_PLATFORMS_MAX)}`}
            empty={
              <Empty title="No custom platform">
                <p class="muted">
                  {mayAdd
                    ? 'Add an AI service that the built-in registry does not know, such as one that runs in your network.'
                    : 'An admin of the organization can add AI services that the built-in registry does not know.'}
                </p>
              </Empty>
            }
          />
          {rows.total > 0 && (
            <p class="small muted">
              Logs match these entries at once. Collectors match at the edge: give each the{' '}
              <a href={`${PATH}/registry.json`}>registry file</a> with <code>--registry-file</code>.
            </p>
          )}
          {mayAdd && (
            <Card title="Add a registry file" note="YAML or JSON: adds, changes and disables platforms">
              <Form action={`${PATH}/file`} form={fileForm} submit="Add File" look="plain">
                <FileContent
                  form={fileForm}
                  accept=".yaml,.yml,.json"
                  hint={`Entries with an id that is here already replace it. At most ${TEXT_BYTES_MAX / 1024} KiB: posture-admin registry add reads larger files.`}
                />
              </Form>
            </Card>
          )}
        </div>
        {mayAdd && <PlatformForm form={form} />}
      </div>
    </>
  )
}

function PlatformForm({ form }: { readonly form: FormState }) {
  return (
    <Card title="Add platform">
      <Form action={PATH} form={form} submit="Add Platform">
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
      </Form>
    </Card>
  )
}

const TONES: Readonly<Record<OwnPlatformRow['change'], Tone>> = { added: 'good', changed: 'warn', disabled: 'plain' }

const COLUMNS: readonly Column<OwnPlatformRow>[] = [
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
  csvOnly(timeColumn('added', 'Added', ({ addedAtMs }) => addedAtMs)),
  {
    id: 'remove',
    name: 'Remove',
    action: 'registry.remove',
    quiet: true,
    cell: ({ id, name }) => (
      <TwoStep action={`${PATH}/${id}/remove`} verb="Remove" label={name} effect="from the custom platforms" />
    ),
  },
]

/** Reading YAML of this size takes 100 ms. posture-admin registry add reads larger files. */
const TEXT_BYTES_MAX = 128 * 1024
/** What errors and the audit log call the pasted file. */
const FILE_NAME = 'console'
const ADDED = `${PATH}?done=added`

export const OWN_PLATFORM_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => ownPlatformsPage(visit, {})),
  csvFile(PATH, 'discovery.read', COLUMNS, ownPlatformsView),
  page(`${PATH}/registry.json`, 'discovery.read', ({ site: { registry, store }, organization }) => {
    const { ownPlatforms } = store
    const serviceWide = ownPlatforms.changes(SERVICE_WIDE)
    const file = registryFileOf(registry.base.platforms, serviceWide, ownPlatforms.changes(organization.id))
    return fileAnswer('application/json', 'registry.json', `${JSON.stringify(file, undefined, 2)}\n`)
  }),
  changeForm(
    PATH,
    'registry.add',
    (_, visit) => checkedFile(visit, JSON.stringify({ platforms: [newEntry(visit)] }), ''),
    ADDED,
    { again: (visit, form) => ownPlatformsPage(visit, { form }) },
  ),
  changeForm(
    `${PATH}/file`,
    'registry.add',
    (_, visit) => checkedFile(visit, fileText(visit.request.fields, TEXT_BYTES_MAX), 'text'),
    ADDED,
    { bodyBytesMax: formBytesMax(TEXT_BYTES_MAX), again: (visit, fileForm) => ownPlatformsPage(visit, { fileForm }) },
  ),
  changeForm(`${PATH}/:id/remove`, 'registry.remove', ({ id }) => ({ ids: [id] }), `${PATH}?done=removed`),
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

/** The platform in the form. */
function newEntry(visit: Visit): ChangedEntry {
  const { name, domains, type, vendor, risk, why } = visit.read(newPlatform)
  const id = idOf(name)
  if (!platformId.safeParse(id).success) throw new RejectedForm({ name: 'Use letters or digits from a to z' })
  const known = visit.site.registry.catalogOf(visit.organization.id).platforms.find((each) => each.id === id)
  if (known !== undefined) {
    const problem = `The registry has ${known.name} already. To change it, add a registry file`
    throw new RejectedForm({ name: problem }, 409)
  }
  return {
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
}

/** A registry file. @throws RejectedForm with the error at `field` */
function checkedFile({ site }: Visit, text: string, field: 'text' | ''): ReadRegistryFile {
  const { registry } = site
  try {
    const changes = readRegistryText(FILE_NAME, text)
    if (changes.platforms.length + changes.disable.length === 0)
      throw new RejectedForm({ text: 'The file has no entry' })
    checkChanges(registry.catalogOf(SERVICE_WIDE).platforms, FILE_NAME, changes, registry.base.platforms)
    return { name: FILE_NAME, changes }
  } catch (error) {
    if (!(error instanceof RegistryFileError)) throw error
    const at = field === 'text' ? lineOfError(text, error) : undefined
    const message = error.message.replace(`${FILE_NAME}: `, '')
    throw new RejectedForm({ [field]: at === undefined ? message : `Line ${at}: ${message}` })
  }
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

function ownPlatformsPage(visit: Visit, forms: Partial<Record<'form' | 'fileForm', FormState>>): Answer {
  const given = { ...EMPTY_FORM, values: givenFields(visit.request.query) }
  const content = OwnPlatforms({ visit, form: given, fileForm: EMPTY_FORM, ...forms })
  const form = forms.form ?? forms.fileForm ?? EMPTY_FORM
  return visit.page('Custom platforms', PATH, content, { form, done: DONE })
}
