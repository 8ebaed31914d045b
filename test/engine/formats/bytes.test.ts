import t from 'tap'
import { indexOfByte } from '../../../engine/formats/bytes.ts'
import * as fc from '../../support/property.ts'

t.test('the first occurrence of a byte is found, never beyond the end', async (t) => {
  // Few distinct values, so that many bytes are equal, and values next to each other and to the
  // sign bit.
  const byte = fc.constantFrom(0, 1, 0x21, 0x22, 0x23, 0x7f, 0x80, 0xa2, 0xff)
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 24 }), byte, fc.nat(24), fc.nat(24), (values, wanted, first, second) => {
      const bytes = Uint8Array.from(values)
      const start = Math.min(first, second, bytes.length)
      const end = Math.min(Math.max(first, second), bytes.length)
      const found = bytes.subarray(start, end).indexOf(wanted)
      return indexOfByte(new DataView(bytes.buffer), start, end, wanted) === (found < 0 ? -1 : start + found)
    }),
    { numRuns: 5000 },
  )
  t.pass()
})
