import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { Random } from '../fuzz/random.ts'
import { type Ended, type Running, start, startService } from '../support/programs.ts'
import { FaultProxy, PROBLEMS } from './fault-proxy.ts'
import { LyingServer } from './lying-server.ts'
import { Oracle } from './oracle.ts'
import { Organization } from './organization.ts'

/*
 * Collector and service on real files, with a network in trouble between them, killed and started again until enough: is every match that was
 * put into the capture files in a scan, exactly once?
 *
 * All choices are drawn from the seed, each part of the run from numbers of its own; what they meet is a matter of the machine's pace.
 */

const FRAMES_MS = 1
/** The first capture file was taken so long ago, the next ones follow. Within the evidence window, and not all of one day. */
const FIRST_CAPTURE_MS_AGO = 36 * 60 * 60 * 1000
const KILL_MS = { least: 50, most: 1400 } as const
const SCAN_MS = { least: 300, most: 2500 } as const
const SCAN_KILL_MS = { least: 100, most: 900 } as const
/** One start of a program in so many is armed with a fault point. */
const ARMED_EVERY = 5
/** Without a kill and without trouble the rest of a file takes seconds. */
const LAST_RUN_MS = 120_000

const FAULT_POINTS = {
  collector: ['outbox:appended'],
  service: ['accept:committed', 'scan:started', 'scan:folded', 'scan:published'],
  scan: ['scan:started', 'scan:folded', 'scan:published'],
} as const
type Victim = keyof typeof FAULT_POINTS

export interface CrashOptions {
  readonly directory: string
  readonly kills: number
  readonly seed: number
  readonly queriesPerCapture: number
  readonly onKill?: (killed: number) => void
}

export interface CrashReport {
  readonly kills: Readonly<Record<Victim, number>>
  /** Among the kills, those at a fault point. */
  readonly atFaultPoints: number
  readonly captures: number
  readonly queries: number
  readonly matches: number
  readonly events: number
  readonly scans: number
  readonly problems: number
  readonly lies: number
  /** What is not as it has to be, one line each. */
  readonly differences: readonly string[]
}

export async function crashRun(options: CrashOptions): Promise<CrashReport> {
  const run = await CrashRun.prepare(options)
  return run.report()
}

/** The numbers of one part of the run. */
function randomOf(seed: number, part: number): Random {
  return new Random(seed * 16 + part)
}

const between = (random: Random, { least, most }: { readonly least: number; readonly most: number }): number =>
  least + random.below(most - least)

class CrashRun {
  readonly #options: CrashOptions
  readonly #site: Site
  readonly #oracle = new Oracle()
  readonly #kills: Record<Victim, number> = { collector: 0, service: 0, scan: 0 }
  readonly #differences: string[] = []
  /** What runs now. */
  readonly #running: Partial<Record<Victim, Running>> = {}
  /** Killed by the run, so that their end is no surprise. */
  readonly #condemned = new WeakSet<Running>()
  readonly #deaths: Random
  readonly #captures: Random
  #atFaultPoints = 0
  #captureCount = 0
  /** No more kills: what runs comes to its end. */
  #finishing = false
  /** Nothing is started any more. */
  #over = false

  private constructor(options: CrashOptions, site: Site) {
    this.#options = options
    this.#site = site
    this.#deaths = randomOf(options.seed, 0)
    this.#captures = randomOf(options.seed, 1)
  }

  static async prepare(options: CrashOptions): Promise<CrashRun> {
    return new CrashRun(options, await Site.make(options))
  }

  async report(): Promise<CrashReport> {
    const { proxy, liar, organization } = this.#site
    const service = this.#keepService()
    try {
      await this.#killUntilEnough()
      if (this.#differences.length === 0) await this.#compare()
    } finally {
      this.#over = true
      for (const running of Object.values(this.#running)) this.#kill(running)
      await service
      proxy.close()
      liar.close()
    }
    this.#differences.push(...organization.findings().map((finding) => `in the store: ${finding}`))
    const { events, scans } = organization.counts()
    return {
      kills: this.#kills,
      atFaultPoints: this.#atFaultPoints,
      captures: this.#captureCount,
      queries: this.#oracle.queries,
      matches: this.#oracle.matches,
      events,
      scans,
      problems: PROBLEMS.reduce((sum, problem) => sum + (problem === 'none' ? 0 : proxy.begun[problem]), 0),
      lies: liar.answers,
      differences: this.#differences,
    }
  }

  async #killUntilEnough(): Promise<void> {
    const { proxy } = this.#site
    proxy.begin()
    const collector = this.#keepCollector()
    const scans = this.#scanNowAndThen()
    while (this.#killed < this.#options.kills - 1 && !this.#over) {
      await later(between(this.#deaths, KILL_MS))
      const victim = this.#deaths.of(['collector', 'service'] as const)
      this.#kill(this.#running[victim])
      // Both at once, as when the power fails.
      if (this.#deaths.below(10) === 0) this.#kill(this.#running[victim === 'collector' ? 'service' : 'collector'])
    }
    this.#finishing = true
    proxy.calm()
    await scans
    // The last kill, of one that may wait long after all the trouble.
    this.#kill(this.#running.collector)
    if (!(await Promise.race([collector.then(() => true), later(LAST_RUN_MS, false, { ref: false })]))) {
      this.#fail(`the collector does not come to its end: ${lastLines(this.#running.collector?.output.stderr ?? '')}`)
    }
  }

  /** Starts the service again whenever it was killed. */
  async #keepService(): Promise<void> {
    const random = randomOf(this.#options.seed, 2)
    while (!this.#over) {
      const faultPoint = this.#faultPointOf('service', random)
      await this.#runOnce('service', faultPoint, () => this.#site.startService(environmentOf(faultPoint)))
    }
  }

  /** Starts the collector again whenever it was killed; on the next file when it was done with one. */
  async #keepCollector(): Promise<void> {
    const random = randomOf(this.#options.seed, 3)
    let capture = this.#nextCapture()
    while (!this.#over) {
      const faultPoint = this.#faultPointOf('collector', random)
      const ended = await this.#runOnce('collector', faultPoint, () =>
        this.#site.startCollector(capture, environmentOf(faultPoint)),
      )
      if (ended.status !== 0) continue
      if (this.#finishing) return
      rmSync(capture)
      capture = this.#nextCapture()
    }
  }

  async #scanNowAndThen(): Promise<void> {
    const random = randomOf(this.#options.seed, 4)
    while (!this.#finishing && !this.#over) {
      await later(between(random, SCAN_MS))
      const faultPoint = this.#faultPointOf('scan', random)
      const killAfterMs = random.below(3) === 0 ? between(random, SCAN_KILL_MS) : undefined
      await this.#runOnce('scan', faultPoint, () => {
        const running = this.#site.organization.startScan(environmentOf(faultPoint))
        if (killAfterMs !== undefined) setTimeout(() => this.#kill(running), killAfterMs)
        return running
      })
    }
  }

  /** Runs a program to its end, which must be its own, clean one, or one that we gave it. */
  async #runOnce(victim: Victim, faultPoint: string | undefined, starting: () => Running): Promise<Ended> {
    const running = starting()
    this.#running[victim] = running
    const ended = await running.ended
    delete this.#running[victim]
    const killed = ended.signal === 'SIGKILL' && (faultPoint !== undefined || this.#condemned.has(running))
    if (killed && !this.#over) {
      this.#kills[victim]++
      if (!this.#condemned.has(running)) this.#atFaultPoints++
      this.#options.onKill?.(this.#killed)
    }
    if (!killed && ended.status !== 0) {
      this.#fail(`${victim} ended with ${ended.status ?? ended.signal}: ${lastLines(ended.stderr)}`)
    } else if (/"level":[56]0|do not balance/.test(ended.stderr)) {
      this.#fail(`${victim} says: ${lastLines(ended.stderr)}`)
    }
    return ended
  }

  /** What they have to answer for, once all is calm. */
  async #compare(): Promise<void> {
    const { organization } = this.#site
    const expected = this.#oracle.expected
    this.#differences.push(...(await organization.differences(expected)))
    if (this.#differences.length > 0) return
    const again = await this.#site.startCollector(this.#capturePath(this.#captureCount), {}).ended
    if (again.status !== 0) this.#fail(`the same file again: ${lastLines(again.stderr)}`)
    const added = await organization.differences(expected)
    this.#differences.push(...added.map((difference) => `after the same file again: ${difference}`))
  }

  #nextCapture(): string {
    const { queriesPerCapture: queries } = this.#options
    const startMs = this.#site.madeMs - FIRST_CAPTURE_MS_AGO + this.#captureCount * queries * FRAMES_MS
    const path = this.#capturePath(++this.#captureCount)
    this.#oracle.writeCapture(path, this.#captures, queries, startMs)
    return path
  }

  #capturePath(number: number): string {
    return join(this.#options.directory, `${number}.pcap`)
  }

  #faultPointOf(victim: Victim, random: Random): string | undefined {
    const faultPoint = random.of(FAULT_POINTS[victim])
    return random.below(ARMED_EVERY) === 0 && !this.#finishing ? faultPoint : undefined
  }

  get #killed(): number {
    return this.#kills.collector + this.#kills.service + this.#kills.scan
  }

  #kill(running: Running | undefined): void {
    if (running === undefined) return
    this.#condemned.add(running)
    running.child.kill('SIGKILL')
  }

  #fail(difference: string): void {
    this.#differences.push(difference)
    this.#over = true
    for (const running of Object.values(this.#running)) this.#kill(running)
  }
}

const environmentOf = (faultPoint: string | undefined): NodeJS.ProcessEnv =>
  faultPoint === undefined ? {} : { POSTURE_FAULT_POINT: faultPoint }

const lastLines = (stderr: string): string => stderr.trim().split('\n').slice(-5).join('\n  ')

/** What stays the same however often the programs are started: directories, addresses, the organization. */
class Site {
  readonly madeMs = Date.now()
  readonly proxy: FaultProxy
  readonly liar: LyingServer
  readonly organization: Organization
  readonly #serviceParameters: readonly string[]
  readonly #collectorParameters: readonly string[]

  private constructor(
    network: { readonly proxy: FaultProxy; readonly liar: LyingServer },
    organization: Organization,
    parameters: { readonly service: readonly string[]; readonly collector: readonly string[] },
  ) {
    this.proxy = network.proxy
    this.liar = network.liar
    this.organization = organization
    this.#serviceParameters = parameters.service
    this.#collectorParameters = parameters.collector
  }

  static async make({ directory, seed }: CrashOptions): Promise<Site> {
    const directories = { data: join(directory, 'service'), outbox: join(directory, 'outbox') }
    const organization = await Organization.make(directories)
    // An address of our own, so that nobody else gets the service's ports while it is being started again.
    const address = `127.77.${(process.pid >> 8) & 255}.${process.pid & 255}`
    const listenOn = ['--api-address', address, '--ingest-address', address]
    const first = await startService(directories.data, listenOn)
    first.child.kill('SIGTERM')
    await first.ended

    const liar = await LyingServer.listen(randomOf(seed, 5))
    const upstreams = {
      service: { host: address, port: first.ingestPort },
      liar: { host: '127.0.0.1', port: liar.port },
    }
    const proxy = new FaultProxy(upstreams, randomOf(seed, 6))
    const authority = join(directory, 'authority.pem')
    const own = readFileSync(join(directories.data, 'tls/certificate.pem'), 'utf8')
    writeFileSync(authority, `${own}\n${liar.certificate}`)
    const ports = ['--api-port', String(first.apiPort), '--ingest-port', String(first.ingestPort)]
    return new Site({ proxy, liar }, organization, {
      service: ['--data-dir', directories.data, ...listenOn, ...ports, '--api-threads', '1'],
      collector: [
        ...['--outbox', directories.outbox, '--aggregate', '1', '--ca', authority],
        ...['--endpoint', 'localhost', '--https-port', String(await proxy.listen())],
      ],
    })
  }

  startService(environment: NodeJS.ProcessEnv): Running {
    return start('service', this.#serviceParameters, environment)
  }

  startCollector(capture: string, environment: NodeJS.ProcessEnv): Running {
    const parameters = ['--read', capture, ...this.#collectorParameters]
    return start('collector', parameters, { SVC_TOKEN: this.organization.token, ...environment })
  }
}
