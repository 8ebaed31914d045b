import t from 'tap'
import { globOf } from '../../registry/glob.ts'
import * as fc from '../support/property.ts'

t.test('a glob matches like its regular expression', async (t) => {
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 })
  const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 8 })
  fc.assert(
    fc.property(pattern, text, (glob, name) => {
      return globOf(glob)(name) === new RegExp(`^${glob.replaceAll('*', '.+')}$`).test(name)
    }),
    { numRuns: 2000 },
  )
  t.pass()
})

t.test('many stars do not multiply the work', async (t) => {
  // A regular expression would need about 7 to the power of the number of stars steps.
  t.equal(globOf(`${'*a'.repeat(31)}*b`)('a'.repeat(63)), false)
})
