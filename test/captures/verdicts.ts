import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from '../support/programs.ts'
import type { Expectation } from './generated-capture.ts'
import { type ShownName, shownByTshark } from './tshark.ts'

/*
 * tshark's names for each capture, stored in `tshark.json` in the case's folder, because tshark
 * takes a second per file and is not always installed. `npm run captures` updates the stored names.
 * test/captures/tshark.full.test.ts compares them with the installed tshark.
 */
const FOLDER = join(REPOSITORY, 'test/captures')

/** A folder of test/captures. */
export interface CaptureCase {
  readonly name: string
  /** Path of the capture file. */
  readonly file: string
  readonly expected: Expectation
}

export interface Verdict {
  /** Hash of the capture file that tshark read. */
  readonly sha256: string
  /** Lines of `verdictLine`, sorted, because tshark may complete messages in another order. */
  readonly names: readonly string[]
}

export function captureCases(): CaptureCase[] {
  const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.map(({ name }) => {
    const input = readdirSync(join(FOLDER, name)).find((file) => file.startsWith('input.')) ?? ''
    const expected = JSON.parse(readFileSync(join(FOLDER, name, 'expect.json'), 'utf8')) as Expectation
    return { name, file: join(FOLDER, name, input), expected }
  })
}

/**
 * The stored verdict.
 *
 * @throws Error when the verdict is missing or was made for another file.
 */
export function storedVerdict(capture: CaptureCase): Verdict {
  const file = verdictFile(capture)
  const stored = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Verdict) : undefined
  if (stored?.sha256 !== hashOf(capture)) {
    throw new Error(`${file}: verdict of another capture. Run npm run captures, which needs tshark`)
  }
  return stored
}

/** Runs tshark. */
export async function freshVerdict(capture: CaptureCase): Promise<Verdict> {
  const shown = await shownByTshark(capture.file, capture.expected.damage !== undefined)
  return { sha256: hashOf(capture), names: shown.map((row) => verdictLine(capture, row)).sort() }
}

/** Runs tshark and stores the verdict. */
export async function storeVerdict(capture: CaptureCase): Promise<void> {
  const verdict = await freshVerdict(capture)
  writeFileSync(verdictFile(capture), `${JSON.stringify(verdict, undefined, 1)}\n`)
}

/** Client and name. With the time in cases that test times. */
export function verdictLine({ expected }: CaptureCase, { client, name, timeMs }: ShownName): string {
  const timed = expected.names.some((row) => row.timeMs !== undefined)
  return `${timed ? `${timeMs} ` : ''}${client} ${name}`
}

function verdictFile({ name }: CaptureCase): string {
  return join(FOLDER, name, 'tshark.json')
}

function hashOf({ file }: CaptureCase): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
