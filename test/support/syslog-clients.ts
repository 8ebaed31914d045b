import { setTimeout as later } from 'node:timers/promises'
import type { Sender } from './syslog-sender.ts'

const PAUSE_MS = 50
const RETRY_MS = 200

/** A connection, with a name of its own that all its messages look up. */
export interface SyslogConnection {
  readonly name: string
  /** Messages that the operating system has accepted. */
  sent: number
  /** Whether it was closed, and not by the client. */
  isBroken: boolean
}

export interface SyslogClientOptions {
  readonly label: string
  readonly domain: string
  readonly open: () => Promise<Sender>
  /** A message about this name. */
  readonly message: (name: string) => string
}

/** A device: keeps a connection, opens another one when it breaks, and repeats no message. */
export class SyslogClient {
  readonly connections: SyslogConnection[] = []
  readonly #options: SyslogClientOptions
  #isOver = false
  readonly #running: Promise<void>

  constructor(options: SyslogClientOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  /** Closes the connection in order: the receiver has read everything. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #run(): Promise<void> {
    const { label, domain, open } = this.#options
    while (!this.#isOver) {
      const sender = await open().catch(() => undefined)
      if (sender === undefined) await later(RETRY_MS)
      else await this.#send(sender, `${label}-${this.connections.length}.${domain}`)
    }
  }

  async #send(sender: Sender, name: string): Promise<void> {
    const connection = { name, sent: 0, isBroken: false }
    this.connections.push(connection)
    void sender.closed.then(() => {
      connection.isBroken = !this.#isOver
    })
    while (!this.#isOver && !connection.isBroken) {
      sender.send(this.#options.message(name))
      connection.sent++
      await later(PAUSE_MS)
    }
    sender.socket.end()
    await sender.closed
    connection.isBroken ||= sender.socket.errored !== null
  }
}
