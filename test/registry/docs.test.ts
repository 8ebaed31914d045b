import { readFileSync } from 'node:fs'
import t from 'tap'
import { loadCatalog } from '../../registry/catalog.ts'
import { REGISTRY_PAGE, registryPage } from '../../registry/docs.ts'

t.test('docs/registry.md is in step with the data (npm run docs:registry writes it)', async (t) => {
  t.ok(readFileSync(REGISTRY_PAGE, 'utf8') === registryPage(loadCatalog()))
})

t.test('the page changes when the data does', async (t) => {
  const { platforms, rules } = loadCatalog()
  t.not(registryPage({ platforms: platforms.slice(1), rules }), registryPage({ platforms, rules }))
})
