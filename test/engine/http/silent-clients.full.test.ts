import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { listenHttp } from '../../../engine/http/listen.ts'
import type { HttpHandler } from '../../../engine/http/port.ts'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { rawClient } from '../../support/raw-client.ts'
import { quietLog } from '../../support/store.ts'

/**
 * Clients that stop in the middle are disconnected within this time, over TLS: 10 s, or 20 s if
 * they have read part of an answer, plus the interval of the checks.
 */
const WITHIN_MS = 26_000
const LONG_BODY = Buffer.alloc(24 * 1024 * 1024, 'a')
const HELLO = Buffer.from('16030100fa010000f60303', 'hex')
const POST = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n'

/** The bytes that a client sends first, and the bytes that it sends every second after them. */
const ROWS: readonly {
  name: string
  tls: boolean
  sends: string | Buffer
  nextBytes?: string
  stopsReading?: boolean
}[] = [
  { name: 'sends nothing', tls: false, sends: '' },
  { name: 'sends half a ClientHello', tls: false, sends: HELLO },
  { name: 'sends a ClientHello byte by byte', tls: false, sends: HELLO, nextBytes: '\0' },
  { name: 'sends something other than a ClientHello', tls: false, sends: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' },
  { name: 'completes the handshake and sends nothing', tls: true, sends: '' },
  { name: 'sends its fields byte by byte', tls: true, sends: 'GET / HTTP/1.1\r\nHost: x\r\nX-A: ', nextBytes: 'a' },
  { name: 'sends an unread body byte by byte', tls: true, sends: POST, nextBytes: 'a' },
  { name: 'sends half of an unread body', tls: true, sends: POST },
  { name: 'does not read its answer', tls: true, sends: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', stopsReading: true },
]

const handler: HttpHandler = (_, response) => response.send({ status: 200, body: LONG_BODY })

// All rows only wait, so they run in parallel.
t.jobs = IMPLEMENTATIONS.length + 1
for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}`, async (t) => {
    const tls = await provideCertificate(t.testdir(), undefined)
    const listener = await listenHttp(implementation, { address: '127.0.0.1', port: 0, tls, handler, log: quietLog })
    t.teardown(() => listener.drain(100))
    await Promise.all(
      ROWS.map(async ({ name, tls, sends, nextBytes, stopsReading }) => {
        const { socket, closed } = rawClient(listener.port, { tls, paused: stopsReading ?? false })
        const began = performance.now()
        if (sends.length > 0) socket.write(sends)
        const sendTimer = setInterval(() => nextBytes && socket.writable && socket.write(nextBytes), 1000)
        const giveUp = setTimeout(() => socket.destroy(), WITHIN_MS)
        // A client that does not read learns of the disconnection only when it reads again.
        if (stopsReading) setTimeout(() => socket.resume(), WITHIN_MS - 3000)
        await closed
        clearInterval(sendTimer)
        clearTimeout(giveUp)
        t.ok(performance.now() - began < WITHIN_MS - 100, `a client that ${name} is disconnected`)
        if (stopsReading) t.ok(socket.bytesRead < LONG_BODY.length, `${socket.bytesRead} bytes had been sent`)
      }),
    )
  })
}

t.test('over node: a slow handler is not interrupted', async (t) => {
  const listener = await listenOnLoopback(t, 'node', {
    handler: async (_, response) => {
      await new Promise((resolve) => setTimeout(resolve, 18_000))
      response.send({ status: 200, body: 'late' })
    },
  })
  const client = rawClient(listener.port)
  client.socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await client.closed
  t.match(client.text(), /late$/)
})
