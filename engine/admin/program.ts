import type { Command } from 'commander'
import { createProgram } from '../process/program.ts'
import { addApprovalCommands } from './commands/approval.ts'
import { addAssessmentCommands } from './commands/assessment.ts'
import { addAuditCommands } from './commands/audit.ts'
import { addBackupCommands } from './commands/backup.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addIngestCommands } from './commands/ingest.ts'
import { addKeyCommands } from './commands/key.ts'
import { addMemberCommands } from './commands/member.ts'
import { addOrganizationCommands } from './commands/organization.ts'
import { addRecommendationCommands } from './commands/recommendation.ts'
import { addRegistryCommands } from './commands/registry.ts'
import { addRetentionCommands } from './commands/retention.ts'
import { addScanCommands } from './commands/scan.ts'
import { addTokenCommands } from './commands/token.ts'
import { addVerifyCommand } from './commands/verify.ts'

/** posture-admin with all its commands. The documentation is generated from it, too. */
export function adminProgram(): Command {
  const program = createProgram(
    'posture-admin',
    "Administers the service's organizations, API keys, monitoring tokens, scans and assessments, while it runs; reads log files; shows the registry; proves, backs up and restores the store.",
  )
  addOrganizationCommands(program)
  addMemberCommands(program)
  addKeyCommands(program)
  addTokenCommands(program)
  addIngestCommands(program)
  addScanCommands(program)
  addApprovalCommands(program)
  addAssessmentCommands(program)
  addRecommendationCommands(program)
  addRegistryCommands(program)
  addAuditCommands(program)
  addVerifyCommand(program)
  addRetentionCommands(program)
  addDoctorCommand(program)
  addBackupCommands(program)
  return program
}
