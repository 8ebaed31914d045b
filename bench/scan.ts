import { fork } from 'node:child_process'
import { type Figure, inDirectory, inTurn, median, messageOf, type Size, same } from './harness.ts'
import { duckdbPeer, type ScanPeer, sqlitePeer } from './peers/scan-sql.ts'
import type { ScanMeasured } from './scan-child.ts'
import { ScanEvents } from './workload/scan-events.ts'

/**
 * How fast buffered events become a scan, on evidence that grows. Ours adds the buffer to the
 * evidence, publishes and empties it, each scan durable. The databases add the same events from a
 * table into tables of days, names and clients, and empty it. They are given the platform of each
 * name, which ours must find, and they publish nothing.
 */
const AIMS = new Map([
  [1, 4_000_000],
  [10_000, 300_000],
])

export async function run(size: Size): Promise<Figure[]> {
  const events = { toy: 2000, short: 200_000, full: 1_000_000 }[size]
  const counts = { toy: [1, 10], short: [1], full: [1, 100, 10_000] }[size]
  const figures: Figure[] = []
  for (const organizations of counts) figures.push(...(await compareScans(organizations, events, size)))
  if (size === 'short') return figures
  const { ms, platforms } = await inChild('publish', size === 'toy' ? '3' : '30')
  const what = `one changed platform of ${platforms}`
  return [...figures, { what, unit: 'ms', ours: median(ms), aim: { atMost: 10 } }]
}

async function compareScans(organizations: number, events: number, size: Size): Promise<Figure[]> {
  const rounds = size === 'toy' ? 1 : 3
  const each = events / organizations
  return inDirectory(async (directory) => {
    // In a separate process, so that its memory is separate from the peers'.
    const measured = await inChild('scan', String(organizations), String(each), String(rounds))
    const peers: ScanPeer[] = []
    try {
      for (const open of [sqlitePeer, duckdbPeer]) {
        const peer = size === 'toy' && open === duckdbPeer ? undefined : await open(directory, size !== 'toy')
        if (peer !== undefined) peers.push(peer)
      }
      const work = new ScanEvents(Date.now())
      const ours = { name: 'ours', run: (round: number) => events / ((measured.ms[round] ?? 0) / 1000) }
      const others = peers.map((peer) => ({
        name: peer.name,
        run: async (round: number) => {
          await peer.fill(rowsOf(work, organizations, round * each, (round + 1) * each))
          const start = performance.now()
          await peer.scan()
          return events / ((performance.now() - start) / 1000)
        },
      }))
      const figure = await inTurn(rounds, [ours, ...others])
      for (const peer of peers) same(peer.name, await peer.sums(), measured.sums)
      const aim = AIMS.get(organizations)
      return [
        {
          what: `scan of ${events} events of ${organizations} organizations`,
          unit: 'events/s',
          ...figure,
          ...(aim !== undefined && { aim: { atLeast: aim } }),
        },
        { what: 'its anonymous memory', unit: 'MB', ours: measured.anonymousMb },
      ]
    } finally {
      for (const peer of peers) await peer.close()
    }
  })
}

function* rowsOf(work: ScanEvents, organizations: number, first: number, end: number) {
  for (let organization = 0; organization < organizations; organization++) {
    for (let number = first; number < end; number++) yield work.row(organization, number)
  }
}

function inChild(...words: string[]): Promise<ScanMeasured> {
  return messageOf(fork(new URL('./scan-child.js', import.meta.url), words))
}
