import { LINE_KINDS, linesOf } from '../../bench/workload/log-lines.ts'
import { PRODUCTS } from '../../deploy/log-samples.ts'
import { FormatDetector, NO_FORMAT } from '../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES, SourceMemory, Verdict } from '../../engine/formats/log-line.ts'
import { readUserAndBytes } from '../../engine/formats/user-name.ts'
import { isUserName } from '../../engine/kernel/event/event.ts'
import { Random } from './random.ts'

/**
 * Reads mutated lines of all formats as two sources, whose buffers differ in all other bytes and in
 * the place of the line. For any bytes: nothing throws; both find the same; host, client and user
 * are parts of the line or of the scratch space; and an event has a host, and a user that it can have.
 */
const LINE_BYTES_MAX = 4096
const NOW = Date.parse('2026-11-20T12:00:00Z')
/** After as many lines, both sources begin again. */
const SOURCE_LINES = 50

/** Parts that separate, quote or escape in some format, and words that a format searches for. */
const ODD_TEXTS = [
  ...[' ', '\t', ',', ';', '|', '=', ':', '/', '"', "'", '\\', '#', '@', '%', '[', ']', '(', ')', '{', '}', '<', '>'],
  ...['\0', '\n', '""', '\\"', '#011', '#012', '%20', '\\u0000', '\u00e9', '\u202e', '\ufeff', '99999999999999999999'],
  ...['192.0.2.66', '::ffff:192.0.2.66', '10.0.0.66#53', 'claude.ai', 'https://claude.ai/', '(6)claude(2)ai(0)'],
  ...['src=192.0.2.66 ', 'query: claude.ai IN A ', '"client":"192.0.2.66",', 'Nov 31 25:61:00', '0000-00-00T00:00:00Z'],
].map((text) => Buffer.from(text))

const ORIGINALS = [
  ...LINE_KINDS.flatMap((kind) => [...(kind.header === undefined ? [] : [kind.header]), ...linesOf(kind, 11)]),
  ...Object.values(PRODUCTS).flatMap((products) => products.map(({ line }) => line)),
].map((text) => Buffer.from(text))

export function fuzzLines(seed: number, mutations: number): void {
  const random = new Random(seed)
  const sources = [new Source(0x20, 0), new Source(0xff, 7)] as const
  for (let done = 0; done < mutations; done++) {
    if (done % SOURCE_LINES === 0) for (const source of sources) source.forget()
    const line = mutated(random)
    try {
      const [one, other] = sources.map((source) => source.read(line))
      if (one !== other) throw new Error(`bytes around the line have a say:\n${one}\n${other}`)
    } catch (error) {
      throw new Error(
        `seed ${seed}, line ${done}: ${(error as Error).stack}\n${JSON.stringify(line.toString('latin1'))}`,
      )
    }
  }
}

class Source {
  readonly #line = new LogLine(new Uint8Array(LINE_BYTES_MAX * 2 + SCRATCH_BYTES))
  readonly #detector = new FormatDetector()
  readonly #filling: number
  readonly #start: number

  constructor(filling: number, start: number) {
    this.#filling = filling
    this.#start = start
    this.#line.referenceMs = NOW
  }

  forget(): void {
    this.#line.memory = new SourceMemory()
  }

  /** All that is found in the line, as text. */
  read(message: Uint8Array): string {
    const [line, detector] = [this.#line, this.#detector]
    const end = this.#start + message.length
    line.bytes.fill(this.#filling, 0, end + 64)
    line.bytes.set(message, this.#start)
    const verdict = detector.read(line, this.#start, end)
    if ((verdict === Verdict.unknown) !== (detector.format === NO_FORMAT)) throw new Error('a format without a verdict')
    if (verdict !== Verdict.event) return `${verdict} ${detector.format} ${line.reason}`
    const { eventIdStart, timeMs, action } = line
    if (eventIdStart < 0) readUserAndBytes(line)
    const host = this.#text(line.hostStart, line.hostEnd, end)
    const client = this.#text(line.clientStart, line.clientEnd, end)
    const user = this.#text(line.userStart, line.userEnd, end)
    if (host === '') throw new Error('an event without a host')
    if (user !== '' && !isUserName(user)) throw new Error(`user ${JSON.stringify(user)}`)
    return [verdict, detector.format, host, client, user, timeMs, action, line.bytesSent, line.bytesReceived].join(' ')
  }

  /** @throws Error if the place is neither in the line nor in the scratch space */
  #text(from: number, to: number, end: number): string {
    const isInLine = from >= this.#start && to <= end
    if (from === to || isInLine || from >= this.#line.unwrappedStart) return this.#line.text(from, to)
    throw new Error(`[${from}, ${to}) in [${this.#start}, ${end})`)
  }
}

/** A line after up to four changes, one of which may be a part of another line. */
function mutated(random: Random): Buffer {
  let bytes: Buffer = random.of(ORIGINALS)
  for (let changes = random.below(5); changes > 0; changes--) {
    const at = random.below(bytes.length + 1)
    switch (random.below(5)) {
      case 0:
        bytes = replaced(bytes, at, 1 + random.below(12))
        break
      case 1:
        bytes = replaced(bytes, at, 1, Buffer.of(random.below(256)))
        break
      case 2: {
        const other = random.of(ORIGINALS)
        const from = random.below(other.length)
        bytes = replaced(bytes, at, 0, other.subarray(from, from + random.below(80)))
        break
      }
      case 3:
        bytes = replaced(bytes, at, 0, random.of(ODD_TEXTS))
        break
      default:
        bytes = bytes.subarray(0, at)
    }
  }
  return bytes.subarray(0, LINE_BYTES_MAX)
}

function replaced(bytes: Buffer, at: number, length: number, by: Uint8Array = new Uint8Array(0)): Buffer {
  return Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(at + length)])
}
