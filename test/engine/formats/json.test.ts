import t from 'tap'
import { JSON_DEPTH_MAX, JsonKind, JsonScanner } from '../../../engine/formats/json.ts'
import * as fc from '../../support/property.ts'

/**
 * The members of the outermost object as the scanner finds them, or undefined if the text is not an
 * object.
 */
function members(text: string): Record<string, unknown> | undefined {
  const bytes = Buffer.from(text)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const scanner = new JsonScanner()
  const found: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  scanner.open(view, 0, bytes.length)
  for (;;) {
    const kind = scanner.next()
    if (kind === JsonKind.end) return found
    if (kind === JsonKind.broken) return undefined
    const key = JSON.parse(`"${bytes.toString('utf8', scanner.keyStart, scanner.keyEnd)}"`) as string
    if (kind === JsonKind.object && scanner.depth === 2) found[key] = {}
    if (scanner.depth !== 1) continue
    const value = bytes.toString('utf8', scanner.start, scanner.end)
    found[key] = JSON.parse(kind === JsonKind.string ? `"${value}"` : value)
  }
}

/** The expected members, by JSON.parse, without members of nested objects. */
function parsed(text: string): Record<string, unknown> {
  const found: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const [key, value] of Object.entries(JSON.parse(text) as Record<string, unknown>)) {
    found[key] = typeof value === 'object' && value !== null && !Array.isArray(value) ? {} : value
  }
  return found
}

const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 8 })

t.test('the scanner finds what JSON.parse finds, with any indentation', async (t) => {
  fc.assert(
    fc.property(object, fc.nat(3), (value, indent) => {
      const text = JSON.stringify(value, null, indent)
      t.same(members(text), parsed(text), { diagnostic: false })
    }),
    { numRuns: 500 },
  )
})

t.test('a truncated text is not an object', async (t) => {
  fc.assert(
    fc.property(object, (value) => {
      const text = JSON.stringify(value)
      for (let end = 0; end < text.length; end++) if (members(text.slice(0, end)) !== undefined) return false
      return true
    }),
    { numRuns: 200 },
  )
  t.pass()
})

for (const text of [
  ...['', ' ', '[]', '"a"', '{', '}', '{}}', '{}{}', '{"a"}', '{"a":}', '{"a":1', '{"a":1,}', '{,}', '{"a":1 "b":2}'],
  ...['{"a":[}', '{"a":[1}]', '{"a":{]}', '{"a":"\\"}', "{'a':1}", '{a:1}', '{"a"::1}', '{"a":[1}}', '{"a":1}x'],
]) {
  t.test(`not an object: ${text}`, async (t) => t.equal(members(text), undefined))
}

t.test('nesting is limited', async (t) => {
  const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  t.same(members(nested(JSON_DEPTH_MAX)), { a: {} })
  t.equal(members(nested(JSON_DEPTH_MAX + 1)), undefined)
  t.same(members(`{"a":${'['.repeat(JSON_DEPTH_MAX)}${']'.repeat(JSON_DEPTH_MAX)}}`) === undefined, false)
  t.equal(members(`{"a":${'['.repeat(JSON_DEPTH_MAX + 1)}${']'.repeat(JSON_DEPTH_MAX + 1)}}`), undefined)
})
