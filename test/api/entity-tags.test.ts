import t from 'tap'
import { namedTag } from '../../api/respond.ts'
import * as fc from '../support/property.ts'
import { cpuMsOf } from '../support/wait.ts'

const TAGS = { etag: '"abc"', gzipEtag: '"abc-gzip"' }
const ROWS: readonly { text: string; weakly: string | undefined; strongly: string | undefined }[] = [
  { text: '"abc"', weakly: '"abc"', strongly: '"abc"' },
  { text: '"abc-gzip"', weakly: '"abc-gzip"', strongly: '"abc-gzip"' },
  { text: 'W/"abc"', weakly: '"abc"', strongly: undefined },
  { text: '*', weakly: '*', strongly: '*' },
  { text: '"x", "abc"', weakly: '"abc"', strongly: '"abc"' },
  { text: '"x","abc-gzip" , "abc"', weakly: '"abc-gzip"', strongly: '"abc-gzip"' },
  { text: ', ,"abc",', weakly: '"abc"', strongly: '"abc"' },
  { text: 'W/"abc", "abc-gzip"', weakly: '"abc"', strongly: '"abc-gzip"' },
  { text: '"a,*,b"', weakly: undefined, strongly: undefined },
  { text: '"a, "abc"', weakly: undefined, strongly: undefined },
  { text: '"abc', weakly: undefined, strongly: undefined },
  { text: 'abc', weakly: undefined, strongly: undefined },
  { text: '*, "x"', weakly: undefined, strongly: undefined },
  { text: 'W/*', weakly: undefined, strongly: undefined },
  { text: 'w/"abc"', weakly: undefined, strongly: undefined },
  { text: '"abc" "x"', weakly: undefined, strongly: undefined },
  { text: '"abc", x', weakly: undefined, strongly: undefined },
  { text: '"ABC"', weakly: undefined, strongly: undefined },
]

t.test('each row matches as expected', async (t) => {
  for (const { text, weakly, strongly } of ROWS) {
    t.equal(namedTag(text, TAGS, true), weakly, `${text}, weakly`)
    t.equal(namedTag(text, TAGS, false), strongly, `${text}, strongly`)
  }
})

t.test('a list matches if one member does, with any text in the quotation marks', async (t) => {
  const tag = fc.oneof(fc.constantFrom(TAGS.etag, TAGS.gzipEtag), fc.stringMatching(/^"[!#-~]{0,8}"$/))
  const member = fc.record({ tag, weak: fc.boolean() })
  fc.assert(
    fc.property(fc.array(member, { minLength: 1 }), fc.boolean(), (members, weakly) => {
      const text = members.map(({ tag, weak }) => `${weak ? 'W/' : ''}${tag}`).join(', ')
      const first = members.find(({ tag, weak }) => Object.values(TAGS).includes(tag) && (weakly || !weak))
      return namedTag(text, TAGS, weakly) === first?.tag
    }),
  )
  t.pass('held')
})

t.test('any text is parsed in time linear in its length', async (t) => {
  fc.assert(fc.property(fc.string(), fc.boolean(), (text, weakly) => namedTag(text, TAGS, weakly) !== ''))
  for (const part of [' ', '\t', ',', '"', '"a', 'W/', '"",', '"" ', ' ,"']) {
    const timeMs = (length: number): number => {
      const text = part.repeat(length / part.length)
      return cpuMsOf(() => namedTag(`${text}x`, TAGS, true))
    }
    timeMs(1000)
    const longMs = timeMs(400_000)
    t.ok(longMs < 400, `${JSON.stringify(part)}: ${longMs} ms`)
  }
})
