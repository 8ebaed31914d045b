import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { Fault } from '../process/error-codes.ts'
import { writeNewFile } from '../process/new-file.ts'
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
/** Only who exports needs the file. */
const FILE_MODE = 0o600

const cursorFile = z.strictObject({
  version: z.literal(VERSION),
  export: z.enum(EXPORTS),
  organization_id: z.uuid(),
  rows: z.record(z.string(), z.string().regex(HASHES)),
})

export class Cursor {
  readonly #path: string
  readonly #export: ExportKind
  readonly #organizationId: string
  readonly #before: ReadonlyMap<string, string>
  readonly #now = new Map<string, string>()
  /** Content by id of the rows in the current group, before this export. */
  #group: { readonly name: string; readonly before: ReadonlyMap<string, string> } | undefined

  /**
   * Reads the file, which may not exist yet.
   *
   * @throws Fault EXPORT_FILE if it is the cursor of another export, or cannot be read
   */
  constructor(path: string, kind: ExportKind, organizationId: string) {
    this.#path = path
    this.#export = kind
    this.#organizationId = organizationId
    this.#before = existsSync(path) ? read(path, kind, organizationId) : new Map()
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
  store(): void {
    const rows = Object.fromEntries(this.#now)
    const content = { version: VERSION, export: this.#export, organization_id: this.#organizationId, rows }
    writeNewFile('--cursor', this.#path, `${JSON.stringify(content)}\n`, FILE_MODE)
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

function read(path: string, kind: ExportKind, organizationId: string): ReadonlyMap<string, string> {
  const fail = (what: string): never => {
    throw new Fault('EXPORT_FILE', `--cursor ${path}: ${what}; name another file to export everything again`)
  }
  let parsed: unknown
  try {
    if (statSync(path).size > FILE_BYTES_MAX) return fail('is too large for a cursor')
    parsed = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error instanceof Fault) throw error
    const { code } = error as NodeJS.ErrnoException
    return fail(code === undefined ? 'is not a cursor' : `cannot be read: ${code}`)
  }
  const cursor = cursorFile.safeParse(parsed)
  if (!cursor.success) return fail('is not a cursor')
  const { export: found, organization_id: foundId, rows } = cursor.data
  if (found !== kind) return fail(`is a cursor of ${found}, expected one of ${kind}`)
  if (foundId !== organizationId) return fail('is a cursor of another organization')
  return new Map(Object.entries(rows))
}
