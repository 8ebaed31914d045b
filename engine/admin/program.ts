import type { Command } from 'commander'
import { createProgram, withHelpCommand } from '../process/program.ts'

/** A command of posture-admin. */
interface AdminCommand {
  /** Its name, and the arguments after it. */
  readonly words: string
  readonly about: string
  readonly hasOptions?: true
  /** Imports its module, which adds options, arguments, commands and actions. */
  readonly load: () => Promise<(command: Command) => void>
}

/** In the order of the help. */
const COMMANDS: readonly AdminCommand[] = [
  {
    words: 'setup',
    about: 'Create an organization, a monitoring token and an API key, and wait for the first finding',
    hasOptions: true,
    load: async () => (await import('./commands/setup.ts')).addSetupCommand,
  },
  {
    words: 'organization',
    about: 'Manage organizations, whose data is isolated from each other',
    load: async () => (await import('./commands/organization.ts')).addOrganizationCommands,
  },
  {
    words: 'member',
    about: 'Manage the members of an organization and their roles',
    load: async () => (await import('./commands/member.ts')).addMemberCommands,
  },
  {
    words: 'setup-link',
    about: 'Print a link with which a person becomes an owner and can sign in to the console',
    hasOptions: true,
    load: async () => (await import('./commands/setup-link.ts')).addSetupLinkCommand,
  },
  {
    words: 'password-link <name>',
    about: 'Print a link that sets a new password for a user of the console',
    hasOptions: true,
    load: async () => (await import('./commands/setup-link.ts')).addPasswordLinkCommand,
  },
  {
    words: 'passkey',
    about: 'Manage the passkeys of a user of the console',
    load: async () => (await import('./commands/passkey.ts')).addPasskeyCommands,
  },
  {
    words: 'sign-in',
    about: 'Manage the identity provider with which members sign in to the console',
    load: async () => (await import('./commands/sign-in.ts')).addSignInCommands,
  },
  {
    words: 'key',
    about: 'Manage API keys, which authenticate API clients',
    load: async () => (await import('./commands/key.ts')).addKeyCommands,
  },
  {
    words: 'token',
    about: 'Manage monitoring tokens, which authenticate collectors and log senders',
    load: async () => (await import('./commands/token.ts')).addTokenCommands,
  },
  {
    words: 'ingest',
    about: 'Ingest log files and show who sends logs',
    load: async () => (await import('./commands/ingest.ts')).addIngestCommands,
  },
  {
    words: 'scan',
    about: 'Run discovery scans and show their findings',
    load: async () => (await import('./commands/scan.ts')).addScanCommands,
  },
  {
    words: 'platform',
    about: 'Show the platforms in use, and who uses them',
    load: async () => (await import('./commands/platform.ts')).addPlatformCommands,
  },
  {
    words: 'client',
    about: 'Show which platforms a client uses',
    load: async () => (await import('./commands/client.ts')).addClientCommands,
  },
  {
    words: 'network',
    about: 'Name networks, so that clients are shown with their place',
    load: async () => (await import('./commands/network.ts')).addNetworkCommands,
  },
  {
    words: 'approval',
    about: 'Approve or reject platforms for an organization; all that are not approved are shadow AI',
    load: async () => (await import('./commands/approval.ts')).addApprovalCommands,
  },
  {
    words: 'blocklist',
    about: 'Write the hosts of platforms as a block list for a DNS server, proxy or firewall',
    hasOptions: true,
    load: async () => (await import('./commands/blocklist.ts')).addBlockListCommands,
  },
  {
    words: 'export <what>',
    about: 'Export findings, clients and assessments as CSV, JSON lines or HTML, or findings for a SIEM',
    hasOptions: true,
    load: async () => (await import('./commands/export.ts')).addExportCommand,
  },
  {
    words: 'assessment',
    about: 'Assess an organization against a framework',
    load: async () => (await import('./commands/assessment.ts')).addAssessmentCommands,
  },
  {
    words: 'framework',
    about: "Manage an organization's own assessment frameworks",
    load: async () => (await import('./commands/framework.ts')).addFrameworkCommands,
  },
  {
    words: 'recommendation',
    about: 'Track the recommendations of completed assessments',
    load: async () => (await import('./commands/recommendation.ts')).addRecommendationCommands,
  },
  {
    words: 'report',
    about: 'Write the findings for managers to one HTML file, with what changed',
    hasOptions: true,
    load: async () => (await import('./commands/report.ts')).addReportCommand,
  },
  {
    words: 'alert',
    about: 'Manage alerts: their rules, channels and messages',
    load: async () => (await import('./commands/alert.ts')).addAlertCommands,
  },
  {
    words: 'registry',
    about: 'Look up AI platforms, manage own platforms and install updates',
    load: async () => (await import('./commands/registry.ts')).addRegistryCommands,
  },
  {
    words: 'audit',
    about: 'Show who changed what, and when',
    load: async () => (await import('./commands/audit.ts')).addAuditCommands,
  },
  {
    words: 'verify',
    about: 'Show recent events of a collector or log sender, or wait until events arrive',
    hasOptions: true,
    load: async () => (await import('./commands/verify.ts')).addVerifyCommand,
  },
  {
    words: 'retention',
    about: 'Set how long an organization keeps data',
    load: async () => (await import('./commands/retention.ts')).addRetentionCommands,
  },
  {
    words: 'doctor',
    about: 'Verify the whole store while the service runs, and show what is in it',
    hasOptions: true,
    load: async () => (await import('./commands/doctor.ts')).addDoctorCommand,
  },
  {
    words: 'backup <file>',
    about: 'Back up the store while the service runs; protect the file like the store',
    hasOptions: true,
    load: async () => (await import('./commands/backup.ts')).addBackupCommand,
  },
  {
    words: 'restore <file>',
    about: 'Restore the store from a backup; the service must be stopped',
    hasOptions: true,
    load: async () => (await import('./commands/backup.ts')).addRestoreCommand,
  },
  {
    words: 'cluster',
    about: 'Show the nodes of a cluster, or leave it',
    load: async () => (await import('./commands/cluster.ts')).addClusterCommands,
  },
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
  for (const { words, about, hasOptions = false, load } of COMMANDS) {
    const name = words.replace(/ .*/, '')
    if (isNeeded(name)) {
      const add = await load()
      add(program.command(name).description(about))
    } else {
      const command = program.command(words).description(about)
      if (hasOptions) command.option('--json')
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
