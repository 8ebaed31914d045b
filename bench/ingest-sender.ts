import { readFileSync } from 'node:fs'
import { connect, type TLSSocket } from 'node:tls'
import { EVENTS_PATH } from '../engine/ingest/https-batches.ts'
import { percentile } from './harness.ts'
import { RenumberedBatch } from './workload/event-batches.ts'

/**
 * A separate process that sends batches over a few kept-alive connections. Each connection has its
 * own organization and one batch in flight.
 */
export interface Sending {
  readonly port: number
  /** The CA certificate. */
  readonly certificateFile: string
  readonly tokens: readonly string[]
  readonly batchesEach: number
  readonly eventsEach: number
}
export interface Sent {
  /** From the first byte sent to the last response. */
  readonly seconds: number
  readonly accepted: number
  /** From the first byte of a batch to its response. */
  readonly p50Ms: number
  readonly p99Ms: number
}

process.on('message', async (sending: Sending) => {
  process.send?.(await send(sending))
})

async function send(sending: Sending): Promise<Sent> {
  const { port, certificateFile, tokens, batchesEach, eventsEach } = sending
  const ca = readFileSync(certificateFile)
  const connections = await Promise.all(
    tokens.map(async (token) => {
      return { socket: await connected(port, ca), token, batch: new RenumberedBatch(eventsEach) }
    }),
  )
  const times: number[] = []
  for (const { batch } of connections) batch.newInstance()
  let accepted = 0
  const start = performance.now()
  await Promise.all(
    connections.map(async ({ socket, token, batch }) => {
      const head = `POST ${EVENTS_PATH} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/msgpack\r\ncontent-length: ${batch.bytes.length}\r\n\r\n`
      for (let sent = 0; sent < batchesEach; sent++) {
        batch.next()
        const sentMs = performance.now()
        const taken = await post(socket, head, batch.bytes)
        times.push(performance.now() - sentMs)
        accepted += taken
      }
      socket.destroy()
    }),
  )
  const seconds = (performance.now() - start) / 1000
  return { seconds, accepted, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }
}

function connected(port: number, ca: Buffer): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca, servername: 'localhost' }, () => resolve(socket))
    socket.setNoDelay(true)
    socket.once('error', reject)
  })
}

/**
 * Sends a batch and returns the number of accepted events. node:http would cost more than the
 * measured work.
 */
function post(socket: TLSSocket, head: string, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = ''
    const onData = (bytes: Buffer): void => {
      text += bytes.toString('latin1')
      if (!text.endsWith('}')) return
      socket.off('data', onData)
      const accepted = /^HTTP\/1\.1 200 [\s\S]*"accepted":(\d+)/.exec(text)?.[1]
      if (accepted === undefined) reject(new Error(`the service answers ${text}`))
      else resolve(Number(accepted))
    }
    socket.on('data', onData)
    socket.cork()
    socket.write(head, 'latin1')
    socket.write(body)
    socket.uncork()
  })
}
