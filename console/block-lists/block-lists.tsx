import { z } from 'zod'
import { ACTIVE_LINKS_MAX } from '../../engine/admin/block-list-links.ts'
import {
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
import {
  BLOCKED_DECISIONS,
  type BlockedDecision,
  type BlockListLink,
  type BlockListSelection,
} from '../../engine/store/secrets.ts'
import { Field, FieldFrame, Select } from '../design/form.tsx'
import { CsvLink, FilterSelect, Filters, PagedTable, paged } from '../design/list.tsx'
import { Card, countText, Empty, PageHead, PlatformLink, Risk, Snippet, Time } from '../design/parts.tsx'
import { type Column, textColumn } from '../design/table.tsx'
import { fileAnswer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  labelColumn,
  revokeColumn,
  type SecretRow,
  secretCsvColumns,
  secretRoutes,
  secretRow,
} from '../secrets/secrets.tsx'

type BlockListLinkRow = BlockListLink & SecretRow

/** The list of the query's `blocks`, `risk` and `format`. */
function blockListPreview({ site, organization, nowMs, request: { query } }: Visit) {
  const format = BLOCK_LIST_FORMATS.find((each) => each === query.get('format')) ?? 'edl'
  const blocks = BLOCKED_DECISIONS.find((each) => each === query.get('blocks')) ?? 'not-approved'
  const selection: BlockListSelection = { blocks, riskMin: riskOf(query.get('risk') ?? '') }
  const source = blockListSource(site.store, site.registry, organization, nowMs)
  const { list, textAt } = writeBlockList(source, organization, selection, format)
  return { selection, format, list, text: textAt(nowMs) }
}

/** A whole number from 0 to 100. */
function riskOf(text: string): number {
  return /^(?:\d{1,2}|100)$/.test(text) ? Number(text) : 0
}

/** Why a rule is not in a list, in words. */
function reasonText({ reason, other }: LeftOutRule): string {
  return other === undefined ? LEFT_OUT[reason] : `${LEFT_OUT[reason]}: ${other.name}`
}

const BLOCK_LISTS_PATH = '/block-lists'
const PREVIEW_PATH = '/block-lists/preview'
const PREFIX = 'svc_bl_'
const READ = 'block-list-link.read'

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

const LABEL = labelColumn<BlockListLinkRow>(PREFIX, ({ createdAtMs }, { nowMs }) => (
  <Time ms={createdAtMs} nowMs={nowMs} />
))

const COLUMNS: readonly Column<BlockListLinkRow>[] = [
  LABEL,
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
  ...secretCsvColumns<BlockListLinkRow>(PREFIX),
  revokeColumn<BlockListLinkRow>(BLOCK_LISTS_PATH, 'block-list-link.revoke'),
]

const LEFT_OUT_PATH = '/block-lists/left-out'
const FILE_PATH = '/block-lists/list.txt'

/** What a list blocks now, and what is left out of it. */
function BlockListPreviewPage({ visit }: { readonly visit: Visit }) {
  const { query } = visit.request
  const { selection, format, list } = blockListPreview(visit)
  const chosen = new URLSearchParams({ blocks: selection.blocks, risk: String(selection.riskMin), format })
  const noteOf = (text: string, path: string) => (
    <span class="row">
      {text} <CsvLink path={path} query={chosen} />
    </span>
  )
  return (
    <>
      <PageHead
        crumb={<a href={BLOCK_LISTS_PATH}>Block lists</a>}
        title="Preview"
        about={`${selectionText(selection)}. ${productOf(format)}`}
      >
        <a class="button first" href={`${FILE_PATH}?${chosen}`}>
          Download
        </a>
      </PageHead>
      <Filters action={PREVIEW_PATH}>
        <FilterSelect name="blocks" label="Blocks" value={selection.blocks} options={BLOCKED_OPTIONS} />
        <FieldFrame name="risk" label="Risk from">
          <input id="risk" name="risk" type="number" min={0} max={100} value={String(selection.riskMin)} />
        </FieldFrame>
        <FilterSelect name="format" label="Format" value={format} options={FORMAT_OPTIONS} />
      </Filters>
      {summaryLines(list, selection)
        .slice(0, 1)
        .map((line) => (
          <p key={line}>{line}.</p>
        ))}
      <PagedTable
        {...{ visit, id: 'entries', label: 'Entries', title: 'Entries', columns: ENTRY_COLUMNS }}
        rows={paged(list.entries, query, 'page', ROWS_PER_PAGE)}
        note={noteOf(countText(list.entries.length), PREVIEW_PATH)}
        pagesLabel="Pages of entries"
        empty={
          <Empty title="The list is empty">
            <p class="muted">
              Decide about <a href="/platforms">platforms</a> first, or lower the risk.
            </p>
          </Empty>
        }
      />
      <PagedTable
        {...{ visit, id: 'left-out', label: 'Left out', title: 'Left out', columns: LEFT_OUT_COLUMNS, name: 'left' }}
        rows={paged(list.leftOut, query, 'left', ROWS_PER_PAGE)}
        note={noteOf(`${countText(list.leftOut.length)} rules, so that nothing else is blocked`, LEFT_OUT_PATH)}
        pagesLabel="Pages of what is left out"
        empty={null}
      />
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
  {
    ...textColumn('platform', 'Platform', ({ platform }: Entry) => platform.name),
    cell: ({ platform }) => PlatformLink(platform),
  },
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
    cell: ({ rule }) => PlatformLink(rule.platform),
    wide: true,
  },
  { ...textColumn('reason', 'Reason', reasonText), cell: reasonText },
]

const RISK = 'Enter a whole number from 0 to 100'

/** Of each of the two tables. */
const ROWS_PER_PAGE = 25

const newLink = z.object({
  label: z.string('Enter a label').trim().min(1, 'Enter a label'),
  blocks: z.enum(BLOCKED_DECISIONS, 'Choose what it blocks'),
  risk: z.coerce.number(RISK).int(RISK).min(0, RISK).max(100, RISK),
})

export const BLOCK_LIST_ROUTES: readonly Route[] = [
  ...secretRoutes<BlockListLinkRow>({
    path: BLOCK_LISTS_PATH,
    title: 'Block lists',
    about: 'Firewalls, proxies and DNS servers block what is not approved',
    links: (
      <a class="button" href={PREVIEW_PATH}>
        Preview and download
      </a>
    ),
    noun: 'link',
    verb: 'Create',
    actions: { read: 'block-list-link.read', create: 'block-list-link.create', revoke: 'block-list-link.revoke' },
    rows: ({ site, organization, nowMs }) =>
      site.store.blockListLinks.ofOrganization(organization.id).map((link) => secretRow(link, nowMs)),
    columns: COLUMNS,
    endedColumns: [LABEL],
    max: ACTIVE_LINKS_MAX,
    why: 'Create a link for each device, so that you can revoke one without the others. Or download a list once.',
    hint: 'The device that will download it.',
    fields: (form) => (
      <>
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
      </>
    ),
    use: 'The device sends it as the password (HTTP Basic), with any user name.',
    created: ({ id }, { request }) => (
      <Card title="Address for the device">
        <div class="stack">
          <Snippet id="address" what="the address" text={`${request.origin}/blocklist/${id}.edl`} />
          <p class="small muted">
            The ending is the format of the device: {BLOCK_LIST_FORMATS.map((format) => `.${format}`).join(', ')}.
          </p>
        </div>
      </Card>
    ),
    revoked: 'The link is revoked. The next download is refused',
    create: (visit) => {
      const { label, blocks, risk: riskMin } = visit.read(newLink)
      return visit.change('block-list-link.create', { label, blocks, riskMin })
    },
  }),
  page(PREVIEW_PATH, READ, (visit) =>
    visit.page('Preview of a block list', BLOCK_LISTS_PATH, BlockListPreviewPage({ visit })),
  ),
  csvFile(PREVIEW_PATH, READ, ENTRY_COLUMNS, (visit) => blockListPreview(visit).list.entries),
  csvFile(LEFT_OUT_PATH, READ, LEFT_OUT_COLUMNS, (visit) => blockListPreview(visit).list.leftOut),
  page(FILE_PATH, READ, (visit) => {
    const { text, format } = blockListPreview(visit)
    return fileAnswer('text/plain; charset=utf-8', `block-list-${format}.txt`, text)
  }),
]
