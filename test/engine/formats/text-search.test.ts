import t from 'tap'
import { TextPrefixes, TextSearch } from '../../../engine/formats/bytes.ts'
import * as fc from '../../support/property.ts'

function viewOf(text: string): DataView {
  const bytes = Buffer.from(text, 'latin1')
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

t.test('the first complete occurrence of a text is found', async () => {
  const few = (maxLength: number, minLength = 0) =>
    fc.array(fc.constantFrom('a', 'b', '\xff'), { minLength, maxLength }).map((chars) => chars.join(''))
  fc.assert(
    fc.property(few(40), few(5, 2), fc.nat(8), fc.nat(8), (text, wanted, before, behind) => {
      const start = Math.min(before, text.length)
      const end = Math.max(start, text.length - behind)
      const found = text.slice(start, end).indexOf(wanted)
      return new TextSearch(wanted).find(viewOf(text), start, end) === (found < 0 ? -1 : found + start)
    }),
    { numRuns: 5000 },
  )
})

t.test('a message that begins with one of several texts is recognized', async (t) => {
  const prefixes = new TextPrefixes(['zone ', 'rpz ', 'validating '])
  const beginsAt = (text: string, at = 0, end = text.length) => prefixes.beginAt(viewOf(text), at, end)
  t.ok(beginsAt('zone x'))
  t.ok(beginsAt('x rpz y', 2))
  t.notOk(beginsAt('zones'))
  t.notOk(beginsAt('zone x', 0, 4), 'truncated')
  t.notOk(beginsAt(''))
  t.notOk(beginsAt('\xffzone x'))
})
