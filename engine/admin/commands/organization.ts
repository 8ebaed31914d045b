import { type Command, Option } from 'commander'
import { EVIDENCE_WINDOW_DAYS_MAX } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import { type Organization, PLANS, type Plan, SCAN_FREQUENCIES, type ScanFrequency } from '../../store/organizations.ts'
import { changeOptions, countOption, sharedOptions, show, timeText, withStore } from './context.ts'

interface Settings {
  readonly plan?: Plan
  readonly domain?: string
  readonly scans?: ScanFrequency
  readonly window?: number
}

/** posture-admin organization create | set | list */
export function addOrganizationCommands(program: Command): void {
  const organization = program.command('organization').description('organizations, whose data are kept apart')

  const create = sharedOptions(organization.command('create <name>').description('make an organization'))
    .requiredOption('--domain <domain>', 'the domain that its scans are of')
    .addOption(new Option('--plan <plan>', 'its plan; the API needs enterprise').choices(PLANS).default('enterprise'))
  create.action((name: string, options: { domain: string; plan: Plan }) =>
    withStore(
      create,
      ({ administration }) => {
        print(create, [administration.organizations.create({ name, domain: options.domain, plan: options.plan })])
      },
      { mayMake: true },
    ),
  )

  const set = changeOptions(
    organization.command('set <name>').description('change plan, domain, scan frequency or evidence window'),
  )
    .addOption(new Option('--plan <plan>', 'its plan, from the next request on').choices(PLANS))
    .option('--domain <domain>', 'the domain that its scans are of')
    .addOption(new Option('--scans <frequency>', 'how often it is scanned').choices(SCAN_FREQUENCIES))
    .addOption(
      new Option('--window <days>', 'days of evidence that count in a scan').argParser(
        countOption(1, EVIDENCE_WINDOW_DAYS_MAX),
      ),
    )
  set.action((name: string, { plan, domain, scans, window }: Settings) =>
    withStore(set, ({ administration }) => {
      const settings = {
        ...(plan === undefined ? {} : { plan }),
        ...(domain === undefined ? {} : { domain }),
        ...(scans === undefined ? {} : { scanFrequency: scans }),
        ...(window === undefined ? {} : { evidenceWindowDays: window }),
      }
      if (Object.keys(settings).length === 0) {
        throw new Fault('USAGE', 'nothing to change: give --plan, --domain, --scans or --window')
      }
      const changed = administration.organizations.set(administration.organization(name), settings)
      print(set, [changed])
    }),
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
