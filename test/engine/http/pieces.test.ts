import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { rawClient } from '../../support/raw-client.ts'

/**
 * TCP delivers a request in any pieces, and several requests in one. A release of uWebSockets.js
 * answered 505 to a request line in two pieces, and lost the requests before it.
 */
const GET = 'GET /api/v1/first?limit=5&x=%20 HTTP/1.1\r\nHost: a.example:8443\r\nX-API-Key: one\r\n\r\n'
const POST = 'POST /second HTTP/1.1\r\nhost: b.example\r\nContent-Length: 7\r\n\r\n{"a":1}'
const CHUNKED = 'POST /third? HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'
const LAST = 'GET /last HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n'

const ANSWERS: readonly (readonly [request: string, answer: string])[] = [
  [GET, 'GET /api/v1/first limit=5&x=%20 a.example:8443 one '],
  [POST, 'POST /second  b.example  {"a":1}'],
  [CHUNKED, 'POST /third  c  abcde'],
  [LAST, 'GET /last  d  '],
]

/** Requests that arrive one after the other, without a wait for an answer. */
const STREAMS: readonly (readonly string[])[] = [
  [LAST],
  [GET, GET, GET, LAST],
  ...[POST, CHUNKED].map((request) => [request, LAST]),
]
/** Connections at a time: fewer requests than a turn of the event loop answers. */
const TOGETHER = 16
/** In these turns of the event loop, the server reads the piece, also after a handshake. */
const TURNS = 6

/** Every way to send `bytes` in two pieces, and one in pieces of a byte. */
function cuts(bytes: string): string[][] {
  const inTwo = Array.from({ length: bytes.length - 1 }, (_, at) => [bytes.slice(0, at + 1), bytes.slice(at + 1)])
  return [[bytes], ...inTwo, [...bytes]]
}

for (const implementation of IMPLEMENTATIONS) {
  for (const tls of [false, true]) {
    t.test(`over ${implementation}${tls ? ', TLS' : ''}: requests in pieces are answered as whole ones`, async (t) => {
      const listener = await listenOnLoopback(t, implementation, {
        ...(tls && { tls: await provideCertificate(t.testdir(), undefined) }),
        handler: (request, response) => {
          const { method, path, query } = request
          const start = `${method} ${path} ${query} ${request.header('host')} ${request.header('x-api-key')} `
          const last = path === '/last' ? ['connection', 'close'] : []
          if (method === 'GET') return response.send({ status: 200, body: start, fields: last })
          return request.body(100).then((body) => response.send({ status: 200, body: start + body }))
        },
      })
      const wrong: string[] = []
      for (const stream of STREAMS) {
        const expected = stream.map((request) => ANSWERS.find(([each]) => each === request)?.[1])
        const all = cuts(stream.join(''))
        for (let at = 0; at < all.length; at += TOGETHER) {
          const answers = await Promise.all(
            all.slice(at, at + TOGETHER).map((pieces) => sent(listener.port, tls, pieces)),
          )
          answers.forEach((found, index) => {
            if (found.join('\n') !== expected.join('\n')) wrong.push(`${JSON.stringify(all[at + index])}: ${found}`)
          })
        }
      }
      t.same(wrong, [])
    })
  }
}

/** Sends pieces with a pause after each. Returns the bodies of the answers. */
async function sent(port: number, tls: boolean, pieces: readonly string[]): Promise<string[]> {
  const { socket, closed, text } = rawClient(port, { tls })
  await new Promise((resolve) => socket.once(tls ? 'secureConnect' : 'connect', resolve))
  socket.setNoDelay(true)
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, resolve))
    for (let each = 0; each < TURNS; each++) await turn()
  }
  await closed
  return text()
    .split(/(?=HTTP\/1\.1 \d)/)
    .map((answer) => (answer.startsWith('HTTP/1.1 200') ? answer.slice(answer.indexOf('\r\n\r\n') + 4) : answer))
}
