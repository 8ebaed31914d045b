import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Forwarder, type Part, PLACEHOLDERS, type Placeholder, snippet } from '../../deploy/docs/page-tables.ts'
import { freePort } from './free-port.ts'
import { rsyslog } from './rsyslog.ts'

/**
 * rsyslog or syslog-ng with the snippets of docs/collect/. Its folder survives a
 * restart of the forwarder.
 */
export class RunningForwarder {
  readonly #t: { testdir(): string; teardown(work: () => unknown): void }
  readonly #forwarder: Forwarder
  readonly #directory: string
  readonly #configuration: string
  /** Port that devices send to; 0 without devices. */
  readonly #relayPort: number
  #child: ChildProcess | undefined

  private constructor(
    t: { testdir(): string; teardown(work: () => unknown): void },
    forwarder: Forwarder,
    directory: string,
    configuration: string,
    relayPort: number,
  ) {
    this.#t = t
    this.#forwarder = forwarder
    this.#directory = directory
    this.#configuration = configuration
    this.#relayPort = relayPort
  }

  /**
   * Fills in the snippets and starts the forwarder, which runs until the test ends. The caller
   * passes the folder, because a second `t.testdir()` would empty it.
   */
  static async start(
    t: { testdir(): string; teardown(work: () => unknown): void },
    within: string,
    forwarder: Forwarder,
    parts: readonly Part[],
    where: Pick<Record<Placeholder, string>, 'MONITORING_TOKEN' | 'INGEST_HOST' | 'INGEST_PORT' | 'CA_FILE'>,
  ): Promise<RunningForwarder> {
    const directory = join(within, forwarder)
    const relayPort = await freePort()
    const args: Record<Placeholder, string> = {
      ...where,
      BUFFER_DIRECTORY: join(directory, 'buffer'),
      SQUID_LOG: join(directory, 'access.log'),
      BIND_LOG: join(directory, 'queries.log'),
      RELAY_ADDRESS: '127.0.0.1',
      RELAY_PORT: String(relayPort),
    }
    mkdirSync(args.BUFFER_DIRECTORY, { recursive: true, mode: 0o700 })
    for (const file of [args.SQUID_LOG, args.BIND_LOG]) writeFileSync(file, '')
    const text = parts.map((part) => snippet(forwarder, part)).join('\n')
    const configuration = Object.keys(PLACEHOLDERS).reduce(
      (filled, word) => filled.replaceAll(word, args[word as Placeholder]),
      text,
    )
    const made = new RunningForwarder(t, forwarder, directory, configuration, parts.includes('devices') ? relayPort : 0)
    t.teardown(() => made.stop('SIGKILL'))
    await made.start()
    return made
  }

  /** Folder of the forwarder's disk buffer. */
  get bufferDirectory(): string {
    return this.#forwarder === 'rsyslog' ? this.#directory : join(this.#directory, 'buffer')
  }

  write(file: 'access.log' | 'queries.log', lines: readonly string[]): void {
    appendFileSync(join(this.#directory, file), lines.map((line) => `${line}\n`).join(''))
  }

  /** Sends datagrams, as a device does. */
  async sendUdp(messages: readonly string[]): Promise<void> {
    const socket = createSocket('udp4')
    for (const message of messages) {
      await new Promise((resolve) => socket.send(message, this.#relayPort, '127.0.0.1', resolve))
    }
    socket.close()
  }

  /**
   * Sends messages over one connection, as a device does, with line feeds or octet counts as
   * framing.
   */
  async sendTcp(messages: readonly string[], framing: 'lines' | 'counted'): Promise<void> {
    const socket = connect(this.#relayPort, '127.0.0.1')
    await once(socket, 'connect')
    for (const message of messages) {
      socket.write(framing === 'lines' ? `${message}\n` : `${Buffer.byteLength(message)} ${message}`)
    }
    socket.end()
    await once(socket.resume(), 'close')
  }

  async start(): Promise<void> {
    this.#child = this.#forwarder === 'rsyslog' ? await this.#startRsyslog() : this.#startSyslogNg()
    if (this.#relayPort === 0) return
    while (!(await this.#acceptsConnections())) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** SIGTERM, as systemd sends it, makes the forwarder save its queue. SIGKILL does not. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  async #startRsyslog(): Promise<ChildProcess> {
    const { child } = await rsyslog(this.#t, this.#directory, { configuration: this.#configuration })
    return child
  }

  #startSyslogNg(): ChildProcess {
    const file = join(this.#directory, 'syslog-ng.conf')
    writeFileSync(file, `@version: 3.38\n${this.#configuration}`)
    const checked = spawnSync('syslog-ng', ['-s', '-f', file, '--no-caps'], { encoding: 'utf8' })
    // Warnings fail as well: a configuration that users copy must not cause any.
    if (checked.status !== 0 || checked.stderr !== '') throw new Error(`syslog-ng -s: ${checked.stderr}`)
    const state = ['-R', join(this.#directory, 'persist'), '-c', join(this.#directory, 'control')]
    const args = ['-F', '--no-caps', '-f', file, ...state, '-p', join(this.#directory, 'pid')]
    return spawn('syslog-ng', args, { stdio: 'ignore' })
  }

  #acceptsConnections(): Promise<boolean> {
    const socket = connect(this.#relayPort, '127.0.0.1')
    return new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    }).then((takes) => {
      socket.destroy()
      return takes as boolean
    })
  }
}
