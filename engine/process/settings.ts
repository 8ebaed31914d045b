import { isIP } from 'node:net'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import { Fault } from './error-codes.ts'
import { type Network, networkOf } from './network.ts'

/** The external names of a setting: a flag, an environment variable, or both. */
export interface SettingNames {
  /**
   * In commander's notation: `--syslog-port <port>`, or `--no-https` for a switch that turns
   * something off.
   */
  readonly flag?: string
  readonly env?: string
  /** One line for `--help` and the documentation: imperative, capitalized, without a period. */
  readonly about: string
  /** Describes the default if it depends on the machine. */
  readonly defaultAbout?: string
  /** The flag may be repeated. Its values are joined by commas. */
  readonly repeatable?: boolean
  /** Never printed, even if invalid. */
  readonly secret?: boolean
}

const names = z.registry<SettingNames>()

/** Attaches external names to a schema. */
export function setting<S extends z.ZodType>(schema: S, about: SettingNames): S {
  names.add(schema, about)
  return schema
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

/** Comma-separated ports. */
export function portList(initial: readonly number[]) {
  const port = portNumber()
  return z
    .string()
    .default(initial.join(','))
    .transform((text, context) => {
      const ports = text.split(',').map((part) => port.safeParse(part.trim()))
      if (ports.every(({ success }) => success)) return ports.map(({ data }) => data as number)
      context.addIssue({ code: 'custom', message: 'expected comma-separated ports from 1 to 65535' })
      return z.NEVER
    })
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
  const expected = 'expected off, or comma-separated ports such as 514, 192.0.2.1:514 or [2001:db8::1]:514'
  return z.string().transform((text, context): readonly ListenAddress[] => {
    if (text.trim().toLowerCase() === 'off') return []
    const addresses = text.split(',').map((part) => {
      const [, bracketed, plain, port = ''] = /^(?:(?:\[([^\]]+)\]|([^:[\]]+)):)?(\d{1,5})$/.exec(part.trim()) ?? []
      const address = bracketed ?? plain ?? ''
      const isAddress = address === '' || isIP(address) === (bracketed === undefined ? 4 : 6)
      return port !== '' && Number(port) <= PORT_MAX && isAddress ? { address, port: Number(port) } : undefined
    })
    if (addresses.every((one) => one !== undefined)) return addresses
    context.addIssue({ code: 'custom', message: expected })
    return z.NEVER
  })
}

/** Comma-separated hosts with ports, with or without `nats://`. Empty: none. */
export function brokerList() {
  const expected = 'expected comma-separated brokers, such as nats://broker-1.example:4222'
  return z.string().transform((text, context): readonly string[] => {
    if (text.trim() === '') return []
    const brokers = text.split(',').map((part) => {
      const host = part.trim().replace(/^(nats|tls):\/\//i, '')
      return BROKER.test(host) ? host : undefined
    })
    if (brokers.every((broker) => broker !== undefined)) return brokers
    context.addIssue({ code: 'custom', message: expected })
    return z.NEVER
  })
}

const BROKER = /^(\[[0-9a-f:]{2,39}\]|[a-z0-9.-]{1,253})(:\d{1,5})?$/i
const HOST_NAME = /^(\*\.)?(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*$/
const HOST_NAME_MAX = 253

/** Comma-separated host names, whose first label may be `*`, and IP addresses. */
export function hostNames() {
  const expected = 'expected comma-separated host names or IP addresses, such as posture.example.com or 192.0.2.1'
  return z.string().transform((text, context): readonly string[] => {
    if (text.trim() === '') return []
    const names = text.split(',').map((name) => name.trim().toLowerCase())
    if (names.every((name) => isIP(name) !== 0 || (name.length <= HOST_NAME_MAX && HOST_NAME.test(name)))) return names
    context.addIssue({ code: 'custom', message: expected })
    return z.NEVER
  })
}

/** Comma-separated networks and addresses. */
export function networkList() {
  const expected = 'expected comma-separated networks, such as 10.0.0.0/8 or 2001:db8::/32'
  return z.string().transform((text, context): readonly Network[] => {
    if (text.trim() === '') return []
    const networks = text.split(',').map((part) => networkOf(part.trim()))
    if (networks.every((network) => network !== undefined)) return networks
    context.addIssue({ code: 'custom', message: expected })
    return z.NEVER
  })
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
  return z.string().transform((text, context) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (text === '' || (url !== undefined && /^https?:$/.test(url.protocol) && url.origin === text)) return text
    context.addIssue({ code: 'custom', message: 'expected an origin such as https://posture.example:8444' })
    return z.NEVER
  })
}

/** A non-empty string. */
export function someText() {
  return z.string().min(1, 'expected some text, found none')
}

type SettingsSchema = z.ZodObject<z.ZodRawShape>

function namesOf(schema: z.ZodType): SettingNames | undefined {
  return names.get(schema)
}

/** The default in the form in which users write it, or undefined. */
function defaultOf(schema: z.ZodType): unknown {
  const parsed = schema.safeParse(undefined)
  return parsed.success ? parsed.data : undefined
}

export interface SettingRow extends SettingNames {
  readonly name: string
  readonly schema: z.ZodType
  readonly default: unknown
}

/** The settings of a schema in order, for `--help` and the reference pages. */
export function settingRows(schema: SettingsSchema): SettingRow[] {
  const rows: SettingRow[] = []
  for (const [name, field] of Object.entries(schema.shape)) {
    const schema = field as z.ZodType
    const known = namesOf(schema)
    if (known !== undefined) rows.push({ ...known, name, schema, default: defaultOf(schema) })
  }
  return rows
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

/** The command-line option of a setting. Its description ends with the variable and the default. */
export class SettingOption extends Option {
  readonly setting: SettingRow

  constructor(flag: string, row: SettingRow) {
    const byDefault = shownDefault(row)
    const notes = [
      ...(row.env === undefined ? [] : [`env: ${row.env}`]),
      // Long lists wrap at their spaces.
      ...(byDefault === undefined ? [] : [`default: ${byDefault.replaceAll(/,(?! )/g, ', ')}`]),
    ]
    super(flag, notes.length > 0 ? `${row.about} (${notes.join(', ')})` : row.about)
    this.setting = row
    if (row.repeatable) this.argParser(joinValues)
  }
}

function joinValues(value: string, before: unknown): string {
  return typeof before === 'string' ? `${before},${value}` : value
}

/** Adds an option for each setting with a flag. */
export function addSettingOptions(command: Command, schema: SettingsSchema): Command {
  for (const row of settingRows(schema)) {
    if (row.flag !== undefined) command.addOption(new SettingOption(row.flag, row))
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
  for (const row of settingRows(schema)) {
    const option = row.flag === undefined ? undefined : new Option(row.flag)
    const attribute = option?.attributeName()
    if (attribute !== undefined && sources.command?.getOptionValueSourceWithGlobals(attribute) === 'cli') {
      given[row.name] = sources.command.optsWithGlobals()[attribute]
      from[row.name] = option?.long ?? row.name
      continue
    }
    const value = row.env === undefined ? undefined : sources.environment[row.env]
    if (value !== undefined && value !== '') {
      given[row.name] = value
      from[row.name] = row.env ?? row.name
    }
  }
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  throw new Fault('USAGE', describeIssue(schema, parsed.error, given, from))
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
  const found = row.secret ? '' : `, found ${JSON.stringify(given[name])}`
  return `${from[name]}: ${issue?.message}${found}`
}
