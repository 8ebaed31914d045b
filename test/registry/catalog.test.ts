import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readPlatforms } from '../../registry/build.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { cpuMsOf } from '../support/wait.ts'

const folder = t.testdir({})

function load(document: unknown) {
  const file = join(folder, 'registry.json')
  writeFileSync(file, JSON.stringify(document))
  return loadCatalog({ file })
}

t.test('catalog.json matches the YAML files', async (t) => {
  t.same(loadCatalog().platforms, readPlatforms())
})

t.test('rules have a stable order: platforms by type and ID, domains as in the file', async (t) => {
  const { platforms, rules } = loadCatalog()
  t.same(
    rules.map(({ domain }) => domain),
    loadCatalog().rules.map(({ domain }) => domain),
  )
  t.same(
    rules.map(({ domain }) => domain),
    platforms.flatMap(({ domains }) => domains.map(({ domain }) => domain)),
  )
  const types = Object.keys(PLATFORM_TYPES)
  const keys = platforms.map(({ platformType, id }) => `${String(types.indexOf(platformType)).padStart(2, '0')} ${id}`)
  t.same(keys, [...keys].sort())
  t.ok(rules.every(({ platform }) => platforms.includes(platform)))
})

t.test('a changed platform keeps its position, and the other rules keep their order', async (t) => {
  const before = loadCatalog()
  const after = load({ platforms: [{ id: 'claude', name: 'Claude by agreement' }] })
  t.same(
    after.rules.map(({ domain }) => domain),
    before.rules.map(({ domain }) => domain),
  )
  t.equal(after.platforms.find(({ id }) => id === 'claude')?.name, 'Claude by agreement')
})

t.test('a new type adds its category', async (t) => {
  const { platforms } = load({ platforms: [{ id: 'claude', platform_type: 'code_assistant' }] })
  t.match(
    platforms.find(({ id }) => id === 'claude'),
    { category: 'Code Assistant' },
  )
})

t.test('the domains of a changed platform are replaced entirely', async (t) => {
  const domains = [{ domain: 'claude.ai', match: 'exact', role: 'web', specificity: 0.5 }]
  const { rules } = load({ platforms: [{ id: 'claude', domains }] })
  t.match(
    rules.filter(({ platform }) => platform.id === 'claude'),
    domains,
  )
})

t.test('a domain that the file assigns to another platform is removed from the built-in one', async (t) => {
  const domains = [{ domain: 'chatgpt.com', match: 'suffix', role: 'web', specificity: 1 }]
  const { rules } = load({ platforms: [{ id: 'claude', domains }] })
  const owners = rules.filter(({ domain }) => domain === 'chatgpt.com').map(({ platform }) => platform.id)
  t.same(owners, ['claude'])
  t.doesNotThrow(() => compileTrie(rules))
})

t.test('loading and compiling the registry takes less than 50 ms', async (t) => {
  const times = Array.from({ length: 5 }, () => {
    return cpuMsOf(() => compileTrie(loadCatalog().rules))
  })
  const best = Math.min(...times)
  t.ok(best < 50, `${best.toFixed(1)} ms`)
})
