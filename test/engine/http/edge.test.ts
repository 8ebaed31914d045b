import t from 'tap'
import { listenHttp } from '../../../engine/http/listen.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { exchange } from '../../support/raw-client.ts'
import { quietLog } from '../../support/store.ts'

/**
 * Requests at the edge of RFC 9112. `answer` has the status and body of each answer by node:http.
 * uWebSockets.js handles all of them before our code sees a request: `uws` has its statuses.
 */
const CLOSE = 'Connection: close\r\n'
const get = (target: string, fields = 'Host: x\r\n', version = '1.1'): string =>
  `GET ${target} HTTP/${version}\r\n${fields}${CLOSE}\r\n`
const MALFORMED = 'GET / HTTP/1.1\r\nbad field\r\n\r\n'
const SLOW = 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n'
const error = (status: number, phrase: string): string => `${status} {"error":"${phrase}"}`
const BAD_REQUEST = error(400, 'Bad Request')
const TOO_LARGE = error(431, 'Request Header Fields Too Large')
const VERSION = error(505, 'HTTP Version Not Supported')

const ROWS: readonly { name: string; sends: string; uws: string; answer: string }[] = [
  { name: 'two Host fields', uws: '400', sends: get('/a', 'Host: x\r\nHost: x\r\n'), answer: BAD_REQUEST },
  { name: 'no Host field', uws: '400', sends: get('/a', ''), answer: BAD_REQUEST },
  {
    name: 'absolute form',
    uws: '505',
    sends: get('http://a.example:8443/a/b?c=d'),
    answer: '200 GET /a/b c=d a.example:8443',
  },
  {
    name: 'absolute form without a path',
    uws: '505',
    sends: get('HTTPS://a.example?c'),
    answer: '200 GET / c a.example',
  },
  { name: 'absolute form without Host', uws: '505', sends: get('https://a.example/', ''), answer: BAD_REQUEST },
  { name: 'absolute form without a host', uws: '505', sends: get('https:///a'), answer: '200 GET https:///a  x' },
  { name: 'asterisk form', uws: '505', sends: get('*').replace('GET', 'OPTIONS'), answer: '200 OPTIONS *  x' },
  { name: 'line ends before the request', uws: '', sends: `\r\n\r\n${get('/a')}`, answer: '200 GET /a  x' },
  { name: 'HTTP/1.0', uws: '505', sends: get('/a', '', '1.0'), answer: '200 GET /a  ' },
  { name: 'the check of HAProxy', uws: '505', sends: 'OPTIONS / HTTP/1.0\r\n\r\n', answer: '200 OPTIONS /  ' },
  { name: 'HTTP/2.0', uws: '505', sends: get('/a', 'Host: x\r\n', '2.0'), answer: VERSION },
  { name: 'HTTP/3.7', uws: '505', sends: get('/a', 'Host: x\r\n', '3.7'), answer: VERSION },
  { name: 'many fields', uws: '431', sends: get('/a', `Host: x\r\n${'A: b\r\n'.repeat(100)}`), answer: TOO_LARGE },
  { name: 'a long field', uws: '431', sends: get('/a', `Host: x\r\nA: ${'b'.repeat(5000)}\r\n`), answer: TOO_LARGE },
  { name: 'a field without a colon', uws: '400', sends: MALFORMED, answer: BAD_REQUEST },
  {
    name: 'a malformed request after a request',
    uws: '400',
    sends: SLOW + MALFORMED,
    answer: `200 GET /slow  x, ${BAD_REQUEST}`,
  },
  {
    name: 'a malformed body after a request',
    uws: '',
    sends: `${SLOW}POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nx`,
    answer: `200 GET /slow  x, ${BAD_REQUEST}`,
  },
]

/** Longer than uWebSockets.js waits for the rest of a request: 30 s. */
const WAIT_MS = 120_000

for (const implementation of IMPLEMENTATIONS) {
  for (const { name, sends, answer, uws } of ROWS) {
    t.test(`over ${implementation}: ${name}`, async (t) => {
      const listener = await listenHttp(implementation, {
        address: '127.0.0.1',
        port: 0,
        handler: async (request, response) => {
          const { method, path, query } = request
          const body = `${method} ${path} ${query} ${request.header('host')}`
          if (path === '/slow') await new Promise((resolve) => setTimeout(resolve, 20))
          if (path === '/body') await request.body(100)
          response.send({ status: 200, body })
        },
        log: quietLog,
      })
      t.teardown(() => listener.drain(100))
      const { text, closed } = await exchange(listener.port, sends, { waitMs: WAIT_MS })
      const answers = text.split(/HTTP\/1\.1 (?=\d{3} )/).slice(1)
      const statuses = answers.map((each) => each.slice(0, 3)).join(', ')
      const found = answers.map((each) => `${each.slice(0, 3)} ${each.slice(each.indexOf('\r\n\r\n') + 4)}`)
      if (implementation === 'uws') t.equal(statuses, uws)
      else t.equal(found.join(', '), answer)
      t.ok(closed, 'the server closes the connection')
    })
  }
}
