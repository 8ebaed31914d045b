import { writeFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { AssessmentFileFault, firstLines } from '../../assess/file-fault.ts'
import { templateOf } from '../../assess/templates.ts'
import {
  type ReadAssessment,
  readAssessment,
  readAssessmentFile,
  TRANSFER_FORMATS,
  type TransferFormat,
  writeAssessment,
} from '../../assess/transfer.ts'
import { systemClock } from '../../process/clock.ts'
import { pastOption } from '../../process/duration.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Assessment } from '../../store/assessments.ts'
import type { AnyFrameworkId } from '../../store/framework.ts'
import { byIdPrefix } from '../id-prefix.ts'
import { changeOptions, ofOrganization, printText, sharedOptions, withStore } from './context.ts'
import { frameworkOption } from './framework-option.ts'

/** Help for an argument that `byIdPrefix` reads. */
export const ASSESSMENT_ID = 'Id of the assessment, or at least its first 8 characters'

interface ImportFlags {
  readonly org?: string
  readonly framework?: AnyFrameworkId
  readonly title?: string
  readonly into?: string
  readonly complete?: boolean
  readonly completedAt?: number
  readonly allOrNothing?: boolean
}

export function addAssessmentExport(assessment: Command): void {
  const command = ofOrganization(
    sharedOptions(
      assessment
        .command('export')
        .description('Export an assessment as JSON, as CSV for a spreadsheet, or as OSCAL assessment results')
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
    .addOption(new Option('--format <format>', 'Write this file format').choices(TRANSFER_FORMATS).default('json'))
    .option('--output <file>', 'Write to this file instead of standard output')
  command.action((id: string, options: { org?: string; format: TransferFormat; output?: string }) =>
    withStore(command, ({ store, administration }) => {
      const all = store.assessments.ofOrganization(administration.organization(options.org).id)
      const found = byIdPrefix(all, id, 'assessment')
      const text = writeAssessment(found, store.assessments.categories(found), options.format)
      if (options.output === undefined) printText(command, text)
      else writeOutput(options.output, text)
    }),
  )
}

export function addAssessmentImport(
  assessment: Command,
  print: (command: Command, assessments: readonly Assessment[]) => void,
): void {
  const command = ofOrganization(
    changeOptions(
      assessment
        .command('import')
        .description('Create or fill an assessment from a JSON, CSV or OSCAL file')
        .argument('<file>', 'JSON, CSV or OSCAL file; - is standard input'),
    ),
  )
    .addOption(
      frameworkOption(
        '--framework <framework>',
        'Set the framework; required for CSV and foreign OSCAL without --into',
      ),
    )
    .option('--title <title>', 'Set the title; by default the title in the file')
    .option('--into <id>', 'Answer the items of this open assessment instead of creating one')
    .option('--complete', 'Complete the assessment in the same transaction; requires a file without errors')
    .option('--all-or-nothing', 'Import nothing if a cell of a CSV file is wrong; by default right rows are imported')
    .addOption(
      new Option(
        '--completed-at <time>',
        'Complete the assessment with this time in the past, such as 2026-03-31, for the history',
      ).argParser(pastOption(() => systemClock.nowMs())),
    )
  command.action(async (path: string, flags: ImportFlags) => {
    const { title, completedAt: completedAtMs } = flags
    const options = { complete: flags.complete === true || completedAtMs !== undefined, completedAtMs }
    const bytes = await readAssessmentFile(path)
    await withStore(command, ({ store, administration }) => {
      const { assessments } = administration
      const organization = administration.organization(flags.org)
      const into = flags.into === undefined ? undefined : assessments.find(organization, flags.into)
      const frameworkId = flags.framework ?? into?.frameworkId
      const content = readOrReport(command, path, () =>
        readAssessment(bytes, {
          ...(frameworkId === undefined ? {} : { frameworkId }),
          ...(title === undefined ? {} : { title }),
          template: frameworkId && templateOf(store, organization.id, frameworkId),
          keepRightRows: !(options.complete || flags.allOrNothing === true),
        }),
      )
      if (content === undefined) return
      const imported =
        into === undefined
          ? assessments.import(organization, content, options)
          : assessments.fill(organization, into.id, content, { ...options, title })
      for (const line of firstLines(content.skipped)) printError(command, `${path}: not imported: ${line}`)
      print(command, [imported])
      if (content.errors.length > 0) {
        reportFileFault(command, path, new AssessmentFileFault(content.errors))
        const before = into === undefined ? `, remove the assessment ${imported.id.slice(0, 8)}` : ''
        printError(command, `${path}: the other rows are imported. Correct these${before} and import the file again`)
      }
    })
  })
}

/** Reports the errors of a file, and then returns undefined. */
function readOrReport(command: Command, path: string, read: () => ReadAssessment): ReadAssessment | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof AssessmentFileFault)) throw error
    reportFileFault(command, path, error)
    return undefined
  }
}

/** Prints each error on its own line, and sets the exit status. */
export function reportFileFault(command: Command, path: string, fault: AssessmentFileFault): void {
  for (const line of fault.lines) printError(command, `${fault.code} ${path}: ${line}`)
  process.exitCode = fault.exitStatus
}

function printError(command: Command, line: string): void {
  process.stderr.write(`${command.parent?.parent?.name()}: ${line}\n`)
}

function writeOutput(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Fault('ASSESSMENT_FILE', `--output ${path}: cannot write: ${code ?? message}`, { cause: error })
  }
}
