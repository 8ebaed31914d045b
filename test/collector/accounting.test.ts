import t from 'tap'
import { allBalanced, type Balance, balancesOf } from '../../collector/accounting.ts'
import { type StatusFields, statusOf } from '../support/collector-status.ts'

const dropped = (kernel: number, pool: number, unread: number) => ({ kernel, pool, unread })

const ROWS: readonly { title: string; status: StatusFields; wrong?: readonly [Balance['counter'], number] }[] = [
  { title: 'nothing yet', status: {} },
  {
    title: 'each outcome of a packet',
    status: {
      classes: { dnsQuery: 70, tcpOther: 5 },
      live: { received: 100, taken: 75, seenByBoth: 2, skipped: 3, waiting: 4, dropped: dropped(7, 8, 1) },
    },
  },
  {
    title: 'packets waiting to be decoded',
    status: { classes: { dnsQuery: 70 }, live: { received: 80, taken: 80 } },
  },
  {
    title: 'packets decoded since the last report of the capture',
    status: { classes: { dnsQuery: 90 }, live: { received: 80, taken: 80 } },
  },
  {
    title: 'a packet from the kernel that is counted nowhere',
    status: { classes: { dnsQuery: 70 }, live: { received: 71, taken: 70 } },
    wrong: ['packets', 1],
  },
  {
    title: 'packets still waiting after everything has ended',
    status: { ended: true, classes: { dnsQuery: 70 }, live: { received: 80, taken: 80 } },
    wrong: ['packets', 10],
  },
  { title: 'names', status: { names: 9, matched: 4 } },
  { title: 'matches waiting to be counted', status: { names: 9, matched: 4, matches: 3 } },
  {
    title: 'a match that is counted nowhere',
    status: { ended: true, names: 9, matched: 4, matches: 3 },
    wrong: ['matches', 1],
  },
  { title: 'a match that is counted twice', status: { names: 9, matched: 4, matches: 5 }, wrong: ['matches', -1] },
  {
    title: 'each outcome of an event',
    status: {
      events: { found: 10, made: 90, unwritten: 5, waiting: 40, dropped: { full: 1, tooOld: 1, damaged: 1 } },
      https: { acknowledged: 50, refused: 2 },
    },
  },
  {
    title: 'syslog only',
    status: {
      events: { made: 9, waiting: 4 },
      https: { acknowledged: 100 },
      syslog: { acknowledged: 5 },
      deciding: 'syslog',
    },
  },
  {
    title: 'an event that is counted nowhere',
    status: { events: { found: 10, made: 90, waiting: 40 }, https: { acknowledged: 59 } },
    wrong: ['events', 1],
  },
]

for (const { title, status, wrong } of ROWS) {
  t.test(title, async (t) => {
    const balances = balancesOf(statusOf(status))
    t.equal(allBalanced(balances), wrong === undefined)
    t.same(
      balances.filter(({ difference }) => difference !== 0).map(({ counter, difference }) => [counter, difference]),
      wrong === undefined ? [] : [wrong],
    )
    for (const { total, outcomes, difference } of balances) {
      t.equal(Object.values(outcomes).reduce((sum, count) => sum + count, 0) + difference, total)
    }
  })
}

t.test('the packets of a file are the sum of its classes', async (t) => {
  const [packets] = balancesOf({ ...statusOf({ classes: { dnsQuery: 3, notIp: 1 } }), live: undefined })
  t.same(packets, { counter: 'packets', total: 4, outcomes: { notIp: 1, dnsQuery: 3 }, difference: 0 })
})
