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

interface ImportFlags {
  readonly org: string
  readonly framework?: FrameworkId
  readonly title?: string
  readonly complete?: boolean
}

export function addAssessmentExport(assessment: Command): void {
  const command = ofOrganization(
    sharedOptions(
      assessment.command('export <id>').description('write an assessment as JSON, or as CSV for a spreadsheet'),
    ),
  )
    .addOption(new Option('--format <format>', 'form of the file').choices(TRANSFER_FORMATS).default('json'))
    .option('--output <file>', 'where to; by default standard output')
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
        .command('import <file>')
        .description('make a new assessment of a file in JSON or CSV, as export writes it; - is standard input'),
    ),
  )
    .addOption(new Option('--framework <framework>', 'what was assessed; JSON says it').choices(FRAMEWORK_IDS))
    .option('--title <title>', 'what it is called in lists; by default as the file says')
    .option('--complete', 'complete it at once, all or nothing')
  command.action(async (path: string, { org, framework, title, complete = false }: ImportFlags) => {
    const bytes = await readAssessmentFile(path)
    const content = readOrSay(command, path, () =>
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

/** Says each fault of the file on a line of its own, and answers undefined then. */
function readOrSay(command: Command, path: string, read: () => AssessmentContent): AssessmentContent | undefined {
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
    throw new Fault('ASSESSMENT_FILE', `--output ${path}: cannot be written: ${code ?? message}`, { cause: error })
  }
}
