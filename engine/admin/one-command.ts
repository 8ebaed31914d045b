import type { Command } from 'commander'
import { emptyProgram } from './empty-program.ts'

/** The modules of the commands, each of which is imported only when it is needed. */
const MODULES: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  alert: async () => (await import('./commands/alert.ts')).addAlertCommands,
  approval: async () => (await import('./commands/approval.ts')).addApprovalCommands,
  assessment: async () => (await import('./commands/assessment.ts')).addAssessmentCommands,
  audit: async () => (await import('./commands/audit.ts')).addAuditCommands,
  backup: async () => (await import('./commands/backup.ts')).addBackupCommands,
  blocklist: async () => (await import('./commands/blocklist.ts')).addBlockListCommands,
  client: async () => (await import('./commands/client.ts')).addClientCommands,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctorCommand,
  export: async () => (await import('./commands/export.ts')).addExportCommand,
  framework: async () => (await import('./commands/framework.ts')).addFrameworkCommands,
  ingest: async () => (await import('./commands/ingest.ts')).addIngestCommands,
  key: async () => (await import('./commands/key.ts')).addKeyCommands,
  member: async () => (await import('./commands/member.ts')).addMemberCommands,
  network: async () => (await import('./commands/network.ts')).addNetworkCommands,
  organization: async () => (await import('./commands/organization.ts')).addOrganizationCommands,
  passkey: async () => (await import('./commands/passkey.ts')).addPasskeyCommands,
  'password-link': async () => (await import('./commands/setup-link.ts')).addPasswordLinkCommand,
  platform: async () => (await import('./commands/platform.ts')).addPlatformCommands,
  recommendation: async () => (await import('./commands/recommendation.ts')).addRecommendationCommands,
  registry: async () => (await import('./commands/registry.ts')).addRegistryCommands,
  report: async () => (await import('./commands/report.ts')).addReportCommand,
  restore: async () => (await import('./commands/backup.ts')).addBackupCommands,
  retention: async () => (await import('./commands/retention.ts')).addRetentionCommands,
  scan: async () => (await import('./commands/scan.ts')).addScanCommands,
  setup: async () => (await import('./commands/setup.ts')).addSetupCommand,
  'setup-link': async () => (await import('./commands/setup-link.ts')).addSetupLinkCommand,
  'sign-in': async () => (await import('./commands/sign-in.ts')).addSignInCommands,
  token: async () => (await import('./commands/token.ts')).addTokenCommands,
  verify: async () => (await import('./commands/verify.ts')).addVerifyCommand,
}

/**
 * The program with one of its commands, because importing the modules of all commands takes longer
 * than most of them. undefined: there is no such command.
 */
export async function programWith(command: string): Promise<Command | undefined> {
  if (!Object.hasOwn(MODULES, command)) return undefined
  const program = emptyProgram()
  const add = await MODULES[command]?.()
  add?.(program)
  return program
}
