import { Action, actionOf } from './action.ts'
import {
  ByteSet,
  COMMA,
  HASH,
  indexOfByte,
  indexOfText,
  isTextIgnoreCase,
  LESS,
  NOT_FOUND,
  OPEN_BRACE,
  OPEN_BRACKET,
  PIPE,
  QUOTE,
  SEMICOLON,
  skipBlanks,
  TAB,
  textAtIgnoreCase,
} from './bytes.ts'
import {
  CellKind,
  CsvLearning,
  CsvTable,
  cellKind,
  isOtherRow,
  LEARNED_COLUMNS_MAX,
  tableOfHeader,
} from './csv-table.ts'
import { Fields } from './fields.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * A table of any vendor (RFC 4180 and its variants), delimited by a comma, semicolon, TAB or bar. A
 * header line names the columns; else their content does, over the first lines of a source
 * (CsvLearning); else the line alone, if it has exactly one time, one address and one host.
 * Tried last, because nothing identifies the format.
 */
export const anyCsv: LogFormat = { id: 'any-csv', read, continues }

const COLUMNS_MIN = 3
/** A longer cell is a text, which may begin with the same word as an action. */
const ACTION_BYTES_MAX = 32
/** Lines of a report before and after its table. */
const FOOTERS = ['total', 'totals', 'rows', 'row count', 'records', 'end of report', 'end of file']

const cells = new Fields()
const kinds = new Uint8Array(LEARNED_COLUMNS_MAX)

/** Another row of a header's table. */
function continues(line: LogLine, start: number, end: number): Verdict {
  const { table } = line.memory
  if (!(table instanceof CsvTable) || table.isLearned) return Verdict.unknown
  return readRow(line, table, start, end) === Verdict.event ? Verdict.event : Verdict.unknown
}

function read(line: LogLine, start: number, end: number): Verdict {
  const { view, memory } = line
  const first = start < end ? view.getUint8(start) : LESS
  // Not JSON, XML or an unread PRI.
  if (first === OPEN_BRACE || first === OPEN_BRACKET || first === LESS) return Verdict.unknown
  if (textAtIgnoreCase(view, start, end, 'sep=') && end - start === 5) return Verdict.skip
  const { table } = memory
  if (table instanceof CsvTable) {
    const verdict = readRow(line, table, start, end)
    if (verdict !== Verdict.unknown) return verdict
    line.reset()
    if (table.isOutdated) memory.table = undefined
  }
  for (let index = 0; index < DELIMITERS.length; index++) {
    const delimiter = DELIMITERS[index] ?? COMMA
    if (!occursTwice(view, start, end, delimiter)) continue
    const verdict = readUnknown(line, start, end, delimiter)
    if (verdict !== Verdict.unknown) return verdict
  }
  return table instanceof CsvTable && isFooter(view, start, end) ? Verdict.skip : Verdict.unknown
}

/** First the bytes that are seldom part of a value. */
const DELIMITERS = [TAB, SEMICOLON, PIPE, COMMA]

function readRow(line: LogLine, table: CsvTable, start: number, end: number): Verdict {
  cells.split(line.view, start, end, table.delimiter, table.width + 2)
  const verdict = table.read(line, cells)
  line.takeUserAndBytes = takeUserAndBytes
  return verdict
}

function takeUserAndBytes(line: LogLine): void {
  const { table } = line.memory
  if (table instanceof CsvTable) table.takeUserAndBytes(line, cells)
}

/** A line without a known table, or a line that is no row of the known table. */
function readUnknown(line: LogLine, start: number, end: number, delimiter: number): Verdict {
  const { view, memory } = line
  const first = view.getUint8(start) === HASH ? skipBlanks(view, start + 1, end) : start
  const count = cells.split(view, first, end, delimiter)
  if (count < COLUMNS_MIN) return Verdict.unknown
  const table = tableOfHeader(view, cells, delimiter)
  if (table !== undefined) {
    memory.table = table
    return Verdict.skip
  }
  // A row that does not fit a header's table is not guessed at.
  if (memory.table instanceof CsvTable && !memory.table.isLearned) return Verdict.unknown
  if (count > LEARNED_COLUMNS_MAX || first !== start) return Verdict.unknown
  // The text of a program, in which a client may have written a name with commas.
  if (indexOfText(view, cells.start(0), cells.end(0), ': ') !== NOT_FOUND) return Verdict.unknown
  line.reset()
  return readByContent(line, count, delimiter)
}

/** Reads a line by the contents of its cells. */
function readByContent(line: LogLine, count: number, delimiter: number): Verdict {
  const { view } = line
  let times = 0
  let time = 0
  let addresses = 0
  let client = 0
  let hosts = 0
  let host = 0
  let isImpossible = false
  let hasPath = false
  let hasBareUrl = false
  let isAfterAbsent = false
  let isTwice = false
  let absents = 0
  for (let column = 0; column < count; column++) {
    const start = cells.start(column)
    const end = cells.end(column)
    const kind = cellKind(line, start, end)
    kinds[column] = kind
    if (kind === CellKind.impossibleTime) isImpossible = true
    else if (kind === CellKind.time || (kind === CellKind.timeOfDay && isAfterDate(column))) {
      times++
      time = column
    } else if (kind === CellKind.address) {
      client = column
      addresses++
    } else if (kind === CellKind.path) hasPath = true
    else if (kind === CellKind.absent) absents++
    else if (kind === CellKind.bareUrl) hasBareUrl ||= hosts === 0
    else if (kind === CellKind.host || kind === CellKind.url) {
      // A host as a name and the same host in a URL are one host.
      if (hosts === 0 || !isSameHost(line, host, column)) hosts++
      else isTwice = true
      if (hosts === 1 && !isTwice) {
        host = column
        isAfterAbsent = kind === CellKind.url && absents > 0
      }
    }
  }
  line.reset()
  if (isImpossible && addresses > 0 && hosts > 0) return line.rejectTime()
  if (times === 0 || addresses === 0) return Verdict.unknown
  learn(line, count, delimiter)
  // After the path of a web server's own log comes the referer. After an absent cell, a URL may be
  // a referer, if the absent cell is the URL's.
  const isReferer = hasPath || (isAfterAbsent && !isTwice)
  if (times !== 1 || isReferer || cells.unclosed) return Verdict.unknown
  if (hosts !== 1 && !hasBareUrl) return Verdict.unknown
  if (takeTime(line, time) !== TimeFound.found) return Verdict.unknown
  if (isOtherRow(view, cells)) return Verdict.noDomain
  const { table } = line.memory
  // Of two addresses, either may be the server's or the device's.
  if (addresses > 1 || (table instanceof CsvLearning && table.hasManyAddresses)) {
    return hasBareUrl ? Verdict.noDomain : line.ambiguous('client')
  }
  line.takeClient(cells.start(client), cells.end(client))
  takeAction(line, count)
  // The first URL is the requested one, even if it names no domain.
  if (hasBareUrl) return Verdict.noDomain
  return line.takeHostOf(cells.start(host), cells.end(host))
}

function isAfterDate(column: number): boolean {
  return column > 0 && kinds[column - 1] === CellKind.date
}

function takeTime(line: LogLine, column: number): TimeFound {
  const start = cells.start(column)
  const end = cells.end(column)
  if (kinds[column] === CellKind.time) return line.takeTime(start, end)
  return line.takeDateAndTime(cells.start(column - 1), cells.end(column - 1), start, end)
}

function takeAction(line: LogLine, count: number): void {
  for (let column = 0; column < count && line.action === Action.unknown; column++) {
    const start = cells.start(column)
    const end = cells.end(column)
    if (kinds[column] === CellKind.other && end - start <= ACTION_BYTES_MAX)
      line.action = actionOf(line.view, start, end)
  }
}

/** Whether two cells with readable hosts name the same host. */
function isSameHost(line: LogLine, first: number, second: number): boolean {
  const { view } = line
  line.takeHostOf(cells.start(first), cells.end(first))
  const { hostStart, hostEnd } = line
  line.takeHostOf(cells.start(second), cells.end(second))
  // Both hosts were written to the same place in the scratch area.
  if (line.hostStart === hostStart) return false
  if (line.hostEnd - line.hostStart !== hostEnd - hostStart) return false
  for (let at = 0; at < hostEnd - hostStart; at++) {
    if ((view.getUint8(hostStart + at) | 0x20) !== (view.getUint8(line.hostStart + at) | 0x20)) return false
  }
  return true
}

function learn(line: LogLine, count: number, delimiter: number): void {
  const { memory, view } = line
  // A header is better evidence than content.
  if (memory.table !== undefined && !(memory.table instanceof CsvLearning)) return
  let learning = memory.table
  if (learning === undefined || learning.delimiter !== delimiter || learning.columns !== count) {
    learning = new CsvLearning(delimiter, count)
    memory.table = learning
  }
  if (!learning.add(view, cells, kinds)) return
  if (learning.hasManyAddresses) learning.restart()
  else memory.table = learning.decide()
}

function occursTwice(view: DataView, start: number, end: number, byte: number): boolean {
  const first = indexOfByte(view, start, end, byte)
  return first !== NOT_FOUND && indexOfByte(view, first + 1, end, byte) !== NOT_FOUND
}

const AFTER_FOOTER = new ByteSet(',;\t|:=')

function isFooter(view: DataView, start: number, end: number): boolean {
  const stop = AFTER_FOOTER.firstIn(view, start, end)
  const at = view.getUint8(start) === QUOTE ? start + 1 : start
  for (let index = 0; index < FOOTERS.length; index++) {
    const word = FOOTERS[index] ?? ''
    if (isTextIgnoreCase(view, at, Math.min(stop, at + word.length), word)) return true
  }
  return false
}
