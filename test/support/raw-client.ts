import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AT_ONCE_MS } from './wait.ts'

/** A client that says bytes and no requests: what came, and whether the other side has closed. */
export interface RawClient {
  readonly socket: Socket
  /** What came so far, a character a byte. */
  text(): string
  readonly bytes: () => number
  readonly closed: Promise<void>
  readonly isClosed: () => boolean
}

/** `paused` until its socket is resumed; then nothing is read. */
export function rawClient(
  port: number,
  options: { readonly tls?: boolean; readonly paused?: boolean } = {},
): RawClient {
  const where = { port, host: '127.0.0.1' }
  const socket = options.tls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where)
  const chunks: Buffer[] = []
  let bytes = 0
  let isClosed = false
  const closed = new Promise<void>((resolve) =>
    socket.once('close', () => {
      isClosed = true
      resolve()
    }),
  )
  // A reset is a way to close.
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    chunks.push(chunk)
    bytes += chunk.length
  })
  if (options.paused) socket.pause()
  return {
    ...{ socket, closed },
    text: () => Buffer.concat(chunks).toString('latin1'),
    bytes: () => bytes,
    isClosed: () => isClosed,
  }
}

/** What a client of one exchange is answered: all bytes until the other side has closed. `waitMs` ends the wait for one that does not. */
export async function exchange(
  port: number,
  bytes: string | Buffer,
  options: { readonly tls?: boolean; readonly waitMs?: number } = {},
): Promise<{ text: string; closed: boolean }> {
  const client = rawClient(port, options)
  client.socket.write(bytes)
  const timer = setTimeout(() => client.socket.destroy(), options.waitMs ?? AT_ONCE_MS)
  const began = performance.now()
  await client.closed
  clearTimeout(timer)
  return { text: client.text(), closed: performance.now() - began < (options.waitMs ?? AT_ONCE_MS) }
}

/** Statuses of the answers in what came. */
export function statusesOf(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
