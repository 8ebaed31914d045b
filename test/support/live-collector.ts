import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Oracle } from '../crash/oracle.ts'
import { Random } from '../fuzz/random.ts'
import type { Machine } from './machines.ts'
import { type Ended, type Running, start } from './programs.ts'
import { until } from './wait.ts'

const QUERIES = 400
const QUERIES_PER_SECOND = 200
const HEALTH_PORT = '19090'
const POLL_MS = 100

export interface LiveCollectorOptions {
  /** Its machine gets a pair of interfaces. */
  readonly machine: Machine
  readonly directory: string
  /** Where the service is: flags and environment. */
  readonly parameters: readonly string[]
  readonly token: string
}

/** A collector that captures the DNS queries of random clients until it is stopped. */
export class LiveCollector {
  readonly oracle = new Oracle()
  readonly #options: LiveCollectorOptions
  readonly #collector: Running
  #isOver = false
  #playing: Promise<void> | undefined

  private constructor(options: LiveCollectorOptions, collector: Running) {
    this.#options = options
    this.#collector = collector
  }

  static async start(
    t: { teardown(work: () => unknown): void },
    options: LiveCollectorOptions,
    seed: number,
  ): Promise<LiveCollector> {
    const { machine, directory, parameters, token } = options
    const [command = '', ...words] = [...machine.through, 'ip', 'link']
    await promisify(execFile)(command, [...words, 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'])
    for (const link of ['near', 'far']) await promisify(execFile)(command, [...words, 'set', link, 'up'])
    const args = ['--interface', 'far', '--outbox', join(directory, 'outbox'), ...parameters]
    const environment = { SVC_TOKEN: token, HEALTH_PORT, LOG_LEVEL: 'INFO' }
    // tap's hooks write files as the user that started the tests. The collector is another one.
    const through = [...machine.through, 'env', '-u', 'NODE_OPTIONS']
    const collector = start('collector', args, environment, through)
    t.teardown(() => collector.child.kill('SIGKILL'))
    const live = new LiveCollector(options, collector)
    await until(
      () => `the collector does not start: ${collector.output.stderr}`,
      async () => (await live.#health()).status === 'running',
    )
    live.#playing = live.#play(new Random(seed))
    return live
  }

  /** Waits until all queries are matched, and all matches acknowledged. */
  async stop(): Promise<Ended> {
    this.#isOver = true
    await this.#playing
    await until('not all queries are matched', async () => {
      return (await this.#health()).events_matched === this.oracle.matches || later(POLL_MS, false)
    })
    this.#collector.child.kill('SIGTERM')
    return this.#collector.ended
  }

  async #play(random: Random): Promise<void> {
    const path = join(this.#options.directory, 'played.pcap')
    const [command = '', ...through] = this.#options.machine.through
    // With the timer that it uses by default, tcpreplay keeps a core busy between packets.
    const parameters = ['tcpreplay', '-q', '--timer=nano', `--pps=${QUERIES_PER_SECOND}`, '-i', 'near', path]
    while (!this.#isOver) {
      this.oracle.writeCapture(path, random, QUERIES, Date.now())
      await promisify(execFile)(command, [...through, ...parameters])
    }
  }

  async #health(): Promise<{ readonly status?: string; readonly events_matched?: number }> {
    const [command = '', ...through] = this.#options.machine.through
    const url = `http://127.0.0.1:${HEALTH_PORT}/health`
    try {
      return JSON.parse((await promisify(execFile)(command, [...through, 'curl', '-s', '--max-time', '5', url])).stdout)
    } catch {
      return {}
    }
  }
}
