import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { Fault } from '../process/error-codes.ts'
import { writeNewFile } from '../process/new-file.ts'
import { EXPORTS, type ExportedRow, type ExportKind } from './rows.ts'

/*
 * What earlier exports have written: a hash of each row, by its id. An export writes the rows that
 * are new or changed. A time or a number would miss rows: clocks are set back, scans overlap, and a
 * row that was exported changes later.
 */
const VERSION = 1
/** Half of SHA-256 in base64. */
const HASH = /^[\w+/]{22}$/
const HASH_BYTES = 16
/** A row has about 70 bytes in the file. All exports have fewer than 100,000 rows. */
const FILE_BYTES_MAX = 16 * 1024 * 1024
/** Only who exports needs the file. */
const FILE_MODE = 0o600

const cursorFile = z.strictObject({
  version: z.literal(VERSION),
  export: z.enum(EXPORTS),
  organization_id: z.uuid(),
  rows: z.record(z.string(), z.string().regex(HASH)),
})

export class Cursor {
  readonly #path: string
  readonly #export: ExportKind
  readonly #organizationId: string
  readonly #before: ReadonlyMap<string, string>
  readonly #now = new Map<string, string>()

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
  isNew({ id, row }: ExportedRow): boolean {
    const { scan_id: _, scanned_at: __, ...counted } = row
    const digest = createHash('sha256').update(JSON.stringify(counted)).digest()
    const hash = digest.toString('base64', 0, HASH_BYTES).slice(0, 22)
    this.#now.set(id, hash)
    return this.#before.get(id) !== hash
  }

  /** Notes a row that this export does not write, whatever its content is. */
  skip({ id }: ExportedRow): void {
    const hash = this.#before.get(id)
    if (hash !== undefined) this.#now.set(id, hash)
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
