import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { askLocal } from '../../engine/kernel/process/local-server.ts'
import { Random } from '../fuzz/random.ts'
import { freePort } from '../support/free-port.ts'
import { type Ended, type Running, start, startService } from '../support/programs.ts'
import { until } from '../support/wait.ts'
import { FAULTS, FaultProxy } from './fault-proxy.ts'
import { Oracle } from './oracle.ts'
import { Organization } from './organization.ts'
import { RogueServer } from './rogue-server.ts'

/*
 * Runs collector and service on real files with a faulty network between them, and kills and
 * restarts them. In the end, every match of the capture files must be in a scan exactly once. With
 * brokers, the service keeps events in their log, and they have faults, too (broker-faults.ts).
 *
 * All choices derive from the seed, and each part of the run has its own random numbers. The timing
 * depends on the machine.
 */

const FRAMES_MS = 1
/**
 * Age of the first capture file; the next files follow in time. The age is within the evidence
 * window and spans several days.
 */
const FIRST_CAPTURE_MS_AGO = 36 * 60 * 60 * 1000
const KILL_MS = { least: 50, most: 1400 } as const
const SCAN_MS = { least: 300, most: 2500 } as const
const BROKER_FAULT_MS = { least: 100, most: 3000 } as const
const SCAN_KILL_MS = { least: 100, most: 900 } as const
/** One in this many starts of a program has a fault point armed. */
const ARMED_EVERY = 5
/** Without kills and network faults, the rest of a file takes seconds. */
const LAST_RUN_MS = 120_000

/** A scan that fails, so that the next one adds its events: another process scans, or a node or the brokers are away. */
export const SCAN_LATER =
  /^.*"reason":"(?:another process (?:ended|is scanning) |(?:the brokers are not reachable; try again when they are|this node is a replica; [^"]*)","msg":"scan failed).*$/gm

const FAULT_POINTS = {
  collector: ['outbox:appended'],
  service: ['accept:committed', 'scan:started', 'scan:added', 'scan:published'],
  scan: ['scan:started', 'scan:added', 'scan:published'],
} as const
type Victim = keyof typeof FAULT_POINTS

/** The brokers of a run, and what happens to them. */
export interface BrokerFaults {
  /** The settings with which the service uses the brokers. */
  readonly parameters: readonly string[]
  /** The run has at least this many faults. */
  readonly faults: number
  /** Causes a fault and ends it. */
  cause(random: Random): Promise<void>
}

export interface CrashOptions {
  readonly directory: string
  /** The run ends after this many kills of programs, and the faults of the brokers. */
  readonly kills: number
  readonly seed: number
  readonly queriesPerCapture: number
  readonly brokers?: BrokerFaults
  /** For the service only. */
  readonly environment?: NodeJS.ProcessEnv
  readonly onKill?: (killed: number) => void
}

export interface CrashReport {
  readonly kills: Readonly<Record<Victim, number>>
  readonly brokerFaults: number
  /** The service ended because it had reached no quorum of brokers for 20 seconds. */
  readonly unreachable: number
  /** Number of kills at a fault point. */
  readonly atFaultPoints: number
  readonly captures: number
  readonly queries: number
  readonly matches: number
  readonly events: number
  readonly scans: number
  readonly faults: number
  readonly rogueAnswers: number
  /** Violations, one line each. */
  readonly differences: readonly string[]
}

export async function crashRun(options: CrashOptions): Promise<CrashReport> {
  const run = await CrashRun.prepare(options)
  return run.report()
}

/** The random numbers of one part of the run. */
function randomOf(seed: number, part: number): Random {
  return new Random(seed * 16 + part)
}

export const between = (random: Random, { least, most }: { readonly least: number; readonly most: number }): number =>
  least + random.below(most - least)

class CrashRun {
  readonly #options: CrashOptions
  readonly #site: Site
  readonly #oracle = new Oracle()
  readonly #kills: Record<Victim, number> = { collector: 0, service: 0, scan: 0 }
  readonly #differences: string[] = []
  /** The running programs. */
  readonly #running: Partial<Record<Victim, Running>> = {}
  /** Processes that the run has killed, so their exit is expected. */
  readonly #killedByRun = new WeakSet<Running>()
  readonly #killRandom: Random
  readonly #captureRandom: Random
  #atFaultPoints = 0
  #brokerFaults = 0
  #unreachable = 0
  #captureCount = 0
  /** No more kills: running programs may finish. */
  #finishing = false
  /** No more starts. */
  #over = false

  private constructor(options: CrashOptions, site: Site) {
    this.#options = options
    this.#site = site
    this.#killRandom = randomOf(options.seed, 0)
    this.#captureRandom = randomOf(options.seed, 1)
  }

  static async prepare(options: CrashOptions): Promise<CrashRun> {
    return new CrashRun(options, await Site.make(options))
  }

  async report(): Promise<CrashReport> {
    const { proxy, rogue, organization } = this.#site
    const service = this.#superviseService()
    try {
      await this.#killPrograms()
      if (this.#differences.length === 0) await this.#compare()
    } finally {
      this.#over = true
      for (const running of Object.values(this.#running)) this.#kill(running)
      await service
      proxy.close()
      rogue.close()
    }
    this.#differences.push(...organization.findings().map((finding) => `in the store: ${finding}`))
    const { events, scans } = organization.counts()
    return {
      kills: this.#kills,
      brokerFaults: this.#brokerFaults,
      unreachable: this.#unreachable,
      atFaultPoints: this.#atFaultPoints,
      captures: this.#captureCount,
      queries: this.#oracle.queries,
      matches: this.#oracle.matches,
      events,
      scans,
      faults: FAULTS.reduce((sum, fault) => sum + (fault === 'none' ? 0 : proxy.faultCounts[fault]), 0),
      rogueAnswers: rogue.answers,
      differences: this.#differences,
    }
  }

  async #killPrograms(): Promise<void> {
    const { proxy } = this.#site
    proxy.startFaults()
    const collector = this.#superviseCollector()
    const scans = this.#scanRepeatedly()
    const brokers = this.#causeBrokerFaults().catch((error: Error) => this.#fail(error.message))
    const { kills, brokers: { faults = 0 } = {} } = this.#options
    while ((this.#killed < kills - 1 || this.#brokerFaults < faults) && !this.#over) {
      await later(between(this.#killRandom, KILL_MS))
      // Spreads the kills over the faults of the brokers.
      if (this.#killed * faults > kills * (this.#brokerFaults + 1)) continue
      const victim = this.#killRandom.of(['collector', 'service'] as const)
      this.#kill(this.#running[victim])
      // Kills both at once, as a power failure does.
      if (this.#killRandom.below(10) === 0) this.#kill(this.#running[victim === 'collector' ? 'service' : 'collector'])
    }
    this.#finishing = true
    proxy.stopFaults()
    await Promise.all([scans, brokers])
    // The last kill. The collector may be in a long backoff after the network faults.
    this.#kill(this.#running.collector)
    if (!(await Promise.race([collector.then(() => true), later(LAST_RUN_MS, false, { ref: false })]))) {
      this.#fail(`the collector does not exit: ${lastLines(this.#running.collector?.output.stderr ?? '')}`)
    }
  }

  async #causeBrokerFaults(): Promise<void> {
    const random = randomOf(this.#options.seed, 7)
    while (this.#options.brokers !== undefined && !this.#finishing && !this.#over) {
      await later(between(random, BROKER_FAULT_MS))
      await this.#options.brokers.cause(random)
      this.#brokerFaults++
    }
  }

  /** Restarts the service after every kill. */
  async #superviseService(): Promise<void> {
    const random = randomOf(this.#options.seed, 2)
    while (!this.#over) {
      const faultPoint = this.#faultPointOf('service', random)
      await this.#runUntilExit('service', faultPoint, () =>
        this.#site.startService({ ...this.#options.environment, ...environmentOf(faultPoint) }),
      )
    }
  }

  /** Restarts the collector after every kill, with the next file if it has finished one. */
  async #superviseCollector(): Promise<void> {
    const random = randomOf(this.#options.seed, 3)
    let capture = this.#nextCapture()
    while (!this.#over) {
      const faultPoint = this.#faultPointOf('collector', random)
      const ended = await this.#runUntilExit('collector', faultPoint, () =>
        this.#site.startCollector(capture, environmentOf(faultPoint)),
      )
      if (ended.status !== 0) continue
      if (this.#finishing) return
      rmSync(capture)
      capture = this.#nextCapture()
    }
  }

  async #scanRepeatedly(): Promise<void> {
    const random = randomOf(this.#options.seed, 4)
    while (!this.#finishing && !this.#over) {
      await later(between(random, SCAN_MS))
      const faultPoint = this.#faultPointOf('scan', random)
      const killAfterMs = random.below(3) === 0 ? between(random, SCAN_KILL_MS) : undefined
      await this.#runUntilExit('scan', faultPoint, () => {
        const running = this.#site.organization.startScan(environmentOf(faultPoint))
        if (killAfterMs !== undefined) setTimeout(() => this.#kill(running), killAfterMs)
        return running
      })
    }
  }

  /** Runs a program until it exits. It must exit with status 0 or be killed by the run. */
  async #runUntilExit(victim: Victim, faultPoint: string | undefined, startProgram: () => Running): Promise<Ended> {
    const running = startProgram()
    this.#running[victim] = running
    const ended = await running.ended
    delete this.#running[victim]
    const killed = ended.signal === 'SIGKILL' && (faultPoint !== undefined || this.#killedByRun.has(running))
    if (killed && !this.#over) {
      this.#kills[victim]++
      if (!this.#killedByRun.has(running)) this.#atFaultPoints++
      this.#options.onKill?.(this.#killed)
    }
    // Without a quorum of brokers, nothing starts and nothing is changed.
    const isUnreachable = /BROKERS_UNREACHABLE|NOT_PRIMARY|NOT_REPLICATED/.test(ended.stderr)
    if (this.#options.brokers !== undefined && isUnreachable) this.#unreachable++
    else if (!killed && ended.status !== 0) {
      this.#fail(`${victim} ended with ${ended.status ?? ended.signal}: ${lastLines(ended.stderr)}`)
    } else {
      const lines = ended.stderr.replaceAll(SCAN_LATER, '').split('\n')
      const errors = lines.filter((line) => /"level":[56]0|do not balance/.test(line))
      if (errors.length > 0) this.#fail(`${victim} logged: ${lastLines(errors.join('\n'))}`)
    }
    return ended
  }

  /**
   * Compares the scans with the expected matches after the network has recovered. Then reads the
   * last file again, which must not add matches.
   */
  async #compare(): Promise<void> {
    const { organization } = this.#site
    const expected = this.#oracle.expected
    await this.#site.untilLogIsRead()
    this.#differences.push(...(await organization.differences(expected)))
    if (this.#differences.length > 0) return
    const again = await this.#site.startCollector(this.#capturePath(this.#captureCount), {}).ended
    if (again.status !== 0) this.#fail(`the same file again: ${lastLines(again.stderr)}`)
    await this.#site.untilLogIsRead()
    const added = await organization.differences(expected)
    this.#differences.push(...added.map((difference) => `after the same file again: ${difference}`))
  }

  #nextCapture(): string {
    const { queriesPerCapture: queries } = this.#options
    const startMs = this.#site.createdMs - FIRST_CAPTURE_MS_AGO + this.#captureCount * queries * FRAMES_MS
    const path = this.#capturePath(++this.#captureCount)
    this.#oracle.writeCapture(path, this.#captureRandom, queries, startMs)
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
    return Object.values(this.#kills).reduce((sum, kills) => sum + kills, 0)
  }

  #kill(running: Running | undefined): void {
    if (running === undefined) return
    this.#killedByRun.add(running)
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

/** State that restarts do not change: directories, addresses, the organization. */
class Site {
  readonly createdMs = Date.now()
  readonly proxy: FaultProxy
  readonly rogue: RogueServer
  readonly organization: Organization
  readonly #serviceParameters: readonly string[]
  readonly #collectorParameters: readonly string[]
  readonly #metricsPort: number | undefined

  private constructor(
    network: { readonly proxy: FaultProxy; readonly rogue: RogueServer },
    organization: Organization,
    parameters: { readonly service: readonly string[]; readonly collector: readonly string[] },
    metricsPort: number | undefined,
  ) {
    this.#metricsPort = metricsPort
    this.proxy = network.proxy
    this.rogue = network.rogue
    this.organization = organization
    this.#serviceParameters = parameters.service
    this.#collectorParameters = parameters.collector
  }

  static async make({ directory, seed, brokers }: CrashOptions): Promise<Site> {
    const directories = { data: join(directory, 'service'), outbox: join(directory, 'outbox') }
    const organization = await Organization.make(directories)
    // A loopback address of this run only, so that no other process takes the service's ports
    // during a restart.
    const address = `127.77.${(process.pid >> 8) & 255}.${process.pid & 255}`
    const listenOn = ['--api-address', address, '--ingest-address', address]
    const first = await startService(directories.data, listenOn)
    first.child.kill('SIGTERM')
    await first.ended

    const rogue = await RogueServer.listen(randomOf(seed, 5))
    const upstreams = {
      service: { host: address, port: first.ingestPort },
      rogue: { host: '127.0.0.1', port: rogue.port },
    }
    const proxy = new FaultProxy(upstreams, randomOf(seed, 6))
    const caFile = join(directory, 'ca.pem')
    const own = readFileSync(join(directories.data, 'tls/certificate.pem'), 'utf8')
    writeFileSync(caFile, `${own}\n${rogue.certificate}`)
    const ports = ['--api-port', String(first.apiPort), '--ingest-port', String(first.ingestPort)]
    const metricsPort = brokers && (await freePort())
    const logged =
      brokers === undefined
        ? []
        : ['--broker-events-max-mb', '512', ...brokers.parameters, '--metrics-port', `${metricsPort}`]
    const parameters = {
      service: ['--data-dir', directories.data, ...listenOn, ...ports, '--api-threads', '1', ...logged],
      collector: [
        ...['--outbox', directories.outbox, '--event-window-seconds', '1', '--service-ca-file', caFile],
        ...['--endpoint', 'localhost', '--https-port', String(await proxy.listen())],
      ],
    }
    return new Site({ proxy, rogue }, organization, parameters, metricsPort)
  }

  /** Waits until the service has stored what the brokers have. */
  async untilLogIsRead(): Promise<void> {
    const port = this.#metricsPort
    if (port === undefined) return
    await until('the log is not read', async () => {
      const { text } = await askLocal(port, '/metrics').catch(() => ({ text: '' }))
      return /^posture_log_unread_batches 0$/m.test(text)
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
