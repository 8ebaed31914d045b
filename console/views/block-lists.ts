import { type BlockList, LEFT_OUT, type LeftOutRule } from '../../engine/export/block-list.ts'
import { blockListSource, writeBlockList } from '../../engine/export/block-list-source.ts'
import { BLOCK_LIST_FORMATS, type BlockListFormat, summaryLines } from '../../engine/export/block-list-text.ts'
import {
  BLOCKED_DECISIONS,
  type BlockedDecision,
  type BlockListSelection,
} from '../../engine/store/block-list-links.ts'
import type { Visit } from '../http/visit.ts'
import { type SecretRow, type SecretsView, secretRow, secretsView } from './secrets.ts'

export interface BlockListLinkRow extends SecretRow, BlockListSelection {}

/** The links of the organization. */
export function blockListLinksView({ site, organization, nowMs }: Visit): SecretsView<BlockListLinkRow> {
  const links = site.store.blockListLinks.ofOrganization(organization.id)
  return secretsView(links.map(({ blocks, riskMin, ...link }) => ({ ...secretRow(link, nowMs), blocks, riskMin })))
}

/** A list as a device would download it now. */
export interface BlockListPreview {
  readonly selection: BlockListSelection
  readonly format: BlockListFormat
  readonly list: BlockList
  /** Numbers of entries and of what is left out, as sentences. */
  readonly summary: readonly string[]
  readonly text: string
}

/** The list of the query's `blocks`, `risk` and `format`. */
export function blockListPreview({ site, organization, nowMs, request: { query } }: Visit): BlockListPreview {
  const format = BLOCK_LIST_FORMATS.find((each) => each === query.get('format')) ?? 'edl'
  const selection = { blocks: blockedOf(query.get('blocks')), riskMin: riskOf(query.get('risk')) ?? 0 }
  const source = blockListSource(site.store, site.registry, organization, nowMs)
  const { list, textAt } = writeBlockList(source, organization, selection, format)
  return { selection, format, list, summary: summaryLines(list, selection), text: textAt(nowMs) }
}

export function blockedOf(text: string | null): BlockedDecision {
  return BLOCKED_DECISIONS.find((each) => each === text) ?? 'not-approved'
}

/** undefined: no whole number from 0 to 100. */
export function riskOf(text: string | null): number | undefined {
  const risk = /^\d{1,3}$/.test(text ?? '') ? Number(text) : Number.NaN
  return risk <= 100 ? risk : undefined
}

/** Why a rule is not in a list, in words. */
export function reasonText({ reason, other }: LeftOutRule): string {
  return other === undefined ? LEFT_OUT[reason] : `${LEFT_OUT[reason]}: ${other.name}`
}
