import type { RE2JS } from 're2js'
import { z } from 'zod'
import { issueText } from '../../registry/schema-parts.ts'
import { readYaml, YamlError, type YamlText } from '../../registry/yaml.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { readInput } from '../kernel/process/input-file.ts'
import { compilePattern, type FormatRule, RULE_FIELDS } from '../store/secrets.ts'

/** Maximum bytes of a rule's file. */
export const RULE_BYTES_MAX = 16 * 1024
const NAME_CHARS_MAX = 64
const PATTERN_CHARS_MAX = 1000
/** Instructions of a compiled pattern, each of which may run for each character of a line. */
const PATTERN_INSTRUCTIONS_MAX = 5000
const COLUMN_MAX = 500
const PATH_CHARS_MAX = 200
const BLOCKED_WORDS_MAX = 50

const text = (charsMax: number) =>
  z.string('expected text').min(1, 'expected text, found none').max(charsMax, `expected at most ${charsMax} characters`)
const column = z
  .int('expected the number of a column, from 1')
  .min(1, 'expected the number of a column, from 1')
  .max(COLUMN_MAX, `expected a column up to ${COLUMN_MAX}`)
const path = text(PATH_CHARS_MAX)

/** Where each field is. A time may have several parts: a date and a time of day. */
const fieldsOf = <Place extends z.ZodType>(place: Place) =>
  z.strictObject(
    {
      time: z.union([place, z.array(place).min(1).max(3)], 'expected a place, or a list of up to three').optional(),
      client: place,
      host: place,
      user: place.optional(),
      action: place.optional(),
      bytes_sent: place.optional(),
      bytes_received: place.optional(),
    },
    { error: ({ code }) => (code === 'unrecognized_keys' ? undefined : 'expected the fields client and host') },
  )

const common = {
  name: text(NAME_CHARS_MAX).regex(/^[\x21-\x7e]+$/, 'expected printable ASCII without blanks'),
  /** Values of `action` that mean that the request was blocked, in addition to the known words. */
  blocked: z.array(text(100)).max(BLOCKED_WORDS_MAX).optional(),
}
const delimited = z.strictObject({
  ...common,
  delimiter: z
    .string('expected the characters between columns')
    .regex(/^[^"\r\n]{1,3}$/, 'expected one to three characters, no quote'),
  fields: fieldsOf(column),
})
const json = z.strictObject({ ...common, json: z.literal(true, 'expected true'), fields: fieldsOf(path) })
const pattern = z.strictObject({
  ...common,
  pattern: text(PATTERN_CHARS_MAX).superRefine((value, context) => {
    const problem = patternProblem(value)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem })
  }),
})

function patternProblem(expression: string): string | undefined {
  let compiled: RE2JS
  try {
    compiled = compilePattern(expression)
  } catch (error) {
    return (error as Error).message
  }
  if (compiled.programSize() > PATTERN_INSTRUCTIONS_MAX) return 'expected a simpler pattern with fewer repetitions'
  const groups = Object.keys(compiled.namedGroups())
  const unknown = groups.filter((name) => !(RULE_FIELDS as readonly string[]).includes(name))
  if (unknown.length > 0) return `expected groups named ${RULE_FIELDS.join(', ')}, found ${unknown.join(', ')}`
  const missing = ['client', 'host'].filter((name) => !groups.includes(name))
  return missing.length === 0 ? undefined : `expected the named groups client and host, missing ${missing.join(', ')}`
}

/** Reads the file of an option. @throws Fault USAGE with all errors, each with its place. */
export function ruleOfFile(option: string, file: string): FormatRule {
  const rule = readFormatRule(readInput(file, RULE_BYTES_MAX, { what: option, code: 'USAGE' }))
  if ('errors' in rule) throw new Fault('USAGE', `${option} ${file}: ${rule.errors.join('; ')}`)
  return rule
}

/**
 * Reads a rule from YAML. Returns all errors, each with its place, as lines of text.
 */
export function readFormatRule(bytes: Uint8Array): FormatRule | { readonly errors: readonly string[] } {
  if (bytes.length > RULE_BYTES_MAX) return { errors: [`larger than the maximum of ${RULE_BYTES_MAX} bytes`] }
  let yaml: YamlText
  try {
    yaml = readYaml(Buffer.from(bytes).toString())
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    return { errors: error.lines }
  }
  const given = yaml.value
  const schema = schemaOf(given)
  if (schema === undefined) return { errors: ['expected a name, and one of delimiter, json and pattern'] }
  const checked = schema.safeParse(given)
  if (checked.success) return checked.data
  return {
    errors: checked.error.issues.map((issue) => {
      const { path } = issue
      const place = path.join('.')
      const line = yaml.lineOf(path)
      return [line === undefined ? '' : `line ${line}, `, place === '' ? '' : `${place}: `, issueText(issue)].join('')
    }),
  }
}

function schemaOf(given: unknown): z.ZodType<FormatRule> | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const kinds = [
    ['delimiter', delimited],
    ['json', json],
    ['pattern', pattern],
  ] as const
  const named = kinds.filter(([key]) => key in given)
  return named.length === 1 ? named[0]?.[1] : undefined
}
