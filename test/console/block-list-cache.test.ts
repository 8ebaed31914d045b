import t from 'tap'
import { BlockListCache, KEPT_BYTES_MAX } from '../../console/block-lists.ts'
import * as fc from '../support/property.ts'

const QUARTER = 'x'.repeat(KEPT_BYTES_MAX / 4)

t.test('lists beyond the limit displace those used longest ago; their tags stay', async (t) => {
  let dropped = 0
  const kept = new BlockListCache(() => dropped++)
  for (const key of ['a', 'b', 'c', 'd']) kept.keep(key, { inputs: '1', etag: key }, QUARTER)
  t.match(kept.find('a', '1'), { etag: 'a', text: QUARTER })
  kept.keep('e', { inputs: '1', etag: 'e' }, 'x')
  t.equal(dropped, 1)
  t.same(kept.find('b', '1'), { etag: 'b', text: undefined }, 'used longest ago')
  t.match(kept.find('a', '1'), { text: QUARTER })
  kept.keep('a', { inputs: '2', etag: 'a2' }, 'y')
  t.equal(kept.find('a', '1'), undefined, 'made from other inputs')
  t.same(kept.find('a', '2'), { etag: 'a2', text: 'y' })
  kept.keep('f', { inputs: '1', etag: 'f' }, QUARTER)
  t.equal(dropped, 1, 'the replaced list counts no more')
})

t.test('a list that is larger than the limit is not kept, and displaces itself only after the others', async (t) => {
  let dropped = 0
  const kept = new BlockListCache(() => dropped++)
  kept.keep('a', { inputs: '1', etag: 'a' }, `${QUARTER}${QUARTER}${QUARTER}${QUARTER}.`)
  t.same(kept.find('a', '1'), { etag: 'a', text: undefined })
  kept.keep('b', { inputs: '1', etag: 'b' }, 'x')
  t.same(kept.find('b', '1'), { etag: 'b', text: 'x' })
  t.equal(dropped, 1)
})

t.test('whatever is kept and found, the texts are those used last, made from the same inputs', async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f')
  const inputs = fc.constantFrom('1', '2')
  const step = fc.tuple(fc.boolean(), key, inputs, fc.integer({ min: 1, max: 4 }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const kept = new BlockListCache(() => {})
      /** The texts in memory, the one used last at the end. */
      let model: { key: string; inputs: string; quarters: number }[] = []
      for (const [isKeeping, name, made, quarters] of steps) {
        if (isKeeping) {
          kept.keep(name, { inputs: made, etag: `${name} ${made}` }, QUARTER.repeat(quarters))
          model = [...model.filter((each) => each.key !== name), { key: name, inputs: made, quarters }]
          while (model.reduce((sum, each) => sum + each.quarters, 0) > 4) model.shift()
          continue
        }
        const found = kept.find(name, made)
        const expected = model.find((each) => each.key === name && each.inputs === made)
        if (found?.text?.length !== (expected && QUARTER.length * expected.quarters)) return false
        if (found !== undefined && found.etag !== `${name} ${made}`) return false
        if (expected !== undefined) model = [...model.filter((each) => each !== expected), expected]
      }
      return true
    }),
  )
})
