import { isIP } from 'node:net'
import { isDeepStrictEqual, parseEnv } from 'node:util'
import { Argument, type Command, Option } from 'commander'
import { z } from 'zod'
import { Fault } from './error-codes.ts'
import { readInput } from './input-file.ts'
import { networkOf } from './network.ts'
import { nearestName } from './similar.ts'

/** The external names of a setting: a flag, an environment variable, or both; or an argument. */
export interface SettingNames {
  /**
   * In commander's notation: `--syslog-port <port>`, or `--no-https` for a switch that turns
   * something off. The flag of an array may be repeated.
   */
  readonly flag?: string
  readonly env?: string
  /** In commander's notation: `<name>`, `[name]`, `<file...>`. */
  readonly argument?: string
  /** One line for `--help` and the documentation: imperative, capitalized, without a period. */
  readonly about: string
  /** The name of the variable before it was renamed. */
  readonly formerly?: string
  /** When anyone sets it, for a setting that few need. Help lists these settings last. */
  readonly advanced?: string
  /** Describes the default if it depends on the machine. */
  readonly defaultAbout?: string
  /** The flag may be repeated. Its values are joined by commas. */
  readonly repeatable?: boolean
  /** Attributes of the flags that cannot be given together with this one. */
  readonly conflicts?: readonly string[]
  /** Never printed, even if invalid. */
  readonly secret?: boolean
}

const names = z.registry<SettingNames>()

/** A copy of a schema, with external names. */
export function setting<S extends z.ZodType>(schema: S, about: SettingNames): S {
  const own = schema.clone()
  names.add(own, about)
  return own
}

const WORDS_FOR_TRUE = new Set(['true', '1', 'yes', 'on'])
const WORDS_FOR_FALSE = new Set(['false', '0', 'no', 'off'])

/** An integer from `min` to `max` in decimal digits. */
export function wholeNumber(min: number, max: number) {
  const expected = `expected a whole number from ${min} to ${max}`
  return z
    .union(
      [
        z.number(),
        z
          .string()
          .regex(/^\d{1,15}$/, expected)
          .transform(Number),
      ],
      { error: expected },
    )
    .pipe(z.number().int(expected).min(min, expected).max(max, expected))
}

const PORT_MAX = 65535

/** A TCP or UDP port. With `orAny`, 0 lets the system choose one. */
export function portNumber(options: { orAny?: boolean } = {}) {
  return wholeNumber(options.orAny ? 0 : 1, PORT_MAX)
}

/** A port, or the word `off`. */
export function portOrOff() {
  const expected = `expected off or a port from 0 to ${PORT_MAX}`
  return z.union([z.literal('off'), portNumber({ orAny: true })], { error: expected })
}

/** Comma-separated ports; with `orOff`, the word `off` for none. */
export function portList(initial: readonly number[], { orOff = false } = {}) {
  const port = portNumber()
  const expected = `expected ${orOff ? 'off, or ' : ''}comma-separated ports from 1 to 65535`
  return z
    .string()
    .default(initial.join(','))
    .transform((text, context) => {
      if (orOff && text.trim().toLowerCase() === 'off') return []
      const ports = text.split(',').map((part) => port.safeParse(part.trim()))
      if (ports.every(({ success }) => success)) return ports.map(({ data }) => data as number)
      context.addIssue({ code: 'custom', message: expected })
      return z.NEVER
    })
}

/** A text that `read` understands; `read` returns undefined for all others. */
export function textOf<T>(read: (text: string) => T | undefined, expected: string) {
  return z.string().transform((text, context): T => {
    const value = read(text)
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: expected })
    return z.NEVER
  })
}

/** Like textOf, for comma-separated values. Empty: none. */
function listOf<T>(read: (text: string) => T | undefined, expected: string) {
  return textOf((text): readonly T[] | undefined => {
    const values = text.trim() === '' ? [] : text.split(',').map((part) => read(part.trim()))
    return values.every((value) => value !== undefined) ? values : undefined
  }, expected)
}

/** An address to listen on. */
export interface ListenAddress {
  /** '': any address. */
  readonly address: string
  /** 0: chosen by the system. */
  readonly port: number
}

/**
 * `off`, or comma-separated ports with optional addresses: `514`,
 * `192.0.2.1:514,[2001:db8::1]:5514`.
 */
export function listenAddresses() {
  return textOf((text): readonly ListenAddress[] | undefined => {
    if (text.trim().toLowerCase() === 'off') return []
    const addresses = text.split(',').map((part) => {
      const [, bracketed, plain, port = ''] = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(part.trim()) ?? []
      const address = bracketed ?? plain ?? ''
      const isAddress = address === '' || isIP(address) === (bracketed === undefined ? 4 : 6)
      return port !== '' && Number(port) <= PORT_MAX && isAddress ? { address, port: Number(port) } : undefined
    })
    return addresses.every((one) => one !== undefined) ? addresses : undefined
  }, 'expected off, or comma-separated ports such as 514, 192.0.2.1:514 or [2001:db8::1]:514')
}

/** Comma-separated hosts with ports, with or without `nats://`. Empty: none. */
export function brokerList() {
  return listOf((part) => {
    const host = part.replace(/^(nats|tls):\/\//i, '')
    return BROKER.test(host) ? host : undefined
  }, 'expected comma-separated brokers, such as nats://broker-1.example:4222')
}

const BROKER = /^(\[[0-9a-f:]{2,39}\]|[a-z0-9.-]{1,253})(:\d{1,5})?$/i
const HOST_NAME = /^(\*\.)?(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/
const HOST_NAME_MAX = 253

/** Comma-separated host names, whose first label may be `*`, and IP addresses. */
export function hostNames() {
  return listOf((part) => {
    const name = part.toLowerCase()
    return isIP(name) !== 0 || (name.length <= HOST_NAME_MAX && HOST_NAME.test(name)) ? name : undefined
  }, 'expected comma-separated host names or IP addresses, such as posture.example.com or 192.0.2.1')
}

/** Comma-separated networks and addresses. */
export function networkList() {
  return listOf(networkOf, 'expected comma-separated networks, such as 10.0.0.0/8 or 2001:db8::/32')
}

/** true, 1, yes, on, or false, 0, no, off, ignoring case. */
export function onOrOff() {
  return z.union([z.boolean(), z.string()]).transform((value, context) => {
    if (typeof value === 'boolean') return value
    const word = value.toLowerCase()
    if (WORDS_FOR_TRUE.has(word)) return true
    if (WORDS_FOR_FALSE.has(word)) return false
    context.addIssue({ code: 'custom', message: 'expected true or false' })
    return z.NEVER
  })
}

/** One of the given words, ignoring case. */
export function oneOf<const W extends readonly [string, ...string[]]>(words: W) {
  const expected = `expected one of ${words.join(', ')}`
  return z
    .string()
    .transform((word) => words.find((known) => known.toLowerCase() === word.toLowerCase()) ?? word)
    .pipe(z.enum(words, { error: expected }))
}

/**
 * The origin of a web page (RFC 6454): scheme, host and, unless it is the scheme's own, port. ''
 * for none.
 */
export function originOrNone() {
  return textOf((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    return text === '' || (url !== undefined && /^https?:$/.test(url.protocol) && url.origin === text)
      ? text
      : undefined
  }, 'expected an origin such as https://posture.example:8444')
}

/** A non-empty string. */
export function someText() {
  return z.string().min(1, 'expected some text, found none')
}

type SettingsSchema = z.ZodObject<z.ZodRawShape>

function namesOf(schema: z.ZodType): SettingNames | undefined {
  return names.get(schema)
}

export interface SettingRow extends SettingNames {
  readonly name: string
  readonly schema: z.ZodType
  /** In the form in which users write it, or undefined. */
  readonly default: unknown
  readonly required: boolean
}

/** The settings of a schema in order, for `--help` and the reference pages. */
export function settingRows(schema: SettingsSchema): SettingRow[] {
  const rows: SettingRow[] = []
  for (const [name, field] of Object.entries(schema.shape)) {
    const schema = field as z.ZodType
    const known = namesOf(schema)
    if (known === undefined) continue
    const parsed = schema.safeParse(undefined)
    rows.push({ ...known, name, schema, default: parsed.data, required: !parsed.success })
  }
  return rows
}

/** The names of settings that differ, as users know them. */
export function changedSettings(schema: SettingsSchema, before: object, after: object): string[] {
  const settingOf = (settings: object, name: string): unknown => (settings as Readonly<Record<string, unknown>>)[name]
  return settingRows(schema)
    .filter(({ name }) => !isDeepStrictEqual(settingOf(before, name), settingOf(after, name)))
    .map(({ flag, env, name }) => flag?.split(' ', 1)[0] ?? env ?? name)
}

/**
 * The default as help shows it. undefined: there is none, or the setting is a switch that is off.
 */
export function shownDefault(row: SettingRow): string | undefined {
  if (row.defaultAbout !== undefined) return row.defaultAbout
  const isEmptyList = Array.isArray(row.default) && row.default.length === 0
  return row.default === undefined || row.default === '' || isEmptyList || typeof row.default === 'boolean'
    ? undefined
    : `${row.default}`
}

/** What a value is in the end: without the default, and after the last transformation. */
function finalSchema(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPipe) return finalSchema(schema.out as z.ZodType)
  const isWrapper = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault
  return isWrapper ? finalSchema(schema.unwrap() as z.ZodType) : schema
}

/** The allowed values of a setting, or of its elements, if they are a fixed set. */
export function choicesOf(schema: z.ZodType): readonly string[] {
  const final = finalSchema(schema)
  if (final instanceof z.ZodArray) return choicesOf(final.element as z.ZodType)
  return final instanceof z.ZodEnum ? final.options.map(String) : []
}

/** The help of a setting. It ends with the variable, the choices and the default. */
function describe(row: SettingRow): string {
  const byDefault = shownDefault(row)
  const choices = row.env === undefined ? choicesOf(row.schema) : []
  const notes = [
    ...(row.env === undefined ? [] : [`env: ${row.env}`]),
    ...(choices.length === 0 ? [] : [`choices: ${choices.join(', ')}`]),
    // Long lists wrap at their spaces.
    ...(byDefault === undefined ? [] : [`default: ${byDefault.replaceAll(/,(?! )/g, ', ')}`]),
  ]
  return notes.length > 0 ? `${row.about} (${notes.join(', ')})` : row.about
}

/** The command-line option of a setting. */
export class SettingOption extends Option {
  readonly setting: SettingRow

  constructor(flag: string, row: SettingRow) {
    super(flag, describe(row))
    this.setting = row
    if (row.repeatable) this.argParser(joinValues)
    else if (!this.variadic && row.env === undefined && finalSchema(row.schema) instanceof z.ZodArray)
      this.argParser(collect)
    if (row.required && row.env === undefined) this.makeOptionMandatory()
    if (row.advanced !== undefined) this.helpGroup('Advanced options:')
    this.conflicts([...(row.conflicts ?? [])])
  }
}

/** The command-line argument of a setting. */
export class SettingArgument extends Argument {
  readonly setting: SettingRow

  constructor(term: string, row: SettingRow) {
    super(term, describe(row))
    this.setting = row
  }
}

function joinValues(value: string, before: unknown): string {
  return typeof before === 'string' ? `${before},${value}` : value
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Adds an option for each setting with a flag, and an argument for each other one that has a term. */
export function addSettingOptions(command: Command, schema: SettingsSchema): Command {
  for (const row of settingRows(schema)) {
    if (row.flag !== undefined) command.addOption(new SettingOption(row.flag, row))
    if (row.argument !== undefined) command.addArgument(new SettingArgument(row.argument, row))
  }
  return command
}

/**
 * Reads the settings. The command line takes precedence over the environment, which takes
 * precedence over the defaults.
 *
 * @throws Fault USAGE for the first invalid setting, with its flag or variable, the found and the
 *   expected value
 */
export function readSettings<S extends SettingsSchema>(
  schema: S,
  sources: { command?: Command; environment: NodeJS.ProcessEnv },
): z.output<S> {
  const given: Record<string, unknown> = {}
  const from: Record<string, string> = {}
  const values: unknown[] = [...(sources.command?.processedArgs ?? [])]
  for (const row of settingRows(schema)) {
    if (row.argument !== undefined) {
      const value = values.shift()
      if (value !== undefined) given[row.name] = value
      from[row.name] = row.argument.replaceAll(/[<>[\].]/g, '')
      continue
    }
    const option = row.flag === undefined ? undefined : new Option(row.flag)
    const attribute = option?.attributeName()
    if (attribute !== undefined && sources.command?.getOptionValueSourceWithGlobals(attribute) === 'cli') {
      given[row.name] = sources.command.optsWithGlobals()[attribute]
      from[row.name] = option?.long ?? row.name
      VARIABLE_OF.delete(from[row.name] ?? '')
      continue
    }
    const value = row.env === undefined ? undefined : sources.environment[row.env]
    if (value !== undefined && value !== '') {
      given[row.name] = value
      from[row.name] = row.env ?? row.name
      if (option?.long) VARIABLE_OF.set(option.long, from[row.name] ?? '')
    }
  }
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  throw new Fault('USAGE', describeIssue(schema, parsed.error, given, from))
}

/** The variables that gave settings of this process, by the flags that errors name. */
const VARIABLE_OF = new Map<string, string>()

/** An error that names a setting, with the name by which the user has set it. */
export function withNameAsGiven(message: string): string {
  return message.replace(/^--[\w-]+/, (flag) => VARIABLE_OF.get(flag) ?? flag)
}

function describeIssue(
  schema: SettingsSchema,
  error: z.ZodError,
  given: Record<string, unknown>,
  from: Record<string, string>,
): string {
  const issue = error.issues[0]
  const name = String(issue?.path[0] ?? '')
  const row = settingRows(schema).find((each) => each.name === name)
  if (row === undefined) return issue?.message ?? 'invalid settings'
  if (!(name in given)) {
    const names = [row.flag?.split(/[ ,]/)[0], row.env].filter((each) => each !== undefined)
    return `${names.join(' or ')} is required: ${row.about.split(';')[0]}`
  }
  const value = given[name]
  // Of an array, the element that is wrong.
  const wrong = Array.isArray(value) ? value[Number(issue?.path[1])] : value
  const found = row.secret ? '' : `, found ${JSON.stringify(wrong)}`
  return `${from[name]}: ${issue?.message}${found}`
}

/** The parsed option. */
export interface SettingsFileOption {
  readonly settingsFile?: string
}

const SETTINGS_BYTES_MAX = 1024 * 1024
/** Lines without a setting. systemd, which may read the same file, knows both marks of comments. */
const NO_SETTING = /^\s*($|[#;])/
const SETTING = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=/
/** Variables of Node, of its libraries and of the executable: systemd sets them from the file. */
const NOT_OURS = /^(NODE_\w+|POSTURE_\w+|UV_\w+|SSL_CERT_\w+|TZ|(HTTPS?|ALL|NO)_PROXY)$/i

export function addSettingsFileOption(command: Command): Command {
  return command.option(
    '--settings-file <file>',
    'Read NAME=value lines from this file, which override the environment',
  )
}

/**
 * Returns the environment, overridden by the settings file.
 *
 * @param schema all settings of the program, because its commands share the file
 * @throws Fault USAGE if the file cannot be read, or a line is not a setting.
 */
export function environmentWith({ settingsFile }: SettingsFileOption, schema: SettingsSchema): NodeJS.ProcessEnv {
  if (settingsFile === undefined) return process.env
  const text = readInput(settingsFile, SETTINGS_BYTES_MAX, { what: '--settings-file', code: 'USAGE' }).toString()
  const rows = settingRows(schema)
  const lines = text.split('\n')
  const faults = lines.flatMap((line, index) => {
    const fault = lineFault(line, rows)
    return fault === undefined ? [] : [`${settingsFile}:${index + 1}: ${fault}`]
  })
  if (faults.length > 0) throw new Fault('USAGE', faults.join('\n'))
  // parseEnv joins a comment of systemd with the next line.
  return { ...process.env, ...parseEnv(lines.filter((line) => !NO_SETTING.test(line)).join('\n')) }
}

/** Does not quote the line, which may be a secret. */
function lineFault(line: string, rows: readonly SettingRow[]): string | undefined {
  if (NO_SETTING.test(line)) return undefined
  const name = SETTING.exec(line)?.[1]
  if (name === undefined) return 'expected NAME=value'
  const known = rows.flatMap(({ env }) => env ?? [])
  if (known.includes(name) || NOT_OURS.test(name)) return undefined
  const renamed = rows.find(({ formerly }) => formerly === name)
  if (renamed !== undefined) return `${name} is now ${renamed.env}`
  const nearest = nearestName(name.toUpperCase(), known)
  return `unknown setting ${name}${nearest === undefined ? '' : `. Did you mean ${nearest}?`}`
}
