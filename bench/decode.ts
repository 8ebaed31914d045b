import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PerformanceObserver } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { allocateBatch, BatchState, FrameBatch } from '../collector/batch/frame-batch.ts'
import { BatchDecoder } from '../collector/decode/decode-batch.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../collector/decode/ports.ts'
import { BATCH_FRAME_BYTES, BATCH_LIST_FRAMES, BATCH_ROW_BYTES } from '../collector/limits.ts'
import { RESOLVERS } from '../collector/visibility.ts'
import { loadCatalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { median, print } from './compare.ts'
import { type Run, timed } from './timed-run.ts'
import { decodeMix, type Mix, type MixPart, writeMix } from './workload/decode-mix.ts'

/**
 * From a capture file to its names, as whole processes: the program's own `read`, tcpdump with a
 * filter that passes the same packets, tshark and ndpiReader, which find the same names, and cat
 * for the cost of reading. Also the decode loop alone: packets per second of one and two workers,
 * microseconds per QUIC Initial, and heap growth.
 */
const RUNS = 5
const LARGE_RUNS = 3
const MIX_PACKETS = 20_000
const COLLECTOR = fileURLToPath(new URL('../collector/main.js', import.meta.url))

export async function run(options: { toy: boolean }): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-decode-'))
  try {
    const mix = decodeMix(options.toy ? 2_000 : MIX_PACKETS, 1)
    const repetitions = options.toy ? 1 : 50
    const path = join(folder, 'mix.pcap')
    writeMix(path, mix, repetitions)
    wholeProcesses(path, mix, repetitions, { rounds: options.toy ? 1 : RUNS, aim: 2, slowPeers: true })
    if (!options.toy) {
      // The start of the programs counts less.
      writeMix(path, mix, 10 * repetitions)
      wholeProcesses(path, mix, 10 * repetitions, { rounds: LARGE_RUNS, aim: 1.5, slowPeers: false })
    }
    await loops(options.toy)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

interface Comparison {
  readonly rounds: number
  /** The most of tcpdump's time. */
  readonly aim: number
  /** Whether tshark and ndpiReader run, too. */
  readonly slowPeers: boolean
}

function wholeProcesses(path: string, mix: Mix, repetitions: number, { rounds, aim, slowPeers }: Comparison): void {
  const packets = mix.frames.length * repetitions
  const names = (mix.names.dns + mix.names.tls + mix.names.quic) * repetitions
  print(`file of ${packets} packets, ${Math.round(statSync(path).size / 1e6)} MB, ${names} names`)
  const ours = () => timed(process.execPath, [COLLECTOR, 'read', '--stats', path])
  // Answers are compared first.
  const first = ours()
  same('ours', Number(/"counter":"names","count":(\d+)/.exec(first.stdout)?.[1]), names)

  const tcpdump = versionOf('tcpdump')
  const tls = '(tcp dst port 443 and ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) != 0)'
  const filter = `udp dst port 53 or ${tls} or udp dst port 443`
  const our: Run[] = []
  const theirs: Run[] = []
  const cat: Run[] = []
  for (let round = 0; round < rounds; round++) {
    our.push(ours())
    if (tcpdump !== undefined) theirs.push(timed('tcpdump', ['-r', path, '-w', '/dev/null', filter]))
    cat.push(timed('cat', [path]))
  }
  print(`read and match  ${textOf(our)}`)
  if (tcpdump === undefined) print('tcpdump is not installed: nothing to compare with')
  else {
    const kept = spawnSync('tcpdump', ['--count', '-r', path, filter], { encoding: 'utf8' })
    const all = Number(/^(\d+) packet/m.exec(kept.stdout + kept.stderr)?.[1])
    same('tcpdump', all, names + mix.frames.filter(isSecondSegment).length * repetitions)
    report('tcpdump -w /dev/null with the equal filter', tcpdump, our, theirs, { atMost: aim })
  }
  print(`cat, which only reads  ${textOf(cat)}`)
  if (!slowPeers) return

  const shown = ['-e', 'dns.qry.name', '-e', 'tls.handshake.extensions_server_name']
  const tsharkVersion = versionOf('tshark')
  if (tsharkVersion === undefined) print('tshark is not installed: nothing to compare with')
  else {
    const tshark = timed('tshark', ['-n', '-r', path, '-T', 'fields', ...shown])
    // A line without a name contains only tabs.
    same('tshark', tshark.stdout.split('\n').filter((line) => line.trim() !== '').length, names)
    report('tshark -T fields, names equal', tsharkVersion, our, [tshark], { atMost: 1 / 40 })
  }
  const ndpi = versionOf('ndpiReader', ['-h'])
  if (ndpi === undefined) print('ndpiReader is not installed: nothing to compare with')
  else
    report('ndpiReader, which finds protocols too', ndpi, our, [timed('ndpiReader', ['-i', path])], { atMost: 1 / 30 })
}

/** The second segment of a post-quantum hello has no name of its own. */
function isSecondSegment(frame: Buffer): boolean {
  return frame.readUInt8(23) === 6 && frame.readUInt16BE(36) === 443 && frame.readUInt32BE(38) !== 1
}

function report(
  name: string,
  version: string,
  ours: readonly Run[],
  peer: readonly Run[],
  aim: { atMost: number },
): void {
  const ratio = median(ours.map(wall)) / median(peer.map(wall))
  const cpu = median(ours.map(cpuOf)) / median(peer.map(cpuOf))
  const reached = ratio <= aim.atMost ? 'reached' : 'not reached'
  print(
    `  ${ratio.toFixed(3)}x wall, ${cpu.toFixed(3)}x CPU of ${name} (${version}: ${textOf(peer)}); aim ${aim.atMost.toFixed(3)}x ${reached}`,
  )
}

const wall = ({ wallSeconds }: Run) => wallSeconds
const cpuOf = ({ cpuSeconds }: Run) => cpuSeconds

function textOf(runs: readonly Run[]): string {
  const walls = runs.map(wall).sort((a, b) => a - b)
  const spread = ((walls.at(-1) ?? 0) - (walls[0] ?? 0)) / 2 / median(walls)
  const times = `${median(walls).toFixed(2)} s ±${Math.round(spread * 100)}%`
  return `${times} wall, ${median(runs.map(cpuOf)).toFixed(2)} s CPU${runs.length === 1 ? ', one run' : ''}`
}

function versionOf(program: string, parameters: readonly string[] = ['--version']): string | undefined {
  const asked = spawnSync(program, parameters, { encoding: 'utf8' })
  if (asked.error !== undefined) return undefined
  return /\d+\.\d+(?:\.\d+)?/.exec(asked.stdout + asked.stderr)?.[0] ?? 'version unknown'
}

function same(label: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${label}: found ${found}, expected ${expected}`)
}

/** A decoder, and batches of a mix prepared in memory. */
class Loop {
  readonly #decoder: BatchDecoder
  readonly #batches: FrameBatch[] = []
  readonly frames: number
  names = 0

  constructor(mix: Mix, matching: boolean) {
    const rules = matching ? loadCatalog().rules : []
    this.#decoder = new BatchDecoder(0, {
      trie: compileTrie(rules),
      resolvers: compileTrie(RESOLVERS),
      everyName: false,
      dnsPorts: DNS_PORTS,
      tlsPorts: TLS_PORTS,
      proxyPorts: PROXY_PORTS,
      loadBalancers: [],
    })
    let batch: FrameBatch | undefined
    let offset = 0
    for (const frame of mix.frames) {
      if (batch === undefined || offset + frame.length > batch.framesEnd || batch.freeEntries === 0) {
        const sizes = { frameBytes: BATCH_FRAME_BYTES, rowBytes: BATCH_ROW_BYTES, listFrames: BATCH_LIST_FRAMES }
        batch = new FrameBatch(allocateBatch(1, sizes), this.#batches.length)
        batch.tryTake()
        batch.beginFilling(0)
        this.#batches.push(batch)
        offset = batch.framesStart
      }
      batch.bytes.set(frame, offset)
      batch.list(0, offset, frame.length, 1_000, 0, 1)
      offset += frame.length
    }
    for (const each of this.#batches) each.pass(BatchState.filling, BatchState.ready)
    this.frames = mix.frames.length
  }

  /** Decodes all batches once. Writes `client` to the addresses, so that connections are new. */
  turn(client: number): void {
    for (const batch of this.#batches) {
      const section = batch.lane(0)
      for (let frame = 0; frame < section.frames; frame++) batch.view.setUint8(section.frameOffset(frame) + 28, client)
      section.rewind()
      while (!this.#decoder.decode(batch)) this.names += section.run.names
      this.names += section.run.names
    }
  }
}

const ADDRESS_TURNS = 250

/**
 * Measures packets per second over at least `packets`, after two warm-up turns, with heap growth
 * and garbage collections.
 */
async function measure(
  loop: Loop,
  packets: number,
): Promise<{ perSecond: number; heapKb: number; collections: number; packets: number }> {
  const turns = Math.max(1, Math.ceil(packets / loop.frames))
  loop.turn(0)
  loop.turn(1)
  let collections = 0
  const observer = new PerformanceObserver((list) => {
    collections += list.getEntries().filter(({ startTime }) => startTime >= startMs).length
  })
  observer.observe({ entryTypes: ['gc'] })
  const heapBefore = process.memoryUsage().heapUsed
  const startMs = performance.now()
  for (let turn = 0; turn < turns; turn++) loop.turn(2 + (turn % ADDRESS_TURNS))
  const seconds = (performance.now() - startMs) / 1000
  const heapKb = Math.round((process.memoryUsage().heapUsed - heapBefore) / 1024)
  // Garbage collections are reported in a later turn of the event loop.
  await new Promise((resolve) => setTimeout(resolve, 10))
  observer.disconnect()
  return { perSecond: (turns * loop.frames) / seconds, heapKb, collections, packets: turns * loop.frames }
}

const million = (perSecond: number) => `${(perSecond / 1e6).toFixed(2)} million packets/s`
const NOT_QUIC: readonly MixPart[] = ['dns', 'hello', 'postQuantum', 'bulk']

async function loops(toy: boolean): Promise<void> {
  const packets = toy ? 2_000 : MIX_PACKETS
  const many = toy ? 2_000 : 3_000_000
  const whole = await measure(new Loop(decodeMix(packets, 1), true), many)
  const reached = whole.perSecond >= 3e6 ? 'reached' : 'not reached'
  print(`decode loop, the mix, every connection new  ${million(whole.perSecond)} a worker; aim 3 million ${reached}`)

  const plain = await measure(new Loop(decodeMix(packets, 1, NOT_QUIC), false), toy ? 2_000 : 10_000_000)
  print(
    `decode loop, the mix without QUIC and without a match  ${million(plain.perSecond)}; over ${plain.packets} packets the heap grew by ${plain.heapKb} kB, ${plain.collections} garbage collections`,
  )

  const quic = await measure(new Loop(decodeMix(toy ? 20 : 500, 1, ['quic']), true), toy ? 20 : 50_000)
  const microseconds = 1e6 / quic.perSecond
  print(
    `QUIC Initial, keys and all  ${microseconds.toFixed(1)} us each; aim 25 us ${microseconds <= 25 ? 'reached' : 'not reached'}`,
  )

  const one = await inWorkers(1, packets, many)
  const two = await inWorkers(2, packets, many)
  const gain = two / one
  print(
    `two workers, each its own batches  ${gain.toFixed(2)}x of one (${million(two)} | ${million(one)}); aim 1.7x ${gain >= 1.7 ? 'reached' : 'not reached'}`,
  )
}

/** Packets per second of all workers together. */
async function inWorkers(count: number, mixPackets: number, packets: number): Promise<number> {
  const rates = await Promise.all(
    Array.from({ length: count }, () => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { mixPackets, packets }, execArgv: [] })
      return new Promise<number>((resolve, reject) => {
        worker.once('message', resolve)
        worker.once('error', reject)
      })
    }),
  )
  return rates.reduce((sum, rate) => sum + rate, 0)
}

if (!isMainThread && parentPort !== null) {
  const { mixPackets, packets } = workerData as { mixPackets: number; packets: number }
  const { perSecond } = await measure(new Loop(decodeMix(mixPackets, 1), true), packets)
  parentPort.postMessage(perSecond)
}
