import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { portFault } from '../http/listen.ts'
import {
  MESSAGE_BYTES_MAX,
  SYSLOG_CONNECTIONS_MAX,
  SYSLOG_CONNECTIONS_PER_ADDRESS_MAX,
  SYSLOG_CONNECTIONS_PER_TOKEN_MAX,
  SYSLOG_HELLO_MS,
  SYSLOG_MESSAGE_MS,
  SYSLOG_WAITING_BYTES_MAX,
} from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import { SCRATCH_BYTES } from './formats/log-line.ts'
import { type Intake, Origin } from './intake.ts'
import { canonicalAddress } from './network.ts'
import { takeProxyHeader } from './proxy-protocol.ts'
import { BROKEN, type FrameSink, Framing } from './syslog/framing.ts'

export interface TlsFiles {
  readonly keyFile: string
  readonly certificateFile: string
}

export interface StreamListenerOptions {
  readonly kind: 'tcp' | 'tls'
  /** The setting that names the port, for the error line. */
  readonly setting: string
  readonly address: string
  readonly port: number
  /** Of a `tls` listener. */
  readonly tls: TlsFiles | undefined
  /** Every connection begins with a PROXY header. */
  readonly proxyProtocol: boolean
  /** Milliseconds without a byte after which a connection is closed. */
  readonly idleMs: number
  /** Instead of SYSLOG_HELLO_MS and SYSLOG_MESSAGE_MS. */
  readonly helloMs?: number
  readonly messageMs?: number
  /** Told when messages were taken. */
  readonly onTaken: () => void
}

/** Why connections ended that their clients had not closed, or were never begun. */
export const CLOSED_FOR = ['limit', 'idle', 'slow', 'silent', 'framing', 'tls', 'proxy', 'error'] as const
export type ClosedFor = (typeof CLOSED_FOR)[number]

/** What the connections of all listeners of the thread share: their number by address and token, and why they ended. */
export class ConnectionBook {
  open = 0
  accepted = 0
  oversized = 0
  /** Room taken by messages that are not whole yet. */
  waitingBytes = 0
  readonly closed: Record<ClosedFor, number> = {
    limit: 0,
    idle: 0,
    slow: 0,
    silent: 0,
    framing: 0,
    tls: 0,
    proxy: 0,
    error: 0,
  }
  readonly byAddress = new Map<string, number>()
  readonly byToken = new Map<string, number>()
}

/** Listens for syslog over TCP or TLS. */
export class StreamListener {
  readonly #options: StreamListenerOptions
  readonly #intake: Intake
  readonly #book: ConnectionBook
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  /** Sockets whose TLS handshake or PROXY header is under way, and since when. */
  readonly #greeting = new Map<Socket, number>()
  readonly #helloMs: number
  readonly #messageMs: number
  /** The one it was bound to: a server that has stopped accepting no longer knows. */
  port = 0
  #secure: SecureContext | undefined

  private constructor(options: StreamListenerOptions, intake: Intake, book: ConnectionBook) {
    this.#options = options
    this.#intake = intake
    this.#book = book
    this.#helloMs = options.helloMs ?? SYSLOG_HELLO_MS
    this.#messageMs = options.messageMs ?? SYSLOG_MESSAGE_MS
    this.#server = createServer({ keepAlive: true, keepAliveInitialDelay: 60_000, noDelay: true }, (socket) =>
      this.#onSocket(socket),
    )
    if (options.tls !== undefined) this.reload(options.tls)
  }

  /** @throws Fault PORT_TAKEN, PORT_DENIED, CERTIFICATE. */
  static async listen(options: StreamListenerOptions, intake: Intake, book: ConnectionBook): Promise<StreamListener> {
    const listener = new StreamListener(options, intake, book)
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
      book.closed.error++
    })
    return listener
  }

  get kind(): 'tcp' | 'tls' {
    return this.#options.kind
  }

  get address(): string {
    return this.#options.address
  }

  /** New connections get this certificate. @throws Fault CERTIFICATE. */
  reload(files: TlsFiles): void {
    try {
      this.#secure = createSecureContext({
        key: readFileSync(files.keyFile),
        cert: readFileSync(files.certificateFile),
        minVersion: 'TLSv1.2',
      })
    } catch (error) {
      throw new Fault('CERTIFICATE', `${files.certificateFile}: ${(error as Error).message}`, { cause: error })
    }
  }

  /** Gives those another chance whose messages found no room. */
  resumeStalled(): void {
    for (const connection of this.#connections) if (connection.stalled) connection.resume()
  }

  /** Closes connections whose time is up. To be called about once a second. */
  sweep(nowMs: number): void {
    for (const [socket, sinceMs] of this.#greeting) {
      if (nowMs - sinceMs < this.#helloMs) continue
      this.#book.closed[this.#options.kind === 'tls' ? 'tls' : 'proxy']++
      socket.destroy()
    }
    for (const connection of this.#connections) {
      const why = connection.overdue(nowMs, this.#options.idleMs, this.#helloMs, this.#messageMs)
      if (why === undefined) continue
      this.#book.closed[why]++
      connection.destroy()
    }
  }

  /** No more connections; those that are there go on. */
  stopAccepting(): void {
    this.#server.close()
    for (const socket of this.#greeting.keys()) socket.destroy()
  }

  close(): void {
    this.stopAccepting()
    for (const connection of this.#connections) connection.destroy()
  }

  async #onSocket(socket: Socket): Promise<void> {
    const book = this.#book
    // Without a listener for it, an error ends the process.
    socket.on('error', () => {})
    let address = canonicalAddress(socket.remoteAddress ?? '')
    book.accepted++
    if (book.open >= SYSLOG_CONNECTIONS_MAX) {
      book.closed.limit++
      socket.destroy()
      return
    }
    book.open++
    socket.once('close', () => {
      book.open--
      this.#greeting.delete(socket)
    })
    this.#greeting.set(socket, Date.now())
    if (this.#options.proxyProtocol) {
      const client = await takeProxyHeader(socket)
      if (client === undefined) {
        if (!socket.destroyed) book.closed.proxy++
        socket.destroy()
        return
      }
      address = canonicalAddress(client)
    }
    const before = book.byAddress.get(address) ?? 0
    if (before >= SYSLOG_CONNECTIONS_PER_ADDRESS_MAX) {
      book.closed.limit++
      socket.destroy()
      return
    }
    book.byAddress.set(address, before + 1)
    socket.once('close', () => less(book.byAddress, address))
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
      if (!done) this.#book.closed.tls++
      socket.destroy()
    })
    secure.once('close', () => socket.destroy())
  }

  #begin(socket: Socket, stream: Socket, address: string): void {
    this.#greeting.delete(socket)
    if (stream.destroyed) return
    const origin = new Origin(this.#options.kind, address, this.port)
    const connection = new Connection(stream, origin, this.#intake, this.#book, this.#options.onTaken)
    this.#connections.add(connection)
    connection.ended.then(() => this.#connections.delete(connection))
  }
}

/** Bytes that are copied into the thread's buffer at a time, behind what was left of those before. */
const PIECE_BYTES = 64 * 1024

/** What the thread's buffer must hold: what is left of a message, a piece, a byte for the framing, and room for names in another form. */
export const WORK_BYTES = MESSAGE_BYTES_MAX + 16 + PIECE_BYTES + 1 + SCRATCH_BYTES

const NOTHING = Buffer.alloc(0)

/** One connection. Its bytes are cut into messages in the thread's buffer; what is left of one waits in a small buffer of its own. */
class Connection implements FrameSink {
  /** Its last message found no room: it is not read until there is. */
  stalled = false
  readonly ended: Promise<void>
  readonly #socket: Socket
  readonly #origin: Origin
  readonly #intake: Intake
  readonly #book: ConnectionBook
  readonly #onTaken: () => void
  readonly #framing = new Framing(MESSAGE_BYTES_MAX)
  /** What is left of the bytes that came, in [0, #waitingBytes). */
  #waiting: Buffer = NOTHING
  #waitingBytes = 0
  /** What came behind while there was no room. */
  #unread: Buffer | undefined
  readonly #beganMs = Date.now()
  #lastByteMs = this.#beganMs
  /** When the first byte came of the message that is not whole. 0: none is. */
  #partialSinceMs = 0
  #taken = false
  #tokenId = ''
  #streamEnded = false
  #closed = false
  #settleEnded: () => void = () => {}

  constructor(socket: Socket, origin: Origin, intake: Intake, book: ConnectionBook, onTaken: () => void) {
    this.#socket = socket
    this.#origin = origin
    this.#intake = intake
    this.#book = book
    this.#onTaken = onTaken
    this.ended = new Promise((resolve) => {
      this.#settleEnded = resolve
    })
    socket.on('data', (chunk: Buffer) => this.#onData(chunk))
    socket.once('end', () => this.#onEnd())
    socket.once('close', () => this.#onClose())
    // It was stopped behind the PROXY header, and a listener alone does not start it again.
    socket.resume()
  }

  frame(start: number, end: number): boolean {
    if (!this.#intake.take(start, end, this.#origin)) return false
    this.#taken = true
    return true
  }

  /** Reads on, if there is room now. */
  resume(): void {
    this.stalled = false
    const nowMs = Date.now()
    this.#intake.line.referenceMs = nowMs
    // What waits first: with more behind it, it might be longer than the thread's buffer.
    this.#feed(NOTHING)
    const unread = this.#unread
    if (!this.stalled && unread !== undefined) {
      this.#unread = undefined
      this.#feed(unread)
    }
    if (!this.stalled && this.#streamEnded) this.#onEnd()
    this.#countToken()
    this.#onTaken()
    if (this.stalled) return
    // Its client could not send while it was not read.
    this.#lastByteMs = nowMs
    if (this.#partialSinceMs > 0) this.#partialSinceMs = nowMs
    if (this.#closed) this.#finish()
    else this.#socket.resume()
  }

  destroy(): void {
    this.#socket.destroy()
    // What it had sent whole is lost only if there is no room even now.
    if (this.#closed) this.#finish()
  }

  /** Why the connection is to be closed now, if it is. */
  overdue(nowMs: number, idleMs: number, helloMs: number, messageMs: number): ClosedFor | undefined {
    if (this.stalled) return undefined
    if (this.#partialSinceMs > 0 && nowMs - this.#partialSinceMs >= messageMs) return 'slow'
    if (!this.#taken && nowMs - this.#beganMs >= helloMs) return 'silent'
    return nowMs - this.#lastByteMs >= idleMs ? 'idle' : undefined
  }

  #onData(chunk: Buffer): void {
    this.#lastByteMs = Date.now()
    if (this.stalled) {
      // TLS may have had more in hand when it was paused.
      this.#unread = this.#unread === undefined ? Buffer.from(chunk) : Buffer.concat([this.#unread, chunk])
      return
    }
    this.#intake.line.referenceMs = this.#lastByteMs
    this.#feed(chunk)
    this.#countToken()
    this.#onTaken()
  }

  #feed(chunk: Buffer): void {
    if (chunk.length > 0 && this.#waitingBytes > 0 && !this.#framing.mayComplete(this.#waitingBytes, chunk)) {
      this.#keep(chunk)
      return
    }
    let from = 0
    do {
      const piece = Math.min(chunk.length - from, PIECE_BYTES)
      if (!this.#cut(chunk, from, from + piece)) {
        const rest = chunk.subarray(from + piece)
        if (this.stalled && rest.length > 0) this.#unread = Buffer.from(rest)
        return
      }
      from += piece
    } while (from < chunk.length)
  }

  /** Cuts what waits and a piece of the chunk into messages. Answers false where it cannot go on. */
  #cut(chunk: Buffer, from: number, to: number): boolean {
    const { bytes, view } = this.#intake.line
    const waiting = this.#waitingBytes
    if (waiting > 0) bytes.set(this.#waiting.subarray(0, waiting))
    bytes.set(from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to), waiting)
    const end = waiting + to - from
    const before = this.#framing.oversized
    const rest = this.#framing.cut(bytes, view, 0, end, this)
    this.#book.oversized += this.#framing.oversized - before
    if (rest === BROKEN) {
      this.#book.closed.framing++
      this.#waitingBytes = 0
      this.#socket.destroy()
      return false
    }
    this.#waitingBytes = 0
    if (rest < end) this.#keep(bytes.subarray(rest, end))
    this.#partialSinceMs =
      rest === end ? 0 : rest > 0 || this.#partialSinceMs === 0 ? this.#lastByteMs : this.#partialSinceMs
    if (!this.#framing.stalled) return true
    this.stalled = true
    this.#socket.pause()
    return false
  }

  /** Puts bytes behind those that wait. Room doubles, so that a byte is moved a few times at most. */
  #keep(bytes: Uint8Array): void {
    const needed = this.#waitingBytes + bytes.length
    if (needed > this.#waiting.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(this.#waiting.length * 2, WORK_BYTES)))
      this.#waiting.copy(room, 0, 0, this.#waitingBytes)
      this.#book.waitingBytes += room.length - this.#waiting.length
      this.#waiting = room
      if (this.#book.waitingBytes > SYSLOG_WAITING_BYTES_MAX) {
        this.#book.closed.limit++
        this.#socket.destroy()
      }
    }
    this.#waiting.set(bytes, this.#waitingBytes)
    this.#waitingBytes = needed
  }

  /** The last message may lack its delimiter. */
  #onEnd(): void {
    this.#streamEnded = true
    if (this.stalled || this.#waitingBytes === 0) return
    const { bytes, view } = this.#intake.line
    bytes.set(this.#waiting.subarray(0, this.#waitingBytes))
    this.#intake.line.referenceMs = Date.now()
    if (this.#framing.end(view, 0, this.#waitingBytes, this)) {
      this.#waitingBytes = 0
      this.#onTaken()
    } else this.stalled = true
  }

  #onClose(): void {
    this.#closed = true
    if (!this.stalled) this.#finish()
  }

  #finish(): void {
    if (this.#tokenId !== '') less(this.#book.byToken, this.#tokenId)
    this.#tokenId = ''
    this.#book.waitingBytes -= this.#waiting.length
    this.#waiting = NOTHING
    this.#waitingBytes = 0
    this.#settleEnded()
  }

  #countToken(): void {
    const tokenId = this.#origin.source?.owner.tokenId ?? ''
    if (tokenId === this.#tokenId || tokenId === '') return
    const { byToken } = this.#book
    if (this.#tokenId !== '') less(byToken, this.#tokenId)
    const count = (byToken.get(tokenId) ?? 0) + 1
    byToken.set(tokenId, count)
    this.#tokenId = tokenId
    if (count <= SYSLOG_CONNECTIONS_PER_TOKEN_MAX) return
    this.#book.closed.limit++
    this.#socket.destroy()
  }
}

function less(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 0) - 1
  if (count <= 0) counts.delete(key)
  else counts.set(key, count)
}
