import type { Command } from 'commander'
import { createProgram, withHelpCommand } from '../kernel/process/program.ts'
import { addCommands, type Commands } from './command.ts'

/** The usage of a command after `posture-admin`, what it does, and its module. */
type Entry = readonly [usage: string, about: string, load: () => Promise<{ readonly commands: Commands }>]

/** In the order of the help. */
const ENTRIES: readonly Entry[] = [
  [
    'setup [options]',
    'Create an organization, a monitoring token and an API key, and wait for the first finding',
    () => import('./setup.ts'),
  ],
  ['organization', 'Manage organizations, whose data is isolated from each other', () => import('./organization.ts')],
  ['member', 'Manage the members of an organization and their roles', () => import('./member.ts')],
  [
    'setup-link [options]',
    'Print a link with which a person becomes an owner and can sign in to the console',
    async () => ({ commands: (await import('./account-link.ts')).setupLink }),
  ],
  [
    'password-link [options] <name>',
    'Print a link that sets a new password for a user of the console',
    async () => ({ commands: (await import('./account-link.ts')).passwordLink }),
  ],
  ['passkey', 'Manage the passkeys of a user of the console', () => import('./passkey.ts')],
  ['sign-in', 'Manage the identity provider with which members sign in to the console', () => import('./sign-in.ts')],
  ['key', 'Manage API keys, which authenticate API clients', () => import('./key.ts')],
  ['token', 'Manage monitoring tokens, which authenticate collectors and log senders', () => import('./token.ts')],
  ['ingest', 'Ingest log files and show who sends logs', () => import('./ingest.ts')],
  ['scan', 'Run discovery scans and show their findings', () => import('./scan.ts')],
  ['platform', 'Show the platforms in use, and who uses them', () => import('./platform.ts')],
  [
    'client',
    'Show clients and their use, name and group them, export and erase the data of a person',
    () => import('./client.ts'),
  ],
  ['network', 'Name networks, so that clients are shown with their place', () => import('./network.ts')],
  [
    'approval',
    'Approve or reject platforms for an organization; all that are not approved are shadow AI',
    () => import('./approval.ts'),
  ],
  [
    'blocklist [options]',
    'Write the hosts of platforms as a block list for a DNS server, proxy or firewall',
    () => import('./blocklist.ts'),
  ],
  [
    'export [options] <what>',
    'Export findings, clients and assessments as CSV, JSON lines or HTML, or findings for a SIEM',
    () => import('./export.ts'),
  ],
  ['assessment', 'Assess an organization against a framework', () => import('./assessment.ts')],
  ['framework', "Manage an organization's own assessment frameworks", () => import('./framework.ts')],
  ['recommendation', 'Track the recommendations of completed assessments', () => import('./recommendation.ts')],
  [
    'report [options]',
    'Write the findings for managers to one HTML file, with what changed',
    () => import('./report.ts'),
  ],
  ['alert', 'Manage alerts: their rules, channels and messages', () => import('./alert.ts')],
  ['registry', 'Look up AI platforms, manage custom platforms and install updates', () => import('./registry.ts')],
  ['audit', 'Show who changed what, and when', () => import('./audit.ts')],
  [
    'verify [options]',
    'Show recent events of a collector or log sender, or wait until events arrive',
    () => import('./verify.ts'),
  ],
  ['retention', 'Set how long an organization keeps data', () => import('./retention.ts')],
  [
    'doctor [options]',
    'Verify the whole store while the service runs, and show what is in it',
    () => import('./doctor.ts'),
  ],
  [
    'backup [options] <file>',
    'Back up the store while the service runs; protect the file like the store',
    () => import('./backup.ts'),
  ],
  [
    'restore [options] <file>',
    'Restore the store from a backup; the service must be stopped',
    async () => ({ commands: (await import('./backup.ts')).restoreCommands }),
  ],
  ['cluster', 'Show the nodes of a cluster, or leave it', () => import('./cluster.ts')],
]

/**
 * The program with all commands, of which only those that `isNeeded` selects are complete:
 * importing all modules takes longer than most commands. The others are only for help, and for
 * suggestions after a typo. Commands print to standard output, or by `write`.
 */
async function programWith(isNeeded: (name: string) => boolean, write?: (text: string) => void): Promise<Command> {
  const program = withHelpCommand(
    createProgram('posture-admin', "Administer the service's data directory, also while the service runs"),
  )
  // blocklist has options and commands: the options after a command are those of the command.
  program.enablePositionalOptions()
  // Before the commands are added, because each command copies the configuration of that moment.
  if (write !== undefined) program.configureOutput({ writeOut: write })
  for (const [usage, about, load] of ENTRIES) {
    const [name = ''] = usage.split(' ')
    if (isNeeded(name)) addCommands(program.command(name).description(about), (await load()).commands)
    else {
      const command = program.command(usage.replace(' [options]', '')).description(about)
      if (usage.includes('[options]')) command.option('--json')
    }
  }
  return program
}

/** The whole program. */
export function adminProgram(): Promise<Command> {
  return programWith(() => true)
}

/** The program for a command line. */
export function programFor(words: readonly string[], write?: (text: string) => void): Promise<Command> {
  const names = words.filter((word) => !word.startsWith('-'))
  const name = names[0] === 'help' ? names[1] : names[0]
  return programWith((each) => each === name, write)
}

/** A row that a command prints as a line of JSON. */
export type AdminRow = Readonly<Record<string, unknown>>

/**
 * Runs a command in this process and returns its output rows. @throws Fault and CommanderError,
 * which the program prints.
 */
export async function adminRows(...words: string[]): Promise<AdminRow[]> {
  let text = ''
  const program = await programFor(words, (part) => {
    text += part
  })
  await program.parseAsync([...words, '--json'], { from: 'user' })
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AdminRow)
}
