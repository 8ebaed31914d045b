import { type Command, Option } from 'commander'
import { PLATFORM_TYPES, type PlatformType } from '../../../registry/platform-type.ts'
import { SERVICE_WIDE } from '../../store/own-platforms.ts'
import { candidateEntry, candidatesOf, type NewPlatform, type ShownCandidate } from '../candidates.ts'
import {
  type AdminContext,
  changeOptions,
  countOption,
  ofOrganization,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'
import { printOwnPlatforms } from './registry-own.ts'
import { waitForScan } from './scan.ts'

const RISK_DEFAULT = 50

interface AddOptions {
  readonly org?: string
  readonly id: string
  readonly name?: string
  readonly type: PlatformType
  readonly risk: number
}

/** posture-admin registry candidates list | add | dismiss | restore */
export function addCandidateCommands(registry: Command): void {
  const candidates = registry
    .command('candidates')
    .description('Manage names of no platform that look like AI services; they are never findings')

  const list = ofOrganization(
    sharedOptions(candidates.command('list').description('List candidates with their signals, highest score first')),
  ).option('--dismissed', 'List dismissed candidates instead')
  list.action(({ org, dismissed }: { org?: string; dismissed?: boolean }) =>
    withStore(list, (context) => printCandidates(list, context, org, dismissed === true)),
  )

  const add = ofOrganization(
    changeOptions(
      candidates
        .command('add')
        .description('Add a candidate and the names below it as an own platform')
        .argument('<name>', 'Name of the candidate'),
    ),
  )
    .requiredOption('--id <id>', 'Give the new platform this id')
    .option('--name <text>', 'Name the new platform (default: as the candidate)')
    .addOption(
      new Option('--type <type>', 'Give the new platform this type')
        .choices(Object.keys(PLATFORM_TYPES))
        .default('llm_chat' satisfies PlatformType),
    )
    .option('--risk <score>', 'Give the new platform this risk, from 0 to 100', countOption(0, 100), RISK_DEFAULT)
  add.action((name: string, options: AddOptions) =>
    withStore(add, async (context) => {
      const { administration, registry: inForce } = context
      const organization = administration.organization(options.org)
      const platform: NewPlatform = { id: options.id, name: options.name ?? '', type: options.type, risk: options.risk }
      const file = candidateEntry(inForce.catalogOf(organization.id), name, platform)
      const shared = inForce.catalogOf(SERVICE_WIDE)
      const { platforms, scan } = administration.ownPlatforms.add(organization, shared, file)
      if (scan !== undefined) await waitForScan(context, scan)
      printOwnPlatforms(add, platforms, inForce.base)
    }),
  )

  addMarkCommand(candidates, 'dismiss', 'Remove a candidate that is no AI service from the list')
  addMarkCommand(candidates, 'restore', 'Show a dismissed candidate again')
}

function addMarkCommand(candidates: Command, verb: 'dismiss' | 'restore', about: string): void {
  const command = ofOrganization(
    changeOptions(candidates.command(verb).description(about).argument('<name>', 'Name of the candidate')),
  )
  command.action((name: string, { org }: { org?: string }) =>
    withStore(command, (context) => {
      const { administration } = context
      const organization = administration.organization(org)
      administration.candidates[verb](organization, name)
      printCandidates(command, context, org, false)
    }),
  )
}

function printCandidates(
  command: Command,
  { store, registry, administration }: AdminContext,
  org: string | undefined,
  isDismissed: boolean,
): void {
  const { id } = administration.organization(org)
  show(command, {
    columns: [
      ['Name', 'name'],
      ['Score', 'score'],
      ['Signals', 'signals', { text: (value) => (value as string[]).join(', '), wrap: true }],
      ['Requests', 'requests', { hide: 2 }],
      ['Clients', 'clients', { hide: 3 }],
      ['First seen', 'first_seen', { hide: 4 }],
      ['Last seen', 'last_seen', { hide: 1 }],
    ],
    rows: candidatesOf(store, registry, id, isDismissed).map(rowOf),
  })
}

function rowOf({ name, score, signals, requests, clients, firstSeenMs, lastSeenMs }: ShownCandidate) {
  return {
    name,
    score,
    signals: [...signals],
    requests,
    clients: clients ?? null,
    first_seen: timeText(firstSeenMs),
    last_seen: timeText(lastSeenMs),
  }
}
