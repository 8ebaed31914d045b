import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { aimText, median, print, ratio, shown } from './compare.ts'
import { duckdbPeer, type ScanPeer, sqlitePeer } from './peers/scan-sql.ts'
import type { ScanBenchAnswer } from './scan-answer.ts'
import { measureLatency } from './scan-latency.ts'
import { ScanEvents } from './workload/scan-events.ts'

/**
 * How fast buffered events become a scan. Ours adds the buffer to the evidence, publishes and
 * empties it, each scan durable. The databases add the same events from a table into tables of
 * days, names and clients, and empty it. They are given the platform of each name, which ours must
 * find, and they publish nothing. Ours keeps who used each platform; the second row is without
 * that.
 */
const EVENTS_AIM = 2_000_000
const MEMORY_AIM_MB = 256
const ROUNDS = 3

export async function run({ toy }: { toy: boolean }): Promise<void> {
  const events = toy ? 2000 : 1_000_000
  for (const organizations of toy ? [1, 10] : [1, 100, 10_000]) await compareScans(organizations, events, toy)
  await costOfPlatforms(toy)
  await inChild(['pairs', toy ? '20000' : '10000000'])
  await measureLatency({ toy })
}

async function compareScans(organizations: number, events: number, toy: boolean): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'posture-bench-'))
  const peers: ScanPeer[] = []
  try {
    const work = new ScanEvents(Date.now())
    const each = events / organizations
    for (const open of [sqlitePeer, duckdbPeer]) {
      const peer = toy && open === duckdbPeer ? undefined : await open(directory, !toy)
      if (peer !== undefined) peers.push(peer)
    }
    const rounds = toy ? 1 : ROUNDS
    // In a separate process, so that its memory is separate from the peers'.
    const words = ['scan', String(organizations), String(each), String(rounds)]
    const ours = await inChild(words)
    const withoutClients = await inChild([...words, 'no-clients'])
    if (JSON.stringify(withoutClients.sums) !== JSON.stringify(ours.sums)) throw new Error('other sums without clients')
    const rates = peers.map(() => [] as number[])
    for (let round = 0; round < rounds; round++) {
      for (const [index, peer] of peers.entries()) {
        await peer.fill(rowsOf(work, organizations, round * each, (round + 1) * each))
        const start = performance.now()
        await peer.scan()
        rates[index]?.push(events / ((performance.now() - start) / 1000))
      }
    }
    for (const peer of peers) {
      const sums = await peer.sums()
      if (JSON.stringify(sums) !== JSON.stringify(ours.sums)) {
        throw new Error(`${peer.name} comes to ${JSON.stringify(sums)}, ours to ${JSON.stringify(ours.sums)}`)
      }
    }
    const rate = median(ours.rates)
    print(
      `${shown(events)} events of ${shown(organizations)} organizations, ${shown(ours.platforms)} platforms published; medians of ${rounds} rounds on evidence that grows`,
    )
    const aim = organizations === 1 ? `, aim ${shown(EVENTS_AIM)} ${aimText(rate >= EVENTS_AIM)}` : ''
    print(
      `  ours ${shown(rate)} events/s${aim}; aggregation alone ${shown(median(ours.aggregateRates))}; anonymous memory ${ours.anonymousMegabytes} MB, aim ${MEMORY_AIM_MB} ${aimText(ours.anonymousMegabytes <= MEMORY_AIM_MB)}`,
    )
    const rateWithout = median(withoutClients.rates)
    print(
      `  ${ratio(rate / rateWithout)} ours with clients off  (${shown(rateWithout)} events/s; aggregation alone ${shown(median(withoutClients.aggregateRates))}, ${withoutClients.anonymousMegabytes} MB)  sums equal`,
    )
    peers.forEach(({ name }, index) => {
      const peer = median(rates[index] ?? [])
      print(`  ${ratio(rate / peer)} ${name}  (${shown(peer)} events/s)  sums equal ${JSON.stringify(ours.sums)}`)
    })
  } finally {
    for (const peer of peers) await peer.close()
    rmSync(directory, { recursive: true })
  }
}

function* rowsOf(work: ScanEvents, organizations: number, first: number, end: number) {
  for (let organization = 0; organization < organizations; organization++) {
    for (let number = first; number < end; number++) yield work.row(organization, number)
  }
}

/** Cost of a scan that adds little and publishes much. */
async function costOfPlatforms(toy: boolean): Promise<void> {
  const { milliseconds, platforms, days } = await inChild(['publish', toy ? '3' : '30'])
  print(
    `publishing ${platforms} platforms with evidence of ${days} days: ${milliseconds.toFixed(0)} ms a scan, ${((milliseconds / platforms) * 1000).toFixed(0)} us a platform`,
  )
}

async function inChild(words: readonly string[]): Promise<ScanBenchAnswer> {
  const child = fork(new URL('./scan-child.js', import.meta.url), words)
  const exited = once(child, 'exit')
  const [answer] = (await Promise.race([
    once(child, 'message'),
    exited.then(([status]) => {
      throw new Error(`the measured process ended with ${status}`)
    }),
  ])) as [ScanBenchAnswer]
  await exited
  return answer
}
