import { Cursor, cursorFileText } from '../export/cursor.ts'
import { reporterOf } from '../export/finding-event.ts'
import { canWrite, EXPORT_FORMATS, type ExportFormat, rowText } from '../export/row-text.ts'
import { EXPORT_OF, EXPORTS, type ExportKind } from '../export/rows.ts'
import { sinceTime } from '../kernel/process/duration.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { type NewFile, withNewFile } from '../kernel/process/new-file.ts'
import { oneOf } from '../kernel/process/settings.ts'
import { programVersion } from '../kernel/process/version.ts'
import { argument, type Commands, option, query } from './command.ts'
import type { AdminContext } from './context.ts'

/** Findings are for those who export them. */
const FILE_MODE = 0o600
/** Rows are written in pieces of this size. */
const PIECE_CHARS = 64 * 1024

interface Files {
  readonly cursorText: string | undefined
  readonly cursorFile: NewFile | undefined
  /** undefined: standard output. */
  readonly file: NewFile | undefined
}

export const commands: Commands = {
  '': query('', {
    params: {
      kind: argument('<what>', 'What to export', oneOf(EXPORTS)),
      format: option(
        '--format <format>',
        'Write in this format; cef, leef and ocsf are for platforms',
        oneOf(EXPORT_FORMATS),
      ),
      since: option(
        '--since <time>',
        'Export only rows that changed in a duration such as 7d until now, or since a time in UTC',
        sinceTime(() => Date.now()).optional(),
      ),
      cursor: option(
        '--cursor <file>',
        'Export only rows that are new or changed since the last export with this file',
      ),
      out: option('--out <file>', 'Write to this file, replacing it, instead of standard output'),
    },
    around({ kind, format, cursor, out }, work: (files: Files) => Promise<void>) {
      if (!canWrite(kind, format)) {
        throw new Fault('USAGE', `--format ${format} is for platforms; use csv, ndjson or html for ${kind}`)
      }
      // What reads a pipe may end early, and the rows would be lost.
      if (cursor !== undefined && out === undefined) throw new Fault('USAGE', '--cursor needs --out')
      const cursorText = cursor === undefined ? undefined : cursorFileText(cursor)
      return withNewFile('--cursor', cursor, { mode: FILE_MODE }, (cursorFile) =>
        withNewFile('--out', out, { mode: FILE_MODE }, (file) => work({ cursorText, cursorFile, file })),
      )
    },
    async run(context, { kind, format, since = 0 }, { cursorText, cursorFile, file }) {
      const cursor = cursorFile && new Cursor(cursorFile, cursorText, kind, context.organization.id)
      const write = file === undefined ? context.output.print : (text: string) => file.write(text)
      writeRows(context, { kind, format, since, cursor, write })
      await file?.complete()
      await cursor?.store()
    },
  }),
}

interface Export {
  readonly kind: ExportKind
  readonly format: ExportFormat
  readonly since: number
  readonly cursor: Cursor | undefined
  readonly write: (text: string) => void
}

function writeRows(
  { store, registry, administration, clock, organization }: AdminContext,
  { kind, format, since, cursor, write }: Export,
): void {
  const text = rowText(kind, format, organization.name, reporterOf(programVersion()))
  if (kind === 'clients') administration.clients.noteExport(organization)
  let piece = text.head
  // One snapshot: a scan that completes meanwhile changes nothing in this export.
  store.environment.read(() => {
    for (const row of EXPORT_OF[kind].rows({ store, registry, organization, nowMs: clock.nowMs() })) {
      if (row.changedMs < since) cursor?.skip(row)
      else if (cursor === undefined || cursor.isNew(row)) piece += text.row(row)
      if (piece.length < PIECE_CHARS) continue
      write(piece)
      piece = ''
    }
  })
  write(piece + text.tail)
}
