import t from 'tap'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { exchange, rawClient } from '../../support/raw-client.ts'
import { until } from '../../support/wait.ts'

/** Seconds that a client may leave a connection idle: less than those after which it is closed. */
const SECONDS = { uws: 5, node: 70 }

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: responses state how long an idle connection stays open`, async (t) => {
    const listener = await listenOnLoopback(t, implementation, {
      handler: ({ path, method }, response) => {
        const fields = path === '/last' ? ['connection', 'close'] : []
        response.send({ status: path === '/304' ? 304 : 200, body: 'text', fields, bodyOmitted: method === 'HEAD' })
      },
    })
    for (const start of ['GET /', 'HEAD /', 'GET /304']) {
      const client = rawClient(listener.port)
      client.socket.write(`${start} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await until('an answer', () => client.text().includes('\r\n\r\n'))
      t.match(client.text(), new RegExp(`^keep-alive: timeout=${SECONDS[implementation]}\r$`, 'im'), start)
      t.match(client.text(), /^connection: keep-alive\r$/im, start)
      client.socket.destroy()
    }
    for (const bytes of [
      'GET /last HTTP/1.1\r\nHost: x\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    ]) {
      const { text, closed } = await exchange(listener.port, bytes)
      t.ok(closed)
      t.notMatch(text, /keep-alive/i, bytes)
    }
  })

  t.test(`over ${implementation}: a repeated field is joined, so that neither of two secrets is valid`, async (t) => {
    const listener = await listenOnLoopback(t, implementation, {
      handler: (request, response) => {
        const names = ['x-api-key', 'authorization', 'content-type', 'if-none-match']
        response.send({ status: 200, body: JSON.stringify(names.map((name) => request.header(name))) })
      },
    })
    const twice = ['X-API-Key', 'Authorization', 'Content-Type', 'If-None-Match']
      .map((name) => `${name}: a\r\n${name.toLowerCase()}: b\r\n`)
      .join('')
    const { text } = await exchange(listener.port, `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${twice}\r\n`)
    t.match(text, JSON.stringify(['a, b', 'a, b', 'a, b', 'a, b']))
  })
}
