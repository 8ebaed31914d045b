import { z } from 'zod'
import { printable } from '../process/table.ts'
import type { AssessmentCategory } from '../store/assessments.ts'
import { AssessmentFileFault } from './file-fault.ts'
import { FRAMEWORK_IDS, type FrameworkId } from './framework.ts'
import { answer, categories, line, note, templateItem, troublesAcross, troublesOf } from './rules.ts'

/** An assessment without its place in an organization: what a file holds. */
export interface AssessmentContent {
  readonly frameworkId: FrameworkId
  readonly title: string
  readonly categories: readonly AssessmentCategory[]
}

const document = z.strictObject(
  {
    version: z.literal(1, 'expected 1'),
    framework_id: z.enum(FRAMEWORK_IDS, `expected one of ${FRAMEWORK_IDS.join(', ')}`),
    title: line,
    categories: categories(
      templateItem.extend({ answer: answer.default('unanswered'), note: note.default('') }).strict(),
    ),
  },
  'expected an object',
)

export function writeAssessmentJson({ frameworkId, title, categories }: AssessmentContent): string {
  return `${JSON.stringify({ version: 1, framework_id: frameworkId, title, categories }, null, 2)}\n`
}

/** @throws AssessmentFileFault that names all that is wrong. */
export function readAssessmentJson(text: string): AssessmentContent {
  const given = parseJson(text)
  const parsed = document.safeParse(given)
  const troubles = parsed.success ? troublesAcross(parsed.data.categories) : troublesOf(parsed.error, given)
  if (!parsed.success || troubles.length > 0) {
    throw new AssessmentFileFault(
      troubles.map(({ place, problem }) => (place === '' ? problem : `${place}: ${problem}`)),
    )
  }
  const { framework_id: frameworkId, title, categories } = parsed.data
  return { frameworkId, title, categories }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const { message } = error as Error
    // Not every release of Node tells where; then the message holds what stands around it.
    const position = /at position (\d+)/.exec(message)?.[1]
    const problem = printable(message.replace(/ in JSON at position.*$/s, ''))
    throw new AssessmentFileFault([
      position === undefined ? `not JSON: ${problem}` : `${placeAt(text, Number(position))}: not JSON: ${problem}`,
    ])
  }
}

function placeAt(text: string, position: number): string {
  const before = text.slice(0, position).split('\n')
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}
