import t from 'tap'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { ClientWriter } from '../../../engine/store/client-records.ts'
import { ClientSum } from '../../../engine/store/client-sum.ts'

function record(day: number, matches: ReadonlyMap<string, number>) {
  const writer = new ClientWriter()
  writer.begin(day)
  for (const [client, count] of matches) {
    const text = Buffer.from(client)
    const times = { firstSeenMs: day * DAY_MS, lastSeenMs: day * DAY_MS }
    const numbers = {
      methods: 1,
      access: 0,
      matches: count,
      ...times,
      bytesSent: 0,
      bytesReceived: 0,
      blocked: 0,
      touched: 0,
    }
    writer.add(text, 0, text.length, text.length, numbers)
  }
  return { day, platformId: 'claude', bytes: writer.end(0) }
}

t.test('a sum keeps the clients with the most matches, and counts the others', async (t) => {
  const sum = new ClientSum(2)
  for (let day = 0; day < 20; day++) {
    const matches = [
      ['heavy', 100],
      ['steady', 50],
      [`once-${day}`, 1],
      [`twice-${day}`, 2],
    ] as const
    sum.add(record(day, new Map(matches)))
  }
  const clients = sum.clients()
  t.match(clients, [
    { client: 'heavy', matches: 2000, days: 20 },
    { client: 'steady', matches: 1000, days: 20 },
  ])
  t.equal(clients.length, 2)
  t.equal(sum.otherMatches, 60, 'no match is lost')
  t.equal(sum.clients(1).length, 1)
})
