import { z } from 'zod'
import type { Catalog } from '../../registry/catalog.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { writeYaml } from '../../registry/yaml.ts'
import { candidateEntry, candidatesOf, type ShownCandidate } from '../admin/candidates.ts'
import { type OwnPlatformChange, readOwnFile, registryFileOf } from '../admin/own-platforms.ts'
import { oneOf, wholeNumber } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import type { Organization } from '../store/organizations.ts'
import { type OwnPlatform, SERVICE_WIDE } from '../store/own-platforms.ts'
import { argument, type Commands, change, flag, group, option, query, table, timeText } from './command.ts'
import type { AdminContext } from './context.ts'
import { waitForScan } from './scan.ts'

/**
 * Every organization only if asked for: a forgotten --org must not give one organization's
 * platforms to all.
 */
export const EVERY_ORGANIZATION = {
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
    ['Added', 'added_at', { hide: 2, of: ({ addedAtMs }) => timeText(addedAtMs) }],
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
    ['First seen', 'first_seen', { hide: 4, of: ({ firstSeenMs }) => timeText(firstSeenMs) }],
    ['Last seen', 'last_seen', { hide: 1, of: ({ lastSeenMs }) => timeText(lastSeenMs) }],
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
export const ownCommands: Commands = {
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
