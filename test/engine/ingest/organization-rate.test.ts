import t from 'tap'
import { OrganizationRate } from '../../../engine/ingest/rates.ts'

t.test('the rate counts per organization and second, for a limited number of organizations', async (t) => {
  const rate = new OrganizationRate(2, 2)
  t.same(
    ['a', 'a', 'a', 'b', 'c', 'b', 'b'].map((organization) => rate.take(organization, 1000)),
    [true, true, false, true, false, true, false],
  )
  t.equal(rate.take('a', 1999), false)
  t.equal(rate.take('c', 2000), true, 'another second')
  t.equal(rate.take('a', 500), true, 'a clock that was set back')
})
