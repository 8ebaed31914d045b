import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { type TlsFiles, usingTlsFiles } from '../http/certificate.ts'
import { portFault } from '../http/listen.ts'
import { NODE_TLS_OPTIONS } from '../http/tls-ciphers.ts'
import type { ConnectionLimitLog } from '../kernel/process/connection-limit-log.ts'
import { canonicalAddress, clientOf } from '../kernel/process/network.ts'
import { SYSLOG_CONNECTIONS_PER_TOKEN_MAX, SYSLOG_HELLO_MS } from '../limits.ts'
import { CLOSE_REASONS, type CloseReason, type ConnectionReader, type Peer, type StreamKind } from './connection.ts'
import { DnstapCounts, DnstapReader } from './dnstap/dnstap-reader.ts'
import type { ConnectionLane } from './lane.ts'
import { takeProxyHeader } from './proxy-protocol.ts'

export interface StreamListenerOptions {
  readonly kind: StreamKind
  /** Connections carry dnstap in place of syslog. */
  readonly dnstap?: boolean | undefined
  /** The setting that contains the port, for error messages. */
  readonly setting: string
  readonly address: string
  readonly port: number
  /** Required for `tls`. */
  readonly tls: TlsFiles | undefined
  /** Connections of all listeners of the thread. More are closed when accepted. */
  readonly connectionsMax: number
  /** Of these, from one client (an IPv4 address or an IPv6 /64); 0 is unlimited. */
  readonly connectionsPerAddressMax: number
  readonly limitLog: ConnectionLimitLog
  /** Every connection begins with a PROXY header. */
  readonly proxyProtocol: boolean
  /** Replaces SYSLOG_HELLO_MS in tests. */
  readonly helloMs?: number
  /** Chooses the lane that reads a new connection. */
  readonly lane: () => ConnectionLane
}

/** Connection counters that all listeners of the thread share. */
export class ConnectionAccounting {
  open = 0
  /** By listener. */
  readonly accepted: Record<StreamKind, number> = { tcp: 0, tls: 0 }
  readonly closed: Readonly<Record<StreamKind, Record<CloseReason, number>>> = { tcp: noneClosed(), tls: noneClosed() }
  readonly dnstap = new DnstapCounts()
  /** By address, or by its /64 for IPv6. */
  readonly byClient = new Map<string, number>()
  readonly byToken = new Map<string, number>()
}

/** Listens for syslog or dnstap over TCP or TLS. */
export class StreamListener {
  readonly #options: StreamListenerOptions
  readonly #accounting: ConnectionAccounting
  /** The counters of this kind of listener. */
  readonly #closed: Record<CloseReason, number>
  readonly #server: Server
  readonly #connections = new Set<Socket>()
  /** Sockets in their TLS handshake or PROXY header, and when they connected. */
  readonly #handshakes = new Map<Socket, number>()
  readonly #helloMs: number
  /** The bound port. A closed server no longer reports it. */
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
      // For example, out of file descriptors: one connection is lost, the others continue.
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

  /** Uses these files for new connections. @throws Fault CERTIFICATE. */
  reload(files: TlsFiles): void {
    this.#secure = usingTlsFiles(files, () =>
      createSecureContext({
        key: readFileSync(files.keyFile),
        cert: readFileSync(files.certificateFile),
        ...NODE_TLS_OPTIONS,
      }),
    )
  }

  /** Closes connections whose handshake takes too long. Call about once a second. */
  sweep(nowMs: number): void {
    for (const [socket, sinceMs] of this.#handshakes) {
      if (nowMs - sinceMs < this.#helloMs) continue
      this.#closed[this.#options.kind === 'tls' ? 'tls' : 'proxy']++
      socket.destroy()
    }
  }

  /** Stops accepting connections. Open ones continue. */
  stopAccepting(): void {
    this.#server.close()
    for (const socket of this.#handshakes.keys()) socket.destroy()
  }

  close(): void {
    this.stopAccepting()
    for (const socket of this.#connections) socket.destroy()
  }

  async #onSocket(socket: Socket): Promise<void> {
    const accounting = this.#accounting
    // An `error` event without a listener would end the process.
    socket.on('error', () => {})
    let address = canonicalAddress(socket.remoteAddress ?? '')
    accounting.accepted[this.#options.kind]++
    if (accounting.open >= this.#options.connectionsMax) {
      this.#closeAtLimit(socket, 'total', this.#options.connectionsMax)
      return
    }
    accounting.open++
    socket.once('close', () => {
      accounting.open--
      this.#handshakes.delete(socket)
    })
    this.#handshakes.set(socket, Date.now())
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
      this.#closeAtLimit(socket, 'address', this.#options.connectionsPerAddressMax)
      return
    }
    accounting.byClient.set(client, before + 1)
    socket.once('close', () => decrement(accounting.byClient, client))
    if (this.#secure === undefined) this.#begin(socket, socket, address)
    else this.#handshake(socket, address, this.#secure)
  }

  #closeAtLimit(socket: Socket, limit: 'total' | 'address', max: number): void {
    this.#closed.limit++
    this.#options.limitLog.note(limit, max, () => this.#accounting.byClient)
    socket.destroy()
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
    this.#handshakes.delete(socket)
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
        if (tokenId !== '') decrement(accounting.byToken, tokenId)
        tokenId = id
        const count = (accounting.byToken.get(id) ?? 0) + 1
        accounting.byToken.set(id, count)
        if (count > SYSLOG_CONNECTIONS_PER_TOKEN_MAX) peer.close('limit')
      },
    }
    const messages = this.#options.lane().open(this.#options.kind, address, this.port, peer)
    const reader = this.#options.dnstap === true ? this.#dnstapReader(stream, peer, messages) : messages
    this.#connections.add(stream)
    stream.on('data', (chunk: Buffer) => reader.data(chunk))
    stream.once('end', () => reader.end())
    stream.once('close', () => {
      this.#connections.delete(stream)
      if (tokenId !== '') decrement(accounting.byToken, tokenId)
      reader.close()
    })
    // takeProxyHeader() has paused the socket, and adding a listener does not resume it.
    stream.resume()
  }

  #dnstapReader(stream: Socket, peer: Peer, messages: ConnectionReader): DnstapReader {
    const answers = {
      write: (bytes: Uint8Array) => void stream.write(bytes),
      end: (bytes: Uint8Array) => void stream.end(bytes),
      refuse: () => peer.close('framing'),
    }
    return new DnstapReader(answers, messages, this.#accounting.dnstap)
  }
}

function noneClosed(): Record<CloseReason, number> {
  return Object.fromEntries(CLOSE_REASONS.map((why) => [why, 0])) as Record<CloseReason, number>
}

function decrement(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1
  if (count <= 0) counts.delete(key)
  else counts.set(key, count)
}
