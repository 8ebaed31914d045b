import { z } from 'zod'
import { Fault } from '../kernel/process/error-codes.ts'
import {
  ASSESSMENT_CATEGORIES_MAX,
  ASSESSMENT_FAULTS_NAMED_MAX,
  ASSESSMENT_ITEMS_MAX,
  ASSESSMENT_LINE_BYTES_MAX,
  ASSESSMENT_NOTE_BYTES_MAX,
} from '../limits.ts'
import { type Answer, WORD_ANSWERS } from '../store/assessments.ts'
import { DISCOVERY_TOPICS } from '../store/framework.ts'

/*
 * The rules for each field of a template and an assessment, for all sources: YAML, JSON, CSV and
 * the command line. The message of a rule states what it expects.
 */

/** Maximum weight. Weights have at most three decimals, so that scores are computed in integers. */
export const WEIGHT_MAX = 1000
const ITEM_ID_BYTES_MAX = 64
const NOT_ONE_LINE = /[\p{Cc}\p{Cs}]/u
/** Notes may contain line breaks and tabs, but no other control characters. */
const NOT_TEXT = /[^\P{Cc}\n\t]|\p{Cs}/u

export const line = z.custom<string>(
  (value) =>
    typeof value === 'string' &&
    value !== '' &&
    value.trim() === value &&
    Buffer.byteLength(value) <= ASSESSMENT_LINE_BYTES_MAX &&
    !NOT_ONE_LINE.test(value),
  `expected one line of 1 to ${ASSESSMENT_LINE_BYTES_MAX} bytes without surrounding blanks`,
)

export const weight = z.custom<number>(
  (value) => typeof value === 'number' && value > 0 && value <= WEIGHT_MAX && Math.round(value * 1000) / 1000 === value,
  `expected a number above 0, up to ${WEIGHT_MAX}, with at most three decimals`,
)

/** Begins with a letter or digit, so that no spreadsheet interprets an id as a formula. */
export const itemId = z.custom<string>(
  (value) =>
    typeof value === 'string' && value.length <= ITEM_ID_BYTES_MAX && /^[A-Za-z0-9][A-Za-z0-9.:()/_-]*$/.test(value),
  `expected 1 to ${ITEM_ID_BYTES_MAX} letters, digits and . : ( ) / _ -, beginning with a letter or digit`,
)

export const priority = z.custom<number>(
  (value) => typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 5,
  'expected a whole number from 1 (highest) to 5',
)

export const answer = z.custom<Answer>(
  (value) =>
    (WORD_ANSWERS as readonly unknown[]).includes(value) ||
    (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 100 && !Object.is(value, -0)),
  `expected ${WORD_ANSWERS.join(', ')} or a whole number from 0 to 100`,
)

/** Parses an answer as typed by a user. An empty cell means `unanswered`. */
export function readAnswer(text: string): unknown {
  if (text === '') return 'unanswered'
  return /^\d{1,3}$/.test(text) ? Number(text) : text.toLowerCase()
}

export const note = z.custom<string>(
  (value) =>
    typeof value === 'string' &&
    value.trim() === value &&
    Buffer.byteLength(value) <= ASSESSMENT_NOTE_BYTES_MAX &&
    !NOT_TEXT.test(value),
  `expected text of up to ${ASSESSMENT_NOTE_BYTES_MAX} bytes without surrounding blanks`,
)

const COMMENT_BYTES_MAX = 1000
export const comment = z.custom<string>(
  (value) => note.safeParse(value).success && value !== '' && Buffer.byteLength(String(value)) <= COMMENT_BYTES_MAX,
  `expected text of 1 to ${COMMENT_BYTES_MAX} bytes without surrounding blanks`,
)

const OWNER_BYTES_MAX = 255
const LINKS_MAX = 5
const LINK_BYTES_MAX = 255

/** A name or e-mail address; '' for nobody. */
export const owner = z.custom<string>(
  (value) => value === '' || (line.safeParse(value).success && Buffer.byteLength(String(value)) <= OWNER_BYTES_MAX),
  `expected one line of up to ${OWNER_BYTES_MAX} bytes without surrounding blanks`,
)

export const dueOn = z.custom<string>(
  (value) => value === '' || z.iso.date().safeParse(value).success,
  'expected a date such as 2026-12-01, or nothing',
)

/** An address, and the day on which the evidence expires, if it does. */
const link = z.custom<string>((value) => {
  if (!line.safeParse(value).success || Buffer.byteLength(String(value)) > LINK_BYTES_MAX) return false
  const [, address = '', day] = /^(https?:\/\/[^\s"\\]+)(?: (\S+))?$/i.exec(String(value)) ?? []
  return URL.canParse(address) && (day === undefined || z.iso.date().safeParse(day).success)
}, `expected an http or https address without blanks and quotes, then perhaps a blank and the day on which it expires, up to ${LINK_BYTES_MAX} bytes`)

export const links = z.array(link, 'expected a list').max(LINKS_MAX, `expected at most ${LINKS_MAX} links`)

/** As reviewText writes it; '' for none. */
export const review = z.custom<string>((value) => {
  const [, at, by] = /^(?:submitted|approved) (\S+) (.+)$/.exec(String(value)) ?? []
  return value === '' || (owner.safeParse(by).success && z.iso.datetime().safeParse(at).success)
}, 'expected a review such as approved 2026-11-29T08:00:00Z member alice, or nothing')

/** Checks a value that a person gave. @throws Fault USAGE. */
export function checkRule(what: string, rule: z.ZodType, value: unknown): void {
  const checked = value === undefined ? undefined : rule.safeParse(value)
  if (checked?.success === false) {
    throw new Fault('USAGE', `${what}: found ${shown(value)}, ${checked.error.issues[0]?.message}`)
  }
}

/** An item of an assessment file. */
export const templateItem = z.strictObject({
  id: itemId,
  title: line,
  question: line.optional(),
  weight,
  priority,
  recommendation: line,
})
const items = <T extends z.ZodType>(item: T) =>
  z
    .array(item, 'expected a list of items')
    .min(1, 'expected at least one item')
    .max(ASSESSMENT_ITEMS_MAX, `expected at most ${ASSESSMENT_ITEMS_MAX} items`)
/** Categories with these fields and a list of items. */
export const categoriesOf = <F extends z.ZodRawShape, T extends z.ZodType>(fields: z.ZodObject<F>, item: T) =>
  z
    .array(fields.extend({ items: items(item) }).strict(), 'expected a list of categories')
    .min(1, 'expected at least one category')
    .max(ASSESSMENT_CATEGORIES_MAX, `expected at most ${ASSESSMENT_CATEGORIES_MAX} categories`)
export const category = z.strictObject({ name: line, weight })

/** What discovery showed, in an assessment file. */
export const discoveryFacts = z.strictObject({
  topic: z.enum(DISCOVERY_TOPICS, `expected one of ${DISCOVERY_TOPICS.join(', ')}`),
  supports: z.enum(['yes', 'partial', 'no'], 'expected yes, partial or no'),
  text: line,
  at: z.iso.datetime('expected a time such as 2026-11-20T09:15:02Z'),
})

/** A problem at a place such as `categories[0].items[3].id`. */
export interface Problem {
  readonly place: string
  readonly problem: string
}

/** Checks what single fields cannot show: duplicate names and ids, and too many items in total. */
export function problemsAcross(
  given: readonly { readonly name: string; readonly items: readonly { readonly id: string }[] }[],
): Problem[] {
  const problems: Problem[] = []
  const places = new Map<string, string>()
  const claim = (key: string, shown: string, place: string): void => {
    const firstPlace = places.get(key)
    if (firstPlace === undefined) places.set(key, place)
    else problems.push({ place, problem: `found ${JSON.stringify(shown)}, which is already at ${firstPlace}` })
  }
  let count = 0
  for (const [at, category] of given.entries()) {
    claim(`category ${category.name}`, category.name, `categories[${at}].name`)
    for (const [index, { id }] of category.items.entries()) {
      claim(`item ${itemKey(id)}`, id, `categories[${at}].items[${index}].id`)
    }
    count += category.items.length
  }
  if (count > ASSESSMENT_ITEMS_MAX) {
    problems.push({ place: 'categories', problem: `found ${count} items, expected at most ${ASSESSMENT_ITEMS_MAX}` })
  }
  return problems
}

/** Ids are case-insensitive. */
export function itemKey(id: string): string {
  return id.toLowerCase()
}

/** The errors found by zod, with the values found. */
export function problemsOf(error: z.ZodError, document: unknown): Problem[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      const named = issue.keys.slice(0, ASSESSMENT_FAULTS_NAMED_MAX)
      return named.map((key) => ({ place: placeOf([...issue.path, key]), problem: 'there is no such field' }))
    }
    const expected = issue.message.replace(/^Invalid input: (.*), received .*$/, '$1')
    return [{ place: placeOf(issue.path), problem: `found ${shown(valueAt(document, issue.path))}, ${expected}` }]
  })
}

function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : at === 0 ? String(key) : `.${String(key)}`))
    .join('')
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  let value = document
  for (const key of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[key]
  return value
}

/** Longer texts are truncated in errors. The place identifies the field. */
const SHOWN_CHARACTERS_MAX = 60

/** A value for an error message. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value)
  return text.length <= SHOWN_CHARACTERS_MAX ? text : `${text.slice(0, SHOWN_CHARACTERS_MAX)}...`
}
