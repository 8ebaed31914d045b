import { once } from 'node:events'
import t, { type Test } from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import type { HttpHandler, HttpListener } from '../../../engine/http/port.ts'
import type { Logger } from '../../../engine/kernel/process/log.ts'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { rawClient } from '../../support/raw-client.ts'
import { quietLog } from '../../support/store.ts'

/**
 * Clients that do not read, or read slowly. The data queued for them is bounded, and they get all
 * of it while they read.
 */
const MB = 1024 * 1024
/** More than the buffers of both sockets hold. */
const LONG_BODY = Buffer.from(Array.from({ length: 24 * MB }, (_, at) => (at * 7 + (at >> 11)) & 0xff))
const OVER = IMPLEMENTATIONS.flatMap((implementation) => [false, true].map((tls) => ({ implementation, tls })))

interface Site {
  readonly listener: HttpListener
  readonly warnings: string[]
  /** Number of complete and of aborted answers. */
  readonly count: { answers: number; cut: number }
}

async function site(t: Test, implementation: (typeof IMPLEMENTATIONS)[number], tls: boolean, handler: HttpHandler) {
  const warnings: string[] = []
  const count = { answers: 0, cut: 0 }
  const log = Object.assign(Object.create(quietLog) as Logger, {
    warn: (_: unknown, message: string) => warnings.push(message),
  })
  const listener = await listenOnLoopback(t, implementation, {
    ...(tls ? { tls: await provideCertificate(t.testdir(), undefined) } : {}),
    handler,
    log,
    onAnswer: () => count.answers++,
    onAnswerAborted: () => count.cut++,
  })
  return { listener, warnings, count } satisfies Site
}

const request = (method = 'GET'): string => `${method} / HTTP/1.1\r\nHost: x\r\n\r\n`
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const FIELDS = ['x-fill', 'y'.repeat(400)]

/** The repeated request, and the minimum size of each answer. */
const FLOODS: readonly { name: string; method: string; bytes: number; handler: HttpHandler }[] = [
  {
    name: 'a body as long as the OpenAPI document',
    method: 'GET',
    bytes: 52_000,
    handler: (_, response) => response.send({ status: 200, fields: FIELDS, body: LONG_BODY.subarray(0, 52_000) }),
  },
  {
    name: 'a body slightly longer than one write',
    method: 'GET',
    bytes: 16_500,
    handler: (_, response) => response.send({ status: 200, fields: FIELDS, body: LONG_BODY.subarray(0, 16_100) }),
  },
  {
    name: 'a 404',
    method: 'GET',
    bytes: 400,
    handler: (_, response) => response.send({ status: 404, fields: FIELDS, body: '{"error":"Not found"}' }),
  },
  {
    name: 'a 304',
    method: 'GET',
    bytes: 400,
    handler: (_, response) => response.send({ status: 304, fields: FIELDS, body: '' }),
  },
  {
    name: 'HEAD',
    method: 'HEAD',
    bytes: 400,
    handler: (_, response) =>
      response.send({ status: 429, fields: FIELDS, body: '{"error":"Too many"}', bodyOmitted: true }),
  },
  {
    name: 'long and empty bodies in turn',
    method: 'MIX',
    bytes: 400,
    handler: ({ method }, response) =>
      response.send({
        status: 200,
        fields: FIELDS,
        body: LONG_BODY.subarray(0, 100_000),
        bodyOmitted: method === 'HEAD',
      }),
  },
]

for (const { implementation, tls } of OVER) {
  t.test(`over ${implementation}${tls ? ', TLS' : ''}: data for a client that does not read is bounded`, async (t) => {
    // Node answers all requests of one read (64 KB) before it checks whether the client reads.
    const boundMb = implementation === 'uws' ? 64 : 160
    for (const { name, method, bytes, handler } of FLOODS) {
      const { listener, count } = await site(t, implementation, tls, handler)
      const client = rawClient(listener.port, { tls, paused: true })
      const some = method === 'MIX' ? request('GET') + request('HEAD').repeat(200) : request(method).repeat(400)
      const before = process.memoryUsage().rss
      for (let began = performance.now(); performance.now() - began < 1500 && !client.isClosed(); await pause(1)) {
        if (client.socket.writableLength < 100_000) client.socket.write(some)
      }
      const grownMb = (process.memoryUsage().rss - before) / MB
      client.socket.destroy()
      t.ok(count.answers > 0, name)
      t.ok(count.answers * bytes < boundMb * MB, `${name}: ${count.answers} answers`)
      t.ok(grownMb < boundMb + 32, `${name}: ${grownMb} MB`)
    }
  })

  t.test(`over ${implementation}${tls ? ', TLS' : ''}: a slow reader gets all of it unchanged`, async (t) => {
    const held = Buffer.from(LONG_BODY)
    const text = 'ä€😀'.repeat(2 * MB)
    const { listener } = await site(t, implementation, tls, (request, response) => {
      if (request.path === '/text') return response.send({ status: 200, body: text })
      response.send({ status: 200, body: held })
      held.fill(0)
    })
    for (const { path, body } of [
      { path: '/bytes', body: LONG_BODY },
      { path: '/text', body: Buffer.from(text) },
    ]) {
      const client = rawClient(listener.port, { tls, paused: true })
      client.socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      for (let part = 0; part < 5; part++) {
        await pause(100)
        client.socket.read(MB)
      }
      client.socket.resume()
      await client.closed
      const answer = Buffer.from(client.text(), 'latin1')
      const bodyAt = answer.indexOf('\r\n\r\n') + 4
      t.ok(answer.subarray(bodyAt).equals(body), `${path}: ${answer.length - bodyAt} of ${body.length} bytes`)
    }
  })

  t.test(`over ${implementation}${tls ? ', TLS' : ''}: a drain waits for an answer up to its limit`, async (t) => {
    for (const { deadlineMs, readsAfterMs, isComplete } of [
      { deadlineMs: 10_000, readsAfterMs: 800, isComplete: true },
      { deadlineMs: 300, readsAfterMs: 1500, isComplete: false },
    ]) {
      let answered: () => void = () => {}
      const inProgress = new Promise<void>((resolve) => {
        answered = resolve
      })
      const { listener, warnings } = await site(t, implementation, tls, (_, response) => {
        response.send({ status: 200, body: LONG_BODY })
        answered()
      })
      const idle = rawClient(listener.port, { tls })
      await once(idle.socket, tls ? 'secureConnect' : 'connect')
      const client = rawClient(listener.port, { tls, paused: true })
      client.socket.write(request())
      await inProgress
      await pause(300)
      const began = performance.now()
      const drained = listener.drain(deadlineMs).then(() => performance.now() - began)
      await pause(readsAfterMs)
      client.socket.resume()
      await client.closed
      await idle.closed
      t.equal(client.bytes() > LONG_BODY.length, isComplete, `${client.bytes()} bytes within ${deadlineMs} ms`)
      t.equal(warnings.length, isComplete ? 0 : 1, 'aborted answers are logged')
      const tookMs = await drained
      t.ok(isComplete ? tookMs >= readsAfterMs : tookMs < 1200, `${tookMs} ms`)
    }
  })
}

for (const over of IMPLEMENTATIONS) {
  t.test(`over ${over}: at the limit, the client that has waited the longest is disconnected`, async (t) => {
    const { listener, count } = await site(t, over, false, (_, response) =>
      response.send({ status: 200, body: LONG_BODY }),
    )
    const clients = []
    for (let each = 0; each < 8; each++) {
      const client = rawClient(listener.port, { paused: true })
      client.socket.write(request())
      clients.push(client)
      await pause(50)
    }
    t.ok(count.cut > 0 && count.cut < 8, `${count.cut} cut`)
    const last = clients.at(-1)
    for (const { socket } of clients) socket.resume()
    while (!last?.isClosed() && (last?.bytes() ?? 0) < LONG_BODY.length) await pause(20)
    t.ok((last?.bytes() ?? 0) > LONG_BODY.length, 'the last client has the complete answer')
    await clients[0]?.closed
    t.ok((clients[0]?.bytes() ?? 0) < LONG_BODY.length, 'the first client has not')
    for (const { socket } of clients) socket.destroy()
  })
}
