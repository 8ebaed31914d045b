import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { type TlsFiles, usingTlsFiles } from '../http/certificate.ts'
import { portFault } from '../http/listen.ts'
import { SYSLOG_CONNECTIONS_PER_TOKEN_MAX, SYSLOG_HELLO_MS } from '../limits.ts'
import { canonicalAddress, clientOf } from '../process/network.ts'
import { CLOSED_FOR, type ClosedFor, type Peer, type StreamKind } from './connection.ts'
import type { ConnectionLane } from './lane.ts'
import { takeProxyHeader } from './proxy-protocol.ts'

export interface StreamListenerOptions {
  readonly kind: StreamKind
  /** The setting that names the port, for the error line. */
  readonly setting: string
  readonly address: string
  readonly port: number
  /** Of a `tls` listener. */
  readonly tls: TlsFiles | undefined
  /** Connections of all listeners of the thread; more are closed at once. */
  readonly connectionsMax: number
  /** Of these, of one address (IPv6: /64); 0 for any number. */
  readonly connectionsPerAddressMax: number
  /** Every connection begins with a PROXY header. */
  readonly proxyProtocol: boolean
  /** Instead of SYSLOG_HELLO_MS. */
  readonly helloMs?: number
  /** Who reads what comes from a new connection. */
  readonly lane: () => ConnectionLane
}

/** What the connections of all listeners of the thread share: their number by address and token, and why they ended. */
export class ConnectionAccounting {
  open = 0
  /** By listener. */
  readonly accepted: Record<StreamKind, number> = { tcp: 0, tls: 0 }
  readonly closed: Readonly<Record<StreamKind, Record<ClosedFor, number>>> = { tcp: noneClosed(), tls: noneClosed() }
  /** By address, or its /64. */
  readonly byClient = new Map<string, number>()
  readonly byToken = new Map<string, number>()
}

/** Listens for syslog over TCP or TLS. */
export class StreamListener {
  readonly #options: StreamListenerOptions
  readonly #accounting: ConnectionAccounting
  /** In the book, of this kind of listener. */
  readonly #closed: Record<ClosedFor, number>
  readonly #server: Server
  readonly #connections = new Set<Socket>()
  /** Sockets whose TLS handshake or PROXY header is under way, and since when. */
  readonly #greeting = new Map<Socket, number>()
  readonly #helloMs: number
  /** The one it was bound to: a server that has stopped accepting no longer knows. */
  port = 0
  #secure: SecureContext | undefined

  private constructor(options: StreamListenerOptions, accounting: ConnectionAccounting) {
    this.#options = options
    this.#accounting = accounting
    this.#closed = accounting.closed[options.kind]
    this.#helloMs = options.helloMs ?? SYSLOG_HELLO_MS
    this.#server = createServer({ keepAlive: true, keepAliveInitialDelay: 60_000, noDelay: true }, (socket) =>
      this.#onSocket(socket),
    )
    if (options.tls !== undefined) this.reload(options.tls)
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE. */
  static async listen(options: StreamListenerOptions, accounting: ConnectionAccounting): Promise<StreamListener> {
    const listener = new StreamListener(options, accounting)
    const server = listener.#server
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(portFault(options.setting, options.address, options.port, error)),
      )
      server.listen({ host: options.address, port: options.port, backlog: 1024 }, resolve)
    })
    listener.port = (server.address() as AddressInfo).port
    server.on('error', () => {
      // No more descriptors, and the like: one connection is lost, the others go on.
      listener.#closed.error++
    })
    return listener
  }

  get kind(): StreamKind {
    return this.#options.kind
  }

  get address(): string {
    return this.#options.address
  }

  /** New connections get this certificate. @throws Fault CERTIFICATE. */
  reload(files: TlsFiles): void {
    this.#secure = usingTlsFiles(files, () =>
      createSecureContext({
        key: readFileSync(files.keyFile),
        cert: readFileSync(files.certificateFile),
        minVersion: 'TLSv1.2',
      }),
    )
  }

  /** Closes connections that take too long to begin. To be called about once a second. */
  sweep(nowMs: number): void {
    for (const [socket, sinceMs] of this.#greeting) {
      if (nowMs - sinceMs < this.#helloMs) continue
      this.#closed[this.#options.kind === 'tls' ? 'tls' : 'proxy']++
      socket.destroy()
    }
  }

  /** No more connections; those that are there go on. */
  stopAccepting(): void {
    this.#server.close()
    for (const socket of this.#greeting.keys()) socket.destroy()
  }

  close(): void {
    this.stopAccepting()
    for (const socket of this.#connections) socket.destroy()
  }

  async #onSocket(socket: Socket): Promise<void> {
    const accounting = this.#accounting
    // Without a listener for it, an error ends the process.
    socket.on('error', () => {})
    let address = canonicalAddress(socket.remoteAddress ?? '')
    accounting.accepted[this.#options.kind]++
    if (accounting.open >= this.#options.connectionsMax) {
      this.#closed.limit++
      socket.destroy()
      return
    }
    accounting.open++
    socket.once('close', () => {
      accounting.open--
      this.#greeting.delete(socket)
    })
    this.#greeting.set(socket, Date.now())
    if (this.#options.proxyProtocol) {
      const client = await takeProxyHeader(socket)
      if (client === undefined) {
        if (!socket.destroyed) this.#closed.proxy++
        socket.destroy()
        return
      }
      address = canonicalAddress(client)
    }
    const client = clientOf(address)
    const before = accounting.byClient.get(client) ?? 0
    if (this.#options.connectionsPerAddressMax > 0 && before >= this.#options.connectionsPerAddressMax) {
      this.#closed.limit++
      socket.destroy()
      return
    }
    accounting.byClient.set(client, before + 1)
    socket.once('close', () => less(accounting.byClient, client))
    if (this.#secure === undefined) this.#begin(socket, socket, address)
    else this.#handshake(socket, address, this.#secure)
  }

  #handshake(socket: Socket, address: string, secureContext: SecureContext): void {
    const secure = new TLSSocket(socket, { isServer: true, secureContext })
    let done = false
    secure.once('secure', () => {
      done = true
      this.#begin(socket, secure, address)
    })
    secure.on('error', () => {
      if (!done) this.#closed.tls++
      socket.destroy()
    })
    secure.once('close', () => socket.destroy())
  }

  #begin(socket: Socket, stream: Socket, address: string): void {
    this.#greeting.delete(socket)
    if (stream.destroyed) return
    const accounting = this.#accounting
    let tokenId = ''
    const peer: Peer = {
      pause: () => stream.pause(),
      resume: () => stream.resume(),
      close: (why) => {
        if (stream.destroyed) return
        this.#closed[why]++
        stream.destroy()
      },
      noteToken: (id) => {
        if (stream.destroyed) return
        if (tokenId !== '') less(accounting.byToken, tokenId)
        tokenId = id
        const count = (accounting.byToken.get(id) ?? 0) + 1
        accounting.byToken.set(id, count)
        if (count > SYSLOG_CONNECTIONS_PER_TOKEN_MAX) peer.close('limit')
      },
    }
    const reader = this.#options.lane().open(this.#options.kind, address, this.port, peer)
    this.#connections.add(stream)
    stream.on('data', (chunk: Buffer) => reader.data(chunk))
    stream.once('end', () => reader.end())
    stream.once('close', () => {
      this.#connections.delete(stream)
      if (tokenId !== '') less(accounting.byToken, tokenId)
      reader.close()
    })
    // It was stopped behind the PROXY header, and a listener alone does not start it again.
    stream.resume()
  }
}

function noneClosed(): Record<ClosedFor, number> {
  return Object.fromEntries(CLOSED_FOR.map((why) => [why, 0])) as Record<ClosedFor, number>
}

function less(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1
  if (count <= 0) counts.delete(key)
  else counts.set(key, count)
}
