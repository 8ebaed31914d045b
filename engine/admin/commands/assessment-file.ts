import { writeFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { AssessmentFileFault } from '../../assess/file-fault.ts'
import {
  readAssessment,
  readAssessmentFile,
  TRANSFER_FORMATS,
  type TransferFormat,
  writeAssessment,
} from '../../assess/transfer.ts'
import type { AssessmentContent } from '../../assess/transfer-json.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Assessment } from '../../store/assessments.ts'
import { FRAMEWORK_IDS, type FrameworkId } from '../../store/framework.ts'
import { byIdPrefix } from '../id-prefix.ts'
import { changeOptions, ofOrganization, printText, sharedOptions, withStore } from './context.ts'

/** Help for an argument that `byIdPrefix` reads. */
export const ASSESSMENT_ID = 'Id of the assessment, or at least its first 8 characters'

interface ImportFlags {
  readonly org: string
  readonly framework?: FrameworkId
  readonly title?: string
  readonly complete?: boolean
}

export function addAssessmentExport(assessment: Command): void {
  const command = ofOrganization(
    sharedOptions(
      assessment
        .command('export')
        .description('Export an assessment as JSON, or as CSV for a spreadsheet')
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
    .addOption(new Option('--format <format>', 'Write this file format').choices(TRANSFER_FORMATS).default('json'))
    .option('--output <file>', 'Write to this file instead of standard output')
  command.action((id: string, options: { org: string; format: TransferFormat; output?: string }) =>
    withStore(command, ({ store, administration }) => {
      const all = store.assessments.ofOrganization(administration.organization(options.org).id)
      const found = byIdPrefix(all, id, 'assessment')
      const text = writeAssessment({ ...found, categories: store.assessments.categories(found) }, options.format)
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
        .description('Create an assessment from a JSON or CSV file, as export writes it')
        .argument('<file>', 'JSON or CSV file; - is standard input'),
    ),
  )
    .addOption(new Option('--framework <framework>', 'Set the framework; required for CSV').choices(FRAMEWORK_IDS))
    .option('--title <title>', 'Set the title; by default the title in the file')
    .option('--complete', 'Complete the assessment in the same transaction')
  command.action(async (path: string, { org, framework, title, complete = false }: ImportFlags) => {
    const bytes = await readAssessmentFile(path)
    const content = readOrReport(command, path, () =>
      readAssessment(bytes, {
        ...(framework === undefined ? {} : { frameworkId: framework }),
        ...(title === undefined ? {} : { title }),
      }),
    )
    if (content === undefined) return
    await withStore(command, ({ administration }) => {
      print(command, [administration.assessments.import(administration.organization(org), content, { complete })])
    })
  })
}

/** Prints each error of the file on its own line, and then returns undefined. */
function readOrReport(command: Command, path: string, read: () => AssessmentContent): AssessmentContent | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof AssessmentFileFault)) throw error
    const program = command.parent?.parent?.name()
    for (const line of error.lines) process.stderr.write(`${program}: ${error.code} ${path}: ${line}\n`)
    process.exitCode = error.exitStatus
    return undefined
  }
}

function writeOutput(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Fault('ASSESSMENT_FILE', `--output ${path}: cannot write: ${code ?? message}`, { cause: error })
  }
}
