import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'

const require = createRequire(import.meta.url)

/** What a rule finds in a line. The client and the host make a line a request. */
export const RULE_FIELDS = ['time', 'client', 'host', 'user', 'action', 'bytes_sent', 'bytes_received'] as const
export type RuleField = (typeof RULE_FIELDS)[number]

/** Where each field is. A time may have several parts: a date and a time of day. */
export interface RulePlaces<Place> {
  readonly time?: Place | readonly Place[] | undefined
  readonly client: Place
  readonly host: Place
  readonly user?: Place | undefined
  readonly action?: Place | undefined
  readonly bytes_sent?: Place | undefined
  readonly bytes_received?: Place | undefined
}

interface NamedRule {
  readonly name: string
  /** Values of `action` that mean that the request was blocked, in addition to the known words. */
  readonly blocked?: readonly string[] | undefined
}

/** How the lines of a format without a parser are read: by columns, paths or named groups. */
export type FormatRule = NamedRule &
  (
    | { readonly delimiter: string; readonly fields: RulePlaces<number> }
    | { readonly json: true; readonly fields: RulePlaces<string> }
    | { readonly pattern: string }
  )

/**
 * Compiles a regular expression that matches in linear time (RE2), so that no line can stop ingest.
 * Throws if it is invalid.
 */
export function compilePattern(expression: string): RE2JS {
  // 100 kB of code, which only such rules need.
  const { RE2JS: engine } = require('re2js') as typeof import('re2js')
  return engine.compile(expression)
}
