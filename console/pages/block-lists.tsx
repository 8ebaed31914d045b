import { ACTIVE_LINKS_MAX } from '../../engine/admin/block-list-links.ts'
import { BLOCK_LIST_FORMATS, type BlockListFormat, productOf } from '../../engine/export/block-list-text.ts'
import {
  BLOCKED_DECISIONS,
  type BlockedDecision,
  type BlockListSelection,
} from '../../engine/store/block-list-links.ts'
import { CsvLink } from '../design/csv-link.tsx'
import { Field, FormError, Select } from '../design/form.tsx'
import { Card, Empty, Notice, PageHead, Snippet, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { BlockListLinkRow } from '../views/block-lists.ts'
import {
  EndedSecrets,
  LabelField,
  labelColumn,
  revokeColumn,
  SecretNotice,
  type SecretsProps,
  secretCsvColumns,
} from './secrets.tsx'

export const BLOCK_LISTS_PATH = '/block-lists'
export const PREVIEW_PATH = '/block-lists/preview'
const PREFIX = 'svc_bl_'

export const BLOCKED_NAMES: Readonly<Record<BlockedDecision, string>> = {
  'not-approved': 'Platforms that are not approved',
  rejected: 'Rejected platforms',
}

export const BLOCKED_OPTIONS = BLOCKED_DECISIONS.map((each) => [each, BLOCKED_NAMES[each]] as const)

export const FORMAT_OPTIONS: readonly (readonly [BlockListFormat, string])[] = BLOCK_LIST_FORMATS.map(
  (format) => [format, `${format}: ${productOf(format)}`] as const,
)

/** `Rejected platforms, risk from 70` */
export function selectionText({ blocks, riskMin }: BlockListSelection): string {
  return riskMin === 0 ? BLOCKED_NAMES[blocks] : `${BLOCKED_NAMES[blocks]}, risk from ${riskMin}`
}

/** The preview of a selection. */
function previewPath({ blocks, riskMin }: BlockListSelection): string {
  return `${PREVIEW_PATH}?${new URLSearchParams({ blocks, risk: String(riskMin) })}`
}

export interface BlockListsProps extends SecretsProps<BlockListLinkRow> {
  /** The origin of the console, where devices download lists. */
  readonly origin: string
}

/** Links by which devices download block lists. */
export function BlockLists(props: BlockListsProps) {
  const { view, form, nowMs, mayCreate, mayRevoke, created, origin, done } = props
  const { active, ended } = view
  const isFull = active.length >= ACTIVE_LINKS_MAX
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
      <div class={mayCreate ? 'wide' : undefined}>
        {active.length === 0 ? (
          <Empty title="No active link">
            <p class="muted">
              {mayCreate
                ? 'Create a link for each device, so that you can revoke one without the others. Or download a list once.'
                : 'Ask an admin of the organization to create one.'}
            </p>
          </Empty>
        ) : (
          <Card title="Active links" note={`${active.length} of ${ACTIVE_LINKS_MAX}`} bare>
            <Table id="links" label="Active links" columns={blockListColumns(nowMs, mayRevoke)} rows={active} />
          </Card>
        )}
        {mayCreate && (
          <Card title="Create link">
            {isFull ? (
              <p class="muted">{ACTIVE_LINKS_MAX} links are active, which is the limit. Revoke one first.</p>
            ) : (
              <form class="stack" method="post" action={BLOCK_LISTS_PATH}>
                <FormError form={form} />
                <LabelField form={form} hint="The device that will download it." />
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
                <button class="first" type="submit">
                  Create Link
                </button>
              </form>
            )}
          </Card>
        )}
      </div>
      <EndedSecrets label="Revoked links" columns={[linkLabel(nowMs)]} rows={ended} nowMs={nowMs} />
    </>
  )
}

const linkLabel = (nowMs: number): Column<BlockListLinkRow> =>
  labelColumn(PREFIX, nowMs, ({ createdAtMs }) => <Time ms={createdAtMs} nowMs={nowMs} />)

export function blockListColumns(nowMs: number, mayRevoke: boolean): readonly Column<BlockListLinkRow>[] {
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
