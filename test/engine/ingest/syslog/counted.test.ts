import t from 'tap'
import { Follows, namedFaults } from '../../../../engine/ingest/syslog/counted.ts'
import { Framing } from '../../../../engine/ingest/syslog/framing.ts'

const BYTES_MAX = 4096

interface Read {
  readonly messages: readonly string[]
  readonly faults: Readonly<Record<string, number>>
}

const work = new Uint8Array(16 * 1024)
const view = new DataView(work.buffer)

/** Reads chunks as a connection does. After the last, its sender is silent for a while. */
function read(chunks: readonly Uint8Array[], last: Follows = Follows.pause): Read {
  const framing = new Framing(BYTES_MAX)
  const messages: string[] = []
  const sink = {
    frame(start: number, end: number): boolean {
      messages.push(Buffer.from(work.subarray(start, end)).toString())
      return true
    },
  }
  let waiting = Buffer.alloc(0)
  const split = (follows: Follows): void => {
    work.set(waiting)
    waiting = Buffer.from(waiting.subarray(framing.split(work, view, 0, waiting.length, sink, follows)))
  }
  for (const chunk of chunks) {
    const mayComplete = waiting.length === 0 || framing.mayComplete(waiting.length, chunk)
    waiting = Buffer.concat([waiting, chunk])
    if (mayComplete) split(Follows.more)
  }
  split(last)
  if (last !== Follows.nothing) split(Follows.nothing)
  const faults = framing.takeFaults()
  return { messages, faults: faults === undefined ? {} : namedFaults(faults) }
}

const singly = (bytes: Uint8Array): Uint8Array[] => Array.from(bytes, (byte) => Uint8Array.of(byte))

function piecesOf(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

/** Messages whose ends, with a byte more or less, would name another client. */
const MESSAGES = {
  'RFC 3164, with a digit at the end': (index: number) =>
    `<30>Nov 27 08:15:0${index} ns named[1]: query claude.ai client 10.1.4.${index + 10}`,
  'RFC 5424': (index: number) =>
    `<134>1 2026-11-27T08:15:0${index}Z px squid 7 - [svc@00000 key="k"] 10.1.4.${index} CONNECT claude.ai:443 -`,
  'other characters': (index: number) =>
    `<134>Nov 27 08:15:0${index} px squid: user="Jörg Müller ${'é'.repeat(index)}" src=10.1.4.${index + 10}`,
  'characters outside the BMP': (index: number) =>
    `<134>Nov 27 08:15:0${index} px squid: agent="${'😀'.repeat(index + 1)}é" src=10.1.4.${index + 10}`,
}

const bytesOf = (text: string): number => Buffer.byteLength(text)
const withItself = (text: string): number => {
  let count = bytesOf(text)
  while (count !== bytesOf(text) + `${count} `.length) count = bytesOf(text) + `${count} `.length
  return count
}

/** Senders that count wrongly, always in the same manner. `end` follows each message. */
const SENDERS: readonly {
  name: string
  count: (text: string) => number
  end?: string
  fault?: string
  /** Messages at the beginning that may be lost, if they arrive in pieces. */
  lost?: number
}[] = [
  { name: 'right', count: bytesOf },
  { name: 'right, with a line feed that is not counted', count: bytesOf, end: '\n' },
  { name: 'right, with a line feed that is counted', count: (text) => bytesOf(text) + 1, end: '\n' },
  { name: 'a line feed that is counted and not sent', count: (text) => bytesOf(text) + 1, fault: 'oneTooLarge' },
  { name: 'CR LF that is counted and not sent', count: (text) => bytesOf(text) + 2, fault: 'tooLarge' },
  { name: 'one too small', count: (text) => bytesOf(text) - 1, fault: 'oneTooSmall' },
  { name: 'two too small', count: (text) => bytesOf(text) - 2, fault: 'tooSmall' },
  { name: 'with the count itself', count: withItself, fault: 'countsItself' },
  { name: 'code points', count: (text) => [...text].length, fault: 'characters' },
  { name: 'UTF-16', count: (text) => text.length, fault: 'characters' },
  { name: 'always 80, lines', count: () => 80, end: '\n', fault: 'lineEnd', lost: 2 },
]

for (const { name, count, end = '', fault, lost = 0 } of SENDERS) {
  for (const [kind, message] of Object.entries(MESSAGES)) {
    t.test(`a sender that counts ${name}: ${kind}`, async (t) => {
      const messages = Array.from({ length: 9 }, (_, index) => message(index))
      const bytes = Buffer.from(messages.map((text) => `${count(text)} ${text}${end}`).join(''))
      const { messages: found, faults } = read([bytes])
      t.same(found, messages)
      const isWrong = messages.some((text) => ![bytesOf(text), bytesOf(text + end)].includes(count(text)))
      t.same(Object.keys(faults), isWrong && fault !== undefined ? [fault] : [])
      const pieces = [1, 2, 7, 50, 111].map((size) => piecesOf(bytes, size))
      for (const chunks of pieces) {
        const { messages: inPieces } = read(chunks)
        if (inPieces.slice(-9 + lost).join('|') !== messages.slice(lost).join('|'))
          t.same(inPieces, messages, `in pieces of ${chunks[0]?.length}`)
      }
    })
  }
}

/** One byte of a stream is damaged. */
const DAMAGE: Readonly<Record<string, (bytes: Buffer, at: number) => Buffer>> = {
  removed: (bytes, at) => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]),
  inserted: (bytes, at) => Buffer.concat([bytes.subarray(0, at), Buffer.from('7'), bytes.subarray(at)]),
  'another digit': (bytes, at) => withByte(bytes, at, 0x35),
  'another letter': (bytes, at) => withByte(bytes, at, 0x78),
  NUL: (bytes, at) => withByte(bytes, at, 0),
  'line feed': (bytes, at) => withByte(bytes, at, 0x0a),
}
function withByte(bytes: Buffer, at: number, byte: number): Buffer {
  const damaged = Buffer.from(bytes)
  damaged[at] = byte
  return damaged
}

const FRAMINGS: Readonly<Record<string, (text: string) => string>> = {
  'octet counting': (text) => `${bytesOf(text)} ${text}`,
  'octet counting and LF': (text) => `${bytesOf(text) + 1} ${text}\n`,
  LF: (text) => `${text}\n`,
}

for (const [framing, framed] of Object.entries(FRAMINGS)) {
  for (const [kind, message] of Object.entries(MESSAGES)) {
    for (const [damage, apply] of Object.entries(DAMAGE)) {
      t.test(`${framing}, ${kind}, a byte of a message is ${damage}`, async (t) => {
        const messages = Array.from({ length: 8 }, (_, index) => message(index))
        const frames = messages.map((text) => Buffer.from(framed(text)))
        const bytes = Buffer.concat(frames)
        const from = (frames[0]?.length ?? 0) + (frames[1]?.length ?? 0)
        const { length = 0 } = frames[2] ?? {}
        for (let at = from; at < from + length; at++) {
          const damaged = apply(bytes, at)
          for (const chunks of [[damaged], singly(damaged)]) {
            const { messages: found } = read(chunks)
            const lost = messages.filter((text) => !found.includes(text))
            // The damaged one, and one before or after it.
            const isNear = lost.every((text) => [1, 2, 3].includes(messages.indexOf(text)))
            if (lost.length > 2 || !isNear) t.fail(`at ${at}: ${JSON.stringify(found)}`)
            // Without its line end, a line is one with the next.
            const isLineEnd = framing === 'LF' && at === from + length - 1
            const joined = found.filter((text) => (text.match(/08:15:0/g) ?? []).length > 1)
            if (joined.length > 0 && !isLineEnd) t.fail(`at ${at}: ${joined}`)
          }
        }
      })
    }
  }
}

t.test('text of a client becomes no message, whatever the count of its message is', async (t) => {
  const VICTIM = '10.66.6.6'
  const good = (index: number): string => `<134>Nov 27 08:15:0${index} px squid: 10.1.4.1${index} claude.ai agent="x"`
  const forged = `<134>Nov 27 08:15:09 px squid: ${VICTIM} claude.ai agent="`
  for (const end of ['', '\n']) {
    for (const tail of ['" 10.1.4.20 -', '']) {
      // The count leads exactly to the next header, or somewhere else.
      for (const off of [0, 3, -20]) {
        const before = '<134>Nov 27 08:15:05 px squid: 10.1.4.15 claude.ai agent="'
        const text = `${before} ${bytesOf(forged + tail + end) + off} ${forged}${tail}`
        const place = text.indexOf(forged)
        for (const preceding of [0, 3]) {
          for (let count = 1 + preceding; count < text.length + 200; count += 2) {
            // Such a count leads to the header in the text: nothing shows that it is wrong.
            if (count > before.length && count < place) continue
            const frame = (message: string): string => `${bytesOf(message + end)} ${message}${end}`
            const frames = [0, 1, 2].slice(0, preceding).map((index) => frame(good(index)))
            frames.push(`${count} ${text}${end}`, ...[3, 4, 5, 6].map((index) => frame(good(index))))
            const bytes = Buffer.from(frames.join(''))
            for (const size of [bytes.length, 100]) {
              const { messages } = read(piecesOf(bytes, size))
              const found = messages.filter((message) => message.includes(VICTIM) && !message.includes('10.1.4.15'))
              if (found.length > 0) t.fail(`count ${count}, ${preceding} before, ${off}: ${found}`)
            }
          }
        }
      }
    }
  }
})
