import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { type Catalog, loadCatalog } from '../../../registry/catalog.ts'
import { catalogStats, Lookup } from '../../../registry/lookup.ts'
import type { Platform, PlatformDomain } from '../../../registry/platform.ts'
import { PLATFORM_TYPES } from '../../../registry/platform-type.ts'
import { RegistryFileError } from '../../../registry/registry-file.ts'
import type { RiskTerm } from '../../../registry/risk-sum.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Shown } from '../../process/table.ts'
import { SERVICE_WIDE } from '../../store/own-platforms.ts'
import { dataDirectoryOf, sharedOptions, show, withStore } from './context.ts'
import { addCandidateCommands } from './registry-candidates.ts'
import { addRegistryFileCommands } from './registry-file.ts'
import { registryFileOf, registryOption } from './registry-option.ts'
import {
  addOwnPlatformCommands,
  type OwnSetOptions,
  ofOrganizationOrEvery,
  organizationOrEvery,
  printOwnPlatforms,
} from './registry-own.ts'
import { addRegistryUpdateCommands } from './registry-update.ts'

interface Options extends OwnSetOptions {
  readonly own?: boolean
}

/**
 * posture-admin registry: list, search, show, check, stats; files; own platforms; candidates;
 * updates
 */
export function addRegistryCommands(registry: Command): void {
  const list = lookupOptions(registry.command('list').description('List all platforms')).option(
    '--own',
    'List own platforms only',
  )
  list.action((options: Options) =>
    options.own === true
      ? withStore(list, ({ store, administration, registry }) => {
          const { id } = organizationOrEvery(administration, options) ?? { id: SERVICE_WIDE }
          printOwnPlatforms(list, store.ownPlatforms.ofOrganization(id), registry.base)
        })
      : withCatalog(list, (catalog) => show(list, platformRows(catalog.platforms))),
  )

  const search = lookupOptions(
    registry
      .command('search')
      .description('Search platforms by name, vendor, type or domain')
      .argument('<text>', 'Part of a name, vendor, type or domain'),
  )
  search.action((text: string) =>
    withCatalog(search, (catalog) => show(search, platformRows(new Lookup(catalog).search(text)))),
  )

  const one = lookupOptions(
    registry
      .command('show')
      .description('Show a platform with its domains and risk')
      .argument('<id>', 'Id of the platform'),
  ).option('--risk', 'Show the risk as a sum, with the source of each fact')
  one.action((id: string, options: { risk?: boolean }) =>
    withCatalog(one, (catalog) => {
      const platform = new Lookup(catalog).show(id)
      if (platform === undefined) {
        throw new Fault('NOT_FOUND', `no platform ${JSON.stringify(id)}; find ids with posture-admin registry search`)
      }
      show(one, options.risk === true ? riskRows(platform) : domainRows(platform))
    }),
  )

  const check = lookupOptions(
    registry
      .command('check')
      .description('Show which platform a host name belongs to, and by which rule')
      .argument('<name...>', 'Host names'),
  )
  check.action((names: string[]) => withCatalog(check, (catalog) => show(check, checkRows(new Lookup(catalog), names))))

  const stats = lookupOptions(registry.command('stats').description('Count platforms and domains by type'))
  stats.action(() => withCatalog(stats, (catalog) => show(stats, statsRows(catalog))))

  addRegistryFileCommands(registry, withCatalog)
  addOwnPlatformCommands(registry)
  addCandidateCommands(registry)
  addRegistryUpdateCommands(registry)
}

function lookupOptions(command: Command): Command {
  return ofOrganizationOrEvery(registryOption(sharedOptions(command)))
}

/**
 * Runs `work` on the registry of an organization, if it is named or the only one, else on the one
 * that every organization has. With --registry, or without a data directory, on the built-in
 * registry and the registry file.
 */
async function withCatalog(command: Command, work: (catalog: Catalog) => void): Promise<void> {
  const { org, serviceWide, registry: file } = command.opts<Options & { registry?: string }>()
  const namesSet = org !== undefined || serviceWide === true
  const isStored = existsSync(join(dataDirectoryOf(command), 'store'))
  if (file !== undefined || !(namesSet || isStored)) return work(fileCatalog(command))
  await withStore(command, ({ store, administration, registry }) => {
    const isOnly = org !== undefined || store.organizations.all().length === 1
    const organization = serviceWide !== true && isOnly ? administration.organization(org) : undefined
    work(registry.catalogOf(organization?.id ?? SERVICE_WIDE))
  })
}

/**
 * The built-in registry with a registry file. Throws on an error in the file, because the command
 * is used to test it.
 */
function fileCatalog(command: Command): Catalog {
  const registry = registryFileOf(command)
  try {
    return loadCatalog(registry === '' ? {} : { file: registry })
  } catch (error) {
    if (error instanceof RegistryFileError) throw new Fault('REGISTRY_FILE', error.message, { cause: error })
    throw error
  }
}

function platformRows(platforms: readonly Platform[]): Shown {
  return {
    columns: [
      ['Id', 'id'],
      ['Platform', 'platform_name'],
      ['Vendor', 'vendor', { hide: 1 }],
      ['Type', 'platform_type', { hide: 2 }],
      ['Domains', 'domains_total', { hide: 4 }],
      ['Risk', 'risk.score', { hide: 3 }],
    ],
    rows: platforms.map((platform) => ({
      id: platform.id,
      platform_name: platform.name,
      platform_type: platform.platformType,
      vendor: platform.vendor,
      category: platform.category,
      url: platform.url,
      domains_total: platform.domains.length,
      risk: platform.risk,
    })),
  }
}

function domainRows(platform: Platform): Shown {
  return {
    columns: [
      ['Platform', 'platform_name', { hide: 2 }],
      ['Domain', 'domain'],
      ['Match', 'match'],
      ['Role', 'role'],
      ['Specificity', 'specificity', { hide: 1 }],
      ['Purpose', 'purpose', { hide: 5 }],
      ['Risk', 'risk.score', { hide: 3 }],
      ['Reason', 'risk.why', { hide: 4, wrap: true }],
    ],
    rows: platform.domains.map((domain) => ({
      platform_name: platform.name,
      platform_type: platform.platformType,
      vendor: platform.vendor,
      domain: domain.domain,
      match: domain.match,
      role: domain.role,
      specificity: domain.specificity,
      purpose: domain.purpose,
      ...originOf(platform, domain),
      risk: platform.risk,
    })),
  }
}

/** Where the data of a domain comes from. Platforms of organizations have no provenance. */
function originOf({ source, provenance }: Platform, domain: PlatformDomain) {
  const index = domain.source ?? 0
  const isListed = domain.evidence === 'listed'
  return {
    evidence: domain.evidence,
    source: isListed ? (provenance?.sources[index] ?? source[index]) : null,
    why: domain.why ?? null,
    status: provenance?.status ?? 'active',
    status_note: provenance?.note ?? null,
    checked: provenance?.checked ?? null,
    country: provenance?.country ?? null,
    vendor_url: provenance?.vendorUrl ?? null,
  }
}

/** The terms of the risk. A score that is no sum is one term. */
function riskRows({ name, risk }: Platform): Shown {
  const terms: readonly RiskTerm[] = risk.terms ?? [{ input: 'class', value: risk.why, points: risk.score }]
  return {
    columns: [
      ['Input', 'input'],
      ['Value', 'value', { wrap: true }],
      ['Points', 'points'],
      ['Source', 'source', { wrap: true, hide: 1 }],
    ],
    rows: [
      ...terms.map((term) => ({ platform_name: name, ...term, source: term.source ?? null })),
      { platform_name: name, input: 'total', value: 'Risk of the registry', points: risk.score, source: null },
    ],
  }
}

/** The fields of a name that no rule matches. */
const NO_RULE = {
  ...{ id: null, platform_name: null, platform_type: null },
  ...{ rule: null, match: 'none', role: null, specificity: null, purpose: null },
}

function checkRows(lookup: Lookup, names: readonly string[]): Shown {
  return {
    columns: [
      ['Name', 'name', { wrap: true }],
      ['Platform', 'platform_name'],
      ['Type', 'platform_type', { hide: 3 }],
      ['Rule', 'rule', { hide: 1 }],
      ['Match', 'match', { hide: 2 }],
      ['Role', 'role', { hide: 4 }],
      ['Specificity', 'specificity', { hide: 5 }],
      ['Purpose', 'purpose', { hide: 6 }],
    ],
    rows: names.map((name) => {
      const rule = lookup.check(name)
      if (rule === undefined) return { name, ...NO_RULE }
      const { domain, match, role, specificity, purpose, platform } = rule
      return {
        name,
        id: platform.id,
        platform_name: platform.name,
        platform_type: platform.platformType,
        rule: domain,
        match,
        role,
        specificity,
        purpose,
      }
    }),
  }
}

function statsRows(catalog: Catalog): Shown {
  const { byType, platforms, domains } = catalogStats(catalog)
  const rows = Object.entries(byType).map(([type, counts]) => ({
    platform_type: type,
    category: PLATFORM_TYPES[type as keyof typeof PLATFORM_TYPES].category,
    ...counts,
  }))
  return {
    columns: [
      ['Type', 'platform_type'],
      ['Category', 'category', { hide: 1 }],
      ['Platforms', 'platforms'],
      ['Domains', 'domains'],
    ],
    rows: [...rows, { platform_type: 'all', category: null, platforms, domains }],
  }
}
