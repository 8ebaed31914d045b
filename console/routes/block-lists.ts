import { z } from 'zod'
import { BLOCKED_DECISIONS } from '../../engine/store/block-list-links.ts'
import { paged } from '../design/paged.ts'
import { readForm } from '../form.ts'
import { textFileAnswer } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import {
  BlockListPreviewPage,
  ENTRY_COLUMNS,
  FILE_PATH,
  LEFT_OUT_COLUMNS,
  LEFT_OUT_PATH,
} from '../pages/block-list-preview.tsx'
import { BLOCK_LISTS_PATH, BlockLists, blockListColumns, PREVIEW_PATH } from '../pages/block-lists.tsx'
import { type BlockListLinkRow, blockListLinksView, blockListPreview } from '../views/block-lists.ts'
import { csvFile } from './csv.ts'
import { type SecretPages, secretRoutes } from './secrets.ts'

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
