import { randomUUID } from 'node:crypto'
import t from 'tap'
import { makeTokenRateTable, TokenRate, tokenRateHash } from '../../../engine/ingest/rates.ts'

const NOW = Date.parse('2026-11-20T12:00:00Z')

t.test("a token's messages per second are limited across all users of the table", async (t) => {
  const table = makeTokenRateTable()
  const lanes = [new TokenRate(table, 10), new TokenRate(table, 10)]
  const hash = tokenRateHash('d67c3032-f8d2-457f-accc-62dc51002a63')
  const taken = (atMs: number, tries: number, of = hash): number =>
    Array.from({ length: tries }, (_, index) => lanes[index % 2]?.take(of, atMs)).filter(Boolean).length
  t.equal(taken(NOW, 50), 10)
  t.equal(taken(NOW + 900, 50), 0, 'the same second')
  t.equal(taken(NOW + 1000, 4), 4)
  t.equal(taken(NOW + 1500, 50), 6)
  t.equal(lanes[0]?.take(hash, NOW + 999), false, 'a thread whose clock is late does not reset the count')
  t.equal(taken(NOW + 1600, 50), 0)
  t.equal(taken(NOW + 3_600_000, 50), 10, 'never more than a second at once')
  t.equal(taken(NOW, 50), 10, 'a clock that was set back')
  t.equal(taken(NOW, 50, tokenRateHash('00000000-f8d2-457f-accc-62dc51002a63')), 10, 'another token has its own')
})

t.test('with more tokens than slots, all tokens are limited', async (t) => {
  const rate = new TokenRate(makeTokenRateTable(), 2)
  let most = 0
  for (let token = 1; token < 20_000; token++) {
    let taken = 0
    while (rate.take(token, NOW)) taken++
    most = Math.max(most, taken)
  }
  t.equal(most, 2)
})

t.test('realistic tokens have separate allowances, and slots of past seconds are reused', async (t) => {
  const rate = new TokenRate(makeTokenRateTable(), 10)
  for (let second = 0; second < 5; second++) {
    const refused = Array.from({ length: 2000 }, () => tokenRateHash(randomUUID())).filter((hash) => {
      for (let message = 0; message < 10; message++) if (!rate.take(hash, NOW + second * 1000)) return true
      return false
    })
    t.equal(refused.length, 0, `second ${second}`)
  }
})

t.test('returned allowance can be taken again', async (t) => {
  const rate = new TokenRate(makeTokenRateTable(), 1)
  t.equal(rate.take(7, NOW), true)
  t.equal(rate.take(7, NOW), false)
  rate.refund(7, NOW)
  t.equal(rate.take(7, NOW), true)
  t.equal(rate.take(7, NOW + 1000), true)
  rate.refund(7, NOW)
  t.equal(rate.take(7, NOW), true, 'returned by a thread whose clock is late')
  rate.refund(7, NOW + 1000)
  rate.refund(7, NOW + 1000)
  t.equal(rate.take(7, NOW + 1000), true)
  t.equal(rate.take(7, NOW + 1000), false, 'never more than there is')
})
