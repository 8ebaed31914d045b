import { createHash } from 'node:crypto'
import { z } from 'zod'
import { readYaml, YamlError, type YamlText } from '../../registry/yaml.ts'
import {
  type FrameworkItem,
  OWN_FRAMEWORK_ID,
  type OwnFrameworkId,
  PROFILE_NAMES,
  type Template,
} from '../store/framework.ts'
import { AssessmentFileFault } from './file-fault.ts'
import { withWeights } from './profiles.ts'
import { categoriesOf, itemId, line, type Problem, priority, problemsAcross, problemsOf, weight } from './rules.ts'

/** Maximum bytes of a framework file: 1,200 items have about 1 MiB. */
export const FRAMEWORK_FILE_BYTES_MAX = 4 * 1024 * 1024
/** Of an item whose file gives none: those of level 2 in rating.ts. */
const WEIGHT_DEFAULT = 2
const PRIORITY_DEFAULT = 3
const VERSION_DIGITS = 8

/** An item of a framework file: of the built-in frameworks, and of organizations. */
export const writtenItem = z.strictObject({
  id: itemId,
  title: line,
  baselines: z.array(line, 'expected a list').min(1).optional(),
  references: z.array(line, 'expected a list').min(1).optional(),
  question: line,
  yes: line,
  partial: line,
  no: line,
  evidence: line,
  recommendation: line,
})

/** HIPAA has no profile of what is addressable, but its items name it. */
const BASELINES: ReadonlySet<string> = new Set([...PROFILE_NAMES, 'addressable'])
const baseline = z.custom<string>(
  (value) => typeof value === 'string' && BASELINES.has(value),
  `expected one of ${[...BASELINES].join(', ')}`,
)
const ownItem = writtenItem
  .extend({
    baselines: z.array(baseline, 'expected a list').min(1).optional(),
    weight: weight.default(WEIGHT_DEFAULT),
    priority: priority.default(PRIORITY_DEFAULT),
  })
  .strict()
const file = z.strictObject(
  {
    id: z.custom<OwnFrameworkId>(
      (value) => typeof value === 'string' && OWN_FRAMEWORK_ID.test(value),
      'expected own- and 1 to 60 of a-z, 0-9 and -',
    ),
    name: line,
    categories: categoriesOf(z.strictObject({ name: line }), ownItem),
  },
  'expected id, name and categories',
)

/** A framework that was read from a file. */
export interface ReadFramework {
  readonly id: OwnFrameworkId
  readonly name: string
  readonly template: Template
}

/** The first hex digits of the SHA-256 of the categories. */
export function versionOf(categories: Template['categories']): string {
  return createHash('sha256').update(JSON.stringify(categories)).digest('hex').slice(0, VERSION_DIGITS)
}

/**
 * Reads a framework of an organization: YAML, or JSON, which is YAML as well.
 *
 * @throws AssessmentFileFault with all errors, each with its line
 */
export function readFrameworkFile(bytes: Uint8Array): ReadFramework {
  if (bytes.length > FRAMEWORK_FILE_BYTES_MAX) {
    throw new AssessmentFileFault([`larger than the maximum of ${FRAMEWORK_FILE_BYTES_MAX} bytes`])
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  const yaml = parsed(text)
  const checked = file.safeParse(yaml.value)
  const problems = checked.success ? problemsAcross(checked.data.categories) : problemsOf(checked.error, yaml.value)
  if (!checked.success || problems.length > 0) {
    throw new AssessmentFileFault(problems.map((problem) => lineOf(yaml, problem)))
  }
  const { id, name, categories } = checked.data
  const items = withWeights(categories.map((each) => ({ name: each.name, items: each.items.map(itemOf) })))
  return { id, name, template: { version: versionOf(items), categories: items } }
}

function itemOf({
  yes,
  partial,
  no,
  evidence,
  baselines,
  references,
  ...item
}: z.infer<typeof ownItem>): FrameworkItem {
  return {
    ...item,
    guidance: { yes, partial, no, evidence },
    ...(baselines === undefined ? {} : { baselines }),
    ...(references === undefined ? {} : { references }),
  }
}

function parsed(text: string): YamlText {
  try {
    return readYaml(text)
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    throw new AssessmentFileFault(error.lines)
  }
}

function lineOf(yaml: YamlText, { place, problem }: Problem): string {
  const path = Array.from(place.matchAll(/[^.[\]]+/g), ([part]) => (/^\d+$/.test(part) ? Number(part) : part))
  const at = yaml.lineOf(path)
  return [at === undefined ? '' : `line ${at}, `, place === '' ? '' : `${place}: `, problem].join('')
}
