import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import type { Visit } from '../http/visit.ts'

export interface OwnPlatformRow {
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
export function ownPlatformsView({ site, organization }: Visit): readonly OwnPlatformRow[] {
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
