import { OWN_PLATFORMS_MAX } from '../../engine/limits.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { csvOnly, textColumn, timeColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { Field, FileContent, FormError, Select, TextArea } from '../design/form.tsx'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countText, Empty, Notice, PageHead, Risk, Tag, type Tone } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { TwoStep } from '../design/two-step.tsx'
import type { FormState } from '../form.ts'
import type { OwnPlatformRow } from '../views/own-platforms.ts'

const PATH = '/own-platforms'
const DOMAINS_SHOWN = 3
/** A name on one line of a registry file. */
const NAME_CHARS_MAX = 80

export interface OwnPlatformsProps {
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
export function OwnPlatforms(props: OwnPlatformsProps) {
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
        <Field name="name" label="Name" form={form} required maxLength={NAME_CHARS_MAX} />
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
        <Field name="vendor" label="Vendor" form={form} maxLength={NAME_CHARS_MAX} hint="The name if empty." />
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

export function ownPlatformColumns(nowMs: number): readonly Column<OwnPlatformRow>[] {
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
