import t from 'tap'
import { BoundedMap } from '../../../../engine/kernel/process/bounded-map.ts'

t.test('beyond the limit, the entry that was set least recently is removed', async (t) => {
  const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  t.same(
    [...map],
    [
      ['a', 3],
      ['c', 4],
    ],
  )
})
