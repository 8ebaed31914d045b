import fc from 'fast-check'
import type { Test } from 'tap'
import { MessageReader } from './log-rows.ts'

/** What separates, quotes and escapes in some format or other, and a letter, a digit and a byte that is no ASCII. */
const INSERTED = ' \t"\'#,-./:;<=>@[\\]()|{}%_*a7\u00e9\0'

/**
 * Lines with bytes deleted, inserted and swapped: whatever comes of them, nothing throws, and a host that is read stands in the line
 * (`isIn` says how, where a format writes names in a way of its own).
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
    fc.assert(
      fc.property(fc.constantFrom(...lines), changes, (line, made) => {
        const bytes = [...Buffer.from(line)]
        for (const { kind, at, other } of made) mutate(bytes, kind, at, other)
        const mutated = Buffer.from(bytes)
        const read = new MessageReader().read(mutated)
        const text = mutated.toString('latin1').toLowerCase()
        // Percent-encoding and names in Unicode are read in another form than they stand in.
        return read.verdict !== 'event' || /[%\x80-\xff]/.test(text) || isIn(read.host, text)
      }),
      { numRuns: 3000 },
    )
  })
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
