import type { Test } from 'tap'
import { Action } from '../../engine/formats/action.ts'
import { FORMATS, NO_FORMAT } from '../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, SourceMemory, Verdict } from '../../engine/formats/log-line.ts'
import type { OwnFormat } from '../../engine/formats/own-format.ts'
import { readUserAndBytes } from '../../engine/formats/user-name.ts'
import { BodyReader } from '../../engine/ingest/body-reader.ts'

/**
 * A message and the expected result of reading it. The result is a text such as
 * `event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed` or `reject: time`. It begins
 * with the verdict. What the text leaves out is not checked, except the host of an event.
 *
 * - After the verdict: the host in lower case. For other verdicts than `event`, the host that the
 *   message may name where it is truncated.
 * - `from`: the client, `-` when the reader must find none.
 * - `at`: ISO 8601, ends with `Z` if the message has a time zone or an epoch time. `-` for none.
 * - After a comma: a name of `Action`.
 * - After a colon: how the reason starts.
 */
export type LogRow = readonly [message: string, expected: string, others?: OtherResults]
export type LogRows = Readonly<Record<string, LogRow>>
export type NamedRow = readonly [name: string, row: LogRow]

export interface OtherResults {
  /** '' when the reader must find no user, 0 when it must find no byte count. */
  readonly user?: string
  readonly sent?: number
  readonly received?: number
  /** The format that must read the message, if it is not the table's. */
  readonly format?: string
  readonly reason?: string | RegExp
}

const EXPECTED =
  /^(?<verdict>\w+)(?: (?!from |at )(?<host>\S+?))?(?: from (?<client>\S+?))?(?: at (?<time>\S+?))?(?:, (?<action>\w+))?(?:: (?<reason>.+))?$/

/** Compares a result with the notation of a row. */
export function checkRead(t: Test, read: Read, format: string, [, expected, others = {}]: LogRow): void {
  const { host, client, time, action, reason, verdict } = resultsOf(expected)
  t.equal(read.verdict, verdict, 'verdict')
  t.equal(read.format, verdict === 'unknown' ? '' : (others.format ?? format), 'format')
  if (verdict === 'event') t.equal(read.host, host, 'host')
  if (client !== undefined) t.equal(read.client, unlessDash(client), 'client')
  if (time !== undefined) t.equal(read.time, withMs(unlessDash(time)), 'time')
  if (action !== undefined) t.equal(read.action, action, 'action')
  if (reason !== undefined) t.equal(read.reason.slice(0, reason.length), reason, 'reason')
  for (const name of ['user', 'sent', 'received'] as const) {
    if (others[name] !== undefined) t.equal(read[name], others[name], name)
  }
  if (others.reason !== undefined) t.match(read.reason, others.reason, 'reason')
}

function resultsOf(expected: string): Readonly<Record<string, string | undefined>> {
  const found = EXPECTED.exec(expected)?.groups
  if (found === undefined) throw new Error(`not the notation of a result: ${expected}`)
  return found
}

const unlessDash = (text: string): string => (text === '-' ? '' : text)

/** Time of receipt of all messages in the tables. */
export const RECEIVED_MS = Date.parse('2026-11-20T12:00:00Z')

/** Holds messages of 256 KiB. Of all readers, because some tests make one for each byte of a row. */
const BYTES = new Uint8Array(256 * 1024 + SCRATCH_BYTES)

/** The result of reading a message, in the notation of rows. */
export interface Read {
  readonly verdict: keyof typeof Verdict
  readonly format: string
  readonly host: string
  readonly client: string
  readonly time: string
  readonly action: keyof typeof Action
  /** Of events: the user's name as it would be stored. */
  readonly user: string
  readonly sent: number
  readonly received: number
  readonly reason: string
}

/** Reads messages one after the other, as from one source. */
export class MessageReader {
  readonly #line = new LogLine(BYTES)
  readonly #body = new BodyReader()

  constructor(memory = new SourceMemory(), receivedMs = RECEIVED_MS, own?: OwnFormat) {
    this.#body.own = own
    this.#line.memory = memory
    this.#line.referenceMs = receivedMs
  }

  get memory(): SourceMemory {
    return this.#line.memory
  }

  /** Places the message inside the buffer with foreign bytes around it, as in production. */
  read(message: string | Uint8Array, at = 7): Read {
    const line = this.#line
    const bytes = typeof message === 'string' ? Buffer.from(message) : message
    line.bytes.fill(0x78, Math.max(0, at - 8), at + bytes.length + 8)
    line.bytes.set(bytes, at)
    const verdict = this.#body.read(line, at, at + bytes.length)
    const { format } = this.#body
    const isEvent = verdict === Verdict.event
    if (isEvent && line.eventIdStart < 0) readUserAndBytes(line)
    return {
      verdict: nameOf(Verdict, verdict),
      format: format === NO_FORMAT ? '' : (FORMATS[format]?.id ?? ''),
      host: isEvent ? line.text(line.hostStart, line.hostEnd).toLowerCase() : '',
      client: line.text(line.clientStart, line.clientEnd),
      time: Number.isNaN(line.timeMs) ? '' : isoTime(line),
      action: nameOf(Action, line.action),
      user: isEvent ? line.text(line.userStart, line.userEnd) : '',
      sent: isEvent ? line.bytesSent : 0,
      received: isEvent ? line.bytesReceived : 0,
      reason: line.reason,
    }
  }
}

function isoTime({ timeMs, timeIsLocal }: LogLine): string {
  const text = new Date(timeMs).toISOString()
  return timeIsLocal ? text.slice(0, -1) : text
}

function nameOf<T extends Readonly<Record<string, number>>>(names: T, value: number): keyof T {
  return Object.keys(names).find((name) => names[name] === value) ?? ''
}

/**
 * Checks the rows of a format, each as the first message of a source. Also checks that no prefix of
 * a row makes the reader throw or find another host.
 */
export function checkRows(test: Test, format: string, rows: LogRows, makeReader = () => new MessageReader()): void {
  for (const [name, row] of Object.entries(rows)) {
    test.test(name, async (t) => {
      checkRead(t, makeReader().read(row[0]), format, row)
      checkTruncated(t, row, (prefix) => makeReader().read(prefix))
    })
  }
}

/**
 * Truncates the line at every byte. The reader must not throw, and may find only the expected host
 * or a prefix of it, and the expected user or the bytes before the end.
 */
export function checkTruncated(t: Test, row: LogRow, readPrefix: (prefix: Uint8Array) => Read): void {
  const [line, expected, { user } = {}] = row
  const bytes = Buffer.from(line)
  const { host = '' } = resultsOf(expected)
  const wrong: string[] = []
  for (let length = 0; length < bytes.length; length++) {
    const read = readPrefix(bytes.subarray(0, length))
    if (read.verdict !== 'event') continue
    if (!host.startsWith(read.host)) wrong.push(`${length}: ${read.host}`)
    const isAtEnd = bytes.subarray(0, length).toString().endsWith(read.user)
    if (user !== undefined && !isAtEnd && !user.startsWith(read.user)) wrong.push(`${length}: user ${read.user}`)
  }
  t.same(wrong, [], 'truncated at any byte, the line names no other host or user')
}

/** Rows give times in seconds; the reader's times have milliseconds. */
function withMs(time: string): string {
  if (time === '' || time.includes('.')) return time
  return time.endsWith('Z') ? `${time.slice(0, -1)}.000Z` : `${time}.000`
}
