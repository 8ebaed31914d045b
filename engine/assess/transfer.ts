import { isUtf8 } from 'node:buffer'
import { type FileKind, openBytes, withPathOf } from '../kernel/process/byte-source.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { ASSESSMENT_FILE_BYTES_MAX } from '../limits.ts'
import type { Assessment, AssessmentCategory } from '../store/assessments.ts'
import { type AnyFrameworkId, frameworkName, type Template } from '../store/framework.ts'
import { AssessmentFileFault } from './file-fault.ts'
import { writeAssessmentOscal } from './oscal-export.ts'
import { isOscal, readAssessmentOscal } from './oscal-import.ts'
import { readAssessmentCsv, writeAssessmentCsv } from './transfer-csv.ts'
import { type AssessmentContent, checkedContent, parseJson, writeAssessmentJson } from './transfer-json.ts'

export const TRANSFER_FORMATS = ['json', 'csv', 'oscal'] as const
export type TransferFormat = (typeof TRANSFER_FORMATS)[number]

const ASSESSMENT_FILE: FileKind = {
  what: 'file of an assessment',
  unreadable: 'ASSESSMENT_FILE',
  damaged: 'ASSESSMENT_FILE',
}
const READ_BYTES = 64 * 1024
const LINE_FEED = 0x0a
const BYTE_ORDER_MARK = '\ufeff'

/** Properties that the file does not contain, or that override the file's. */
export interface ImportOptions {
  /** Required for CSV and for OSCAL of other programs, which do not name the framework. */
  readonly frameworkId?: AnyFrameworkId
  readonly title?: string
  /** The items that an OSCAL document of another program answers; by default those built in. */
  readonly template?: Template | undefined
  /** Use the right rows of a CSV file although others are wrong; by default none is used. */
  readonly keepRightRows?: boolean
}

/** The content of a file, and what of the file it does not have: one line each, for people. */
export interface ReadAssessment extends AssessmentContent {
  /** Of an OSCAL document: what has no place in an assessment. */
  readonly skipped: readonly string[]
  /** Of a CSV file: wrong cells. */
  readonly errors: readonly string[]
}

export function writeAssessment(
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  format: TransferFormat,
): string {
  switch (format) {
    case 'json':
      return writeAssessmentJson({ ...assessment, categories })
    case 'csv':
      return writeAssessmentCsv(categories)
    case 'oscal':
      return writeAssessmentOscal(assessment, categories)
    default:
      return format satisfies never
  }
}

/**
 * Reads JSON, OSCAL or CSV. Only the first two begin with a brace.
 *
 * @throws AssessmentFileFault with all errors; Fault USAGE if the framework is missing or differs
 */
export function readAssessment(bytes: Uint8Array, options: ImportOptions = {}): ReadAssessment {
  const text = textOf(bytes)
  const isJson = /^\s*\{/.test(text)
  const content = isJson ? fromJson(parseJson(text), options) : fromCsv(text, options)
  const { frameworkId = content.frameworkId, title = content.title } = options
  if (frameworkId === content.frameworkId) return { ...content, title }
  throw new Fault('USAGE', `the framework is ${frameworkId}, the file is an assessment of ${content.frameworkId}`)
}

/** Reads the whole file, or standard input. @throws Fault ASSESSMENT_FILE. */
export async function readAssessmentFile(path: string): Promise<Uint8Array> {
  try {
    const source = openBytes(path, ASSESSMENT_FILE)
    try {
      let bytes = Buffer.alloc(READ_BYTES)
      let used = 0
      while (used <= ASSESSMENT_FILE_BYTES_MAX) {
        if (used === bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(bytes.length)])
        const got = await source.read(bytes, used, bytes.length - used)
        if (got === 0) return bytes.subarray(0, used)
        used += got
      }
      throw new Fault('ASSESSMENT_FILE', `larger than the maximum of ${ASSESSMENT_FILE_BYTES_MAX} bytes`)
    } finally {
      source.close()
    }
  } catch (error) {
    throw withPathOf(ASSESSMENT_FILE, path, error)
  }
}

function fromJson(given: unknown, { frameworkId, template }: ImportOptions): ReadAssessment {
  return isOscal(given)
    ? { ...readAssessmentOscal(given, frameworkId, template), errors: [] }
    : { ...checkedContent(given), skipped: [], errors: [] }
}

function fromCsv(text: string, { frameworkId, keepRightRows = false }: ImportOptions): ReadAssessment {
  if (frameworkId === undefined) {
    throw new Fault('USAGE', '--framework is required for CSV, which does not name its framework')
  }
  const { categories, errors } = readAssessmentCsv(text)
  if (errors.length > 0 && !keepRightRows) throw new AssessmentFileFault(errors)
  return { frameworkId, title: frameworkName(frameworkId), categories, skipped: [], errors }
}

function textOf(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) {
    throw new AssessmentFileFault([`line ${firstForeignLine(bytes)}: found bytes that are not UTF-8; save it as UTF-8`])
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
}

/**
 * The byte of a line feed never occurs inside another UTF-8 character, so each line can be checked
 * by itself.
 */
function firstForeignLine(bytes: Uint8Array): number {
  let line = 1
  for (let begin = 0; begin < bytes.length; line++) {
    const feed = bytes.indexOf(LINE_FEED, begin)
    const end = feed < 0 ? bytes.length : feed
    if (!isUtf8(bytes.subarray(begin, end))) return line
    begin = end + 1
  }
  return line
}
