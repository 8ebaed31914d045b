import t from 'tap'
import { MatchTally } from '../../../../engine/kernel/event/match-tally.ts'
import { matcher } from '../../../support/store.ts'

const [claude, chatgpt] = ['CLAUDE.ai', 'chatgpt.com'] as const

t.test('matches, clients and times are those of each platform', async (t) => {
  const tally = new MatchTally(matcher)
  tally.add({ name: claude, client: '10.0.0.1', timeMs: 5000, count: 1 })
  tally.add({ name: chatgpt, client: '10.0.0.1', timeMs: 7000, count: 4 })
  tally.add({ name: claude, client: '10.0.0.1', timeMs: 3000, count: 1 })
  tally.add({ name: claude, client: '10.0.0.2', timeMs: 4000, count: 1 })
  tally.add({ name: claude, client: '::', timeMs: 4000, count: 1 })
  tally.add({ name: 'nobody.example', client: '10.0.0.9', timeMs: 1, count: 1 })
  t.match(tally.platforms, [
    { platformId: 'chatgpt', matches: 4, clients: 1, firstMs: 7000, lastMs: 7000 },
    { platformId: 'claude', matches: 4, clients: 2, clientsIncomplete: false, firstMs: 3000, lastMs: 5000 },
  ])
  t.equal(tally.platforms.length, 2)
})

t.test('the number of distinct clients is bounded, and the report says so', async (t) => {
  const tally = new MatchTally(matcher, 3)
  for (let at = 0; at < 9; at++) tally.add({ name: claude, client: `10.0.0.${at}`, timeMs: 1, count: 1 })
  t.match(tally.platforms, [{ matches: 9, clients: 3, clientsIncomplete: true }])
})
