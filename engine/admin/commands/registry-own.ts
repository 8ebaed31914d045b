import { createRequire } from 'node:module'
import { type Command, Option } from 'commander'
import type { Catalog } from '../../../registry/catalog.ts'
import type { Organization } from '../../store/organizations.ts'
import { type OwnPlatform, SERVICE_WIDE } from '../../store/own-platforms.ts'
import type { OwnPlatformChange } from '../own-platforms.ts'
import { registryFileOf } from '../registry-export.ts'
import {
  type AdminContext,
  changeOptions,
  ofOrganization,
  printText,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'
import { waitForScan } from './scan.ts'

const require = createRequire(import.meta.url)

/** Which set of own platforms: of an organization, or of every one. */
export interface OwnSetOptions {
  readonly org?: string
  readonly serviceWide?: boolean
}

/** posture-admin registry add | remove | export */
export function addOwnPlatformCommands(registry: Command): void {
  const add = ofOrganizationOrEvery(
    changeOptions(
      registry
        .command('add')
        .description(
          'Add the platforms of a registry file to the registry of an organization, or of every organization',
        )
        .argument('<file>', 'Registry file, YAML or JSON'),
    ),
  )
  add.action((file: string, options: OwnSetOptions) =>
    withStore(add, (context) =>
      change(add, context, options, (organization) =>
        context.administration.ownPlatforms.add(organization, context.registry.catalogOf(SERVICE_WIDE), file),
      ),
    ),
  )

  const remove = ofOrganizationOrEvery(
    changeOptions(
      registry
        .command('remove')
        .description('Remove own platforms; events that name them are kept for as long as evidence is')
        .argument('<id...>', 'Ids of own platforms'),
    ),
  )
  remove.action((ids: string[], options: OwnSetOptions) =>
    withStore(remove, (context) =>
      change(remove, context, options, (organization) => context.administration.ownPlatforms.remove(organization, ids)),
    ),
  )

  const write = ofOrganizationOrEvery(
    sharedOptions(registry.command('export').description('Print own platforms as a registry file for collectors')),
  )
  write.action((options: OwnSetOptions) =>
    withStore(write, ({ store, administration, registry }) => {
      const organization = organizationOrEvery(administration, options)
      const own =
        organization === undefined ? { platforms: [], disable: [] } : store.ownPlatforms.changes(organization.id)
      const file = registryFileOf(registry.base.platforms, store.ownPlatforms.changes(SERVICE_WIDE), own)
      if (write.optsWithGlobals<{ json?: boolean }>().json) return printText(write, `${JSON.stringify(file)}\n`)
      // Only here: every other command would pay 16 ms for it.
      const { stringify } = require('yaml') as typeof import('yaml')
      printText(write, stringify(file))
    }),
  )
}

/** Prints the own platforms of an organization, or those that every organization has. */
export function printOwnPlatforms(command: Command, platforms: readonly OwnPlatform[], base: Catalog): void {
  const builtIn = new Map(base.platforms.map((platform) => [platform.id, platform]))
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Platform', 'platform_name', { hide: 1, wrap: true }],
      ['Change', 'change'],
      ['Type', 'platform_type', { hide: 3 }],
      ['Domains', 'domains_total', { hide: 4 }],
      ['Risk', 'risk.score', { hide: 5 }],
      ['Added', 'added_at', { hide: 2 }],
    ],
    rows: platforms.map(({ entry, disabled, addedAtMs, provisioned }) => {
      const known = builtIn.get(entry.id)
      return {
        id: entry.id,
        platform_name: entry.name ?? known?.name ?? null,
        change: disabled ? 'disabled' : known === undefined ? 'added' : 'changed',
        platform_type: entry.platform_type ?? known?.platformType ?? null,
        domains_total: (entry.domains ?? known?.domains ?? []).length,
        risk: entry.risk ?? known?.risk ?? null,
        added_at: timeText(addedAtMs),
        provisioned,
      }
    }),
  })
}

/**
 * Every organization only if asked for: a forgotten --org must not give one organization's
 * platforms to all.
 */
export function ofOrganizationOrEvery(command: Command): Command {
  return ofOrganization(command).addOption(
    new Option('--service-wide', 'Use the platforms that every organization has, instead of those of one').conflicts(
      'org',
    ),
  )
}

/** undefined: every organization. */
export function organizationOrEvery(
  administration: AdminContext['administration'],
  { org, serviceWide }: OwnSetOptions,
): Organization | undefined {
  return serviceWide === true ? undefined : administration.organization(org)
}

async function change(
  command: Command,
  context: AdminContext,
  options: OwnSetOptions,
  make: (organization: Organization | undefined) => OwnPlatformChange,
): Promise<void> {
  const { platforms, scan } = make(organizationOrEvery(context.administration, options))
  if (scan !== undefined) await waitForScan(context, scan)
  printOwnPlatforms(command, platforms, context.registry.base)
}
