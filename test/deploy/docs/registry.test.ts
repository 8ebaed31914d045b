import t from 'tap'
import { pageText } from '../../../deploy/docs/main.ts'
import { registryPage } from '../../../deploy/docs/registry.ts'
import { loadCatalog } from '../../../registry/catalog.ts'

t.test('docs/reference/registry.md agrees with the registry (npm run docs writes it)', async (t) => {
  t.ok(pageText('docs/reference/registry.md') === registryPage(loadCatalog()))
})

t.test('the page changes when the registry does', async (t) => {
  const catalog = loadCatalog()
  t.not(registryPage({ ...catalog, platforms: catalog.platforms.slice(1) }), registryPage(catalog))
})
