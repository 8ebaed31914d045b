import type { Test } from 'tap'
import { Action } from '../../engine/formats/action.ts'
import { FORMATS, NO_FORMAT } from '../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, SourceMemory, Verdict } from '../../engine/formats/log-line.ts'
import type { OwnFormat } from '../../engine/formats/own-format.ts'
import { readUserAndBytes } from '../../engine/formats/user-name.ts'
import { BodyReader } from '../../engine/ingest/body-reader.ts'

/** A message, and the expected result of reading it. */
export interface LogRow {
  readonly name: string
  readonly line: string
  readonly verdict: keyof typeof Verdict
  /** Events only: the host in lower case. */
  readonly host?: string
  /** '' when the reader must find no client. */
  readonly client?: string
  /** ISO 8601. Ends with `Z` if the message has a time zone or an epoch time. */
  readonly time?: string
  readonly action?: keyof typeof Action
  /** '' when the reader must find no user, 0 when it must find no byte count. */
  readonly user?: string
  readonly sent?: number
  readonly received?: number
  /** The format that must read the message, if it is not the table's. */
  readonly format?: string
  readonly reason?: string | RegExp
}

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
export function checkRows(
  test: Test,
  format: string,
  rows: readonly LogRow[],
  makeReader = () => new MessageReader(),
): void {
  for (const row of rows) {
    test.test(row.name, async (t) => {
      const read = makeReader().read(row.line)
      t.equal(read.verdict, row.verdict, 'verdict')
      t.equal(read.format, row.verdict === 'unknown' ? '' : (row.format ?? format), 'format')
      if (row.verdict === 'event') t.equal(read.host, row.host, 'host')
      if (row.client !== undefined) t.equal(read.client, row.client, 'client')
      if (row.time !== undefined) t.equal(read.time, withMs(row.time), 'time')
      if (row.action !== undefined) t.equal(read.action, row.action, 'action')
      if (row.user !== undefined) t.equal(read.user, row.user, 'user')
      if (row.sent !== undefined) t.equal(read.sent, row.sent, 'sent')
      if (row.received !== undefined) t.equal(read.received, row.received, 'received')
      if (row.reason !== undefined) t.match(read.reason, row.reason, 'reason')
      checkTruncated(t, row, makeReader)
    })
  }
}

/**
 * Truncates the line at every byte. The reader must not throw, and may find only the expected host
 * or a prefix of it, and the expected user or the bytes before the end.
 */
function checkTruncated(t: Test, row: LogRow, makeReader: () => MessageReader): void {
  const bytes = Buffer.from(row.line)
  const expected = row.host ?? ''
  const wrong: string[] = []
  for (let length = 0; length < bytes.length; length++) {
    const read = makeReader().read(bytes.subarray(0, length))
    if (read.verdict !== 'event') continue
    if (!expected.startsWith(read.host)) wrong.push(`${length}: ${read.host}`)
    const isAtEnd = bytes.subarray(0, length).toString().endsWith(read.user)
    if (row.user !== undefined && !isAtEnd && !row.user.startsWith(read.user))
      wrong.push(`${length}: user ${read.user}`)
  }
  t.same(wrong, [], 'truncated at any byte, the line names no other host or user')
}

/** Rows give times in seconds; the reader's times have milliseconds. */
function withMs(time: string): string {
  if (time === '' || time.includes('.')) return time
  return time.endsWith('Z') ? `${time.slice(0, -1)}.000Z` : `${time}.000`
}
