import { type CsvError, parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import type { z } from 'zod'
import { ASSESSMENT_CATEGORIES_MAX, ASSESSMENT_ITEMS_MAX } from '../limits.ts'
import type { Answer, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import { AssessmentFileFault } from './file-fault.ts'
import {
  answer,
  dueOn,
  itemId,
  itemKey,
  line,
  links,
  note,
  owner,
  priority,
  readAnswer,
  review,
  shown,
  weight,
} from './rules.ts'
import { itemsOf } from './states.ts'
import { importedWork, reviewText, workOf } from './work.ts'

/*
 * An assessment as CSV: one row per item, each with the name and weight of its category.
 *
 * Spreadsheets interpret a cell that begins with = + - @ or their full-width forms as a formula.
 * Export therefore prefixes such a cell with an apostrophe, and also a cell that begins with
 * apostrophes followed by one of these characters. Import removes one apostrophe from such cells,
 * so every text survives a round trip.
 */
const FORMULA = /^'*[=+\-@\uff1d\uff0b\uff0d\uff20]/u
const ESCAPED_FORMULA = /^'+[=+\-@\uff1d\uff0b\uff0d\uff20]/u

/**
 * The separator of a spreadsheet depends on its locale's decimal separator. A tab is used for
 * copied cells.
 */
const SEPARATORS = [',', ';', '\t'] as const
/** Ten times the longest row with every character quoted. */
const ROW_BYTES_MAX = 64 * 1024

interface Column {
  readonly name: string
  readonly rule: z.ZodType
  /** Parses a cell. Unparsable text is returned unchanged, and the rule rejects it. */
  readonly read: (cell: string) => unknown
}

const asText = (cell: string): unknown => (cell === '' ? undefined : cell)
const asNumber = (cell: string): unknown =>
  /^\d+(?:[.,]\d+)?$/.test(cell) ? Number(cell.replace(',', '.')) : asText(cell)

const COLUMNS = [
  { name: 'category', rule: line, read: asText },
  { name: 'category_weight', rule: weight, read: asNumber },
  { name: 'item_id', rule: itemId, read: asText },
  { name: 'item_title', rule: line, read: asText },
  { name: 'question', rule: line.optional(), read: asText },
  { name: 'item_weight', rule: weight, read: asNumber },
  { name: 'priority', rule: priority, read: asNumber },
  { name: 'answer', rule: answer, read: readAnswer },
  { name: 'note', rule: note, read: (cell: string) => cell },
  { name: 'owner', rule: owner, read: (cell: string) => cell },
  { name: 'due_on', rule: dueOn, read: (cell: string) => cell },
  { name: 'links', rule: links, read: readLinks },
  { name: 'review', rule: review, read: (cell: string) => cell },
  { name: 'recommendation', rule: line, read: asText },
] as const satisfies readonly Column[]
type ColumnName = (typeof COLUMNS)[number]['name']
const OPTIONAL: readonly ColumnName[] = ['question', 'note', 'owner', 'due_on', 'links', 'review']

/** A row with checked cells. */
interface Row {
  readonly category: string
  readonly category_weight: number
  readonly item_id: string
  readonly item_title: string
  readonly question?: string | undefined
  readonly item_weight: number
  readonly priority: number
  readonly answer: Answer
  readonly note: string
  readonly owner?: string
  readonly due_on?: string
  readonly links?: readonly string[]
  readonly review?: string
  readonly recommendation: string
}

/** A record of the file. */
interface Cells {
  /** The row in a spreadsheet, from 1; and the line, where line breaks in cells make it another. */
  readonly place: string
  readonly cells: readonly string[]
}

/** The rows of a file, and an error for each cell of the others. */
export interface CsvContent {
  readonly categories: readonly AssessmentCategory[]
  /** One line each: row, column, what was found and what was expected. */
  readonly errors: readonly string[]
}

/** Begins with a byte order mark, by which spreadsheets recognize UTF-8. */
export function writeAssessmentCsv(categories: readonly AssessmentCategory[]): string {
  const items = itemsOf(categories)
  const absent = new Set<ColumnName>()
  if (items.every(({ question }) => question === undefined)) absent.add('question')
  if (items.every(({ work }) => work === undefined)) absent.add('owner').add('due_on').add('links').add('review')
  const columns = COLUMNS.filter(({ name }) => !absent.has(name))
  const rows = categories.flatMap(({ name, weight, items }) =>
    items.map((item) => {
      const { owner, dueOn, links, review } = workOf(item)
      const row: Row = {
        category: name,
        category_weight: weight,
        item_id: item.id,
        item_title: item.title,
        question: item.question,
        item_weight: item.weight,
        priority: item.priority,
        answer: item.answer,
        note: item.note,
        owner,
        due_on: dueOn,
        links,
        review: reviewText(review),
        recommendation: item.recommendation,
      }
      return columns.map(({ name }) => {
        return escapeFormula(name === 'links' ? links.join(' ') : String(row[name] ?? ''))
      })
    }),
  )
  return stringify([columns.map(({ name }) => name), ...rows], {
    bom: true,
    record_delimiter: '\r\n',
    quoted_match: /[;\t\r\n]/,
  })
}

/**
 * Reads the rows. A wrong answer or note leaves the item unanswered; any other wrong cell leaves
 * the row out.
 *
 * @throws AssessmentFileFault for what concerns the whole file, and if no row is right
 */
export function readAssessmentCsv(text: string): CsvContent {
  const [header, ...records] = recordsOf(text.replace(/\r\n?/g, '\n'))
  if (header === undefined) throw new AssessmentFileFault(['row 1: found nothing, expected a row of column names'])
  const columns = columnsOf(header)
  if (records.length === 0) throw new AssessmentFileFault(['row 2: found nothing, expected a row for each item'])
  if (records.length > ASSESSMENT_ITEMS_MAX) {
    throw new AssessmentFileFault([`found more than ${ASSESSMENT_ITEMS_MAX} rows, expected at most as many items`])
  }
  const errors: string[] = []
  const rows = records.map((record) => rowOf(record, columns, errors))
  const categories = categoriesOf(rows, records, errors)
  if (categories.length === 0) throw new AssessmentFileFault(errors)
  return { categories, errors }
}

/** Links are separated by blanks. A day belongs to the link before it. */
function readLinks(cell: string): unknown {
  return cell
    .split(/\s+(?!\d{4}-\d\d-\d\d(?:\s|$))/)
    .map((each) => each.replace(/\s+/, ' '))
    .filter((each) => each !== '')
}

function escapeFormula(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell
}

function recordsOf(text: string): Cells[] {
  try {
    const parsed = parse(text, {
      bom: true,
      delimiter: separatorOf(text),
      record_delimiter: '\n',
      relax_column_count: true,
      skip_records_with_empty_values: true,
      max_record_size: ROW_BYTES_MAX,
      to: ASSESSMENT_ITEMS_MAX + 2,
      info: true,
    }) as unknown as { record: string[]; info: { lines: number } }[]
    let breaksBefore = 0
    return parsed.map(({ record, info }) => {
      const breaks = record.reduce((sum, cell) => sum + cell.split('\n').length - 1, 0)
      // The library counts lines up to the end of the record.
      const line = info.lines - breaks
      const row = line - breaksBefore
      breaksBefore += breaks
      return {
        place: row === line ? `row ${row}` : `row ${row} (line ${line})`,
        cells: record.map((cell) => cell.trim()),
      }
    })
  } catch (error) {
    const { code, lines } = error as CsvError & { lines?: number }
    const problem = CSV_PROBLEMS[String(code)]
    if (problem === undefined) throw error
    throw new AssessmentFileFault([`line ${lines ?? '?'}: ${problem}`])
  }
}

const CSV_PROBLEMS: Readonly<Record<string, string>> = {
  INVALID_OPENING_QUOTE: 'found a quote inside a cell, expected the whole cell in quotes and the quote written twice',
  CSV_INVALID_CLOSING_QUOTE: 'found text after a quoted cell, expected a separator',
  CSV_QUOTE_NOT_CLOSED: 'found a quote that is opened and never closed',
  CSV_MAX_RECORD_SIZE: `found a row of more than ${ROW_BYTES_MAX} bytes; is a quote not closed?`,
}

/** The most frequent separator of the first line. No column name contains one. */
function separatorOf(text: string): string {
  const first = /[^\n]+/.exec(text)?.[0] ?? ''
  const counts = SEPARATORS.map((separator) => first.split(separator).length)
  return SEPARATORS[counts.indexOf(Math.max(...counts))] ?? ','
}

/** The index of each column in a row. undefined: an optional column is missing. */
function columnsOf({ place, cells }: Cells): ReadonlyMap<ColumnName, number> {
  const columns = new Map<ColumnName, number>()
  const problems: string[] = []
  for (const [at, cell] of cells.entries()) {
    const known = COLUMNS.find(({ name }) => name === cell.toLowerCase())
    if (cell === '') continue
    if (known === undefined) problems.push(`${place}: there is no column ${shown(cell)}`)
    else if (columns.has(known.name)) problems.push(`${place}: duplicate column ${known.name}`)
    else columns.set(known.name, at)
  }
  const missing = COLUMNS.map(({ name }) => name).filter((name) => !OPTIONAL.includes(name) && !columns.has(name))
  if (missing.length > 0) problems.push(`${place}: found no column ${missing.join(', ')}`)
  if (problems.length > 0) throw new AssessmentFileFault(problems)
  return columns
}

/** Cells that the item can do without. */
const ANSWER_COLUMNS: ReadonlySet<ColumnName> = new Set(['answer', 'note', 'owner', 'due_on', 'links', 'review'])

/** undefined if the row is left out. Errors are added to `errors`. */
function rowOf({ place, cells }: Cells, columns: ReadonlyMap<ColumnName, number>, errors: string[]): Row | undefined {
  const row: Partial<Record<ColumnName, unknown>> = {}
  const wrong = new Set<ColumnName | undefined>()
  for (const { name, rule, read } of COLUMNS) {
    const cell = cells[columns.get(name) ?? -1] ?? ''
    const value = read(ESCAPED_FORMULA.test(cell) ? cell.slice(1) : cell)
    const checked = rule.safeParse(value)
    if (checked.success) row[name] = checked.data
    else {
      wrong.add(name)
      errors.push(`${place}, column ${name}: found ${shown(value)}, ${checked.error.issues[0]?.message}`)
    }
  }
  const places = new Set(columns.values())
  const stray = cells.findIndex((cell, at) => cell !== '' && !places.has(at))
  if (stray >= 0) {
    wrong.add(undefined)
    errors.push(`${place}: found ${shown(cells[stray])} in cell ${stray + 1}, expected a column name above it`)
  }
  if (wrong.size === 0) return row as unknown as Row
  const isItem = [...wrong].every((name) => name !== undefined && ANSWER_COLUMNS.has(name))
  return isItem ? ({ ...row, answer: 'unanswered', note: '' } as unknown as Row) : undefined
}

/** Categories in order of their first row. Rows of a category need not be adjacent. */
function categoriesOf(
  rows: readonly (Row | undefined)[],
  records: readonly Cells[],
  errors: string[],
): AssessmentCategory[] {
  const categories = new Map<string, { weight: number; place: string; items: AssessmentItem[] }>()
  const placeOfItem = new Map<string, string>()
  for (const [at, row] of rows.entries()) {
    if (row === undefined) continue
    const place = records[at]?.place ?? ''
    const category = categories.get(row.category) ?? { weight: row.category_weight, place, items: [] }
    const firstPlace = placeOfItem.get(itemKey(row.item_id))
    if (category.weight !== row.category_weight) {
      const expected = `expected ${category.weight} as in ${category.place}`
      errors.push(`${place}, column category_weight: found ${row.category_weight}, ${expected}`)
    } else if (firstPlace !== undefined) {
      const expected = `expected an id that is not in ${firstPlace}`
      errors.push(`${place}, column item_id: found ${shown(row.item_id)}, ${expected}`)
    } else {
      categories.set(row.category, category)
      placeOfItem.set(itemKey(row.item_id), place)
      category.items.push(itemOf(row))
    }
  }
  if (categories.size > ASSESSMENT_CATEGORIES_MAX) {
    const found = `found ${categories.size} categories, expected at most ${ASSESSMENT_CATEGORIES_MAX}`
    throw new AssessmentFileFault([...errors, found])
  }
  return Array.from(categories, ([name, { weight, items }]) => ({ name, weight, items }))
}

function itemOf(row: Row): AssessmentItem {
  return {
    id: row.item_id,
    title: row.item_title,
    ...(row.question === undefined ? {} : { question: row.question }),
    weight: row.item_weight,
    priority: row.priority,
    recommendation: row.recommendation,
    answer: row.answer,
    note: row.note,
    ...importedWork({
      owner: row.owner ?? '',
      dueOn: row.due_on ?? '',
      links: row.links ?? [],
      review: row.review ?? '',
    }),
  }
}
