import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Fault } from '../kernel/process/error-codes.ts'
import { readInput } from '../kernel/process/input-file.ts'
import type { NewFile } from '../kernel/process/new-file.ts'
import type { ExportedRow } from './exported-row.ts'
import { EXPORTS, type ExportKind } from './rows.ts'

/*
 * What earlier exports have written: a hash of each row, by its id. An export writes the rows that
 * are new or changed. A time or a number would miss rows: clocks are set back, scans overlap, and a
 * row that was exported changes later.
 *
 *   rows   of a row without a group, its id: 22 characters, the hash of its content
 *          of a group, its name: 22 characters for each row, the hashes of id and content
 */
const VERSION = 1
const HASHES = /^(?:[\w+/]{22})+$/
const HASH_CHARACTERS = 22
/** 128 bits in base64. */
const WHOLE = { bytes: 16, characters: HASH_CHARACTERS } as const
/** 64 bits in base64. */
const HALF = { bytes: 8, characters: HASH_CHARACTERS / 2 } as const
/** The largest export, of clients, has 9 million rows of 22 bytes (CLIENT_BYTES_MAX). */
const FILE_BYTES_MAX = 256 * 1024 * 1024

const cursorFile = z.strictObject({
  version: z.literal(VERSION),
  export: z.enum(EXPORTS),
  organization_id: z.uuid(),
  rows: z.record(z.string(), z.string().regex(HASHES)),
})

export class Cursor {
  readonly #file: NewFile
  readonly #export: ExportKind
  readonly #organizationId: string
  readonly #before: ReadonlyMap<string, string>
  readonly #now = new Map<string, string>()
  /** Content by id of the rows in the current group, before this export. */
  #group: { readonly name: string; readonly before: ReadonlyMap<string, string> } | undefined

  /**
   * @param file replaces the one with the text
   * @param text of the last cursor. undefined: this is the first export.
   * @throws Fault EXPORT_FILE if it is the cursor of another export
   */
  constructor(file: NewFile, text: string | undefined, kind: ExportKind, organizationId: string) {
    this.#file = file
    this.#export = kind
    this.#organizationId = organizationId
    this.#before = text === undefined ? new Map() : rowsOf(text, file.path, kind, organizationId)
  }

  /**
   * Whether an earlier export has not written this row, or has written it otherwise. Ids of scans
   * change with each scan without a change of the platform, so they do not count.
   */
  isNew(exported: ExportedRow): boolean {
    const { scan_id: _, scanned_at: __, ...counted } = exported.row
    const size = exported.group === undefined ? WHOLE : HALF
    const content = hashOf(JSON.stringify(counted), size)
    this.#note(exported, content)
    return this.#contentBefore(exported) !== content
  }

  /** Notes a row that this export does not write, whatever its content is. */
  skip(exported: ExportedRow): void {
    const content = this.#contentBefore(exported)
    if (content !== undefined) this.#note(exported, content)
  }

  /**
   * Stores what was written. Call when the rows are written completely: if the process ends before,
   * the next export writes them again. @throws Fault EXPORT_FILE.
   */
  store(): Promise<void> {
    const rows = Object.fromEntries(this.#now)
    const content = { version: VERSION, export: this.#export, organization_id: this.#organizationId, rows }
    this.#file.write(`${JSON.stringify(content)}\n`)
    return this.#file.complete()
  }

  #note({ id, group }: ExportedRow, content: string): void {
    if (group === undefined) this.#now.set(id, content)
    else this.#now.set(group, (this.#now.get(group) ?? '') + hashOf(id, HALF) + content)
  }

  /** undefined: the row is new. */
  #contentBefore({ id, group: name }: ExportedRow): string | undefined {
    if (name === undefined) return this.#before.get(id)
    if (this.#group?.name !== name) this.#group = { name, before: rowsIn(this.#before.get(name) ?? '') }
    return this.#group.before.get(hashOf(id, HALF))
  }
}

function hashOf(text: string, { bytes, characters }: { readonly bytes: number; readonly characters: number }): string {
  return createHash('sha256').update(text).digest().toString('base64', 0, bytes).slice(0, characters)
}

/** The content of each row in a group, by its id. */
function rowsIn(hashes: string): ReadonlyMap<string, string> {
  const rows = new Map<string, string>()
  for (let at = 0; at < hashes.length; at += HASH_CHARACTERS) {
    const middle = at + HALF.characters
    rows.set(hashes.slice(at, middle), hashes.slice(middle, at + HASH_CHARACTERS))
  }
  return rows
}

/** Returns undefined if there is no such file yet. @throws Fault EXPORT_FILE. */
export function cursorFileText(path: string): string | undefined {
  try {
    return readInput(path, FILE_BYTES_MAX, { what: '--cursor', code: 'EXPORT_FILE' }).toString()
  } catch (error) {
    const { cause } = error as { readonly cause?: NodeJS.ErrnoException }
    if (cause?.code === 'ENOENT') return undefined
    throw error
  }
}

function rowsOf(text: string, path: string, kind: ExportKind, organizationId: string): ReadonlyMap<string, string> {
  const cursor = cursorFile.safeParse(parsed(text))
  if (!cursor.success) throw unusable(path, 'is not a cursor')
  const { export: found, organization_id: foundId, rows } = cursor.data
  if (found !== kind) throw unusable(path, `is a cursor of ${found}, expected one of ${kind}`)
  if (foundId !== organizationId) throw unusable(path, 'is a cursor of another organization')
  return new Map(Object.entries(rows))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unusable(path: string, what: string): Fault {
  return new Fault('EXPORT_FILE', `--cursor ${path}: ${what}; name another file to export everything again`)
}
