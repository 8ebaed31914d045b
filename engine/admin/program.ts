import type { Command } from 'commander'
import { addAlertCommands } from './commands/alert.ts'
import { addApprovalCommands } from './commands/approval.ts'
import { addAssessmentCommands } from './commands/assessment.ts'
import { addAuditCommands } from './commands/audit.ts'
import { addBackupCommands } from './commands/backup.ts'
import { addBlockListCommands } from './commands/blocklist.ts'
import { addClientCommands } from './commands/client.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addExportCommand } from './commands/export.ts'
import { addFrameworkCommands } from './commands/framework.ts'
import { addIngestCommands } from './commands/ingest.ts'
import { addKeyCommands } from './commands/key.ts'
import { addMemberCommands } from './commands/member.ts'
import { addNetworkCommands } from './commands/network.ts'
import { addOrganizationCommands } from './commands/organization.ts'
import { addPasskeyCommands } from './commands/passkey.ts'
import { addPlatformCommands } from './commands/platform.ts'
import { addRecommendationCommands } from './commands/recommendation.ts'
import { addRegistryCommands } from './commands/registry.ts'
import { addReportCommand } from './commands/report.ts'
import { addRetentionCommands } from './commands/retention.ts'
import { addScanCommands } from './commands/scan.ts'
import { addSetupCommand } from './commands/setup.ts'
import { addPasswordLinkCommand, addSetupLinkCommand } from './commands/setup-link.ts'
import { addSignInCommands } from './commands/sign-in.ts'
import { addTokenCommands } from './commands/token.ts'
import { addVerifyCommand } from './commands/verify.ts'
import { emptyProgram } from './empty-program.ts'

/** A row that a command prints as a line of JSON. */
export type AdminRow = Readonly<Record<string, unknown>>

/** The command line of posture-admin. Commands print to standard output, or by `write`. */
export function adminProgram(write?: (text: string) => void): Command {
  const program = emptyProgram()
  // Before the commands are added, because each command copies the configuration of that moment.
  if (write !== undefined) program.configureOutput({ writeOut: write })
  addSetupCommand(program)
  addOrganizationCommands(program)
  addMemberCommands(program)
  addSetupLinkCommand(program)
  addPasswordLinkCommand(program)
  addPasskeyCommands(program)
  addSignInCommands(program)
  addKeyCommands(program)
  addTokenCommands(program)
  addIngestCommands(program)
  addScanCommands(program)
  addPlatformCommands(program)
  addClientCommands(program)
  addNetworkCommands(program)
  addApprovalCommands(program)
  addBlockListCommands(program)
  addExportCommand(program)
  addAssessmentCommands(program)
  addFrameworkCommands(program)
  addRecommendationCommands(program)
  addReportCommand(program)
  addAlertCommands(program)
  addRegistryCommands(program)
  addAuditCommands(program)
  addVerifyCommand(program)
  addRetentionCommands(program)
  addDoctorCommand(program)
  addBackupCommands(program)
  return program
}

/**
 * Runs a command in this process and returns its output rows. @throws Fault and CommanderError,
 * which the program prints.
 */
export async function adminRows(...words: string[]): Promise<AdminRow[]> {
  let text = ''
  const program = adminProgram((part) => {
    text += part
  })
  await program.parseAsync([...words, '--json'], { from: 'user' })
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AdminRow)
}
