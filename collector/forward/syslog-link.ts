import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Deferred, deferred } from '../../engine/kernel/process/deferred.ts'
import { CONNECTION_SETTLED_MS, SYSLOG_DATAGRAMS_AT_ONCE, SYSLOG_RESOLVE_MS, SYSLOG_TIMEOUT_MS } from '../limits.ts'
import { type Peer, stopped, TlsConnector, timeoutError } from './connection.ts'

/** Sends messages. `send` resolves when the operating system has all of them. */
export interface SyslogLink {
  /** Whether a connection is open. For UDP: no error has reported a missing receiver. */
  readonly alive: boolean
  /** Connects if needed. @throws errors for connectionProblem(). */
  open(): Promise<void>
  send(messages: readonly string[]): Promise<void>
  close(): Promise<void>
}

/**
 * Sends each syslog message as a datagram (RFC 5426 §3.1). The socket is connected, so that the
 * kernel reports a missing receiver (ICMP).
 */
export class DatagramLink implements SyslogLink {
  readonly #peer: Peer
  #socket: DatagramSocket | undefined
  #openedMs = 0
  /** The kernel's error for the last datagrams, if any. */
  #refused: Error | undefined

  constructor(peer: Peer) {
    this.#peer = peer
  }

  get alive(): boolean {
    return this.#socket !== undefined && this.#refused === undefined
  }

  /**
   * Resolves the name again from time to time. Nothing else would show that the receiver has moved.
   */
  async open(): Promise<void> {
    if (this.#socket !== undefined && performance.now() - this.#openedMs < SYSLOG_RESOLVE_MS) return
    const { address, family } = await lookup(this.#peer.host)
    await this.close()
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
    // An idle socket must not keep the process running.
    socket.unref()
    try {
      socket.connect(this.#peer.port, address)
      await once(socket, 'connect')
    } catch (error) {
      socket.close()
      throw error
    }
    socket.on('error', (error) => {
      this.#refused = error
    })
    this.#refused = undefined
    this.#socket = socket
    this.#openedMs = performance.now()
  }

  async send(messages: readonly string[]): Promise<void> {
    const socket = this.#socket
    if (socket === undefined || messages.length === 0) {
      if (this.#refused !== undefined) throw this.#refused
      return
    }
    this.#refused = undefined
    for (let from = 0; from < messages.length; from += SYSLOG_DATAGRAMS_AT_ONCE) {
      const some = messages.slice(from, from + SYSLOG_DATAGRAMS_AT_ONCE)
      await Promise.all(some.map((message) => sent(socket, message)))
      // The ICMP error for a missing receiver arrives slightly later.
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#refused !== undefined) throw this.#refused
    }
  }

  async close(): Promise<void> {
    const socket = this.#socket
    this.#socket = undefined
    if (socket === undefined) return
    socket.close()
    await once(socket, 'close')
  }
}

function sent(socket: DatagramSocket, message: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(message, (error) => (error ? reject(error) : resolve()))
  })
}

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
