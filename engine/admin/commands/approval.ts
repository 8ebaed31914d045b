import type { Command } from 'commander'
import type { Catalog } from '../../../registry/catalog.ts'
import { NameMatcher } from '../../../registry/match.ts'
import type { Organization } from '../../store/organizations.ts'
import type { ApprovalChange } from '../approvals.ts'
import { type AdminContext, changeOptions, ofOrganization, sharedOptions, show, withStore } from './context.ts'
import { catalogOf, registryOption } from './registry-option.ts'
import { waitForScan } from './scan.ts'

interface Options {
  readonly org: string
  readonly registry: string
}

/** posture-admin approval add | remove | list */
export function addApprovalCommands(program: Command): void {
  const approval = program
    .command('approval')
    .description('which platforms an organization approves; all others are shadow AI')

  const add = registryOption(
    ofOrganization(
      changeOptions(
        approval.command('add <platform...>').description('approve platforms, by id or name; a scan shows it at once'),
      ),
    ),
  )
  add.action((platforms: string[], options: Options) =>
    withStore(add, (context) =>
      change(add, context, options, (organization, catalog) =>
        context.administration.approvals.add(organization, catalog, platforms),
      ),
    ),
  )

  const remove = registryOption(
    ofOrganization(
      changeOptions(
        approval.command('remove <platform...>').description('approve platforms no longer; a scan shows it at once'),
      ),
    ),
  )
  remove.action((platforms: string[], options: Options) =>
    withStore(remove, (context) =>
      change(remove, context, options, (organization, catalog) =>
        context.administration.approvals.remove(organization, catalog, platforms),
      ),
    ),
  )

  const list = registryOption(
    ofOrganization(sharedOptions(approval.command('list').description('show what is approved'))),
  )
  list.action((options: Options) =>
    withStore(list, ({ administration }) =>
      print(list, administration.organization(options.org), catalogOf(options.registry)),
    ),
  )
}

async function change(
  command: Command,
  context: AdminContext,
  options: Options,
  make: (organization: Organization, catalog: Catalog) => ApprovalChange,
): Promise<void> {
  const catalog = catalogOf(options.registry)
  const { organization, scan } = make(context.administration.organization(options.org), catalog)
  await waitForScan(context, () => new NameMatcher(catalog), scan)
  print(command, organization, catalog)
}

function print(command: Command, { approvedPlatformIds }: Organization, { platforms }: Catalog): void {
  const byId = new Map(platforms.map((platform) => [platform.id, platform]))
  show(command, {
    columns: [
      ['Platform', 'platform'],
      ['Vendor', 'vendor'],
      ['Type', 'type'],
      ['Risk', 'risk'],
      ['Id', 'id'],
    ],
    rows: approvedPlatformIds.map((id) => {
      const platform = byId.get(id)
      return {
        id,
        platform: platform?.name ?? '(not in the registry)',
        vendor: platform?.vendor ?? '',
        type: platform?.platformType ?? '',
        risk: platform?.risk.score ?? '',
      }
    }),
  })
}
