import fc from 'fast-check'
import type { Test } from 'tap'
import { FormatDetector } from '../../engine/ingest/formats/detect.ts'
import { LogLine, SCRATCH_BYTES, Verdict } from '../../engine/ingest/formats/log-line.ts'
import { type LogRow, MessageReader, RECEIVED_MS } from './log-rows.ts'

const RUNS = 500
/** How much longer a message of twice the length may take; linear work takes twice as long, quadratic four times. */
const GROWTH_MAX = 3.2

/** Checks that messages with bytes deleted, inserted and swapped make nothing throw, and that a host that is found stands in the message. */
export function checkMutations(test: Test, format: string, rows: readonly LogRow[]): void {
  test.test(`${format}: mutated messages`, async (t) => {
    const place = fc.nat({ max: 4096 })
    const change = fc.tuple(fc.constantFrom('delete', 'insert', 'swap'), place, place, fc.nat({ max: 255 }))
    const reader = new MessageReader()
    fc.assert(
      fc.property(fc.constantFrom(...rows), fc.array(change, { minLength: 1, maxLength: 12 }), (row, changes) => {
        let bytes = Buffer.from(row.line)
        for (const [kind, first, second, byte] of changes) {
          const from = first % (bytes.length + 1)
          const to = second % (bytes.length + 1)
          if (kind === 'delete')
            bytes = Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + 1 + (second % 5))])
          else if (kind === 'insert') {
            bytes = Buffer.concat([bytes.subarray(0, from), Buffer.of(byte), bytes.subarray(from)])
          } else if (from < bytes.length && to < bytes.length) {
            const kept = bytes[from] ?? 0
            bytes[from] = bytes[to] ?? 0
            bytes[to] = kept
          }
        }
        const read = reader.read(bytes)
        if (read.verdict !== 'event') return true
        const text = bytes.toString('latin1').toLowerCase()
        // A name that stands there in Unicode or percent-encoded is found as an A-label.
        return text.includes(read.host) || /[\x80-\xff%]/.test(text)
      }),
      { numRuns: RUNS },
    )
    t.pass()
  })
}

/** Checks that a message of twice the length takes about twice as long: `make` answers one of about so many bytes. */
export function checkGrowth(test: Test, cases: Readonly<Record<string, (bytes: number) => string>>): void {
  for (const [name, make] of Object.entries(cases)) {
    test.test(`linear time: ${name}`, async (t) => {
      const small = msOf(make(1 << 18))
      const large = msOf(make(1 << 19))
      // Times this short are noise.
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
    const start = performance.now()
    const verdict = detector.read(line, 0, bytes.length)
    best = Math.min(best, performance.now() - start)
    if (verdict === Verdict.event) line.text(line.hostStart, line.hostEnd)
  }
  return best
}
