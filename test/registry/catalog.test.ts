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

t.test('catalog.json is in step with the YAML it is made from', async (t) => {
  t.same(loadCatalog().platforms, readPlatforms())
})

t.test('rules come in a stable order: platforms by type and id, domains as they stand', async (t) => {
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

t.test('a changed platform keeps its place, and the rest of the rules their order', async (t) => {
  const before = loadCatalog()
  const after = load({ platforms: [{ id: 'claude', name: 'Claude by agreement' }] })
  t.same(
    after.rules.map(({ domain }) => domain),
    before.rules.map(({ domain }) => domain),
  )
  t.equal(after.platforms.find(({ id }) => id === 'claude')?.name, 'Claude by agreement')
})

t.test('another type brings its category', async (t) => {
  const { platforms } = load({ platforms: [{ id: 'claude', platform_type: 'code_assistant' }] })
  t.match(
    platforms.find(({ id }) => id === 'claude'),
    { category: 'Code Assistant' },
  )
})

t.test('domains of a changed platform are replaced as a whole', async (t) => {
  const domains = [{ domain: 'claude.ai', match: 'exact', role: 'web', specificity: 0.5 }]
  const { rules } = load({ platforms: [{ id: 'claude', domains }] })
  t.match(
    rules.filter(({ platform }) => platform.id === 'claude'),
    domains,
  )
})

t.test('a domain that the file gives to another platform is taken from the built-in one', async (t) => {
  const domains = [{ domain: 'chatgpt.com', match: 'suffix', role: 'web', specificity: 1 }]
  const { rules } = load({ platforms: [{ id: 'claude', domains }] })
  const owners = rules.filter(({ domain }) => domain === 'chatgpt.com').map(({ platform }) => platform.id)
  t.same(owners, ['claude'])
  t.doesNotThrow(() => compileTrie(rules))
})

t.test('a start needs less than 50 ms for the registry: loaded and compiled', async (t) => {
  const times = Array.from({ length: 5 }, () => {
    return cpuMsOf(() => compileTrie(loadCatalog().rules))
  })
  const best = Math.min(...times)
  t.ok(best < 50, `${best.toFixed(1)} ms`)
})
