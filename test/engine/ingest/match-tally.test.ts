import t from 'tap'
import { MatchTally } from '../../../engine/ingest/match-tally.ts'
import { loadCatalog } from '../../../registry/catalog.ts'

const catalog = loadCatalog()
const ruleOf = (platformId: string): number => catalog.rules.findIndex(({ platform }) => platform.id === platformId)
const [claude, chatgpt] = ['claude', 'chatgpt'].map(ruleOf) as [number, number]

t.test('matches, clients and times are those of each platform', async (t) => {
  const tally = new MatchTally(catalog)
  tally.add({ rule: claude, client: '10.0.0.1', timeMs: 5000, count: 1 })
  tally.add({ rule: chatgpt, client: '10.0.0.1', timeMs: 7000, count: 4 })
  tally.add({ rule: claude, client: '10.0.0.1', timeMs: 3000, count: 1 })
  tally.add({ rule: claude, client: '10.0.0.2', timeMs: 4000, count: 1 })
  tally.add({ rule: claude, client: '::', timeMs: 4000, count: 1 })
  tally.add({ rule: -1, client: '10.0.0.9', timeMs: 1, count: 1 })
  t.match(tally.platforms, [
    { platformId: 'chatgpt', matches: 4, clients: 1, firstMs: 7000, lastMs: 7000 },
    { platformId: 'claude', matches: 4, clients: 2, clientsIncomplete: false, firstMs: 3000, lastMs: 5000 },
  ])
  t.equal(tally.platforms.length, 2)
})

t.test('the clients that are told apart are bounded, and it is said', async (t) => {
  const tally = new MatchTally(catalog, 3)
  for (let at = 0; at < 9; at++) tally.add({ rule: claude, client: `10.0.0.${at}`, timeMs: 1, count: 1 })
  t.match(tally.platforms, [{ matches: 9, clients: 3, clientsIncomplete: true }])
})
