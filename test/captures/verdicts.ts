import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from '../support/programs.ts'
import type { Expectation } from './made-capture.ts'
import { type ShownName, shownByTshark } from './tshark.ts'

/*
 * What tshark shows of each capture, stored as `tshark.json` beside it: tshark needs a second for each file, and not everybody
 * has it. `npm run captures` asks it again; test/captures/tshark.full.test.ts compares what it says today with what is stored.
 */
const FOLDER = join(REPOSITORY, 'test/captures')

/** A folder of test/captures. */
export interface CaptureCase {
  readonly name: string
  /** The capture file. */
  readonly file: string
  readonly expected: Expectation
}

export interface Verdict {
  /** Of the capture file that tshark read. */
  readonly sha256: string
  /** As `verdictLine` writes them, sorted: when a message is complete, tshark and we need not agree. */
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

/** The stored verdict. Throws where it is missing or of another file. */
export function storedVerdict(capture: CaptureCase): Verdict {
  const file = verdictFile(capture)
  const stored = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Verdict) : undefined
  if (stored?.sha256 !== hashOf(capture)) {
    throw new Error(`${file} is not of this capture: run npm run captures, which needs tshark`)
  }
  return stored
}

/** Asks tshark. */
export async function freshVerdict(capture: CaptureCase): Promise<Verdict> {
  const shown = await shownByTshark(capture.file, capture.expected.damage !== undefined)
  return { sha256: hashOf(capture), names: shown.map((row) => verdictLine(capture, row)).sort() }
}

/** Asks tshark, and stores what it says. */
export async function storeVerdict(capture: CaptureCase): Promise<void> {
  const verdict = await freshVerdict(capture)
  writeFileSync(verdictFile(capture), `${JSON.stringify(verdict, undefined, 1)}\n`)
}

/** Client and name; with the time where the case is about times. */
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
