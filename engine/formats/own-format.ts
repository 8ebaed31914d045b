import type { RE2JS } from 're2js'
import { compilePattern, type FormatRule, RULE_FIELDS, type RuleField, type RulePlaces } from '../store/secrets.ts'
import { Action, actionOf } from './action.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { takeUser } from './user-name.ts'

/** In FORMATS for its counts. A rule of the token, not a cue, selects it. */
export const ownFormat: LogFormat = { id: 'own-format', read: () => Verdict.unknown }

/** Longer lines are read by the other formats: a pattern takes about 0.2 us for each character. */
const LINE_BYTES_MAX = 16 * 1024
const VALUE_CHARS_MAX = 2048
const DEPTH_MAX = 16

type Values = Partial<Record<RuleField, string>>
/** The values of a line, or undefined if it does not have the form of the rule. */
type Find = (line: string) => Values | undefined

/** Reads the lines of an organization's custom format. Allocates for each line. */
export class OwnFormat {
  readonly rule: FormatRule
  readonly #find: Find
  readonly #blocked: ReadonlySet<string>

  constructor(rule: FormatRule) {
    this.rule = rule
    this.#find = finderOf(rule)
    this.#blocked = new Set(rule.blocked?.map((word) => word.toLowerCase()))
  }

  /** Unknown if the line does not have the form of the rule, or names no client. */
  read(line: LogLine, start: number, end: number): Verdict {
    if (end - start > LINE_BYTES_MAX) return Verdict.unknown
    line.reset()
    const values = this.#find(line.text(start, end))
    if (values?.client === undefined || values.host === undefined) return Verdict.unknown
    // After the line, which may itself be in the scratch area.
    const copy = new Copy(line, Math.max(line.unwrappedStart, end))
    if (!copy.put(values.client) || !line.takeClient(copy.start, copy.end)) {
      line.reset()
      return Verdict.unknown
    }
    if (values.time !== undefined && copy.put(values.time)) {
      if (line.takeTime(copy.start, copy.end) === TimeFound.impossible) return line.rejectTime()
    }
    if (values.action !== undefined && copy.put(values.action)) {
      const isBlocked = this.#blocked.has(values.action.trim().toLowerCase())
      line.action = isBlocked ? Action.blocked : actionOf(line.view, copy.start, copy.end)
    }
    if (values.user !== undefined && copy.put(values.user)) takeUser(line, copy.start, copy.end)
    if (values.bytes_sent !== undefined && copy.put(values.bytes_sent)) line.takeSent(copy.start, copy.end)
    if (values.bytes_received !== undefined && copy.put(values.bytes_received)) line.takeReceived(copy.start, copy.end)
    return copy.put(values.host) ? line.takeHost(copy.start, copy.end) : Verdict.noDomain
  }
}

/** Writes values to the scratch area of a line, one after the other. */
class Copy {
  start: number
  end: number
  readonly #line: LogLine

  constructor(line: LogLine, at: number) {
    this.#line = line
    this.start = at
    this.end = at
  }

  /** Returns false if there is no space. */
  put(value: string): boolean {
    const { bytes, scratchStart } = this.#line
    const text = value.slice(0, VALUE_CHARS_MAX).trim()
    this.start = this.end
    if (Buffer.byteLength(text) > scratchStart - this.start) return false
    this.end += Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).write(text, this.start)
    return true
  }
}

function finderOf(rule: FormatRule): Find {
  if ('pattern' in rule) return byPattern(compilePattern(rule.pattern))
  if ('json' in rule) return byPaths(rule.fields)
  return byColumns(rule.delimiter, rule.fields)
}

function byPattern(pattern: RE2JS): Find {
  const groups = Object.keys(pattern.namedGroups()) as RuleField[]
  return (line) => {
    const matcher = pattern.matcher(line)
    if (!matcher.find()) return undefined
    return Object.fromEntries(groups.map((group) => [group, matcher.group(group) ?? undefined]))
  }
}

/** The parts of a time are joined by blanks. */
function valuesOf<Place>(fields: RulePlaces<Place>, valueAt: (place: Place) => string | undefined): Values {
  const values: Values = {}
  for (const field of RULE_FIELDS) {
    const place = fields[field]
    if (place === undefined) continue
    const parts = (Array.isArray(place) ? (place as readonly Place[]) : [place as Place]).map(valueAt)
    if (parts.every((part) => part !== undefined)) values[field] = parts.join(' ')
  }
  return values
}

function byPaths(fields: RulePlaces<string>): Find {
  return (line) => {
    let object: unknown
    try {
      object = JSON.parse(line)
    } catch {
      return undefined
    }
    return valuesOf(fields, (path) => {
      const value = valueAt(object, path, DEPTH_MAX)
      return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
    })
  }
}

/** The value of a path: `a.b`, `a.0.b`, or a key that contains dots. */
function valueAt(object: unknown, path: string, depthLeft: number): unknown {
  if (typeof object !== 'object' || object === null || depthLeft === 0) return undefined
  if (Object.hasOwn(object, path)) return (object as Record<string, unknown>)[path]
  for (let dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1)) {
    const key = path.slice(0, dot)
    if (!Object.hasOwn(object, key)) continue
    const value = valueAt((object as Record<string, unknown>)[key], path.slice(dot + 1), depthLeft - 1)
    if (value !== undefined) return value
  }
  return undefined
}

function byColumns(delimiter: string, fields: RulePlaces<number>): Find {
  return (line) => {
    // An envelope. Its line is read next.
    if (line.startsWith('{"')) return undefined
    const columns = columnsOf(line, delimiter)
    return valuesOf(fields, (column) => columns[column - 1])
  }
}

/** Columns may be in quotes (RFC 4180 §2). Several blanks are one delimiter. */
function columnsOf(line: string, delimiter: string): string[] {
  const columns: string[] = []
  for (let at = 0; at <= line.length; ) {
    let end: number
    if (line[at] === '"') {
      let quote = at + 1
      while (quote < line.length && (line[quote] !== '"' || line[quote + 1] === '"'))
        quote += line[quote] === '"' ? 2 : 1
      columns.push(line.slice(at + 1, quote).replaceAll('""', '"'))
      end = line.indexOf(delimiter, quote)
    } else {
      end = line.indexOf(delimiter, at)
      columns.push(line.slice(at, end < 0 ? line.length : end))
    }
    if (end < 0) break
    at = end + delimiter.length
    if (delimiter === ' ') while (line[at] === ' ') at++
  }
  return columns
}
