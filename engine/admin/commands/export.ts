import { Argument, type Command, Option } from 'commander'
import { Cursor } from '../../export/cursor.ts'
import { reporterOf } from '../../export/finding-event.ts'
import { canWrite, EXPORT_FORMATS, type ExportFormat, rowText } from '../../export/row-text.ts'
import { EXPORT_OF, EXPORTS, type ExportKind } from '../../export/rows.ts'
import { sinceOption } from '../../process/duration.ts'
import { Fault } from '../../process/error-codes.ts'
import { NewFile } from '../../process/new-file.ts'
import { programVersion } from '../../process/version.ts'
import { type AdminContext, ofOrganization, printText, sharedOptions, withStore } from './context.ts'

/** Findings are for those who export them. */
const FILE_MODE = 0o600
/** Rows are written in pieces of this size. */
const PIECE_CHARS = 64 * 1024

interface Options {
  readonly org?: string
  readonly format: ExportFormat
  readonly since?: number
  readonly cursor?: string
  readonly out?: string
}

/** posture-admin export */
export function addExportCommand(command: Command): void {
  command.addArgument(new Argument('<what>', 'What to export').choices(EXPORTS))
  ofOrganization(sharedOptions(command))
    .addOption(
      new Option('--format <format>', 'Write in this format; cef, leef and ocsf are for platforms')
        .choices(EXPORT_FORMATS)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option(
        '--since <time>',
        'Export only rows that changed in a duration such as 7d until now, or since a time in UTC',
      ).argParser(sinceOption(() => Date.now())),
    )
    .option('--cursor <file>', 'Export only rows that are new or changed since the last export with this file')
    .option('--out <file>', 'Write to this file, replacing it, instead of standard output')
  command.action((what: ExportKind, options: Options) =>
    withStore(command, (context) => write(command, context, what, options)),
  )
}

function write(
  command: Command,
  { store, registry, administration, clock }: AdminContext,
  kind: ExportKind,
  { org, format, since = 0, cursor: cursorPath, out }: Options,
): void {
  if (!canWrite(kind, format)) {
    throw new Fault('USAGE', `--format ${format} is for platforms; use csv, ndjson or html for ${kind}`)
  }
  // What reads a pipe may end early, and the rows would be lost.
  if (cursorPath !== undefined && out === undefined) throw new Fault('USAGE', '--cursor needs --out')
  const organization = administration.organization(org)
  const cursor = cursorPath === undefined ? undefined : new Cursor(cursorPath, kind, organization.id)
  const text = rowText(kind, format, organization.name, reporterOf(programVersion()))
  if (kind === 'clients') administration.clients.noteExport(organization)
  const file = out === undefined ? undefined : new NewFile('--out', out, FILE_MODE)
  let piece = text.head
  const flush = (): void => {
    if (file === undefined) printText(command, piece)
    else file.write(piece)
    piece = ''
  }
  try {
    // One snapshot: a scan that completes meanwhile changes nothing in this export.
    store.environment.read(() => {
      for (const row of EXPORT_OF[kind].rows({ store, registry, organization, nowMs: clock.nowMs() })) {
        if (row.changedMs < since) cursor?.skip(row)
        else if (cursor === undefined || cursor.isNew(row)) piece += text.row(row)
        if (piece.length >= PIECE_CHARS) flush()
      }
    })
    piece += text.tail
    flush()
  } catch (error) {
    file?.discard()
    throw error
  }
  file?.complete()
  cursor?.store()
}
