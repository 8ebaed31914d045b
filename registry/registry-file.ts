import { readFileSync, statSync } from 'node:fs'
import { z } from 'zod'
import { type PlatformEntry, platformEntry } from './platform.ts'
import { provenanceFields } from './provenance.ts'
import { riskClass } from './risk-class.ts'
import { issueText, platformId } from './schema-parts.ts'
import { readYaml } from './yaml.ts'

/** Larger files are a mistake: the built-in registry has 0.5 MB, 1,000,000 domains take 90 MB. */
export const REGISTRY_FILE_BYTES_MAX = 128 * 1024 * 1024
/** An operator's file has any length. Other texts are short. */
const YAML_LIMITS = { tokensMax: Number.POSITIVE_INFINITY, aliasesMax: 100 }

/**
 * An error in a registry file: the file, the entry (a platform's ID, or a position such as
 * `platforms[3]`) and the field (`domains[0].match`). Entry and field are empty if the error
 * concerns the whole file. The active catalog is not affected.
 */
export class RegistryFileError extends Error {
  readonly file: string
  readonly entry: string
  readonly field: string
  readonly problem: string

  /** @param options with the line of the error, from 1, for the message */
  constructor(
    file: string,
    entry: string,
    field: string,
    problem: string,
    options?: ErrorOptions & { readonly line?: number },
  ) {
    const place = options?.line === undefined ? file : `${file}:${options.line}`
    super([place, entry, field, problem].filter((part) => part !== '').join(': '), options)
    this.name = 'RegistryFileError'
    this.file = file
    this.entry = entry
    this.field = field
    this.problem = problem
  }

  /** The same error with its line, from 1, as `FILE:LINE: ...`. */
  atLine(line: number): RegistryFileError {
    const problem = this.problem.replace(/ at line \d+(, column \d+)?:?$/, '')
    return new RegistryFileError(this.file, this.entry, this.field, problem, { cause: this.cause, line })
  }
}

/** Changes a platform: fields present replace those of the built-in entry, `domains` as a whole. */
export const changedEntry = platformEntry.partial().extend({ id: platformId })
export type ChangedEntry = z.infer<typeof changedEntry>

/** The operator's file: platforms to add or change, and IDs of built-in platforms to disable. */
export interface RegistryFile {
  readonly platforms: readonly ChangedEntry[]
  readonly disable: readonly string[]
}

const envelope = z.strictObject({
  platforms: z.array(z.unknown()).default([]),
  disable: z.array(platformId).default([]),
})

/** @param read reads the file; by default with the rights of this process */
export function readRegistryFile(file: string, read: (file: string) => string = boundedText): RegistryFile {
  return registryFileOfText(file, registryFileText(file, read))
}

/** A registry file whose text was read. Its errors name the line. @throws RegistryFileError. */
export function registryFileOfText(file: string, text: string): RegistryFile {
  try {
    return registryFileOf(file, parseDocument(file, text, isJson(file)))
  } catch (error) {
    const line = error instanceof RegistryFileError ? lineOfError(text, error) : undefined
    throw line === undefined ? error : (error as RegistryFileError).atLine(line)
  }
}

/** A registry file that is not on disk. `name` is its name in errors. @throws RegistryFileError. */
export function readRegistryText(name: string, text: string): RegistryFile {
  return registryFileOf(name, parseDocument(name, text, text.trimStart().startsWith('{')))
}

/** Reads a registry file, and returns all errors of its entries instead of throwing the first. */
export function readRegistryEntries(
  name: string,
  text: string,
): { readonly changes: RegistryFile | undefined; readonly errors: readonly RegistryFileError[] } {
  const errors: RegistryFileError[] = []
  try {
    const isJson = text.trimStart().startsWith('{')
    const parsed = envelope.safeParse(parseDocument(name, text, isJson))
    if (!parsed.success) throw faultOf(name, '', parsed.error)
    const platforms = parsed.data.platforms.flatMap((raw, index): ChangedEntry[] => {
      const entry = changedEntry.safeParse(raw)
      if (entry.success) return [entry.data]
      for (const issue of entry.error.issues) {
        errors.push(faultOf(name, entryOf(raw, index), new z.ZodError([issue])))
      }
      return []
    })
    if (errors.length === 0) return { changes: { platforms, disable: parsed.data.disable }, errors }
  } catch (error) {
    if (!(error instanceof RegistryFileError)) throw error
    errors.push(error)
  }
  return { changes: undefined, errors }
}

function registryFileOf(file: string, document: unknown): RegistryFile {
  const parsed = envelope.safeParse(document)
  if (!parsed.success) throw faultOf(file, '', parsed.error)
  const platforms = parsed.data.platforms.map((raw, index) => checkEntry(file, raw, index, changedEntry))
  return { platforms, disable: parsed.data.disable }
}

export const builtInEntry = platformEntry.extend({
  ...provenanceFields,
  risk: z.strictObject({ class: riskClass, why: platformEntry.shape.risk.shape.why }),
})
export type BuiltInEntry = z.infer<typeof builtInEntry>

/** Reads a built-in file: a list of complete entries. */
export function readPlatformFile(file: string): BuiltInEntry[] {
  return readList(file, builtInEntry)
}

/** Reads a list of entries. @throws RegistryFileError */
export function readList<T>(file: string, schema: z.ZodType<T>): T[] {
  const document = readDocument(file)
  if (!Array.isArray(document)) throw new RegistryFileError(file, '', '', 'expected a list')
  return document.map((raw, index) => checkEntry(file, raw, index, schema))
}

/** Checks that a new platform has every field. The error names the missing one. */
export function completeEntry(file: string, entry: ChangedEntry): PlatformEntry {
  return checkEntry(file, entry, 0, platformEntry)
}

/** Whether an entry that was checked has every field, so that it can be a platform by itself. */
export function isCompleteEntry(entry: ChangedEntry): entry is PlatformEntry {
  return ENTRY_FIELDS.every((field) => entry[field] !== undefined)
}

const ENTRY_FIELDS = Object.keys(platformEntry.shape) as (keyof PlatformEntry)[]

function readDocument(file: string): unknown {
  return parseDocument(file, registryFileText(file, boundedText), isJson(file))
}

function isJson(file: string): boolean {
  return /\.json$/i.test(file)
}

/** @throws RegistryFileError */
function registryFileText(file: string, read: (file: string) => string): string {
  try {
    return read(file)
  } catch (error) {
    throw documentFault(file, error)
  }
}

function boundedText(file: string): string {
  if (statSync(file).size > REGISTRY_FILE_BYTES_MAX) throw new Error(`larger than ${REGISTRY_FILE_BYTES_MAX} bytes`)
  return readFileSync(file, 'utf8')
}

function parseDocument(file: string, text: string, isJson: boolean): unknown {
  try {
    // JSON.parse reads JSON: a YAML parser takes 20 times as long, and an operator's list may be
    // long.
    return isJson ? JSON.parse(text) : readYaml(text, YAML_LIMITS).value
  } catch (error) {
    throw documentFault(file, error)
  }
}

/** The text of Node names a system call and repeats the path. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOENT: 'no such file',
}

function documentFault(file: string, error: unknown): RegistryFileError {
  const { code = '', message } = error as NodeJS.ErrnoException
  const problem = SYSTEM_ERRORS[code] ?? message.split('\n')[0]?.replace(`${file}: `, '') ?? ''
  return new RegistryFileError(file, '', '', problem, { cause: error })
}

function checkEntry<T>(file: string, raw: unknown, index: number, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  throw faultOf(file, entryOf(raw, index), parsed.error)
}

/** The name of an entry in errors. */
function entryOf(raw: unknown, index: number): string {
  const id = typeof raw === 'object' && raw !== null && 'id' in raw && typeof raw.id === 'string' ? raw.id : ''
  return platformId.safeParse(id).success ? id : `platforms[${index}]`
}

/**
 * The line of a registry file, from 1, where an error is; undefined if the whole file is wrong.
 * Reads the text again, because only few files have an error.
 */
export function lineOfError(text: string, error: RegistryFileError): number | undefined {
  const [atText] = /(?<=\bline )\d+/.exec(error.message) ?? []
  if (atText !== undefined && error.entry === '') return Number(atText)
  // Of JSON.parse.
  const [position] = /(?<=\bat position )\d+/.exec(error.message) ?? []
  if (position !== undefined && error.entry === '') return text.slice(0, Number(position)).split('\n').length
  if (error.entry === '' && error.field === '' && !error.message.endsWith('is not valid JSON')) return undefined
  try {
    const yaml = readYaml(text, YAML_LIMITS)
    return yaml.lineOf(pathOf(error, yaml.value))
  } catch {
    // JSON with an error, which is no YAML either.
    return undefined
  }
}

/** Where an error is in the document: `['platforms', 3, 'domains', 0, 'match']`. */
function pathOf({ entry, field }: RegistryFileError, document: unknown): (string | number)[] {
  const [index] = /(?<=^platforms\[)\d+(?=\]$)/.exec(entry) ?? []
  const { platforms } = (document ?? {}) as { readonly platforms?: readonly { readonly id?: unknown }[] }
  // The later one of two entries with one id is the wrong one.
  const at = index === undefined && Array.isArray(platforms) ? platforms.findLastIndex(({ id }) => id === entry) : index
  const inField = Array.from(field.matchAll(/[^.[\]]+/g), ([part]) => (/^\d+$/.test(part) ? Number(part) : part))
  return at === undefined || Number(at) < 0 ? inField : ['platforms', Number(at), ...inField]
}

function faultOf(file: string, entry: string, error: z.ZodError): RegistryFileError {
  const [first, ...others] = error.issues
  if (first === undefined) throw error
  const unknownKey = first.code === 'unrecognized_keys' ? first.keys.slice(0, 1) : []
  const field = [...first.path, ...unknownKey]
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : at === 0 ? String(key) : `.${String(key)}`))
    .join('')
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return new RegistryFileError(file, entry, field, issueText(first) + more)
}
