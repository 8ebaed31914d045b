import fc from 'fast-check'
import type { Test } from 'tap'
import { MessageReader } from './log-rows.ts'

/** Bytes that formats are built of: what stands between fields, closes them, or escapes. */
const MARKS = Buffer.from(',;|"\'\\=:{}[]()/ \t^#@.-%\n\0')

/** One change of a line: a byte deleted, inserted, or swapped with another. */
const change = fc.record({
  kind: fc.constantFrom('delete', 'insert', 'swap', 'repeat'),
  at: fc.nat(4096),
  other: fc.nat(4096),
  byte: fc.oneof(fc.constantFrom(...MARKS), fc.integer({ min: 0, max: 255 })),
})

/**
 * Lines whose bytes were deleted, inserted and swapped, read one after the other by one reader, as a source sends them: no throw, and no host that
 * is not in the line. `isDecoded` is for formats that hold names in another form.
 */
export function checkMutations(test: Test, lines: readonly string[], isDecoded = false): void {
  test.test('of lines with changed bytes none makes it throw or name a host that is not there', async (t) => {
    const reader = new MessageReader()
    fc.assert(
      fc.property(fc.constantFrom(...lines), fc.array(change, { minLength: 1, maxLength: 6 }), (line, changes) => {
        let bytes = Buffer.from(line)
        for (const { kind, at, other, byte } of changes) {
          const place = at % (bytes.length + 1)
          if (kind === 'insert')
            bytes = Buffer.concat([bytes.subarray(0, place), Buffer.of(byte), bytes.subarray(place)])
          else if (kind === 'delete') bytes = Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1)])
          else if (kind === 'repeat')
            bytes = Buffer.concat([bytes.subarray(0, place), bytes.subarray(other % (place + 1))])
          else if (bytes.length > 0) {
            const from = place % bytes.length
            const to = other % bytes.length
            const kept = bytes[from] ?? 0
            bytes[from] = bytes[to] ?? 0
            bytes[to] = kept
          }
        }
        const read = reader.read(bytes)
        if (read.verdict !== 'event' || isDecoded || !isPlain(bytes)) return true
        return bytes.toString('latin1').toLowerCase().includes(read.host)
      }),
      { numRuns: 3000 },
    )
    t.pass()
  })
}

/** Percent-encoded names and names in Unicode are read in another form than they stand. */
function isPlain(bytes: Uint8Array): boolean {
  return !bytes.some((byte) => byte >= 0x80 || byte === 0x25)
}
