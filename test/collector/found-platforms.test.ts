import t from 'tap'
import { FoundPlatforms } from '../../collector/watch.ts'
import type { Catalog } from '../../registry/catalog.ts'

const catalogOf = (...names: string[]): Catalog =>
  ({ rules: names.map((name) => ({ platform: { name } })) }) as unknown as Catalog

t.test('platforms are counted once, even when the registry changes', async (t) => {
  const found = new FoundPlatforms(catalogOf('Claude', 'Claude', 'ChatGPT'))
  const rules =
    (...matched: number[]) =>
    () =>
      matched
  t.equal(found.count(0, rules()), 0)
  t.equal(found.count(2, rules(0, 1)), 1, 'two rules of one platform')
  t.equal(
    found.count(2, () => {
      throw new Error('read without a new match')
    }),
    1,
  )
  t.equal(found.count(3, rules(0, 1, 99)), 1, 'a rule that the registry does not have')
  found.useCatalog(catalogOf('Gemini', 'Claude'), [2])
  t.equal(found.count(4, rules(0)), 3, 'ChatGPT by the old registry, Gemini by the new one')
})
