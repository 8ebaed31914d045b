import type { Command } from 'commander'
import type { Catalog } from '../../../registry/catalog.ts'
import type { Organization } from '../../store/organizations.ts'
import type { ApprovalChange } from '../approvals.ts'
import { type AdminContext, changeOptions, ofOrganization, sharedOptions, show, withStore } from './context.ts'
import { waitForScan } from './scan.ts'

interface Options {
  readonly org?: string
}

/** posture-admin approval add | remove | list */
export function addApprovalCommands(program: Command): void {
  const approval = program
    .command('approval')
    .description('Approve platforms for an organization; all others are shadow AI')

  const add = approval
    .command('add')
    .description('Approve platforms and update the findings')
    .argument('<platform...>', 'Ids or names of platforms')
  ofOrganization(changeOptions(add))
  add.action((platforms: string[], options: Options) =>
    withStore(add, (context) =>
      change(add, context, options, (organization, catalog) =>
        context.administration.approvals.add(organization, catalog, platforms),
      ),
    ),
  )

  const remove = approval
    .command('remove')
    .description('Withdraw approvals and update the findings')
    .argument('<platform...>', 'Ids or names of platforms')
  ofOrganization(changeOptions(remove))
  remove.action((platforms: string[], options: Options) =>
    withStore(remove, (context) =>
      change(remove, context, options, (organization, catalog) =>
        context.administration.approvals.remove(organization, catalog, platforms),
      ),
    ),
  )

  const list = ofOrganization(sharedOptions(approval.command('list').description('List approved platforms')))
  list.action((options: Options) =>
    withStore(list, ({ administration, registry }) => {
      const organization = administration.organization(options.org)
      print(list, organization, registry.catalogOf(organization.id))
    }),
  )
}

async function change(
  command: Command,
  context: AdminContext,
  options: Options,
  make: (organization: Organization, catalog: Catalog) => ApprovalChange,
): Promise<void> {
  const before = context.administration.organization(options.org)
  const catalog = context.registry.catalogOf(before.id)
  const { organization, scan } = make(before, catalog)
  await waitForScan(context, scan)
  print(command, organization, catalog)
}

function print(command: Command, { approvedPlatformIds }: Organization, { platforms }: Catalog): void {
  const byId = new Map(platforms.map((platform) => [platform.id, platform]))
  show(command, {
    columns: [
      ['Platform', 'platform_name', { text: (name) => (name === null ? '(not in the registry)' : String(name)) }],
      ['Vendor', 'vendor', { hide: 2 }],
      ['Type', 'platform_type', { hide: 1 }],
      ['Risk', 'risk.score', { hide: 3 }],
      ['Id', 'id'],
    ],
    // A platform that was removed from the registry has only an id.
    rows: approvedPlatformIds.map((id) => {
      const platform = byId.get(id)
      return {
        id,
        platform_name: platform?.name ?? null,
        platform_type: platform?.platformType ?? null,
        vendor: platform?.vendor ?? null,
        risk: platform?.risk ?? null,
      }
    }),
  })
}
