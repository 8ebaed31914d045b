import { connect, type Socket } from 'node:net'
import { type Deferred, deferred } from '../../engine/process/deferred.ts'
import { CONNECTION_SETTLED_MS, SYSLOG_TIMEOUT_MS } from '../limits.ts'
import { type Peer, stopped, TlsConnector, timeoutError } from './connection.ts'
import type { SyslogLink } from './syslog-link.ts'

/**
 * Idle time before TCP keep-alive probes, which detect a peer that is gone without closing, in
 * milliseconds.
 */
const KEEP_ALIVE_MS = 30_000

/**
 * Sends syslog messages with octet counting over one connection: `MSGLEN SP SYSLOG-MSG` (RFC 5425
 * §4.3, RFC 6587 §3.4.1).
 */
export class StreamLink implements SyslogLink {
  readonly #peer: Peer
  readonly #timeoutMs: number
  readonly #connector: TlsConnector | undefined
  #socket: Socket | undefined
  #closed = false
  /** The TCP socket until it is connected. */
  #connecting: Socket | undefined
  /** Resolves when a new connection has been open long enough, or has closed. */
  #settled: Deferred<void> | undefined

  /** @throws Fault USAGE if the CA certificate cannot be read. */
  constructor(peer: Peer, timeoutMs = SYSLOG_TIMEOUT_MS) {
    this.#peer = peer
    this.#timeoutMs = timeoutMs
    this.#connector = peer.scheme === 'tls' ? new TlsConnector(peer) : undefined
  }

  get alive(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed
  }

  async open(): Promise<void> {
    if (this.alive) return
    const socket = (await this.#connector?.connect({ timeoutMs: this.#timeoutMs })) ?? (await this.#connectTcp())
    socket.on('error', () => {})
    // A receiver that requires something else, such as a client certificate, closes the connection.
    // Messages sent before that would be lost silently.
    const settled = deferred()
    this.#settled = settled
    socket.once('close', () => settled.resolve())
    setTimeout(settled.resolve, CONNECTION_SETTLED_MS).unref()
    socket.once('end', () => socket.destroy()).resume()
    await settled.promise
    if (this.#closed) socket.destroy()
    if (socket.destroyed) throw this.#closed ? stopped() : new Error('the receiver closed the connection at once')
    const onClosed = (): void => {
      socket.destroy()
      if (this.#socket === socket) this.#socket = undefined
    }
    // A receiver that closes reads no more. Messages sent after that would be lost silently.
    socket.once('end', onClosed).once('close', onClosed).on('error', onClosed)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    this.#socket = socket
  }

  async send(messages: readonly string[]): Promise<void> {
    const socket = this.#socket
    if (messages.length === 0) return
    if (socket === undefined) throw new Error('not connected')
    // ASCII: one octet per character.
    const frames = Buffer.from(messages.map((message) => `${message.length} ${message}`).join(''), 'latin1')
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        timer = setTimeout(
          () => reject(new Error(`the receiver has read nothing for ${this.#timeoutMs / 1000} s`)),
          this.#timeoutMs,
        )
        // Node reports success for a write if the socket was destroyed meanwhile.
        socket.write(frames, (error) => {
          if (error) reject(error)
          else if (socket.destroyed) reject(new Error('the connection was closed'))
          else resolve()
        })
      })
    } catch (error) {
      socket.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#connector?.cancel()
    this.#connecting?.destroy(stopped())
    this.#settled?.resolve()
    const socket = this.#socket
    this.#socket = undefined
    if (socket === undefined) return
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve())
      socket.end(() => socket.destroy())
      setTimeout(() => socket.destroy(), CLOSE_MS).unref()
    })
  }

  #connectTcp(): Promise<Socket> {
    const { host, port } = this.#peer
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true })
      this.#connecting = socket
      const timer = setTimeout(() => socket.destroy(timeoutError(this.#timeoutMs)), this.#timeoutMs)
      socket
        .once('connect', () => resolve(socket))
        .on('error', reject)
        .once('connect', () => {
          this.#connecting = undefined
        })
        .once('connect', () => clearTimeout(timer))
        .once('close', () => clearTimeout(timer))
    })
  }
}

/** Maximum time in milliseconds that a receiver that does not read can delay close(). */
const CLOSE_MS = 1000
