import type { Test } from 'tap'
import { FormatDetector } from '../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, SourceMemory, Verdict } from '../../engine/formats/log-line.ts'
import { readUserAndBytes } from '../../engine/formats/user-name.ts'
import { isUserName } from '../../engine/kernel/event/event.ts'
import { checkRows, type LogRows, MessageReader, RECEIVED_MS } from './log-rows.ts'
import * as fc from './property.ts'
import { cpuMsOf } from './wait.ts'

/**
 * Largest accepted ratio of times when a message doubles in length. Linear work takes twice as
 * long, quadratic work four times.
 */
const GROWTH_MAX = 3.2

/**
 * Bytes that separate, quote or escape in some format; also a letter, a digit and a non-ASCII byte.
 */
const INSERTED = ' \t"\'#,-./:;<=>@[\\]()|{}%_*a7\u00e9\0'

/**
 * Each byte in turn fills the buffer after the message. A reader that reads past the end returns
 * different results.
 */
const GUARDS = [0x78, 0x20, 0x31, 0x5d, 0x22]
const GUARD_BYTES = 256
const MUTATED_LINES = 2000
const MUTATED_BYTES_MAX = 16 * 1024

/** Checks the rows of a format, mutations of their lines, and that the named messages take linear time. */
export function checkFormat(
  test: Test,
  format: string,
  rows: LogRows,
  growth: Readonly<Record<string, (bytes: number) => string>> = {},
): void {
  checkRows(test, format, rows)
  checkMutations(
    test,
    Object.values(rows).map(([line]) => line),
  )
  checkGrowth(test, growth)
}

/**
 * Deletes, inserts and swaps bytes of lines. Whatever the result, the reader must not throw, must
 * not read outside the line, and must find only a host that is in the line and a user that an event
 * can have. `isIn` decides that for formats that encode names differently.
 */
export function checkMutations(
  test: Test,
  lines: readonly string[],
  isIn: (host: string, line: string) => boolean = (host, line) => line.includes(host),
): void {
  test.test('a mutated line never throws and never names a host that it does not hold', async () => {
    const change = fc.record({
      kind: fc.constantFrom('delete', 'insert', 'swap'),
      at: fc.nat(10_000),
      other: fc.nat(10_000),
    })
    const changes = fc.array(change, { minLength: 1, maxLength: 6 })
    // A reader with memory, like the reader of a source.
    const reader = new MessageReader()
    fc.assert(
      fc.property(fc.constantFrom(...lines), changes, (line, made) => {
        const bytes = [...Buffer.from(line)]
        for (const { kind, at, other } of made) mutate(bytes, kind, at, other)
        const mutated = Buffer.from(bytes)
        const [read = '', ...others] = GUARDS.map((guard) => readBefore(guard, mutated))
        if (others.some((other) => other !== read)) return false
        const text = mutated.toString('latin1').toLowerCase()
        // The reader decodes percent-encoding and Unicode names, so the host need not be in the
        // line literally.
        if (/[%\x80-\xff]/.test(text)) return true
        const remembering = reader.read(mutated)
        if (remembering.verdict === 'event' && !isIn(remembering.host, text)) return false
        const [verdict, host = ''] = read.split(' ')
        return verdict !== String(Verdict.event) || isIn(host, text)
      }),
      { numRuns: MUTATED_LINES },
    )
  })
}

const line = new LogLine(new Uint8Array(MUTATED_BYTES_MAX + SCRATCH_BYTES))
const detector = new FormatDetector()
line.referenceMs = RECEIVED_MS

/**
 * Verdict, host, user and byte counts of a message at the start of a buffer. Throws if an event
 * cannot have this user.
 */
function readBefore(guard: number, message: Uint8Array): string {
  line.bytes.fill(guard, 0, message.length + GUARD_BYTES)
  line.bytes.set(message)
  line.memory = new SourceMemory()
  const verdict = detector.read(line, 0, message.length)
  if (verdict !== Verdict.event) return `${verdict}`
  if (line.eventIdStart < 0) readUserAndBytes(line)
  const user = line.text(line.userStart, line.userEnd)
  if (user !== '' && !isUserName(user)) throw new Error(`user ${JSON.stringify(user)}`)
  const host = line.text(line.hostStart, line.hostEnd).toLowerCase()
  return `${verdict} ${host} ${line.bytesSent} ${line.bytesReceived} ${user}`
}

function mutate(bytes: number[], kind: string, at: number, other: number): void {
  const place = at % Math.max(1, bytes.length)
  if (kind === 'delete') {
    bytes.splice(place, 1 + (other % 3))
  } else if (kind === 'insert') {
    bytes.splice(place, 0, ...Buffer.from(INSERTED[other % INSERTED.length] ?? ' '))
  } else {
    const second = other % Math.max(1, bytes.length)
    const kept = bytes[place] ?? 0
    bytes[place] = bytes[second] ?? 0
    bytes[second] = kept
  }
}

/**
 * Checks that a message of twice the length takes about twice as long. `make` returns a message of
 * about the given number of bytes.
 */
export function checkGrowth(test: Test, cases: Readonly<Record<string, (bytes: number) => string>>): void {
  for (const [name, make] of Object.entries(cases)) {
    test.test(`linear time: ${name}`, async (t) => {
      const small = msOf(make(1 << 18))
      const large = msOf(make(1 << 19))
      // Shorter times are noise.
      t.ok(large < 20 || large / small < GROWTH_MAX, `${small.toFixed(1)} ms, ${large.toFixed(1)} ms`)
    })
  }
}

function msOf(message: string): number {
  const bytes = Buffer.from(message)
  const line = new LogLine(Buffer.concat([bytes, Buffer.alloc(SCRATCH_BYTES)]))
  line.referenceMs = RECEIVED_MS
  const detector = new FormatDetector()
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < 4; run++) {
    const verdicts: Verdict[] = []
    best = Math.min(
      best,
      cpuMsOf(() => verdicts.push(detector.read(line, 0, bytes.length))),
    )
    if (verdicts[0] === Verdict.event) line.text(line.hostStart, line.hostEnd)
  }
  return best
}
