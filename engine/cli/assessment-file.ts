import type { z } from 'zod'
import { AssessmentFileFault, firstLines } from '../assess/file-fault.ts'
import { itemsOf } from '../assess/states.ts'
import { templateOf } from '../assess/templates.ts'
import {
  type ReadAssessment,
  readAssessment,
  readAssessmentFile,
  TRANSFER_FORMATS,
  writeAssessment,
} from '../assess/transfer.ts'
import { workOf } from '../assess/work.ts'
import { systemClock } from '../kernel/process/clock.ts'
import { pastTime } from '../kernel/process/duration.ts'
import { type NewFile, withNewFile } from '../kernel/process/new-file.ts'
import { oneOf, textOf } from '../kernel/process/settings.ts'
import { asFrameworkId, FRAMEWORK_IDS } from '../store/framework.ts'
import { withCaveats } from './assessment-show.ts'
import { argument, change, defined, flag, option, query } from './command.ts'

/** Before the umask: other people may work on an assessment. */
const FILE_MODE = 0o666
/** Help for an argument that `byIdPrefix` reads. */
export const ASSESSMENT_ID = 'Id of the assessment, or at least its first 8 characters'
export const ASSESSMENT = argument('<id>', ASSESSMENT_ID)

/** A built-in framework, or one of the organization. */
export const FRAMEWORK = textOf(
  asFrameworkId,
  `expected one of ${FRAMEWORK_IDS.join(', ')}, or own- and the rest of an id`,
)

export function frameworkOption<S extends z.ZodType>(about: string, schema: S): S {
  const names = `${FRAMEWORK_IDS.join(', ')}, or the id of an own framework`
  return option('--framework <framework>', `${about}: ${names}`, schema)
}

export const exportCommand = query(
  'Export an assessment as JSON, as CSV for a spreadsheet, or as OSCAL assessment results',
  {
    params: {
      id: ASSESSMENT,
      format: option('--format <format>', 'Write this file format', oneOf(TRANSFER_FORMATS).default('json')),
      output: option('--output <file>', 'Write to this file instead of standard output'),
    },
    around: ({ output }, work: (file: NewFile | undefined) => Promise<void>) =>
      withNewFile('--output', output, { mode: FILE_MODE, code: 'ASSESSMENT_FILE' }, work),
    async run({ store, administration, organization, output }, { id, format }, file) {
      const found = administration.assessments.find(organization, id)
      const text = writeAssessment(found, store.assessments.categories(found), format)
      if (file === undefined) output.print(text)
      file?.write(text)
      await file?.complete()
    },
  },
)

export const importCommand = change('Create or fill an assessment from a JSON, CSV or OSCAL file', {
  params: {
    path: argument('<file>', 'JSON, CSV or OSCAL file; - is standard input'),
    framework: frameworkOption(
      'Set the framework; required for CSV and foreign OSCAL without --into',
      FRAMEWORK.optional(),
    ),
    title: option('--title <title>', 'Set the title; by default the title in the file'),
    intoId: option('--into <id>', 'Answer the items of this open assessment instead of creating one'),
    isComplete: flag('--complete', 'Complete the assessment in the same transaction; requires a file without errors'),
    allOrNothing: flag(
      '--all-or-nothing',
      'Import nothing if a cell of a CSV file is wrong; by default right rows are imported',
    ),
    completedAtMs: option(
      '--completed-at <time>',
      'Complete the assessment with this time in the past, such as 2026-03-31, for the history',
      pastTime(() => systemClock.nowMs()).optional(),
    ),
  },
  read: ({ path }) => readAssessmentFile(path),
  run(context, given, bytes) {
    const { store, administration, organization } = context
    const { path, title, intoId, completedAtMs } = given
    const options = { complete: given.isComplete || completedAtMs !== undefined, completedAtMs }
    const into = intoId === undefined ? undefined : administration.assessments.find(organization, intoId)
    const framework = given.framework ?? into?.frameworkId
    const content = readOrReport(path, () =>
      readAssessment(bytes, {
        ...defined({ frameworkId: framework, title }),
        template: framework && templateOf(store, organization.id, framework),
        keepRightRows: !options.complete && !given.allOrNothing,
      }),
    )
    if (content === undefined) return
    const imported =
      into === undefined
        ? administration.assessments.import(organization, content, options)
        : administration.assessments.fill(organization, into.id, content, { ...options, title })
    const reviewed = itemsOf(content.categories).filter((item) => workOf(item).review !== undefined)
    const kept =
      into === undefined ? [] : reviewed.map(({ id }) => `${id}: the review, because a file approves nothing`)
    for (const line of firstLines([...content.skipped, ...kept])) printError(`${path}: not imported: ${line}`)
    if (content.errors.length > 0) {
      reportFileFault(path, new AssessmentFileFault(content.errors))
      const before = into === undefined ? `, remove the assessment ${imported.id.slice(0, 8)}` : ''
      printError(`${path}: the other rows are imported. Correct these${before} and import the file again`)
    }
    return withCaveats(context, imported)
  },
})

/** Reports the errors of a file, and then returns undefined. */
function readOrReport(path: string, read: () => ReadAssessment): ReadAssessment | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof AssessmentFileFault)) throw error
    reportFileFault(path, error)
    return undefined
  }
}

/** Prints each error on its own line, and sets the exit status. */
export function reportFileFault(path: string, fault: AssessmentFileFault): void {
  for (const line of fault.lines) printError(`${fault.code} ${path}: ${line}`)
  process.exitCode = fault.exitStatus
}

function printError(line: string): void {
  process.stderr.write(`posture-admin: ${line}\n`)
}
