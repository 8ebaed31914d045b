import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { CST, Document, LineCounter } from 'yaml'
import { z } from 'zod'
import { type PlatformEntry, platformEntry } from './platform.ts'
import { platformId } from './platform-id.ts'
import { provenanceFields } from './provenance.ts'

const require = createRequire(import.meta.url)

/** Larger files are a mistake: the built-in registry has 0.5 MB, 1,000,000 domains take 90 MB. */
export const REGISTRY_FILE_BYTES_MAX = 128 * 1024 * 1024

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

  constructor(file: string, entry: string, field: string, problem: string, options?: ErrorOptions) {
    super([file, entry, field, problem].filter((part) => part !== '').join(': '), options)
    this.name = 'RegistryFileError'
    this.file = file
    this.entry = entry
    this.field = field
    this.problem = problem
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

export function readRegistryFile(file: string): RegistryFile {
  return registryFileOf(file, readDocument(file))
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

export const builtInEntry = platformEntry.extend(provenanceFields)
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
  return parseDocument(file, registryFileText(file), /\.json$/i.test(file))
}

/** The text of a registry file. @throws RegistryFileError. */
export function registryFileText(file: string): string {
  try {
    if (statSync(file).size > REGISTRY_FILE_BYTES_MAX) throw new Error(`larger than ${REGISTRY_FILE_BYTES_MAX} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw documentFault(file, error)
  }
}

function parseDocument(file: string, text: string, isJson: boolean): unknown {
  try {
    // JSON.parse reads JSON: a YAML parser takes 20 times as long, and an operator's list may be
    // long.
    if (isJson) return JSON.parse(text)
    // The limit on aliases prevents a file of 1 kB from expanding to a gigabyte. The parser is
    // loaded here, because few operators have such a file and loading takes 16 ms.
    const yaml = require('yaml') as Yaml
    const lines = new yaml.LineCounter()
    const document = parseYaml(yaml, text, lines)
    const [fault] = document.errors
    if (fault === undefined) return document.toJS({ maxAliasCount: 100 })
    const { line, col } = lines.linePos(fault.pos[0])
    throw new Error(`${fault.message} at line ${line}, column ${col}:`)
  } catch (error) {
    throw documentFault(file, error)
  }
}

type Yaml = typeof import('yaml')

/** Parses YAML in time linear in its length, whatever the text is. */
function parseYaml(yaml: Yaml, text: string, lineCounter: LineCounter): Document {
  checkShape(yaml, text)
  const { stackTraceLimit } = Error
  // A text can have an error for each character, and each would capture a stack.
  Error.stackTraceLimit = 0
  try {
    // Pretty errors would copy a part of the text for each of these errors.
    return yaml.parseDocument(text, { lineCounter, prettyErrors: false })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** Levels of nesting. A registry file has 6. */
const DEPTH_MAX = 32
/** Keys of one map. A platform has at most 20. */
const KEYS_MAX = 100

/**
 * Checks the shape by the parser's first stage, which keeps a stack of its own and is linear. The
 * second stage calls itself for each level, and V8 ends the process if a regular expression is
 * compiled where no stack is left. It also compares each key of a map with all others of the map:
 * 12,000 keys would take seconds.
 */
function checkShape({ Lexer, Parser }: Yaml, text: string): void {
  const parser = new Parser()
  const refuse = (what: string): never => {
    const line = text.slice(0, parser.offset).split('\n').length
    throw new Error(`more than ${what} at line ${line}`)
  }
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > DEPTH_MAX) refuse(`${DEPTH_MAX} levels of nesting`)
    if (parser.stack.some((token) => keysOf(token) > KEYS_MAX)) refuse(`${KEYS_MAX} keys in one map`)
  }
}

/** The keys of a map that were read so far. */
function keysOf(token: CST.Token): number {
  const isMap = token.type === 'block-map' || (token.type === 'flow-collection' && token.start.source === '{')
  return isMap ? token.items.length : 0
}

function documentFault(file: string, error: unknown): RegistryFileError {
  const problem = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
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
    return lineOfEntry(text, error)
  } catch {
    // Of a shape that is refused, or with aliases that are unknown or too many.
    return undefined
  }
}

function lineOfEntry(text: string, error: RegistryFileError): number | undefined {
  const yaml = require('yaml') as Yaml
  const lines = new yaml.LineCounter()
  const document = parseYaml(yaml, text, lines)
  const [fault] = document.errors
  if (fault !== undefined) return lines.linePos(fault.pos[0]).line
  const path = pathOf(error, document.toJS({ maxAliasCount: 100 }))
  // A missing field has no place of its own: its entry has.
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { readonly range?: readonly number[] } | undefined
    if (node?.range?.[0] !== undefined) return lines.linePos(node.range[0]).line
  }
  return undefined
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
  const problem = first.message.replace(/^Invalid input: expected (.*), received undefined$/, 'is missing; expected $1')
  return new RegistryFileError(file, entry, field, problem + more)
}
