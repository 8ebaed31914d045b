import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { PROMPT_MS } from './wait.ts'

/**
 * A client that sends raw bytes instead of requests. Records what it receives and whether the
 * server has closed the connection.
 */
export interface RawClient {
  readonly socket: Socket
  /** The bytes received so far, one character per byte. */
  text(): string
  readonly bytes: () => number
  readonly closed: Promise<void>
  readonly isClosed: () => boolean
}

/**
 * `paused`: reads nothing until the caller resumes the socket. `from`: the address to connect from.
 */
export function rawClient(
  port: number,
  options: { readonly tls?: boolean; readonly paused?: boolean; readonly from?: string } = {},
): RawClient {
  const where = { port, host: '127.0.0.1', ...(options.from !== undefined && { localAddress: options.from }) }
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
  // A reset also counts as a close.
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

/**
 * Sends bytes and returns all bytes received until the server closes the connection, or until
 * `waitMs` have passed.
 */
export async function exchange(
  port: number,
  bytes: string | Buffer,
  options: { readonly tls?: boolean; readonly waitMs?: number } = {},
): Promise<{ text: string; closed: boolean }> {
  const client = rawClient(port, options)
  client.socket.write(bytes)
  const timer = setTimeout(() => client.socket.destroy(), options.waitMs ?? PROMPT_MS)
  const began = performance.now()
  await client.closed
  clearTimeout(timer)
  return { text: client.text(), closed: performance.now() - began < (options.waitMs ?? PROMPT_MS) }
}

/** The status codes of all responses in the text. */
export function statusesOf(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
