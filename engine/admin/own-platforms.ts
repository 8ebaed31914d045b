import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Catalog, checkChanges } from '../../registry/catalog.ts'
import type { Platform } from '../../registry/platform.ts'
import {
  type ChangedEntry,
  isCompleteEntry,
  type RegistryFile,
  RegistryFileError,
  registryFileOfText,
} from '../../registry/registry-file.ts'
import type { Clock } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import { registryFileText } from '../kernel/process/registry-setting.ts'
import { OWN_DOMAINS_MAX, OWN_PATTERNS_MAX, OWN_PLATFORMS_MAX, SERVICE_DOMAINS_MAX } from '../limits.ts'
import { requestScan } from '../scan/scan-runner.ts'
import type { Organization } from '../store/organizations.ts'
import { changesOf, type OwnPlatform, SERVICE_WIDE } from '../store/own-platforms.ts'
import { dataInForce } from '../store/registry-in-force.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges, listText } from './audited-changes.ts'

/** The content of a registry file that was read already. */
export interface ReadRegistryFile {
  readonly name: string
  readonly changes: RegistryFile
}

/** @throws Fault REGISTRY_FILE */
export function readOwnFile(file: string): ReadRegistryFile {
  try {
    return { name: file, changes: registryFileOfText(file, registryFileText(file)) }
  } catch (error) {
    throw faultOf(error)
  }
}

/** A change of an organization's custom platforms, with the scan that will apply it. */
export interface OwnPlatformChange {
  readonly platforms: readonly OwnPlatform[]
  /** undefined for service-wide changes, which each organization's next scan applies. */
  readonly scan: Scan | undefined
}

/**
 * Adds, changes and disables platforms of an organization's registry, or of the registry that all
 * organizations share.
 */
export class OwnPlatformChanges extends AuditedChanges {
  /**
   * Adds the entries of a registry file, and replaces those with the same ids. `shared` is the
   * registry that the entries of an organization change. Without an organization they change the
   * built-in registry, for every organization.
   *
   * @throws Fault REGISTRY_FILE, also for a domain of another platform that the file does not name;
   *   CONFLICT at a limit, NOT_FOUND, NOT_ALLOWED.
   */
  add(organization: Organization | undefined, shared: Catalog, given: string | ReadRegistryFile): OwnPlatformChange {
    // The stored entries are replaced, so they cannot complete an entry of the file.
    const base = dataInForce(this.store.registryReleases)
    const changed = organization === undefined ? base : shared
    const stored = this.store.ownPlatforms.ofOrganization(organization?.id ?? SERVICE_WIDE)
    const { name: file, changes } = checkedFile(changed, given, base, stored)
    const builtIn = new Set(base.platforms.map(({ id }) => id))
    refuseTakenDomains(
      file,
      changes,
      changed.platforms.filter(({ id }) => builtIn.has(id)),
      stored,
    )
    const added = entriesOf(changes, this.clock.nowMs(), false)
    const action = organization === undefined ? 'registry.add-service-wide' : 'registry.add'
    return this.#make(action, organization, basename(file), added, (before) => {
      const ids = new Set(added.map(({ entry }) => entry.id))
      const after = [...before.filter(({ entry }) => !ids.has(entry.id)), ...added]
      refuseSharedDomains(file, after)
      refuseBeyondLimits(organization, after)
      return { put: added, remove: [] }
    })
  }

  /** @throws Fault NOT_FOUND for an unknown id, NOT_ALLOWED. */
  remove(organization: Organization | undefined, ids: readonly string[]): OwnPlatformChange {
    const action = organization === undefined ? 'registry.remove-service-wide' : 'registry.remove'
    return this.#make(action, organization, '', [], (before) => {
      const remove = ids.map((id) => {
        const found = before.find(({ entry }) => entry.id === id)
        if (found !== undefined) return found
        const owner = organization === undefined ? ' --service-wide' : ` --org ${JSON.stringify(organization.name)}`
        const shows = `posture-admin registry list --custom${owner} shows all`
        throw new Fault('NOT_FOUND', `${JSON.stringify(id)} is not a custom platform; ${shows}`)
      })
      return { put: [], remove }
    })
  }

  /**
   * Replaces the service-wide entries that came from REGISTRY_FILE with those of the file. Other
   * service-wide entries stay.
   *
   * @throws Fault REGISTRY_FILE.
   */
  provision(file: string): void {
    const base = dataInForce(this.store.registryReleases)
    const wanted = entriesOf(checkedFile(base, file, base).changes, this.clock.nowMs(), true)
    const { put, remove } = this.#provisioning(wanted)
    if (put.length + remove.length === 0) return
    this.#make('registry.provision', undefined, basename(file), wanted, () => this.#provisioning(wanted))
  }

  #provisioning(wanted: readonly OwnPlatform[]): Edit {
    const stored = new Map(this.store.ownPlatforms.ofOrganization(SERVICE_WIDE).map((one) => [one.entry.id, one]))
    const put = wanted.filter((one) => {
      const known = stored.get(one.entry.id)
      return !known?.provisioned || known.disabled !== one.disabled || !isDeepStrictEqual(known.entry, one.entry)
    })
    const ids = new Set(wanted.map(({ entry }) => entry.id))
    return { put, remove: [...stored.values()].filter(({ provisioned, entry }) => provisioned && !ids.has(entry.id)) }
  }

  #make(
    action:
      | 'registry.add'
      | 'registry.remove'
      | 'registry.add-service-wide'
      | 'registry.remove-service-wide'
      | 'registry.provision',
    organization: Organization | undefined,
    file: string,
    named: readonly OwnPlatform[],
    edit: (before: readonly OwnPlatform[]) => Edit,
  ): OwnPlatformChange {
    const { store, clock } = this
    const organizationId = organization?.id ?? SERVICE_WIDE
    return this.audited(action, organizationId, () => {
      const current = organization && store.organizations.get(organization.id)
      if (organization !== undefined && current === undefined) {
        throw new Fault('NOT_FOUND', `no organization ${organization.name}`)
      }
      const { put, remove } = edit(store.ownPlatforms.ofOrganization(organizationId))
      for (const platform of put) store.ownPlatforms.put(organizationId, platform)
      for (const { entry } of remove) store.ownPlatforms.remove(organizationId, entry.id)
      const scan = current && requestScan(store, current, clock)
      const subject = listText((named.length > 0 ? named : remove).map(({ entry }) => entry.id))
      const details = file === '' ? {} : { file, entries: put.length, removed: remove.length }
      const platforms = store.ownPlatforms.ofOrganization(organizationId)
      return { organizationId, subject, details, result: { platforms, scan } }
    })
  }
}

interface Edit {
  readonly put: readonly OwnPlatform[]
  readonly remove: readonly OwnPlatform[]
}

/**
 * Stores the entries of REGISTRY_FILE, so that commands without the setting match as the service
 * does. If the file conflicts with the registry in force, as after an upgrade, the stored entries
 * remain in effect: matching with an old file is better than a service that does not start.
 */
export function provisionRegistry(store: Store, file: string, clock: Clock, log: Logger): void {
  if (file === '') return
  try {
    new OwnPlatformChanges(store, clock, { kind: 'operator', name: 'posture-service' }).provision(file)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    logFailure(log, error, 'REGISTRY_FILE not used, the stored registry stays in force')
  }
}

/** @param stored entries that those of the file replace */
function checkedFile(
  { platforms }: Catalog,
  given: string | ReadRegistryFile,
  base: Catalog,
  stored: readonly OwnPlatform[] = [],
): ReadRegistryFile {
  const { name: file, changes } = typeof given === 'string' ? readOwnFile(given) : given
  try {
    const known = new Set(platforms.map(({ id }) => id))
    const replaced = new Set(stored.map(({ entry }) => entry.id))
    for (const entry of changes.platforms) {
      if (known.has(entry.id) || !replaced.has(entry.id) || isCompleteEntry(entry)) continue
      const why = 'replaces the platform that was added before, so every field is required'
      throw new Fault('REGISTRY_FILE', `${file}: ${entry.id}: ${why}; posture-admin registry export prints them`)
    }
    checkChanges(platforms, file, changes, base.platforms)
    return { name: file, changes }
  } catch (error) {
    throw faultOf(error)
  }
}

function faultOf(error: unknown): unknown {
  return error instanceof RegistryFileError ? new Fault('REGISTRY_FILE', error.message, { cause: error }) : error
}

function entriesOf({ platforms, disable }: RegistryFile, addedAtMs: number, provisioned: boolean): OwnPlatform[] {
  return [
    ...platforms.map((entry) => ({ entry, disabled: false, addedAtMs, provisioned })),
    ...disable.map((id) => ({ entry: { id }, disabled: true, addedAtMs, provisioned })),
  ]
}

/**
 * A platform that lists a domain of a built-in one takes its matches, with another risk and
 * decision. That must be explicit: the file, or an entry from before, changes or disables the
 * built-in platform, too.
 */
function refuseTakenDomains(
  file: string,
  { platforms, disable }: RegistryFile,
  builtIn: Catalog['platforms'],
  stored: readonly OwnPlatform[],
): void {
  const named = new Set([...disable, ...[...platforms, ...stored.map(({ entry }) => entry)].map(({ id }) => id)])
  const others = builtIn.filter(({ id }) => !named.has(id))
  const owners = new Map(others.flatMap((owner) => owner.domains.map(({ domain }) => [domain, owner] as const)))
  for (const { id, domains = [] } of platforms) {
    for (const { domain } of domains) {
      const owner = owners.get(domain)
      if (owner === undefined) continue
      const remedy = `to take its matches, use a registry file that also disables or changes ${owner.id}`
      throw new Fault('REGISTRY_FILE', `${file}: ${id}: ${domain} belongs to ${owner.name}; ${remedy}`)
    }
  }
}

/**
 * A domain belongs to at most one platform of a set, even if the platforms came from different
 * files.
 */
function refuseSharedDomains(file: string, platforms: readonly OwnPlatform[]): void {
  const owners = new Map<string, string>()
  for (const { entry } of platforms) {
    for (const { domain } of entry.domains ?? []) {
      const owner = owners.get(domain)
      if (owner !== undefined) {
        throw new Fault('REGISTRY_FILE', `${file}: ${entry.id}: ${domain} belongs to ${owner}, which was added before`)
      }
      owners.set(domain, entry.id)
    }
  }
}

function refuseBeyondLimits(organization: Organization | undefined, platforms: readonly OwnPlatform[]): void {
  const domains = changesOf(platforms).platforms.flatMap((entry) => entry.domains ?? [])
  const patterns = domains.filter(({ match }) => match === 'pattern').length
  const found: readonly (readonly [count: number, max: number, what: string])[] =
    organization === undefined
      ? [[domains.length, SERVICE_DOMAINS_MAX, 'domains']]
      : [
          [platforms.length, OWN_PLATFORMS_MAX, 'custom platforms'],
          [domains.length, OWN_DOMAINS_MAX, 'domains of custom platforms'],
          [patterns, OWN_PATTERNS_MAX, 'patterns of custom platforms'],
        ]
  const owner = organization?.name ?? 'the service'
  for (const [count, max, what] of found) {
    if (count > max) throw new Fault('CONFLICT', `${owner} would have ${count} ${what}; at most ${max}`)
  }
}

/**
 * The service-wide changes and an organization's own ones as one registry file, which a collector
 * applies to its built-in registry. Where both change a platform, the organization's fields take
 * precedence, and so do the domains that it gives to a platform.
 */
export function registryFileOf(
  builtIn: readonly Platform[],
  serviceWide: RegistryFile,
  own: RegistryFile,
): { platforms: ChangedEntry[]; disable: string[] } {
  const known = new Set(builtIn.map(({ id }) => id))
  const disabled = new Set([...serviceWide.disable, ...own.disable])
  const entries = new Map<string, ChangedEntry>()
  const taken = new Set(own.platforms.flatMap((entry) => (entry.domains ?? []).map(({ domain }) => domain)))
  for (const entry of serviceWide.platforms) {
    const domains = entry.domains?.filter(({ domain }) => !taken.has(domain))
    entries.set(entry.id, domains === undefined ? entry : { ...entry, domains })
  }
  for (const entry of own.platforms) {
    disabled.delete(entry.id)
    entries.set(entry.id, { ...entries.get(entry.id), ...entry })
  }
  for (const [id, entry] of entries) {
    // A platform that lost every domain is none.
    if (entry.domains?.length === 0) disabled.add(id)
    // What changed a platform of an earlier registry changes nothing now.
    else if (!known.has(id) && !isCompleteEntry(entry)) entries.delete(id)
  }
  const platforms = [...entries.values()].filter(({ id }) => !disabled.has(id))
  return { platforms, disable: [...disabled].filter((id) => known.has(id)).sort() }
}
