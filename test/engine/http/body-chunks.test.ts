import t from 'tap'
import { listenHttp } from '../../../engine/http/listen.ts'
import type { BodyEnd, HttpHandler } from '../../../engine/http/port.ts'
import { deferred } from '../../../engine/kernel/process/deferred.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { rawClient } from '../../support/raw-client.ts'
import { quietLog } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

const MIB = 1024 * 1024
const head = (bytes: number, fields = ''): string =>
  `POST / HTTP/1.1\r\nHost: x\r\n${fields}Content-Length: ${bytes}\r\n\r\n`

for (const implementation of IMPLEMENTATIONS) {
  const serve = async (t: { teardown(work: () => unknown): void }, handler: HttpHandler): Promise<number> => {
    const options = { address: '127.0.0.1', port: 0, handler, log: quietLog }
    const listener = await listenHttp(implementation, options)
    t.teardown(() => listener.drain(100))
    return listener.port
  }

  t.test(`${implementation}: the chunks are the body, one after the other`, async (t) => {
    const body = Buffer.alloc(3 * MIB, 'abcdefghijklmnopqrstuvwxyz')
    let isBusy = false
    const chunks: Uint8Array[] = []
    const port = await serve(t, async (request, response) => {
      const end = await request.bodyChunks(8 * MIB, async (chunk) => {
        t.notOk(isBusy, 'one at a time')
        isBusy = true
        await new Promise((resolve) => setImmediate(resolve))
        isBusy = false
        chunks.push(chunk)
      })
      response.send({ status: 200, body: end })
    })
    const client = rawClient(port)
    client.socket.write(head(body.length))
    client.socket.write(body)
    await until('the answer', () => client.text().endsWith('ended'))
    t.ok(Buffer.concat(chunks).equals(body))
    chunks.length = 0
    client.socket.write(`${head(5)}hello`)
    await until('the next answer of the connection', () => client.text().split('ended').length === 3)
    t.equal(Buffer.concat(chunks).toString(), 'hello')
    client.socket.destroy()
  })

  t.test(`${implementation}: nothing more is read while a chunk is being taken`, async (t) => {
    const free = deferred()
    let taken = 0
    const port = await serve(t, async (request, response) => {
      await request.bodyChunks(64 * MIB, async (chunk) => {
        taken += chunk.length
        await free.promise
      })
      response.send({ status: 200, body: `${taken}` })
    })
    const client = rawClient(port)
    client.socket.write(head(32 * MIB))
    client.socket.write(Buffer.alloc(32 * MIB))
    await until('the kernel takes no more', async () => {
      const before = client.socket.bytesWritten - client.socket.writableLength
      await new Promise((resolve) => setTimeout(resolve, 300))
      return taken > 0 && client.socket.bytesWritten - client.socket.writableLength === before
    })
    t.ok(client.socket.writableLength > 16 * MIB, 'most is still at the client')
    t.ok(taken < 2 * MIB)
    free.resolve()
    await until('the answer', () => client.text().endsWith(String(32 * MIB)))
    client.socket.destroy()
  })

  const ends: readonly { name: string; bytes: string; end: BodyEnd; closes?: boolean }[] = [
    { name: 'no body', bytes: head(0), end: 'ended' },
    { name: 'an announced size over the limit', bytes: head(1001), end: 'too large' },
    {
      name: 'chunks over the limit',
      bytes: `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1001)}\r\n0\r\n\r\n`,
      end: 'too large',
    },
    {
      name: 'chunks up to the limit',
      bytes: `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n${'x'.repeat(1000)}\r\n0\r\n\r\n`,
      end: 'ended',
    },
    { name: 'a body that does not arrive', bytes: `${head(100)}hello`, end: 'too slow' },
    { name: 'a client that disconnects', bytes: `${head(100)}hello`, end: 'aborted', closes: true },
  ]
  for (const { name, bytes, end, closes = false } of ends) {
    t.test(`${implementation}: ${name}`, async (t) => {
      const ended = deferred<BodyEnd>()
      const first = deferred()
      const port = await serve(t, async (request, response) => {
        const pace = { graceMs: closes ? 100_000 : 100, bytesPerSecondMin: 1000 }
        ended.resolve(await request.bodyChunks(1000, () => first.resolve(), pace))
        response.send({ status: 200, body: 'x', fields: ['connection', 'close'] })
      })
      const client = rawClient(port)
      client.socket.write(bytes)
      if (closes) {
        await first.promise
        client.socket.destroy()
      }
      t.equal(await ended.promise, end)
      client.socket.destroy()
    })
  }

  t.test(`${implementation}: a client that waits for the server does not count as slow`, async (t) => {
    const free = deferred()
    const port = await serve(t, async (request, response) => {
      const pace = { graceMs: 50, bytesPerSecondMin: 1_000_000 }
      const end = await request.bodyChunks(1000, () => free.promise, pace)
      response.send({ status: 200, body: end })
    })
    const client = rawClient(port)
    client.socket.write(`${head(5)}hello`)
    setTimeout(() => free.resolve(), 1500)
    await until('the answer', () => client.text().endsWith('ended'))
    client.socket.destroy()
  })

  t.test(`${implementation}: an error of the handler is answered with 500`, async (t) => {
    const port = await serve(t, async (request) => {
      await request.bodyChunks(1000, () => Promise.reject(new Error('no')))
    })
    const client = rawClient(port)
    client.socket.write(`${head(5)}hello`)
    await until('the answer', () => client.text().startsWith('HTTP/1.1 500'))
    client.socket.destroy()
  })
}
