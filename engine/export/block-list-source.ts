import type { Rule } from '../../registry/catalog.ts'
import type { Organization } from '../store/organizations.ts'
import { SERVICE_WIDE } from '../store/own-platforms.ts'
import type { RegistryInForce } from '../store/registry-in-force.ts'
import type { BlockListSelection } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import { type BlockList, type BlockListSource, blockListOf } from './block-list.ts'
import { type BlockListFormat, blockListEntries, blockListHead, formatReach } from './block-list-text.ts'

/** Everything that a list of an organization depends on, from one snapshot of the store. */
export function blockListSource(
  store: Store,
  registry: RegistryInForce,
  { id, domain }: Organization,
  nowMs: number,
): BlockListSource {
  return store.environment.read(() => {
    const { platforms, rules } = registry.catalogOf(id)
    const present = new Set(platforms.map((platform) => platform.id))
    const isDisabled = ({ platform }: Rule): boolean => !present.has(platform.id)
    const disabledRules = [...registry.catalogOf(SERVICE_WIDE).rules, ...registry.base.rules].filter(isDisabled)
    const decisions = store.decisions.inForce(id, nowMs)
    return { rules, disabledRules, matcher: registry.matcherOf(id), decisions, ownDomain: domain }
  })
}

/** A list of an organization, and its text with the time of its generation. */
export function writeBlockList(
  source: BlockListSource,
  organization: Organization,
  selection: BlockListSelection,
  format: BlockListFormat,
): { readonly list: BlockList; readonly textAt: (timeMs: number) => string } {
  const list = blockListOf(source, selection, formatReach(format))
  const entries = blockListEntries(list, format)
  const textAt = (timeMs: number): string =>
    blockListHead(list, format, { organization: organization.name, selection, timeMs }) + entries
  return { list, textAt }
}
