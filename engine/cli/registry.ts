import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { builtInData } from '../../registry/built-in.ts'
import { type Catalog, checkChanges, loadCatalog } from '../../registry/catalog.ts'
import { dataDifferences, type EntryDifference, fileDifferences, fileProblems } from '../../registry/file-check.ts'
import { catalogStats, Lookup } from '../../registry/lookup.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { RegistryFileError, readRegistryText } from '../../registry/registry-file.ts'
import { knownText, plansOf, type RiskTerm, ratedRisk } from '../../registry/risk-sum.ts'
import { writeYaml } from '../../registry/yaml.ts'
import { candidateEntry, candidatesOf, type ShownCandidate } from '../admin/candidates.ts'
import { type OwnPlatformChange, readOwnFile, registryFileOf } from '../admin/own-platforms.ts'
import { updateBytes } from '../admin/registry-fetch.ts'
import type { RegistryChange } from '../admin/registry-updates.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import {
  registryFileOptions,
  registryFileText,
  registryRootSetting,
  registryRoots,
  registrySetting,
} from '../kernel/process/registry-setting.ts'
import { oneOf, wholeNumber } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import type { Organization } from '../store/organizations.ts'
import { type OwnPlatform, SERVICE_WIDE } from '../store/own-platforms.ts'
import {
  argument,
  type Commands,
  change,
  flag,
  group,
  ORGANIZATION,
  option,
  type Printed,
  plain,
  query,
  STORE_PARAMS,
  table,
  timeText,
} from './command.ts'
import { type AdminContext, becomeOwnerOf, type Output, type StoreOptions, withStore } from './context.ts'
import { waitForScan } from './scan.ts'
import { CA_FILE, certificatesIn, OUTBOUND_NETWORKS, outboundNetworksOf } from './service-options.ts'

/**
 * Every organization only if asked for: a forgotten --org must not give one organization's
 * platforms to all.
 */
const EVERY_ORGANIZATION = {
  serviceWide: flag('--service-wide', 'Use the platforms that every organization has, instead of those of one', {
    conflicts: ['org'],
  }),
}

/** The custom platforms of an organization, or those that every organization has. */
export function ownPlatforms(platforms: readonly OwnPlatform[], base: Catalog): Shown {
  const builtIn = new Map(base.platforms.map((platform) => [platform.id, platform]))
  return table<OwnPlatform & { readonly known: Catalog['platforms'][number] | undefined }>([
    ['Id', 'id', { of: ({ entry }) => entry.id }],
    ['Platform', 'platform_name', { hide: 1, wrap: true, of: ({ entry, known }) => entry.name ?? known?.name ?? null }],
    [
      'Change',
      'change',
      { of: ({ disabled, known }) => (disabled ? 'disabled' : known === undefined ? 'added' : 'changed') },
    ],
    [
      'Type',
      'platform_type',
      { hide: 3, of: ({ entry, known }) => entry.platform_type ?? known?.platformType ?? null },
    ],
    ['Domains', 'domains_total', { hide: 4, of: ({ entry, known }) => (entry.domains ?? known?.domains ?? []).length }],
    [null, 'risk', { of: ({ entry, known }) => entry.risk ?? known?.risk ?? null }],
    ['Risk', 'risk.score', { hide: 5 }],
    ['Added', 'added_at', { hide: 2 }],
    [null, 'provisioned'],
  ])(platforms.map((platform) => ({ ...platform, known: builtIn.get(platform.entry.id) })))
}

/** Makes a change, and waits for the scan that applies it. */
async function applied(
  context: AdminContext,
  serviceWide: boolean,
  make: (organization: Organization | undefined) => OwnPlatformChange,
): Promise<Shown> {
  const { platforms, scan } = make(serviceWide ? undefined : context.organization)
  if (scan !== undefined) await waitForScan(context, scan)
  return ownPlatforms(platforms, context.registry.base)
}

function candidates({ store, registry, organization }: AdminContext, isDismissed = false): Shown {
  return table<ShownCandidate>([
    ['Name', 'name'],
    ['Score', 'score'],
    [
      'Signals',
      'signals',
      { wrap: true, text: (value) => (value as string[]).join(', '), of: ({ signals }) => [...signals] },
    ],
    ['Requests', 'requests', { hide: 2 }],
    ['Clients', 'clients', { hide: 3, of: ({ clients = null }) => clients }],
    ['First seen', 'first_seen', { hide: 4 }],
    ['Last seen', 'last_seen', { hide: 1 }],
  ])(candidatesOf(store, registry, organization.id, isDismissed))
}

const CANDIDATE = argument('<name>', 'Name of the candidate')

function mark(verb: 'dismiss' | 'restore', about: string) {
  return change(about, {
    params: { name: CANDIDATE },
    run(context, { name }) {
      context.administration.candidates[verb](context.organization, name)
      return candidates(context)
    },
  })
}

/** posture-admin registry add | remove | export | candidates */
const ownCommands: Commands = {
  add: change('Add the platforms of a registry file to the registry of an organization, or of every organization', {
    params: { ...EVERY_ORGANIZATION, file: argument('<file>', 'Registry file, YAML or JSON') },
    read: ({ file }) => readOwnFile(file),
    run: (context, { serviceWide }, read) =>
      applied(context, serviceWide, (organization) =>
        context.administration.ownPlatforms.add(organization, context.registry.catalogOf(SERVICE_WIDE), read),
      ),
  }),
  remove: change('Remove custom platforms; events that name them are kept for as long as evidence is', {
    params: { ...EVERY_ORGANIZATION, ids: argument('<id...>', 'Ids of custom platforms', z.array(z.string())) },
    run: (context, { serviceWide, ids }) =>
      applied(context, serviceWide, (organization) => context.administration.ownPlatforms.remove(organization, ids)),
  }),
  export: query('Print custom platforms as a registry file for collectors', {
    params: EVERY_ORGANIZATION,
    run(context, { serviceWide, json }) {
      const { store, registry, output } = context
      const own = serviceWide ? { platforms: [], disable: [] } : store.ownPlatforms.changes(context.organization.id)
      const file = registryFileOf(registry.base.platforms, store.ownPlatforms.changes(SERVICE_WIDE), own)
      output.print(json ? `${JSON.stringify(file)}\n` : writeYaml(file))
    },
  }),
  candidates: group('Manage names of no platform that look like AI services; they are never findings', {
    list: query('List candidates with their signals, highest score first', {
      params: { dismissed: flag('--dismissed', 'List dismissed candidates instead') },
      run: (context, { dismissed }) => candidates(context, dismissed),
    }),
    add: change('Add a candidate and the names below it as a custom platform', {
      params: {
        candidate: CANDIDATE,
        id: option('--id <id>', 'Give the new platform this id', z.string()),
        name: option('--name <text>', 'Name the new platform (default: as the candidate)', z.string().default('')),
        type: option(
          '--type <type>',
          'Give the new platform this type',
          oneOf(Object.keys(PLATFORM_TYPES) as [PlatformType, ...PlatformType[]]).default('llm_chat'),
        ),
        risk: option(
          '--risk <score>',
          'Give the new platform this risk, from 0 to 100',
          wholeNumber(0, 100).default(50),
        ),
      },
      run(context, { candidate, id, name, type, risk }) {
        const { administration, registry, organization } = context
        const file = candidateEntry(registry.catalogOf(organization.id), candidate, { id, name, type, risk })
        return applied(context, false, () =>
          administration.ownPlatforms.add(organization, registry.catalogOf(SERVICE_WIDE), file),
        )
      },
    }),
    dismiss: mark('dismiss', 'Remove a candidate that is no AI service from the list'),
    restore: mark('restore', 'Show a dismissed candidate again'),
  }),
}

const platforms = table<Platform>([
  ['Id', 'id'],
  ['Platform', 'platform_name', { of: ({ name }) => name }],
  ['Vendor', 'vendor', { hide: 1 }],
  ['Type', 'platform_type', { hide: 2 }],
  [null, 'category'],
  [null, 'url'],
  ['Domains', 'domains_total', { hide: 4, of: ({ domains }) => domains.length }],
  [null, 'risk'],
  ['Risk', 'risk.score', { hide: 3 }],
])

interface DomainRow {
  readonly platform: Platform
  readonly domain: PlatformDomain
}

const domains = table<DomainRow>([
  ['Platform', 'platform_name', { hide: 2, of: ({ platform }) => platform.name }],
  [null, 'platform_type', { of: ({ platform }) => platform.platformType }],
  [null, 'vendor', { of: ({ platform }) => platform.vendor }],
  ['Domain', 'domain', { of: ({ domain }) => domain.domain }],
  ['Match', 'match', { of: ({ domain }) => domain.match }],
  ['Role', 'role', { of: ({ domain }) => domain.role }],
  ['Specificity', 'specificity', { hide: 1, of: ({ domain }) => domain.specificity }],
  ['Purpose', 'purpose', { hide: 5, of: ({ domain }) => domain.purpose }],
  [null, 'evidence', { of: ({ domain }) => domain.evidence }],
  [null, 'source', { of: sourceOf }],
  [null, 'why', { of: ({ domain }) => domain.why ?? null }],
  // Platforms of organizations have no provenance.
  [null, 'status', { of: ({ platform }) => platform.provenance?.status ?? 'active' }],
  [null, 'status_note', { of: ({ platform }) => platform.provenance?.note ?? null }],
  [null, 'checked', { of: ({ platform }) => platform.provenance?.checked ?? null }],
  [null, 'country', { of: ({ platform }) => platform.provenance?.country ?? null }],
  [null, 'vendor_url', { of: ({ platform }) => platform.provenance?.vendorUrl ?? null }],
  [null, 'risk', { of: ({ platform }) => platform.risk }],
  ['Risk', 'risk.score', { hide: 3 }],
  ['Reason', 'risk.why', { hide: 4, wrap: true }],
])

/** Where the data of a domain comes from. */
function sourceOf({ platform: { source, provenance }, domain }: DomainRow) {
  const index = domain.source ?? 0
  return domain.evidence === 'listed' ? (provenance?.sources[index] ?? source[index]) : null
}

const terms = table<Omit<RiskTerm, 'input'> & { readonly input: string; readonly platform_name: string }>([
  [null, 'platform_name'],
  ['Reason', 'text', { wrap: true }],
  ['Points', 'points'],
  ['Source', 'source', { wrap: true, hide: 1, of: ({ source = null }) => source }],
  ['Date', 'date', { hide: 2, of: ({ date = null }) => date }],
  [null, 'input'],
  [null, 'value'],
])

/** The terms of the risk, and the risk of each plan. A score that is no sum is one term. */
function riskOf(platform: Platform): Shown {
  const { name, facts = [] } = platform
  const { score, why, terms: all = [] } = ratedRisk(platform)
  if (all.length === 0) return terms([{ platform_name: name, input: 'registry', value: why, points: score, text: why }])
  const text = `Risk of the registry. ${knownText(all)}`
  const total = { input: 'total', value: 'Risk of the registry', points: score, text }
  const plans = plansOf(facts).map((plan) => {
    const { score: points } = ratedRisk(platform, plan)
    return { input: 'plan', value: plan, points, text: `Risk with the plan ${plan}` }
  })
  return terms([...all, total, ...plans].map((term) => ({ platform_name: name, ...term })))
}

interface CheckedName {
  readonly name: string
  /** undefined: no rule matches. */
  readonly rule: ReturnType<Lookup['check']>
}

const checks = table<CheckedName>([
  ['Name', 'name', { wrap: true }],
  [null, 'id', { of: ({ rule }) => rule?.platform.id ?? null }],
  ['Platform', 'platform_name', { of: ({ rule }) => rule?.platform.name ?? null }],
  ['Type', 'platform_type', { hide: 3, of: ({ rule }) => rule?.platform.platformType ?? null }],
  ['Rule', 'rule', { hide: 1, of: ({ rule }) => rule?.domain ?? null }],
  ['Match', 'match', { hide: 2, of: ({ rule }) => rule?.match ?? 'none' }],
  ['Role', 'role', { hide: 4, of: ({ rule }) => rule?.role ?? null }],
  ['Specificity', 'specificity', { hide: 5, of: ({ rule }) => rule?.specificity ?? null }],
  ['Purpose', 'purpose', { hide: 6, of: ({ rule }) => rule?.purpose ?? null }],
])

const counts = table<{ type: string; category: string | null; platforms: number; domains: number }>([
  ['Type', 'platform_type', { of: ({ type }) => type }],
  ['Category', 'category', { hide: 1 }],
  ['Platforms', 'platforms'],
  ['Domains', 'domains'],
])

const problems = table<ReturnType<typeof fileProblems>[number] & { readonly file: string }>([
  [null, 'file'],
  ['Line', 'line', { of: ({ line = null }) => line }],
  ['Severity', 'severity', { hide: 1 }],
  ['Entry', 'entry'],
  ['Field', 'field', { wrap: true }],
  ['Problem', 'problem', { wrap: true }],
])

const differences = table<EntryDifference>([
  ['Id', 'platform_id'],
  ['Platform', 'platform_name', { hide: 2, of: ({ name }) => name }],
  ['Change', 'change'],
  ['Field', 'field'],
  ['Before', 'before', { hide: 1, wrap: true }],
  ['After', 'after', { wrap: true }],
])

/** The first row has the versions, so that a program need not ask for them. */
function changesOf({ before, after }: RegistryChange): Shown {
  const version = { platformId: '', name: '', change: 'version', field: '' }
  const row = { ...version, before: before.version, after: after.version } as unknown as EntryDifference
  return differences([row, ...dataDifferences(before.platforms, after.platforms)])
}

/** Of a command that looks up platforms: a file can be tested before it is added. */
const LOOKUP = { ...STORE_PARAMS, registry: registrySetting, org: ORGANIZATION, ...EVERY_ORGANIZATION }
const FILE = argument('<file>', 'Registry file, YAML or JSON')

export const commands: Commands = {
  list: plain(
    'List all platforms',
    { ...LOOKUP, own: flag('--custom', 'List custom platforms only') },
    async (given, output, command) => {
      if (!given.own) return withCatalog(given, output, command, (catalog) => platforms(catalog.platforms))
      await withStore(given, output, (context) => {
        const id = given.serviceWide ? SERVICE_WIDE : context.organization.id
        output.show(ownPlatforms(context.store.ownPlatforms.ofOrganization(id), context.registry.base))
      })
    },
  ),
  search: plain(
    'Search platforms by name, vendor, type or domain',
    { ...LOOKUP, text: argument('<text>', 'Part of a name, vendor, type or domain') },
    (given, output, command) =>
      withCatalog(given, output, command, (catalog) => platforms(new Lookup(catalog).search(given.text))),
  ),
  show: plain(
    'Show a platform with its domains and risk',
    {
      ...LOOKUP,
      id: argument('<id>', 'Id of the platform'),
      risk: flag('--risk', 'Show the risk as a sum, with the source of each fact'),
    },
    (given, output, command) =>
      withCatalog(given, output, command, (catalog) => {
        const platform = new Lookup(catalog).show(given.id)
        if (platform === undefined) {
          throw new Fault(
            'NOT_FOUND',
            `no platform ${JSON.stringify(given.id)}; find ids with posture-admin registry search`,
          )
        }
        return given.risk ? riskOf(platform) : domains(platform.domains.map((domain) => ({ platform, domain })))
      }),
  ),
  check: plain(
    'Show which platform a host name belongs to, and by which rule',
    { ...LOOKUP, names: argument('<name...>', 'Host names', z.array(z.string())) },
    (given, output, command) =>
      withCatalog(given, output, command, (catalog) => {
        const lookup = new Lookup(catalog)
        return checks(given.names.map((name) => ({ name, rule: lookup.check(name) })))
      }),
  ),
  stats: plain('Count platforms and domains by type', LOOKUP, (given, output, command) =>
    withCatalog(given, output, command, (catalog) => {
      const { byType, ...total } = catalogStats(catalog)
      const rows = Object.entries(byType).map(([type, count]) => {
        return { type, category: PLATFORM_TYPES[type as PlatformType].category, ...count }
      })
      return counts([...rows, { type: 'all', category: null, ...total }])
    }),
  ),
  validate: plain(
    'Verify a registry file, and show each problem with its line',
    {
      ...STORE_PARAMS,
      file: FILE,
      org: ORGANIZATION,
      ...EVERY_ORGANIZATION,
      strict: flag('--strict', 'Reject a file with warnings'),
    },
    (given, output, command) => {
      const { file, strict } = given
      const text = registryFileText(file)
      return withCatalog(given, output, command, (catalog) => {
        const found = fileProblems(file, text, catalog.platforms)
        if (found.length > 0) output.show(problems(found.map((problem) => ({ file, ...problem }))))
        const rejected = found.filter(({ severity }) => strict || severity === 'error').length
        if (rejected > 0) throw new Fault('REGISTRY_FILE', `${file}: problems: ${rejected}`)
      })
    },
  ),
  diff: plain(
    'Show what a registry file would change',
    { ...STORE_PARAMS, file: FILE, org: ORGANIZATION, ...EVERY_ORGANIZATION },
    (given, output, command) => {
      const text = registryFileText(given.file)
      return withCatalog(given, output, command, (catalog) =>
        differences(
          withFault(() => {
            const changes = readRegistryText(given.file, text)
            checkChanges(catalog.platforms, given.file, changes)
            return fileDifferences(catalog.platforms, changes)
          }),
        ),
      )
    },
  ),
  ...ownCommands,
  update: query('Install a signed release of the registry for all organizations, and show what it changes', {
    organization: false,
    params: {
      from: argument('<from>', 'Update file, or its https URL'),
      registryRoot: registryRootSetting,
      caFile: CA_FILE,
      dryRun: flag('--dry-run', 'Verify the release and show what it changes, without installing it'),
      outboundNetworks: OUTBOUND_NETWORKS,
    },
    async read(given) {
      const { from, registryRoot, caFile } = given
      const allowed = outboundNetworksOf(given)
      const roots = registryRoots(registryRoot)
      const ca = caFile === undefined ? '' : certificatesIn(caFile)
      return { roots, bytes: await updateBytes(from, { allowed, ca }) }
    },
    run: ({ administration: { registryUpdates } }, { dryRun }, { bytes, roots }) =>
      changesOf(dryRun ? registryUpdates.preview(bytes, roots) : registryUpdates.update(bytes, roots)),
  }),
  rollback: query('Restore the registry that was in use before the last update', {
    organization: false,
    run: ({ administration }) => changesOf(administration.registryUpdates.rollback()),
  }),
  version: query('Show the version of the registry in use, and what rollback restores', {
    organization: false,
    run({ store: { registryReleases } }) {
      const { inForce, state, version } = registryReleases
      return table<{ version: string }>([
        ['Version', 'version'],
        ['Installed', 'installed_at', { of: () => timeText(inForce?.installedAtMs) }],
        ['Built-in', 'built_in', { of: () => builtInData().version }],
        [
          'Rollback',
          'rollback_to',
          { hide: 1, of: () => (state.installed === '' ? null : state.previous[0] || 'built-in') },
        ],
        ['Key', 'key', { hide: 2, of: () => inForce?.keyNumber ?? null }],
        ['SHA-256', 'sha256', { hide: 3, of: () => inForce?.sha256 ?? null }],
      ])([{ version }])
    },
  }),
}

/**
 * Shows something of the registry of an organization, if it is named or the only one, else of the
 * one that every organization has. With --registry-file, or without a data directory, of the built-in
 * registry and the registry file.
 */
async function withCatalog(
  given: StoreOptions & { readonly registry?: string; readonly serviceWide: boolean },
  output: Output,
  command: Command,
  work: (catalog: Catalog) => Printed,
): Promise<void> {
  const { registry: file = '', serviceWide, org, dataDir } = given
  const show = (catalog: Catalog): void => {
    const shown = work(catalog)
    if (shown !== undefined) output.show(shown)
  }
  const isStored = (): boolean => {
    becomeOwnerOf(dataDir)
    return existsSync(join(dataDir, 'store'))
  }
  // Throws on an error in the file, because the command is used to test it.
  if (command.getOptionValueSource('registry') === 'cli' || !(org !== undefined || serviceWide || isStored())) {
    return show(withFault(() => loadCatalog(registryFileOptions(file))))
  }
  await withStore(given, output, (context) => {
    const isOnly = org !== undefined || context.store.organizations.all().length === 1
    show(context.registry.catalogOf(!serviceWide && isOnly ? context.organization.id : SERVICE_WIDE))
  })
}

/** @throws Fault REGISTRY_FILE */
function withFault<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof RegistryFileError) throw new Fault('REGISTRY_FILE', error.message, { cause: error })
    throw error
  }
}
