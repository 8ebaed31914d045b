import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { z } from 'zod'
import { type PlatformEntry, platformEntry, platformId } from './platform.ts'

const require = createRequire(import.meta.url)

/** Larger files are a mistake: the built-in registry has 0.5 MB, 1,000,000 domains have 90 MB. */
export const REGISTRY_FILE_BYTES_MAX = 128 * 1024 * 1024

/**
 * What is wrong in a registry file, and where: the file, the entry (a platform's id, or its place such as `platforms[3]`) and the
 * field (`domains[0].match`), both empty where the fault is the file's. The catalog in force is not touched by it.
 */
export class RegistryFileError extends Error {
  readonly file: string
  readonly entry: string
  readonly field: string

  constructor(file: string, entry: string, field: string, problem: string, options?: ErrorOptions) {
    super([file, entry, field, problem].filter((part) => part !== '').join(': '), options)
    this.name = 'RegistryFileError'
    this.file = file
    this.entry = entry
    this.field = field
  }
}

/** Changes one platform: fields that are given replace those of the built-in entry, `domains` as a whole. */
const changedEntry = platformEntry.partial().extend({ id: platformId })
export type ChangedEntry = z.infer<typeof changedEntry>

/** The operator's file: platforms to add or change, and ids of built-in platforms to leave out. */
export interface RegistryFile {
  readonly platforms: readonly ChangedEntry[]
  readonly disable: readonly string[]
}

const envelope = z.strictObject({
  platforms: z.array(z.unknown()).default([]),
  disable: z.array(platformId).default([]),
})

export function readRegistryFile(file: string): RegistryFile {
  const parsed = envelope.safeParse(readDocument(file))
  if (!parsed.success) throw faultOf(file, '', parsed.error)
  const platforms = parsed.data.platforms.map((raw, index) => checkEntry(file, raw, index, changedEntry))
  return { platforms, disable: parsed.data.disable }
}

/** One of the built-in files: a list of whole entries. */
export function readPlatformFile(file: string): PlatformEntry[] {
  const document = readDocument(file)
  if (!Array.isArray(document)) throw new RegistryFileError(file, '', '', 'expected a list of platforms')
  return document.map((raw, index) => checkEntry(file, raw, index, platformEntry))
}

/** A new platform needs every field; says which one is missing. */
export function wholeEntry(file: string, entry: ChangedEntry): PlatformEntry {
  return checkEntry(file, entry, 0, platformEntry)
}

function readDocument(file: string): unknown {
  try {
    if (statSync(file).size > REGISTRY_FILE_BYTES_MAX) throw new Error(`larger than ${REGISTRY_FILE_BYTES_MAX} bytes`)
    const text = readFileSync(file, 'utf8')
    // JSON is read by JSON.parse: a YAML parser takes 20 times as long, and an operator's list may be long.
    if (/\.json$/i.test(file)) return JSON.parse(text)
    // No aliases beyond a few: a file of 1 kB must not become a gigabyte.
    // Only here: every start would pay 16 ms for what few operators have.
    const { parse } = require('yaml') as typeof import('yaml')
    return parse(text, { maxAliasCount: 100, prettyErrors: true })
  } catch (error) {
    const problem = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    throw new RegistryFileError(file, '', '', problem, { cause: error })
  }
}

function checkEntry<T>(file: string, raw: unknown, index: number, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(raw)
  if (parsed.success) return parsed.data
  const id = typeof raw === 'object' && raw !== null && 'id' in raw && typeof raw.id === 'string' ? raw.id : ''
  throw faultOf(file, platformId.safeParse(id).success ? id : `platforms[${index}]`, parsed.error)
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
