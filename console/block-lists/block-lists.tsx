import { z } from 'zod'
import { ACTIVE_LINKS_MAX } from '../../engine/admin/block-list-links.ts'
import {
  type BlockList,
  blockListSource,
  type Entry,
  type EntryKind,
  LEFT_OUT,
  type LeftOutRule,
} from '../../engine/export/block-list.ts'
import {
  BLOCK_LIST_FORMATS,
  type BlockListFormat,
  productOf,
  summaryLines,
  writeBlockList,
} from '../../engine/export/block-list-text.ts'
import { BLOCKED_DECISIONS, type BlockedDecision, type BlockListSelection } from '../../engine/store/secrets.ts'
import { Field, FieldFrame, Select } from '../design/form.tsx'
import { CsvLink, FilterSelect, Filters, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead, Risk, Snippet, Time } from '../design/parts.tsx'
import { type Column, Table, textColumn } from '../design/table.tsx'
import { readForm } from '../form.ts'
import { textFileAnswer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  ActiveSecrets,
  EndedSecrets,
  labelColumn,
  revokeColumn,
  SecretNotice,
  type SecretPages,
  type SecretRow,
  type SecretsProps,
  type SecretsView,
  secretCsvColumns,
  secretRoutes,
  secretRow,
  secretsView,
} from '../secrets/secrets.tsx'

interface BlockListLinkRow extends SecretRow, BlockListSelection {}

/** The links of the organization. */
function blockListLinksView({ site, organization, nowMs }: Visit): SecretsView<BlockListLinkRow> {
  const links = site.store.blockListLinks.ofOrganization(organization.id)
  return secretsView(links.map(({ blocks, riskMin, ...link }) => ({ ...secretRow(link, nowMs), blocks, riskMin })))
}

/** A list as a device would download it now. */
interface BlockListPreview {
  readonly selection: BlockListSelection
  readonly format: BlockListFormat
  readonly list: BlockList
  /** Numbers of entries and of what is left out, as sentences. */
  readonly summary: readonly string[]
  readonly text: string
}

/** The list of the query's `blocks`, `risk` and `format`. */
function blockListPreview({ site, organization, nowMs, request: { query } }: Visit): BlockListPreview {
  const format = BLOCK_LIST_FORMATS.find((each) => each === query.get('format')) ?? 'edl'
  const selection = { blocks: blockedOf(query.get('blocks')), riskMin: riskOf(query.get('risk')) ?? 0 }
  const source = blockListSource(site.store, site.registry, organization, nowMs)
  const { list, textAt } = writeBlockList(source, organization, selection, format)
  return { selection, format, list, summary: summaryLines(list, selection), text: textAt(nowMs) }
}

function blockedOf(text: string | null): BlockedDecision {
  return BLOCKED_DECISIONS.find((each) => each === text) ?? 'not-approved'
}

/** undefined: no whole number from 0 to 100. */
function riskOf(text: string | null): number | undefined {
  const risk = /^\d{1,3}$/.test(text ?? '') ? Number(text) : Number.NaN
  return risk <= 100 ? risk : undefined
}

/** Why a rule is not in a list, in words. */
function reasonText({ reason, other }: LeftOutRule): string {
  return other === undefined ? LEFT_OUT[reason] : `${LEFT_OUT[reason]}: ${other.name}`
}

const BLOCK_LISTS_PATH = '/block-lists'
const PREVIEW_PATH = '/block-lists/preview'
const PREFIX = 'svc_bl_'

const BLOCKED_NAMES: Readonly<Record<BlockedDecision, string>> = {
  'not-approved': 'Platforms that are not approved',
  rejected: 'Rejected platforms',
}

const BLOCKED_OPTIONS = BLOCKED_DECISIONS.map((each) => [each, BLOCKED_NAMES[each]] as const)

const FORMAT_OPTIONS: readonly (readonly [BlockListFormat, string])[] = BLOCK_LIST_FORMATS.map(
  (format) => [format, `${format}: ${productOf(format)}`] as const,
)

/** `Rejected platforms, risk from 70` */
function selectionText({ blocks, riskMin }: BlockListSelection): string {
  return riskMin === 0 ? BLOCKED_NAMES[blocks] : `${BLOCKED_NAMES[blocks]}, risk from ${riskMin}`
}

/** The preview of a selection. */
function previewPath({ blocks, riskMin }: BlockListSelection): string {
  return `${PREVIEW_PATH}?${new URLSearchParams({ blocks, risk: String(riskMin) })}`
}

interface BlockListsProps extends SecretsProps<BlockListLinkRow> {
  /** The origin of the console, where devices download lists. */
  readonly origin: string
}

/** Links by which devices download block lists. */
function BlockLists(props: BlockListsProps) {
  const { view, form, nowMs, mayCreate, mayRevoke, created, origin, done } = props
  const { active, ended } = view
  return (
    <>
      <PageHead title="Block lists" about="Firewalls, proxies and DNS servers block what is not approved">
        <a class="button" href={PREVIEW_PATH}>
          Preview and download
        </a>
        {active.length + ended.length > 0 && <CsvLink path={BLOCK_LISTS_PATH} />}
      </PageHead>
      {done === 'revoked' && <Notice title="The link is revoked. The next download is refused" />}
      <SecretNotice kind="secret" created={created}>
        The device sends it as the password (HTTP Basic), with any user name.
      </SecretNotice>
      {created !== undefined && (
        <Card title="Address for the device">
          <div class="stack">
            <Snippet id="address" what="the address" text={`${origin}/blocklist/${created.id}.edl`} />
            <p class="small muted">
              The ending is the format of the device: {BLOCK_LIST_FORMATS.map((format) => `.${format}`).join(', ')}.
            </p>
          </div>
        </Card>
      )}
      <ActiveSecrets
        {...{
          path: BLOCK_LISTS_PATH,
          verb: 'Create',
          noun: 'link',
          rows: active,
          max: ACTIVE_LINKS_MAX,
          form,
          mayCreate,
        }}
        columns={blockListColumns(nowMs, mayRevoke)}
        why="Create a link for each device, so that you can revoke one without the others. Or download a list once."
        hint="The device that will download it."
      >
        <Select name="blocks" label="What it blocks" form={form} options={BLOCKED_OPTIONS} />
        <Field
          name="risk"
          label="Risk from"
          type="number"
          form={form}
          value="0"
          required
          hint="0 to 100: only platforms with at least this risk."
        />
      </ActiveSecrets>
      <EndedSecrets label="Revoked links" columns={[linkLabel(nowMs)]} rows={ended} nowMs={nowMs} />
    </>
  )
}

const linkLabel = (nowMs: number): Column<BlockListLinkRow> =>
  labelColumn(PREFIX, nowMs, ({ createdAtMs }) => <Time ms={createdAtMs} nowMs={nowMs} />)

function blockListColumns(nowMs: number, mayRevoke: boolean): readonly Column<BlockListLinkRow>[] {
  return [
    linkLabel(nowMs),
    {
      id: 'blocks',
      name: 'Blocks',
      cell: (row) => (
        <>
          <a href={previewPath(row)}>{selectionText(row)}</a>
          <p class="small muted mono break wide-only">/blocklist/{row.id}.FORMAT</p>
        </>
      ),
      csv: ({ blocks }) => blocks,
    },
    { id: 'risk', name: 'Risk from', csv: ({ riskMin }) => riskMin },
    { id: 'path', name: 'Path', csv: ({ id }) => `/blocklist/${id}.FORMAT` },
    ...secretCsvColumns<BlockListLinkRow>(PREFIX, nowMs),
    ...(mayRevoke ? [revokeColumn<BlockListLinkRow>(BLOCK_LISTS_PATH)] : []),
  ]
}

const LEFT_OUT_PATH = '/block-lists/left-out'
const FILE_PATH = '/block-lists/list.txt'

interface BlockListPreviewProps {
  readonly preview: BlockListPreview
  readonly entries: Paged<Entry>
  readonly leftOut: Paged<LeftOutRule>
  readonly query: URLSearchParams
}

/** What a list blocks now, and what is left out of it. */
function BlockListPreviewPage({ preview, entries, leftOut, query }: BlockListPreviewProps) {
  const { selection, format, summary } = preview
  const chosen = new URLSearchParams({ blocks: selection.blocks, risk: String(selection.riskMin), format })
  return (
    <>
      <div>
        <p class="crumb">
          <a href={BLOCK_LISTS_PATH}>Block lists</a>
        </p>
        <PageHead title="Preview" about={`${selectionText(selection)}. ${productOf(format)}`}>
          <a class="button first" href={`${FILE_PATH}?${chosen}`}>
            Download
          </a>
        </PageHead>
      </div>
      <Filters action={PREVIEW_PATH}>
        <FilterSelect name="blocks" label="Blocks" value={selection.blocks} options={BLOCKED_OPTIONS} />
        <FieldFrame name="risk" label="Risk from">
          <input id="risk" name="risk" type="number" min={0} max={100} value={String(selection.riskMin)} />
        </FieldFrame>
        <FilterSelect name="format" label="Format" value={format} options={FORMAT_OPTIONS} />
      </Filters>
      {summary.slice(0, 1).map((line) => (
        <p key={line}>{line}.</p>
      ))}
      {entries.total === 0 ? (
        <Empty title="The list is empty">
          <p class="muted">
            Decide about <a href="/platforms">platforms</a> first, or lower the risk.
          </p>
        </Empty>
      ) : (
        <Card
          title="Entries"
          note={
            <span class="row">
              {countText(entries.total)} <CsvLink path={PREVIEW_PATH} query={chosen} />
            </span>
          }
          bare
        >
          <Table id="entries" label="Entries" columns={ENTRY_COLUMNS} rows={entries.rows} />
        </Card>
      )}
      <NumberedPages of={entries} query={query} label="Pages of entries" />
      {leftOut.total > 0 && (
        <Card
          title="Left out"
          note={
            <span class="row">
              {countText(leftOut.total)} rules, so that nothing else is blocked{' '}
              <CsvLink path={LEFT_OUT_PATH} query={chosen} />
            </span>
          }
          bare
        >
          <Table id="left-out" label="Left out" columns={LEFT_OUT_COLUMNS} rows={leftOut.rows} />
        </Card>
      )}
      <NumberedPages of={leftOut} query={query} name="left" label="Pages of what is left out" />
    </>
  )
}

const COVERS: Readonly<Record<EntryKind, string>> = {
  exact: 'this name',
  tree: 'it and all names below',
  below: 'all names below it',
}

const ENTRY_COLUMNS: readonly Column<Entry>[] = [
  {
    ...textColumn('domain', 'Name', ({ domain }: Entry) => domain),
    cell: ({ domain }) => <span class="mono break">{domain}</span>,
  },
  { id: 'covers', name: 'Covers', cell: ({ kind }) => COVERS[kind], csv: ({ kind }) => kind, wide: true },
  { ...textColumn('platform', 'Platform', ({ platform }: Entry) => platform.name), cell: platformLink },
  {
    id: 'risk',
    name: 'Risk',
    cell: ({ platform }) => Risk({ score: platform.risk.score }),
    csv: ({ platform }) => platform.risk.score,
    number: true,
  },
]

const LEFT_OUT_COLUMNS: readonly Column<LeftOutRule>[] = [
  {
    ...textColumn('domain', 'Name', ({ rule }: LeftOutRule) => rule.domain),
    cell: ({ rule }) => <span class="mono break">{rule.domain}</span>,
  },
  {
    ...textColumn('platform', 'Platform', ({ rule }: LeftOutRule) => rule.platform.name),
    cell: ({ rule }) => platformLink(rule),
    wide: true,
  },
  { ...textColumn('reason', 'Reason', reasonText), cell: reasonText },
]

function platformLink({ platform: { name } }: Pick<Entry, 'platform'>) {
  return <a href={`/platforms/${encodeURIComponent(name)}`}>{name}</a>
}

const RISK = 'Enter a whole number from 0 to 100'

/** Of each of the two tables. */
const ROWS_PER_PAGE = 25

const newLink = z.object({
  label: z.string('Enter a label').trim().min(1, 'Enter a label'),
  blocks: z.enum(BLOCKED_DECISIONS, 'Choose what it blocks'),
  risk: z.coerce.number(RISK).int(RISK).min(0, RISK).max(100, RISK),
})

const PAGES: SecretPages<BlockListLinkRow> = {
  path: BLOCK_LISTS_PATH,
  title: 'Block lists',
  actions: { read: 'block-list-link.read', create: 'block-list-link.create', revoke: 'block-list-link.revoke' },
  view: blockListLinksView,
  content: (props, { request }) => BlockLists({ ...props, origin: request.origin }),
  columns: blockListColumns,
  readNew: (visit) => {
    const read = readForm(newLink, visit.request.fields)
    if ('state' in read) return read
    const { label, blocks, risk: riskMin } = read.data
    return { label, create: () => visit.change('block-list-link.create', { label, blocks, riskMin }) }
  },
  revoke: (visit, id) => visit.change('block-list-link.revoke', { id }),
}

export const BLOCK_LIST_ROUTES: readonly Route[] = [
  ...secretRoutes(PAGES),
  page(PREVIEW_PATH, 'block-list-link.read', (visit) => {
    const { query } = visit.request
    const preview = blockListPreview(visit)
    const { entries, leftOut } = preview.list
    const content = BlockListPreviewPage({
      preview,
      entries: paged(entries, query, 'page', ROWS_PER_PAGE),
      leftOut: paged(leftOut, query, 'left', ROWS_PER_PAGE),
      query,
    })
    return visit.page('Preview of a block list', BLOCK_LISTS_PATH, content)
  }),
  csvFile({
    path: PREVIEW_PATH,
    access: 'block-list-link.read',
    columns: () => ENTRY_COLUMNS,
    rows: (visit) => blockListPreview(visit).list.entries,
  }),
  csvFile({
    path: LEFT_OUT_PATH,
    access: 'block-list-link.read',
    columns: () => LEFT_OUT_COLUMNS,
    rows: (visit) => blockListPreview(visit).list.leftOut,
  }),
  page(FILE_PATH, 'block-list-link.read', (visit) => {
    const { text, format } = blockListPreview(visit)
    return textFileAnswer(`block-list-${format}.txt`, text)
  }),
]
