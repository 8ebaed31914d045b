import t from 'tap'
import { listenHttp } from '../../../engine/http/listen.ts'
import type { HttpHandler } from '../../../engine/http/port.ts'
import { capturedLog } from '../../support/captured-log.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { exchange, statusesOf } from '../../support/raw-client.ts'

/** The calls of the hook, one line each. */
type Reported = readonly string[]

interface Case {
  readonly name: string
  readonly handler: HttpHandler
  /** The header fields of each request. `Connection: close` is added to the last. */
  readonly requests?: readonly string[]
  readonly reported: Reported
}

const GET = 'GET /a?b HTTP/1.1\r\nHost: x\r\n'
const answers: HttpHandler = ({ method }, response) =>
  response.send({ status: 200, body: 'text', bodyOmitted: method === 'HEAD' })
const throws: HttpHandler = () => {
  throw new Error('made for the test')
}

const CASES: readonly Case[] = [
  { name: 'an immediate answer', handler: answers, reported: ['GET /a 200 4'] },
  {
    name: 'a later answer',
    async handler(request, response) {
      await new Promise((resolve) => setImmediate(resolve))
      answers(request, response)
    },
    reported: ['GET /a 200 4'],
  },
  {
    name: 'an answer that closes the connection',
    handler: (_, response) => response.send({ status: 400, fields: ['connection', 'close'], body: 'text' }),
    reported: ['GET /a 400 4'],
  },
  { name: 'HEAD', handler: answers, requests: ['HEAD / HTTP/1.1\r\nHost: x\r\n'], reported: ['HEAD / 200 0'] },
  { name: '304', handler: (_, response) => response.send({ status: 304, body: 'text' }), reported: ['GET /a 304 0'] },
  {
    name: 'two requests on one connection',
    handler: answers,
    requests: [GET, 'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n'],
    reported: ['GET /a 200 4', 'POST /b 200 4'],
  },
  {
    name: 'an answer sent twice',
    handler(request, response) {
      answers(request, response)
      answers(request, response)
    },
    reported: ['GET /a 200 4'],
  },
  { name: 'a handler that throws', handler: throws, reported: ['GET /a 500 26'] },
  {
    name: 'a handler that throws after its answer',
    handler(request, response) {
      answers(request, response)
      throw new Error('made for the test')
    },
    reported: ['GET /a 200 4'],
  },
  {
    name: 'an answer that cannot be sent',
    handler: (_, response) => response.send({ status: 200, fields: ['x', 'a\r\nb: c'], body: 'text' }),
    reported: ['GET /a 500 26'],
  },
]

for (const implementation of IMPLEMENTATIONS) {
  for (const { name, handler, requests = [GET], reported } of CASES) {
    t.test(`over ${implementation}, the hook is called once per answered request: ${name}`, async (t) => {
      const found: string[] = []
      const listener = await listenHttp(implementation, {
        address: '127.0.0.1',
        port: 0,
        handler,
        log: capturedLog().log,
        onAnswer: (request, status, bytes) => {
          t.match(request.remoteAddress(), /^(::ffff:)?127\.0\.0\.1$/)
          found.push(`${request.method} ${request.path} ${status} ${bytes}`)
        },
      })
      t.teardown(() => listener.drain(1000))
      const bytes = requests.map(
        (each, at) => `${each}${at === requests.length - 1 ? 'Connection: close\r\n' : ''}\r\n`,
      )
      const { text } = await exchange(listener.port, bytes.join(''))
      t.equal(statusesOf(text).length, requests.length)
      t.same(found, reported)
    })
  }

  t.test(`over ${implementation}, an exception in the hook does not stop the answer`, async (t) => {
    const { log, entries } = capturedLog()
    const onAnswer = throws as () => void
    const listener = await listenHttp(implementation, {
      ...{ address: '127.0.0.1', port: 0, handler: answers, log, onAnswer },
    })
    t.teardown(() => listener.drain(1000))
    const { text } = await exchange(listener.port, `${GET}Connection: close\r\n\r\n`)
    t.match(text, /^HTTP\/1\.1 200 [\s\S]*text$/)
    t.match(entries, [{ msg: 'request failed', err: { message: 'made for the test' } }])
  })
}
