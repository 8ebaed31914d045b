import t from 'tap'
import { IMPLEMENTATIONS, listenOnLoopback } from '../../support/https.ts'
import { exchange } from '../../support/raw-client.ts'

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

const ROWS: Readonly<Record<string, readonly [uws: string, sends: string, answer: string]>> = {
  'two Host fields': ['400', get('/a', 'Host: x\r\nHost: x\r\n'), BAD_REQUEST],
  'no Host field': ['400', get('/a', ''), BAD_REQUEST],
  'absolute form': ['505', get('http://a.example:8443/a/b?c=d'), '200 GET /a/b c=d a.example:8443'],
  'absolute form without a path': ['505', get('HTTPS://a.example?c'), '200 GET / c a.example'],
  'absolute form without Host': ['505', get('https://a.example/', ''), BAD_REQUEST],
  'absolute form without a host': ['505', get('https:///a'), '200 GET https:///a  x'],
  'asterisk form': ['505', get('*').replace('GET', 'OPTIONS'), '200 OPTIONS *  x'],
  'line ends before the request': ['', `\r\n\r\n${get('/a')}`, '200 GET /a  x'],
  'HTTP/1.0': ['505', get('/a', '', '1.0'), '200 GET /a  '],
  'the check of HAProxy': ['505', 'OPTIONS / HTTP/1.0\r\n\r\n', '200 OPTIONS /  '],
  'HTTP/2.0': ['505', get('/a', 'Host: x\r\n', '2.0'), VERSION],
  'HTTP/3.7': ['505', get('/a', 'Host: x\r\n', '3.7'), VERSION],
  'many fields': ['431', get('/a', `Host: x\r\n${'A: b\r\n'.repeat(100)}`), TOO_LARGE],
  'a long field': ['431', get('/a', `Host: x\r\nA: ${'b'.repeat(5000)}\r\n`), TOO_LARGE],
  'a field without a colon': ['400', MALFORMED, BAD_REQUEST],
  'a malformed request after a request': ['400', SLOW + MALFORMED, `200 GET /slow  x, ${BAD_REQUEST}`],
  'a malformed body after a request': [
    '',
    `${SLOW}POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nx`,
    `200 GET /slow  x, ${BAD_REQUEST}`,
  ],
}

/** Longer than uWebSockets.js waits for the rest of a request: 30 s. */
const WAIT_MS = 120_000

for (const implementation of IMPLEMENTATIONS) {
  for (const [name, [uws, sends, answer]] of Object.entries(ROWS)) {
    t.test(`over ${implementation}: ${name}`, async (t) => {
      const listener = await listenOnLoopback(t, implementation, {
        handler: async (request, response) => {
          const { method, path, query } = request
          const body = `${method} ${path} ${query} ${request.header('host')}`
          if (path === '/slow') await new Promise((resolve) => setTimeout(resolve, 20))
          if (path === '/body') await request.body(100)
          response.send({ status: 200, body })
        },
      })
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
