import type { Command } from 'commander'
import { z } from 'zod'
import { isoSeconds } from '../kernel/process/clock.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { addSettingOptions, readSettings, setting, wholeNumber } from '../kernel/process/settings.ts'
import type { Column, ColumnFit, Shown } from '../kernel/process/table.ts'
import { type AdminContext, Output, type Result, type StoreOptions, storeParams, withStore } from './context.ts'

/*
 * A command of posture-admin is a row: what it does, its parameters, and a function that runs a use
 * case and returns the rows to print. The rows of a noun are in one file. Help, completion, manual
 * pages and reference pages come from the same rows.
 */

/** Arguments and options, by name, in the order of the help. */
export type Params = Readonly<Record<string, z.ZodType>>

/** @param term in commander's notation: `<name>`, `[name]`, `<file...>` */
export function argument(term: string, about: string): z.ZodString
export function argument<S extends z.ZodType>(term: string, about: string, schema: S): S
export function argument(term: string, about: string, schema: z.ZodType = z.string()): z.ZodType {
  return setting(schema, { argument: term, about })
}

interface OptionDetails {
  /** Attributes of options that cannot be given together with this one. */
  readonly conflicts?: readonly string[]
  /** Describes the default for people. */
  readonly defaultAbout?: string
}

/**
 * @param schema of the value; must accept undefined, or the option is required. The option of an
 *   array may be repeated
 */
export function option(flag: string, about: string): z.ZodOptional<z.ZodString>
export function option<S extends z.ZodType>(flag: string, about: string, schema: S, details?: OptionDetails): S
export function option(
  flag: string,
  about: string,
  schema: z.ZodType = z.string().optional(),
  details: OptionDetails = {},
): z.ZodType {
  return setting(schema, { flag, about, ...details })
}

/** An option without a value. `--no-wait` is true unless given. */
export function flag(name: string, about: string, details: OptionDetails = {}) {
  return option(name, about, z.boolean().default(name.startsWith('--no-')), details)
}

export const JSON_OUTPUT = { json: flag('--json', 'Print one JSON object per line, as in a pipe') }

/** Where there is only one organization, nobody has to name it. */
export const ORGANIZATION = setting(z.string().optional(), {
  flag: '--org <name>',
  env: 'POSTURE_ORG',
  about: 'Select the organization by name or id',
  defaultAbout: 'the only organization',
})

/** Parameters of every command that opens the store. */
export const STORE_PARAMS = { ...storeParams, ...JSON_OUTPUT }

const CHANGE_PARAMS = {
  as: option(
    '--as <member>',
    'Make the change as this member of the organization, with its role, instead of as the operator',
  ),
}

/** At most this many rows of a list. */
export function limitOption(flag: string, about: string, byDefault: number, max: number) {
  return option(flag, about, wholeNumber(1, max).default(byDefault))
}

type Given<P extends Params> = { readonly [Name in keyof P]: z.output<P[Name]> } & {
  readonly dataDir: string
  readonly json: boolean
}

// biome-ignore lint/suspicious/noConfusingVoidType: a function without a result has nothing to print
export type Printed = Result | undefined | void

interface Definition<P extends Params, R> {
  readonly params?: P
  /** false: without --org. */
  readonly organization?: false
  /** Creates a missing store. */
  readonly creates?: boolean
  /**
   * Reads the files that the command line names. Runs before the store opens, because root then
   * becomes the owner of the store, and root has named the files.
   */
  readonly read?: (given: Given<P>) => R | Promise<R>
  /** Like `read`, for files that are closed after the work. */
  readonly around?: (given: Given<P>, work: (opened: R) => Promise<void>, command: Command) => Promise<void>
  readonly run: (context: AdminContext, given: Given<P>, opened: R) => Printed | Promise<Printed>
}

/** A command, without the types of its parameters. */
export interface CommandRow {
  readonly about: string
  readonly params: Params
  readonly action: (given: Readonly<Record<string, unknown>>, output: Output, command: Command) => Promise<void>
}

/** Commands by name. '' is what the noun does by itself. */
export interface Commands {
  readonly [name: string]: CommandRow | CommandGroup
}

export interface CommandGroup {
  readonly about: string
  readonly commands: Commands
}

export function group(about: string, commands: Commands): CommandGroup {
  return { about, commands }
}

/** A command that reads the store. */
export function query<P extends Params, R = undefined>(about: string, definition: Definition<P, R>): CommandRow {
  return inStore(about, definition, {})
}

/** A command that changes something in the store: as the operator, or as a member. */
export function change<P extends Params, R = undefined>(about: string, definition: Definition<P, R>): CommandRow {
  return inStore(about, definition, CHANGE_PARAMS)
}

/** A command that needs no store, or opens it by itself. */
export function plain<P extends Params>(
  about: string,
  params: P,
  run: (given: Given<P>, output: Output, command: Command) => Printed | Promise<Printed>,
): CommandRow {
  const action: CommandRow['action'] = async (given, output, command) => {
    const shown = await run(given as Given<P>, output, command)
    if (shown !== undefined) output.show(shown)
  }
  return { about, params, action }
}

function inStore<P extends Params, R>(
  about: string,
  { params, organization, creates = false, read, around, run }: Definition<P, R>,
  more: Params,
): CommandRow {
  const all = { ...STORE_PARAMS, ...more, ...(organization === false ? {} : { org: ORGANIZATION }), ...params }
  return plain(about, all, async (values, output, command) => {
    const given = values as unknown as Given<P> & StoreOptions
    const work = (opened: R): Promise<void> =>
      withStore({ ...given, create: creates }, output, async (context) => {
        const shown = await run(context, given, opened)
        if (shown !== undefined) output.show(shown)
      })
    await (around === undefined ? work((await read?.(given)) as R) : around(given, work, command))
  })
}

/** Adds commands to a command of commander, which parses the command line. */
export function addCommands(parent: Command, commands: Commands): void {
  for (const [name, row] of Object.entries(commands)) {
    const command = name === '' ? parent : parent.command(name).description(row.about)
    if ('commands' in row) addCommands(command, row.commands)
    else addRow(command, row)
  }
  const [, ...others] = Object.keys(commands)
  // The options after the name of a command are those of that command. A wrong name is an argument.
  if ('' in commands && others.length > 0) parent.enablePositionalOptions().allowExcessArguments()
}

function addRow(command: Command, { params, action }: CommandRow): void {
  const schema = z.object(params)
  addSettingOptions(command, schema).action(async () => {
    const word = command.args[command.processedArgs.length]
    const [other] = command.commands
    if (word !== undefined && other !== undefined) {
      throw new Fault('USAGE', `unknown command '${word}' (Did you mean ${other.name()}?)`)
    }
    const { json } = command.opts<{ json?: boolean }>()
    const output = new Output(json === true, (text) => command.configureOutput().writeOut?.(text))
    await action(valuesOf(command, schema), output, command)
  })
}

/** A wrong value is an error of commander, which names the help of the command. */
function valuesOf(command: Command, schema: z.ZodObject<z.ZodRawShape>): Readonly<Record<string, unknown>> {
  try {
    return readSettings(schema, { command, environment: process.env })
  } catch (error) {
    if (isFault(error, 'USAGE')) command.error(`error: ${error.message}`, { code: 'commander.invalidArgument' })
    throw error
  }
}

/** A column of a table and a field of JSON. */
type Field<T> = readonly [
  /** null: only in JSON. */
  heading: string | null,
  /** The name in JSON. `risk.score` shows a part of the field `risk`. */
  property: string,
  details?: ColumnFit & {
    /**
     * The value; by default the property of this name. For `created_at` also `createdAtMs`, and for
     * `token_id` also `tokenId`.
     */
    readonly of?: (row: T) => unknown
  },
]

/** How rows are printed: the columns of the table and, in the same order, the fields in JSON. */
export function table<T extends object>(
  fields: readonly Field<T>[],
  { vertical = false } = {},
): (rows: readonly T[]) => Shown {
  const columns = fields.flatMap(([heading, ...rest]): Column[] => (heading === null ? [] : [[heading, ...rest]]))
  const own = fields.filter(([, property]) => !property.includes('.'))
  return (rows) => ({
    columns,
    vertical,
    rows: rows.map((row) =>
      Object.fromEntries(
        own.map(([, property, { of } = {}]) => [property, of === undefined ? shownValue(row, property) : of(row)]),
      ),
    ),
  })
}

function shownValue(row: object, property: string): unknown {
  const values = row as Readonly<Record<string, unknown>>
  if (property in row) return values[property]
  const name = property.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  return /_(?:at|seen)$/.test(property) ? timeText(values[`${name}Ms`] as number | undefined) : values[name]
}

/** A time as in the API; null if there is none. */
export function timeText(timeMs: number | undefined): string | null {
  return timeMs === undefined || timeMs === 0 ? null : isoSeconds(timeMs)
}

/** The properties that are not undefined: those that the command line changes. */
export function defined<T extends object>(given: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as never
}

/** @throws Fault USAGE if no option is given that changes something. */
export function assertGiven(changes: object, options: string): void {
  if (Object.keys(changes).length === 0) throw new Fault('USAGE', `nothing to change: give ${options}`)
}
