import type { Entry, EntryKind, LeftOutRule } from '../../engine/export/block-list.ts'
import { productOf } from '../../engine/export/block-list-text.ts'
import { textColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { FilterSelect, Filters } from '../design/filters.tsx'
import { FieldFrame } from '../design/form.tsx'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countText, Empty, PageHead, Risk } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { type BlockListPreview, reasonText } from '../views/block-lists.ts'
import { BLOCK_LISTS_PATH, BLOCKED_OPTIONS, FORMAT_OPTIONS, PREVIEW_PATH, selectionText } from './block-lists.tsx'

export const LEFT_OUT_PATH = '/block-lists/left-out'
export const FILE_PATH = '/block-lists/list.txt'

export interface BlockListPreviewProps {
  readonly preview: BlockListPreview
  readonly entries: Paged<Entry>
  readonly leftOut: Paged<LeftOutRule>
  readonly query: URLSearchParams
}

/** What a list blocks now, and what is left out of it. */
export function BlockListPreviewPage({ preview, entries, leftOut, query }: BlockListPreviewProps) {
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

export const ENTRY_COLUMNS: readonly Column<Entry>[] = [
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

export const LEFT_OUT_COLUMNS: readonly Column<LeftOutRule>[] = [
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
