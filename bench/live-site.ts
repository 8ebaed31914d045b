import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault } from '../engine/process/error-codes.ts'
import { admin, PROGRAMS, type RunningService, startService } from '../test/support/programs.ts'
import { cpuSeconds, memoryBytes } from './machine.ts'

/**
 * A veth pair in a network namespace, a service that accepts the events, and the contenders that
 * capture at the pair's far end.
 */

export interface CaptureResult {
  /** Packets that reached user space. */
  readonly seen: number
  /** Only ours: names, matches, and losses reported by its counters. */
  readonly names?: number
  readonly matched?: number
  readonly dropped?: string
  readonly balanced?: boolean
  readonly cpuSeconds: number
  readonly peakBytes: number
  /** Only ours: peak memory during the start, while connecting and loading code. */
  readonly startPeakBytes?: number
  /** The limits under which it ran. */
  readonly box?: string
}

export interface Played {
  readonly packets: number
  readonly seconds: number
}

const PACKAGES: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  tcpreplay: 'tcpreplay',
  tcpdump: 'tcpdump',
  tshark: 'tshark',
}
export class LiveSite {
  readonly folder: string
  readonly #name = `spsbench${process.pid}`
  readonly #children = new Set<ChildProcess>()
  #service: RunningService | undefined
  #token = ''
  readonly #cgroups: string[] = []
  /** Process ID of the running collector. */
  #collector = 0

  readonly #quietMs: number

  /**
   * @param quietMs time after which all packets in flight have been captured.
   * @throws Fault USAGE if not root, or if a tool is missing.
   */
  constructor(quietMs: number) {
    this.#quietMs = quietMs
    if (process.getuid?.() !== 0) throw new Fault('USAGE', 'live: needs root, for a network namespace')
    const missing = Object.entries(PACKAGES).filter(([tool]) => spawnSync('which', [tool]).status !== 0)
    if (missing.length > 0)
      throw new Fault('USAGE', `live: apt-get install ${missing.map(([, name]) => name).join(' ')}`)
    this.folder = mkdtempSync(join(tmpdir(), 'bench-live-'))
  }

  async open(): Promise<void> {
    ip('netns', 'add', this.#name)
    for (const which of ['all', 'default']) this.run('sysctl', '-qw', `net.ipv6.conf.${which}.disable_ipv6=1`)
    this.run('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far')
    for (const link of ['lo', 'near', 'far']) this.run('ip', 'link', 'set', link, 'up')
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
    // A control group can be removed only after its processes have ended.
    for (const group of this.#cgroups) {
      for (let tries = 0; tries < 50; tries++) {
        try {
          rmdirSync(group)
          break
        } catch {
          spawnSync('sleep', ['0.1'])
        }
      }
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  run(...command: string[]): string {
    return execFileSync('ip', this.#inside(...command), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** Plays a capture file at the near end. */
  async play(path: string, ...options: string[]): Promise<Played> {
    const player = this.#start(['tcpreplay', '-q', '--preload-pcap', ...options, '-i', 'near', path])
    await player.ended
    const [, packets, seconds] = /Actual: (\d+) packets .* sent in ([\d.]+) seconds/.exec(player.output()) ?? []
    if (packets === undefined) throw new Error(`tcpreplay: ${player.output()}`)
    return { packets: Number(packets), seconds: Number(seconds) }
  }

  /** Runs the collector as a user would start it. `box` limits it to one CPU and 256 MB. */
  async ours(
    work: () => Promise<unknown>,
    options: { words?: readonly string[]; box?: boolean } = {},
  ): Promise<CaptureResult> {
    const service = this.#service as RunningService
    const words = ['--interface', 'far', '--outbox', mkdtempSync(join(this.folder, 'outbox-')), '--user', 'root']
    const reach = [
      '--endpoint',
      '127.0.0.1',
      '--https-port',
      String(service.ingestPort),
      '--fingerprint',
      service.fingerprint,
    ]
    const flags = ['--max-semi-space-size=2']
    const collector = this.#start(
      [process.execPath, ...flags, PROGRAMS.collector, 'run', ...words, ...reach, ...(options.words ?? [])],
      { SVC_TOKEN: this.#token, HEALTH_PORT: '19091' },
    )
    await collector.waitForOutput('"msg":"watching"')
    const box = options.box === true ? this.#putIntoBox(collector.pid) : ''
    await sleep(this.#quietMs)
    const startPeakBytes = memoryBytes(collector.pid, 'VmHWM')
    // proc_pid_clear_refs(5): resets the peak, so that it covers only the work from here on.
    writeFileSync(`/proc/${collector.pid}/clear_refs`, '5')
    const before = cpuSeconds(collector.pid)
    await work()
    await sleep(this.#quietMs)
    const cpu = cpuSeconds(collector.pid) - before
    const peakBytes = memoryBytes(collector.pid, 'VmHWM')
    const { counters } = JSON.parse(this.run('curl', '-s', 'http://127.0.0.1:19091/counters')) as {
      counters: { counter: string; total: number; outcomes: Record<string, number>; difference: number }[]
    }
    collector.child.kill('SIGTERM')
    await collector.ended
    const [line = '{}'] = collector
      .output()
      .split('\n')
      .filter((each) => each.includes('"msg":"ended"'))
    const ended = JSON.parse(line) as { frames: number; names: number; matched: number; packetsDropped: object }
    const { frames, names, matched } = ended
    const dropped = JSON.stringify(ended.packetsDropped)
    const balanced =
      counters.every(({ difference }) => difference === 0) && !collector.output().includes('do not balance')
    return { seen: frames, names, matched, dropped, balanced, cpuSeconds: cpu, peakBytes, startPeakBytes, box }
  }

  async tcpdump(filter: string, ringBytes: number, work: () => Promise<unknown>): Promise<CaptureResult> {
    const words = ['-i', 'far', '-n', '-w', '/dev/null', '-B', String(ringBytes / 1024), filter]
    return this.#peer(['tcpdump', ...words], 'listening on', work)
  }

  async tshark(filter: string, work: () => Promise<unknown>): Promise<CaptureResult> {
    const fields = ['-T', 'fields', '-e', 'dns.qry.name', '-e', 'tls.handshake.extensions_server_name']
    return this.#peer(['tshark', '-i', 'far', '-l', '-n', ...fields, '-f', filter], 'Capturing on', work)
  }

  /** Resident memory and CPU share of one core, for a collector on a silent link. */
  async idle(
    seconds: number,
  ): Promise<{ residentBytes: number; anonymousBytes: number; startPeakBytes: number; cpu: number }> {
    let measured = { residentBytes: 0, anonymousBytes: 0, cpu: 0 }
    const { startPeakBytes = 0 } = await this.ours(async () => {
      const pid = this.#collector
      // The handshake with the service and the first report belong to the start.
      await sleep(seconds * 200)
      const before = cpuSeconds(pid)
      await sleep(seconds * 1000)
      const cpu = (cpuSeconds(pid) - before) / seconds
      measured = { residentBytes: memoryBytes(pid, 'VmRSS'), anonymousBytes: memoryBytes(pid, 'RssAnon'), cpu }
    })
    return { ...measured, startPeakBytes }
  }

  async #peer(command: readonly string[], ready: string, work: () => Promise<unknown>): Promise<CaptureResult> {
    const peer = this.#start(command)
    await peer.waitForOutput(ready)
    await sleep(this.#quietMs)
    await work()
    await sleep(this.#quietMs)
    const pids = [peer.pid, ...childrenOf(peer.pid)]
    const cpu = pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
    const peakBytes = pids.reduce((sum, pid) => sum + memoryBytes(pid, 'VmHWM'), 0)
    peer.child.kill('SIGINT')
    await peer.ended
    const seen = Number(/(\d+) packets? captured/.exec(peer.output())?.[1] ?? Number.NaN)
    return { seen, cpuSeconds: cpu, peakBytes }
  }

  /** One CPU and 256 MB by cgroups v1. Without cgroups, one CPU. */
  #putIntoBox(pid: number): string {
    const limits = [
      ['memory', { 'memory.limit_in_bytes': 256 * 1024 * 1024 }],
      ['cpu', { 'cpu.cfs_period_us': 100_000, 'cpu.cfs_quota_us': 100_000 }],
    ] as const
    try {
      for (const [controller, files] of limits) {
        const group = join('/sys/fs/cgroup', controller, `${this.#name}-${pid}`)
        mkdirSync(group)
        this.#cgroups.push(group)
        for (const [file, value] of Object.entries(files)) writeFileSync(join(group, file), String(value))
        writeFileSync(join(group, 'cgroup.procs'), String(pid))
      }
      return 'one CPU and 256 MB (cgroup)'
    } catch {
      execFileSync('taskset', ['-a', '-c', '-p', '1', String(pid)], { stdio: 'pipe' })
      return 'one CPU (taskset; memory is only measured: no cgroup can be made here)'
    }
  }

  #inside(...command: string[]): string[] {
    return ['netns', 'exec', this.#name, ...command]
  }

  #start(command: readonly string[], environment: NodeJS.ProcessEnv = {}) {
    const child = spawn('ip', this.#inside(...command), {
      stdio: ['ignore', command[0] === 'tshark' ? 'ignore' : 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: this.folder, ...environment },
    })
    this.#children.add(child)
    let text = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
      })
    }
    const pid = child.pid ?? 0
    if (environment['SVC_TOKEN'] !== undefined) this.#collector = pid
    return {
      child,
      pid,
      output: () => text,
      ended: once(child, 'close'),
      waitForOutput: async (what: string) => {
        for (let tries = 0; tries < 200; tries++) {
          if (text.includes(what)) return
          if (child.exitCode !== null) break
          await sleep(50)
        }
        throw new Error(`${command.slice(0, 3).join(' ')}: waited in vain for ${what}: ${text}`)
      },
    }
  }
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: 'pipe' })
}

/** User and system time of all threads of the process (proc_pid_stat(5), fields 14 and 15). */

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          Number(
            readFileSync(`/proc/${pid}/stat`, 'utf8')
              .replace(/^.*\) /, '')
              .split(' ')[1],
          ) === parent
        )
      } catch {
        return false
      }
    })
}
