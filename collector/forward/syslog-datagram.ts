import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { SYSLOG_DATAGRAMS_AT_ONCE, SYSLOG_RESOLVE_MS } from '../limits.ts'
import type { Peer } from './connection.ts'
import type { SyslogLink } from './syslog-link.ts'

/**
 * Sends each syslog message as a datagram (RFC 5426 §3.1). The socket is connected, so that the
 * kernel reports a missing receiver (ICMP).
 */
export class DatagramLink implements SyslogLink {
  readonly #peer: Peer
  #socket: Socket | undefined
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

function sent(socket: Socket, message: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(message, (error) => (error ? reject(error) : resolve()))
  })
}
