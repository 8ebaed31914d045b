import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { captureFilter } from '../collector/capture/bpf.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../collector/decode/ports.ts'
import { LIVE_RING_BYTES } from '../collector/limits.ts'
import { median, print } from './compare.ts'
import { type CaptureResult, LiveSite, type Played } from './live-site.ts'
import { decodeMix, writeMix } from './workload/decode-mix.ts'
import { writeDnsQueries } from './workload/dns-queries.ts'

/**
 * A live capture on a veth pair that tcpreplay fills: the whole collector, with outbox and a real
 * service, compared with tcpdump and tshark with the same filter, and tcpdump with a ring of the
 * same size. The sender runs on the same cores.
 */
const ROUNDS = 3
const FILTER = captureFilter(
  { dnsPorts: DNS_PORTS, tlsPorts: TLS_PORTS, proxyPorts: PROXY_PORTS, tunnels: false, expression: '' },
  true,
  'wide',
)
const AIM_RATE = 1_000_000
const BOX_RATE = 300_000
const AIM_LOADED_BYTES = 110e6
const AIM_IDLE_BYTES = 90e6

interface Workload {
  readonly name: string
  readonly path: string
  /** Packets of the file that pass the filter. */
  readonly passing: number
}

export async function run({ toy }: { toy: boolean }): Promise<void> {
  const site = new LiveSite(toy ? 300 : 1500)
  const stop = (): void => {
    site.close()
    process.exit(130)
  }
  process.once('SIGINT', stop)
  try {
    await site.open()
    await measure(site, toy)
  } finally {
    process.off('SIGINT', stop)
    site.close()
  }
}

async function measure(site: LiveSite, toy: boolean): Promise<void> {
  const packets = toy ? 20_000 : 1_000_000
  const file = (name: string) => join(site.folder, `${name}.pcap`)
  writeDnsQueries(file('some'), packets, 100)
  writeDnsQueries(file('all'), packets, 1)
  writeDnsQueries(file('few'), packets / 20, 100)
  writeMix(file('mix'), decodeMix(toy ? 2_000 : 20_000, 1), toy ? 1 : 50)
  const workload = (name: string, path: string): Workload => ({ name, path, passing: countPassing(path) })

  const idle = await site.idle(toy ? 2 : 30)
  const { residentBytes, anonymousBytes, startPeakBytes, cpu } = idle
  print(
    `idle  ${megabytes(residentBytes)} resident, ${megabytes(anonymousBytes)} of it anonymous, ${megabytes(startPeakBytes)} while starting; aim ${megabytes(AIM_IDLE_BYTES)} ${reached(residentBytes <= AIM_IDLE_BYTES)}; ${(cpu * 100).toFixed(2)} % of a core, aim 0.5 % ${reached(cpu < 0.005)}`,
  )
  const some = workload('DNS queries, 1 of 100 for an AI platform', file('some'))
  const all = workload('DNS queries, every one for an AI platform', file('all'))
  const mix = workload('mix of 1 GB: DNS, hellos, QUIC and bulk data', file('mix'))
  for (const [each, speed] of [
    [some, `--pps=${AIM_RATE}`],
    [all, `--pps=${AIM_RATE}`],
    [some, '--topspeed'],
    [all, '--topspeed'],
    [mix, '--topspeed'],
  ] as const) {
    await compareOn(site, each, speed, toy ? 1 : ROUNDS)
  }
  await tsharkOn(site, workload('DNS queries, 1 of 100 for an AI platform', file('few')))
  for (const path of [file('some'), file('all')]) await inBox(site, path, toy)
}

/** Runs in turn, so that a slow minute of the machine affects both. */
async function compareOn(
  site: LiveSite,
  { name, path, passing }: Workload,
  speed: string,
  rounds: number,
): Promise<void> {
  const names = namesIn(path)
  const ours: CaptureResult[] = []
  const theirs: CaptureResult[] = []
  const rates: number[] = []
  for (let round = 0; round < rounds; round++) {
    let played: Played = { packets: 0, seconds: 1 }
    const play = async () => {
      played = await site.play(path, speed)
      rates.push(played.packets / played.seconds)
    }
    ours.push(await site.ours(play))
    theirs.push(await site.tcpdump(FILTER, LIVE_RING_BYTES, play))
  }
  const lost = (result: readonly CaptureResult[]) => result.map(({ seen }) => passing - seen)
  const none = lost(ours).every((count) => count === 0) || lost(theirs).some((count) => count > 0)
  const cpuRatio = median(ours.map(cpuOf)) / median(theirs.map(cpuOf))
  print(
    `${name}: ${passing} packets that pass the filter, offered at ${list(rates.map((rate) => Math.round(rate / 1000)))} thousand/s`,
  )
  print(
    `  lost ${list(lost(ours))} | tcpdump -w /dev/null ${list(lost(theirs))}, aim none where it loses none ${reached(none)}; ${cpuRatio.toFixed(2)}x CPU (${seconds(ours)} | ${seconds(theirs)}); peak ${megabytes(Math.max(...ours.map(peakOf)))} | ${megabytes(Math.max(...theirs.map(peakOf)))}, aim ${megabytes(AIM_LOADED_BYTES)} ${reached(Math.max(...ours.map(peakOf)) <= AIM_LOADED_BYTES)}`,
  )
  for (const { seen, dropped } of ours) if (seen < passing) print(`  where ours were lost: ${dropped}`)
  const complete = ours.filter(({ seen }) => seen === passing)
  const wrong = complete.filter((result) => result.names !== names)
  if (wrong.length > 0) throw new Error(`${name}: found ${wrong[0]?.names} names, reading the file finds ${names}`)
  if (ours.some(({ balanced }) => balanced === false)) throw new Error(`${name}: the counters do not balance`)
  print(
    `  counters balance; names equal to those that reading the file finds in ${complete.length} of ${ours.length} rounds without a loss: ${names}`,
  )
}

async function tsharkOn(site: LiveSite, { name, path, passing }: Workload): Promise<void> {
  const play = () => site.play(path, '--topspeed')
  const ours = await site.ours(play)
  const tshark = await site.tshark(FILTER, play)
  print(`${name}, a twentieth of them, for tshark's sake: ${passing} packets`)
  print(
    `  lost ${passing - ours.seen} | tshark -T fields ${passing - tshark.seen}; ${(ours.cpuSeconds / tshark.cpuSeconds).toFixed(2)}x CPU (${ours.cpuSeconds.toFixed(2)} s | ${tshark.cpuSeconds.toFixed(2)} s); peak ${megabytes(ours.peakBytes)} | ${megabytes(tshark.peakBytes)}`,
  )
}

async function inBox(site: LiveSite, path: string, toy: boolean): Promise<void> {
  const loops = toy ? 1 : 3
  let played: Played = { packets: 0, seconds: 1 }
  const result = await site.ours(
    async () => {
      played = await site.play(path, `--pps=${BOX_RATE}`, `--loop=${loops}`)
    },
    { box: true, words: ['--decode-workers', '0'] },
  )
  const rate = Math.round(played.packets / played.seconds / 1000)
  const { matched = 0, seen, cpuSeconds, peakBytes, box } = result
  print(`${box}, ${rate} thousand/s for ${played.seconds.toFixed(1)} s, ${matched} of them matches`)
  print(
    `  lost ${played.packets - seen} of ${played.packets}, aim 0 ${reached(played.packets === seen)}; ${((cpuSeconds / played.seconds) * 100).toFixed(0)} % of a core; peak ${megabytes(peakBytes)}`,
  )
}

function countPassing(path: string): number {
  const words = ['--count', '-r', path, FILTER]
  const reported = execFileSync('tcpdump', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  return Number(/^(\d+) packet/m.exec(reported)?.[1])
}

/** Number of names that the program finds in the file itself. */
function namesIn(path: string): number {
  const collector = new URL('../collector/main.js', import.meta.url).pathname
  const reported = execFileSync(process.execPath, [collector, 'read', '--stats', path], { encoding: 'utf8' })
  return Number(/"counter":"names","count":(\d+)/.exec(reported)?.[1])
}

const cpuOf = ({ cpuSeconds }: CaptureResult) => cpuSeconds
const peakOf = ({ peakBytes }: CaptureResult) => peakBytes
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
const seconds = (result: readonly CaptureResult[]) => `${median(result.map(cpuOf)).toFixed(2)} s`
const list = (numbers: readonly number[]) => numbers.join(', ')
const reached = (yes: boolean) => (yes ? 'reached' : 'not reached')
