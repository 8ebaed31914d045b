import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { type Secret, Secrets } from './secrets.ts'

export const BLOCKED_DECISIONS = ['not-approved', 'rejected'] as const
export type BlockedDecision = (typeof BLOCKED_DECISIONS)[number]

/** Which platforms a block list blocks, of those with at least this risk in the registry. */
export interface BlockListSelection {
  readonly blocks: BlockedDecision
  /** 0 to 100. */
  readonly riskMin: number
}

/** A block list that a device downloads with a secret. */
export interface BlockListLink extends Secret, BlockListSelection {}

export function blockListLinksOf(environment: Environment): Secrets<BlockListLink> {
  return new Secrets(
    new Family<BlockListLink>(environment.table('block-list-links'), 'block list link'),
    environment.table('block-list-link-hashes'),
  )
}
