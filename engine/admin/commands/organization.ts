import { type Command, Option } from 'commander'
import { type Organization, PLANS, type Plan } from '../../store/organizations.ts'
import { sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin organization create | list */
export function addOrganizationCommands(program: Command): void {
  const organization = program.command('organization').description('organizations, whose data are kept apart')

  const create = sharedOptions(organization.command('create <name>').description('make an organization'))
    .requiredOption('--domain <domain>', 'the domain that its scans are of')
    .addOption(new Option('--plan <plan>', 'its plan; the API needs enterprise').choices(PLANS).default('enterprise'))
  create.action((name: string, options: { domain: string; plan: Plan }) =>
    withStore(
      create,
      ({ administration }) => {
        print(create, [administration.createOrganization({ name, domain: options.domain, plan: options.plan })])
      },
      { mayMake: true },
    ),
  )

  const list = sharedOptions(organization.command('list').description('show all organizations'))
  list.action(() => withStore(list, ({ store }) => print(list, store.organizations.all())))
}

function print(command: Command, organizations: readonly Organization[]): void {
  show(command, {
    columns: [
      ['Name', 'name'],
      ['Domain', 'domain'],
      ['Plan', 'plan'],
      ['Scans', 'scan_frequency'],
      ['Window (days)', 'evidence_window_days'],
      ['Created', 'created_at'],
      ['Id', 'id'],
    ],
    rows: organizations.map((organization) => ({
      id: organization.id,
      name: organization.name,
      domain: organization.domain,
      plan: organization.plan,
      scan_frequency: organization.scanFrequency,
      evidence_window_days: organization.evidenceWindowDays,
      created_at: timeText(organization.createdAtMs),
    })),
  })
}
