import { Packr } from 'msgpackr'
import t from 'tap'
import { endOfValue } from '../../../engine/event/msgpack-walk.ts'
import { fieldNames, readFields } from '../../../engine/store/packed-fields.ts'
import * as fc from '../../support/property.ts'

const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })
const packed = (value: unknown): Buffer => Buffer.from(packr.pack(value))
const NAMES = ['a', 'name', 'count', 'timeMs'] as const
const PACKED_NAMES = fieldNames(NAMES)

const inner = fc.jsonValue({ maxDepth: 3 })
const text = fc.string({ unit: 'binary', maxLength: 400 })
const whole = fc.oneof(fc.nat(300), fc.nat(), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }))
const record = fc
  .tuple(fc.dictionary(text, inner, { maxKeys: 20 }), text, text, whole, whole, fc.integer({ min: 0, max: 3 }))
  .map(([others, a, name, count, timeMs, place]) => {
    const entries = Object.entries(others).filter(([key]) => !NAMES.some((each) => each === key))
    const own = Object.entries({ a, name, count, timeMs })
    return Object.fromEntries([...entries.slice(0, place), ...own, ...entries.slice(place)])
  })

const isCommon = (value: unknown): boolean => typeof value !== 'string' || Buffer.byteLength(value) < 256

t.test('the fields of a record are those that unpacking it gives, or are left to unpacking', async () => {
  fc.assert(
    fc.property(record, (value) => {
      const found = readFields(packed(value), PACKED_NAMES)
      if (found === undefined) return ![...Object.values(value), ...Object.keys(value)].every(isCommon)
      return NAMES.every((name, index) => Object.is(found[index], value[name]))
    }),
  )
})

t.test('a value ends where the next one begins', async () => {
  fc.assert(
    fc.property(inner, inner, (first, second) => {
      const [one, two] = [packed(first), packed(second)]
      const both = Buffer.concat([one ?? '', two ?? ''] as Buffer[])
      const view = new DataView(both.buffer, both.byteOffset, both.byteLength)
      return endOfValue(view, 0, both.length) === one?.length && endOfValue(view, 0, (one?.length ?? 0) - 1) === -1
    }),
  )
})

t.test('no bytes make it fail or read beyond their end', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      readFields(Buffer.from(bytes), PACKED_NAMES)
      const end = endOfValue(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, bytes.length)
      return end === -1 || (end > 0 && end <= bytes.length)
    }),
    { numRuns: 2000 },
  )
  fc.assert(
    fc.property(record, fc.nat(), (value, cut) => {
      const bytes = packed(value)
      readFields(bytes.subarray(0, cut % bytes.length), PACKED_NAMES)
    }),
  )
})

t.test('a missing field, or one of another type, is left to unpacking', async (t) => {
  const whole = { a: 'x', name: 'y', count: 1, timeMs: 2 ** 40 }
  t.same(readFields(packed(whole), PACKED_NAMES), ['x', 'y', 1, 2 ** 40])
  for (const other of [{ name: undefined }, { count: -1 }, { count: 1.5 }, { a: null }, { a: ['x'] }, { name: true }]) {
    const { ...value } = { ...whole, ...other }
    if (value.name === undefined) Reflect.deleteProperty(value, 'name')
    t.equal(readFields(packed(value), PACKED_NAMES), undefined, JSON.stringify(other))
  }
  t.equal(readFields(packed([1]), PACKED_NAMES), undefined)
})
