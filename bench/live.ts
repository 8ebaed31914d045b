import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { captureFilter } from '../collector/capture/bpf.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../collector/decode/ports.ts'
import { LIVE_RING_BYTES } from '../collector/limits.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { admin, PROGRAMS, type RunningService, startService } from '../test/support/programs.ts'
import { until } from '../test/support/wait.ts'
import {
  cpuSeconds,
  type Figure,
  inDirectory,
  isInstalled,
  memoryMb,
  type Size,
  same,
  timed,
  valuesInTurn,
} from './harness.ts'
import { writeDnsQueries } from './workload/dns-queries.ts'

/**
 * A live capture on a veth pair in a network namespace, which tcpreplay fills: the whole collector,
 * with outbox and a real service, in turn with tcpdump with the same filter and a ring of the same
 * size. The sender runs on the same cores.
 */
const PORTS = { dnsPorts: DNS_PORTS, tlsPorts: TLS_PORTS, proxyPorts: PROXY_PORTS }
const FILTER = captureFilter({ ...PORTS, tunnels: false, expression: '' }, true, 'wide')
const TCPDUMP = ['tcpdump', '-i', 'far', '-n', '-w', '/dev/null', '-B', String(LIVE_RING_BYTES / 1024), FILTER]
const PACKETS_PER_SECOND = 500_000
/** Packages with the programs that it needs. */
const PACKAGES: Readonly<Record<string, string>> = { ip: 'iproute2', tcpreplay: 'tcpreplay', tcpdump: 'tcpdump' }
const HEALTH_PORT = '19091'

export async function run(size: Size): Promise<Figure[]> {
  if (process.getuid?.() !== 0) throw new Fault('USAGE', 'live: needs root, for a network namespace')
  const missing = Object.entries(PACKAGES).filter(([tool]) => !isInstalled(tool))
  if (missing.length > 0) throw new Fault('USAGE', `live: apt-get install ${missing.map(([, name]) => name).join(' ')}`)
  const [packets, rounds] = { toy: [20_000, 1], short: [1_000_000, 1], full: [1_000_000, 3] }[size] as [number, number]
  return inDirectory(async (folder) => {
    const site = new LiveSite(folder, size === 'toy' ? 300 : 1500)
    const stop = (): void => {
      site.close()
      process.exit(130)
    }
    process.once('SIGINT', stop)
    try {
      await site.open()
      const idle = await site.ours(() => sleep(size === 'full' ? 30_000 : 2_000))
      const [memory, perMillion] = await compareOn(site, packets, rounds)
      return [
        ...(perMillion ?? []),
        { what: 'peak memory under load', unit: 'MB', ours: memory, aim: { atMost: 110 } },
        { what: 'memory when idle', unit: 'MB', ours: idle.residentMb, aim: { atMost: 90 } },
      ]
    } finally {
      process.off('SIGINT', stop)
      site.close()
    }
  })
}

/** DNS queries, each for an AI platform. */
async function compareOn(site: LiveSite, packets: number, rounds: number): Promise<[number, Figure[]]> {
  const path = join(site.folder, 'all.pcap')
  writeDnsQueries(path, packets)
  const { text } = timed(process.execPath, [PROGRAMS.collector, 'read', '--stats', path])
  const names = Number(/"counter":"names","count":(\d+)/.exec(text)?.[1])
  let peakMb = 0
  const play = () => site.play(path)
  const valuesOf = ({ seen, cpu }: Captured): number[] => [(packets - seen) / packets, cpu / (packets / 1e6)]
  const [lost, cpu] = await valuesInTurn(rounds, [
    {
      name: 'ours',
      run: async () => {
        const captured = await site.ours(play)
        peakMb = Math.max(peakMb, captured.peakMb)
        if (captured.seen === packets) same('names of the capture and the file', captured.names, names)
        return valuesOf(captured)
      },
    },
    { name: 'tcpdump -w /dev/null', run: async () => valuesOf(await site.tcpdump(play)) },
  ])
  const what = `${packets} DNS queries for AI platforms, offered at ${PACKETS_PER_SECOND}/s`
  return [
    peakMb,
    [
      { what: `${what}: lost part`, unit: '', ours: Number.NaN, ...lost, aim: { atMost: 0 } },
      { what: 'CPU for a million', unit: 's', ours: Number.NaN, ...cpu },
    ],
  ]
}

interface Captured {
  /** Packets that reached user space. */
  readonly seen: number
  readonly cpu: number
}

interface OurCapture extends Captured {
  readonly names: number
  readonly peakMb: number
  /** After the work. */
  readonly residentMb: number
}

class LiveSite {
  readonly folder: string
  readonly #name = `spsbench${process.pid}`
  readonly #children = new Set<ChildProcess>()
  /** Time after which all packets in flight have been captured. */
  readonly #quietMs: number
  #service: RunningService | undefined
  #token = ''

  constructor(folder: string, quietMs: number) {
    this.folder = folder
    this.#quietMs = quietMs
  }

  async open(): Promise<void> {
    execFileSync('ip', ['netns', 'add', this.#name])
    for (const which of ['all', 'default']) this.#run('sysctl', '-qw', `net.ipv6.conf.${which}.disable_ipv6=1`)
    this.#run('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far')
    for (const link of ['lo', 'near', 'far']) this.#run('ip', 'link', 'set', link, 'up')
    const data = join(this.folder, 'service')
    this.#service = await startService(data, [], {}, ['ip', ...this.#inside()])
    this.#children.add(this.#service.child)
    await admin('organization', 'create', 'Bench', '--domain', 'bench.example', '--data-dir', data)
    const [token] = await admin('token', 'generate', 'sensor', '--org', 'Bench', '--data-dir', data)
    this.#token = String(token?.['token'])
  }

  close(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    spawnSync('ip', ['netns', 'delete', this.#name])
  }

  /** Plays a capture file at the near end. */
  async play(path: string): Promise<void> {
    const speed = `--pps=${PACKETS_PER_SECOND}`
    const player = this.#start(['tcpreplay', '-q', '--preload-pcap', speed, '-i', 'near', path])
    await player.ended
    if (!player.output().includes('Actual: ')) throw new Error(`tcpreplay: ${player.output()}`)
  }

  /** Runs the collector as a user would start it. */
  async ours(work: () => Promise<unknown>): Promise<OurCapture> {
    const { ingestPort, fingerprint } = this.#service as RunningService
    const outbox = mkdtempSync(join(this.folder, 'outbox-'))
    const words = ['--interface', 'far', '--outbox', outbox, '--run-as', 'root', '--endpoint', '127.0.0.1']
    const service = ['--https-port', String(ingestPort), '--service-fingerprint', fingerprint]
    const command = [process.execPath, '--max-semi-space-size=2', PROGRAMS.collector, 'run', ...words, ...service]
    const collector = this.#start(command, { SVC_TOKEN: this.#token, HEALTH_PORT })
    await collector.prints('"msg":"watching"')
    await sleep(this.#quietMs)
    // proc_pid_clear_refs(5): resets the peak, so that it covers only the work from here on.
    writeFileSync(`/proc/${collector.pid}/clear_refs`, '5')
    const before = cpuSeconds(collector.pid)
    await work()
    await sleep(this.#quietMs)
    const cpu = cpuSeconds(collector.pid) - before
    const memory = { peakMb: memoryMb(collector.pid, 'VmHWM'), residentMb: memoryMb(collector.pid, 'VmRSS') }
    const text = this.#run('curl', '-s', `http://127.0.0.1:${HEALTH_PORT}/counters`)
    const { counters } = JSON.parse(text) as { counters: { difference: number }[] }
    same(
      'differences of counters',
      counters.filter(({ difference }) => difference !== 0),
      [],
    )
    collector.child.kill('SIGTERM')
    await collector.ended
    const line = collector
      .output()
      .split('\n')
      .find((each) => each.includes('"msg":"ended"'))
    const { frames, names } = JSON.parse(line ?? '{}') as { frames: number; names: number }
    return { seen: frames, names, cpu, ...memory }
  }

  async tcpdump(work: () => Promise<unknown>): Promise<Captured> {
    const peer = this.#start(TCPDUMP)
    await peer.prints('listening on')
    await sleep(this.#quietMs)
    await work()
    await sleep(this.#quietMs)
    const cpu = cpuSeconds(peer.pid)
    peer.child.kill('SIGINT')
    await peer.ended
    return { seen: Number(/(\d+) packets? captured/.exec(peer.output())?.[1] ?? Number.NaN), cpu }
  }

  #inside(...command: string[]): string[] {
    return ['netns', 'exec', this.#name, ...command]
  }

  #run(...command: string[]): string {
    return execFileSync('ip', this.#inside(...command), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  #start(command: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    const child = spawn('ip', this.#inside(...command), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: this.folder, ...environment },
    })
    this.#children.add(child)
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
    }
    return {
      child,
      pid: child.pid ?? 0,
      output: () => text,
      ended: once(child, 'close'),
      prints: (what: string) => until(`${command[0]} prints ${what}`, () => text.includes(what)),
    }
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
