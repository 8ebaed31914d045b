import { actionOf } from './action.ts'
import {
  COLON,
  DOT,
  digitsEnd,
  isDigit,
  isText,
  lastIndexOfByte,
  NOT_FOUND,
  OPEN_BRACKET,
  QUOTE,
  skipBlanks,
  textAt,
  tokenEnd,
} from './bytes.ts'
import { jsonLogs } from './json-logs.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { TextSearch } from './text-search.ts'

/*
 * The `log` plugin of CoreDNS in its common format, with query and answer in one line:
 *
 *   [INFO] 192.0.2.45:51234 - 47 "A IN api.openai.com. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s
 *
 * https://coredns.io/plugins/log/
 */
export const coreDns: LogFormat = { id: 'coredns', detect, parse }

const INFO = '[INFO] '
const INFO_OBJECT = '[INFO] {'
const INFO_SEARCH = new TextSearch(INFO)
/** Container runtimes put a time and the name of a stream first. */
const PREFIX_BYTES_MAX = 96
/** Between the address and the question: a dash, then the identifier. */
const QUESTION_CUE = ' - '
const LEVELS = ['[INFO] ', '[WARNING] ', '[ERROR] ', '[DEBUG] ', '[FATAL] '] as const

function detect({ view }: LogLine, start: number, end: number): boolean {
  return questionAt(view, start, end) >= 0 || objectAt(view, start, end) >= 0 || isSystemEvent(view, start, end)
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const object = objectAt(view, start, end)
  if (object >= 0) return jsonLogs.parse(line, object, end)
  const type = questionAt(view, start, end)
  if (type < 0) return Verdict.skip
  const info = INFO_SEARCH.find(view, start, end)
  if (info > start && line.takeTime(start, info) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  const client = info + INFO.length
  const colon = lastIndexOfByte(view, client, tokenEnd(view, client, end), COLON)
  if (!line.takeClient(client, colon)) return line.reject('client: expected an address and a port')
  const classAt = skipBlanks(view, tokenEnd(view, type, end), end)
  const classEnd = tokenEnd(view, classAt, end)
  const name = skipBlanks(view, classEnd, end)
  const nameEnd = tokenEnd(view, name, end)
  if (nameEnd === name || view.getUint8(nameEnd - 1) !== DOT) return line.reject('name: expected a trailing dot')
  if (!isText(view, classAt, classEnd, 'IN')) return Verdict.skip
  const quote = lastIndexOfByte(view, nameEnd, end, QUOTE)
  if (quote > 0) {
    const code = skipBlanks(view, quote + 1, end)
    line.action = actionOf(view, code, tokenEnd(view, code, end))
  }
  return line.takeName(name, nameEnd)
}

/** The offset after the quote of `[INFO] ADDRESS:PORT - ID "`, or NOT_FOUND. */
function questionAt(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + PREFIX_BYTES_MAX)
  const info = INFO_SEARCH.find(view, start, limit)
  if (info < 0) return NOT_FOUND
  const stop = tokenEnd(view, info + INFO.length, limit)
  if (!textAt(view, stop, end, QUESTION_CUE) || !isDigit(view.getUint8(stop - 1))) return NOT_FOUND
  const id = stop + QUESTION_CUE.length
  const idEnd = digitsEnd(view, id, end)
  return idEnd > id && textAt(view, idEnd, end, ' "') ? idEnd + 2 : NOT_FOUND
}

/** The offset of the JSON object that a configured format writes: `[INFO] {`, or NOT_FOUND. */
function objectAt(view: DataView, start: number, end: number): number {
  const object = start + INFO.length
  return textAt(view, start, end, INFO_OBJECT) ? object : NOT_FOUND
}

/** `[ERROR] plugin/errors: 2 api.openai.com. A: ...`, `[INFO] plugin/reload: ...` */
function isSystemEvent(view: DataView, start: number, end: number): boolean {
  if (end - start < 16 || view.getUint8(start) !== OPEN_BRACKET) return false
  for (let index = 0; index < LEVELS.length; index++) {
    const level = LEVELS[index] ?? ''
    if (!textAt(view, start, end, level)) continue
    return textAt(view, start + level.length, end, 'plugin/')
  }
  return false
}
