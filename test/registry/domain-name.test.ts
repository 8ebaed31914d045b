import t from 'tap'
import { canonicalName, isCanonicalName } from '../../registry/domain-name.ts'
import * as fc from '../support/property.ts'

const long = `${'a'.repeat(63)}.`.repeat(4).slice(0, 253)
const cases: { name: string; text: string; found: string | undefined }[] = [
  { name: 'canonical already', text: 'api.claude.ai', found: 'api.claude.ai' },
  { name: 'upper case', text: 'API.Claude.AI', found: 'api.claude.ai' },
  { name: 'the trailing dot of the root', text: 'claude.ai.', found: 'claude.ai' },
  { name: 'underscores', text: '_https.Claude.ai', found: '_https.claude.ai' },
  { name: 'a U-label', text: 'Bücher.example', found: 'xn--bcher-kva.example' },
  { name: 'letters and dots of full width', text: 'ｃｌａｕｄｅ．ai', found: 'claude.ai' },
  { name: 'one label', text: 'localhost', found: 'localhost' },
  { name: 'as long as a name can be', text: long, found: long },
  { name: 'as long, with the trailing dot', text: `${long}.`, found: long },
  { name: 'one character too long', text: `a${long}`, found: undefined },
  { name: 'a label too long', text: `${'a'.repeat(64)}.ai`, found: undefined },
  { name: 'nothing', text: '', found: undefined },
  { name: 'the root', text: '.', found: undefined },
  { name: 'two trailing dots', text: 'claude.ai..', found: undefined },
  { name: 'an empty label', text: 'claude..ai', found: undefined },
  { name: 'a leading dot', text: '.claude.ai', found: undefined },
  { name: 'a blank', text: 'claude .ai', found: undefined },
  { name: 'a line feed at the end', text: 'claude.ai\n', found: undefined },
  { name: 'a zero byte', text: 'claude.ai\0', found: undefined },
  { name: 'a port', text: 'claude.ai:443', found: undefined },
  { name: 'a long text', text: 'ä'.repeat(100_000), found: undefined },
]

for (const { name, text, found } of cases) {
  t.test(name, async (t) => {
    t.equal(canonicalName(text), found)
    if (found !== undefined) t.equal(canonicalName(found), found, 'a canonical name does not change')
  })
}

t.test('bytes and text give the same result, and a canonical name in upper case is the same name', async () => {
  const text = fc.oneof(
    fc.domain(),
    fc.string({ maxLength: 20 }),
    fc
      .array(fc.constantFrom('a', 'Z', '.', '-', '_', '0', '\0', 'ü', 'x'.repeat(63)), { maxLength: 8 })
      .map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(text, (name) => {
      const bytes = Buffer.from(`x${name}x`)
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const canonical = canonicalName(name)
      return (
        isCanonicalName(view, 1, bytes.length - 1) === (canonical === name) &&
        (canonical === undefined || canonical === canonicalName(canonical.toUpperCase()))
      )
    }),
    { numRuns: 5000 },
  )
})
