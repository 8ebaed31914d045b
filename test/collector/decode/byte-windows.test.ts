import t from 'tap'
import { ByteWindows, copyBytes, NO_BUFFER } from '../../../collector/decode/byte-windows.ts'
import * as fc from '../../support/property.ts'

const SHORT = 16
const LONG = 64

/** The reference model, with plain arrays: the byte at each offset, or undefined. */
class Model {
  bytes: (number | undefined)[] = []

  put(offset: number, values: readonly number[]): number {
    let fresh = 0
    for (const [index, value] of values.entries()) {
      if (this.bytes[offset + index] !== undefined) continue
      this.bytes[offset + index] = value
      fresh++
    }
    return fresh
  }

  get contiguous(): number {
    let at = 0
    while (at < this.bytes.length && this.bytes[at] !== undefined) at++
    return at
  }
}

const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('put' as const),
      offset: fc.nat(LONG - 1),
      values: fc.array(fc.nat(255), { minLength: 1, maxLength: 20 }),
    }),
    fc.record({ kind: fc.constant('consume' as const), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ kind: fc.constant('clear' as const) }),
    fc.record({ kind: fc.constant('move' as const), shift: fc.nat(10) }),
  ),
  { maxLength: 40 },
)

t.test('bytes in any order, repeated and overlapping: the first ones stay, as in a plain array', async () => {
  fc.assert(
    fc.property(steps, (steps) => {
      const windows = new ByteWindows(SHORT, 2, LONG, 2)
      let buffer = windows.take(LONG)
      const model = new Model()
      for (const step of steps) {
        switch (step.kind) {
          case 'put': {
            const values = step.values.slice(0, LONG - step.offset)
            // Not at the start of the view, so that a wrong offset is detected.
            const source = new DataView(Uint8Array.from([0, 0, 0, ...values, 99]).buffer)
            const fresh = windows.put(buffer, step.offset, source, 3, 3 + values.length)
            if (fresh !== model.put(step.offset, values)) return false
            break
          }
          case 'consume': {
            const count = Math.floor(model.contiguous * step.part)
            windows.consume(buffer, count)
            model.bytes = model.bytes.slice(count)
            break
          }
          case 'clear':
            windows.clear(buffer)
            model.bytes = []
            break
          case 'move': {
            if (model.bytes.length + step.shift > LONG) break
            const to = windows.take(LONG)
            windows.move(buffer, to, step.shift)
            windows.release(buffer)
            buffer = to
            if (model.bytes.length > 0)
              model.bytes = [...new Array<undefined>(step.shift).fill(undefined), ...model.bytes]
            break
          }
          default:
            step satisfies never
        }
        if (windows.contiguous(buffer) !== model.contiguous) return false
        if (windows.farthest(buffer) !== model.bytes.length) return false
        const start = windows.start(buffer)
        for (let at = 0; at < model.contiguous; at++) {
          if (windows.view.getUint8(start + at) !== model.bytes[at]) return false
        }
      }
      // A released buffer is empty: the next owner sees no byte of the previous one.
      windows.release(buffer)
      const next = windows.take(LONG)
      windows.put(next, 5, new DataView(new ArrayBuffer(1)), 0, 1)
      return windows.contiguous(next) === 0 && windows.farthest(next) === 6
    }),
    { numRuns: 2000 },
  )
})

t.test('the number of buffers is exact, and each belongs to its owner', async (t) => {
  const windows = new ByteWindows(SHORT, 2, LONG, 1)
  const taken = [windows.take(1), windows.take(SHORT), windows.take(SHORT + 1)]
  t.equal(new Set(taken).size, 3)
  t.equal(windows.taken, 3)
  t.equal(windows.take(1), NO_BUFFER, 'a short request does not get a long buffer')
  t.equal(windows.take(LONG), NO_BUFFER)
  t.equal(windows.take(LONG + 1), NO_BUFFER)
  const places = taken.map((buffer) => [windows.start(buffer), windows.start(buffer) + 2 * windows.capacity(buffer)])
  places.sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))
  for (const [index, [, end]] of places.entries()) t.ok((end ?? 0) <= (places[index + 1]?.[0] ?? windows.bytes.length))
  for (const buffer of taken) windows.release(buffer)
  t.equal(windows.taken, 0)
})

t.test('copies of every length and alignment are correct', async (t) => {
  const source = new DataView(Uint8Array.from({ length: 40 }, (_, index) => index + 1).buffer)
  for (let from = 0; from < 5; from++) {
    for (let length = 0; length < 20; length++) {
      const target = new Uint8Array(40)
      copyBytes(source, from, from + length, new DataView(target.buffer), 7)
      t.same([...target.subarray(6, 8 + length)], [0, ...Array.from({ length }, (_, index) => from + index + 1), 0])
    }
  }
})
