import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import { FORM_BYTES_MAX } from '../../console/form.ts'
import { ROUTES } from '../../console/routes.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { crawl } from '../support/console-crawl.ts'
import { plainWords, populate } from '../support/console-data.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { type RawClient, rawClient, statusesOf } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'

const MEGABYTE = 1024 * 1024
const TYPE = 'application/x-www-form-urlencoded'

type Lines = Readonly<Record<string, string>>

/** A request to the console, as a browser with this origin would send it. */
function requestOf(first: string, { origin }: TestConsole, lines: Lines, body: string | Buffer = ''): Buffer {
  const all: Lines = { Host: new URL(origin).host, Origin: origin, 'Sec-Fetch-Site': 'same-origin', ...lines }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${first} HTTP/1.1\r\n${head.join('')}\r\n`, 'latin1'), Buffer.from(body)])
}

const get = (site: TestConsole, path: string, lines: Lines = {}): Buffer => requestOf(`GET ${path}`, site, lines)

function post(site: TestConsole, body: string | Buffer, lines: Lines = {}): Buffer {
  const length = { 'Content-Length': String(Buffer.byteLength(body)) }
  return requestOf('POST /theme', site, { 'Content-Type': TYPE, ...length, ...lines }, body)
}

const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
const CHUNKED = { 'Transfer-Encoding': 'chunked' }

/** Each part contains another. */
function deepMultipart(depth: number): string {
  let body = 'innermost'
  for (let at = depth; at > 0; at--) body = `--b${at}\r\nContent-Type: multipart/mixed\r\n\r\n${body}\r\n--b${at}--\r\n`
  return body
}

interface Row {
  readonly name: string
  readonly bytes: (site: TestConsole) => Buffer
  /** Accepted statuses of the first answer; 'none' if the connection is closed without one. */
  readonly status: readonly (number | 'none')[]
  readonly answers?: number
  /** What the page says. */
  readonly text?: RegExp
}

const ROWS: readonly Row[] = [
  {
    name: 'a form of 10 MB',
    bytes: (site) => post(site, 'a'.repeat(10 * MEGABYTE)),
    status: [413],
    text: /The form is too large/,
  },
  {
    name: 'a form of 10 MB in chunks',
    bytes: (site) =>
      requestOf('POST /theme', site, { 'Content-Type': TYPE, ...CHUNKED }, chunked('a'.repeat(10 * MEGABYTE))),
    status: [413],
    text: /The form is too large/,
  },
  {
    name: 'the largest form',
    bytes: (site) => post(site, `theme=dark&x=${'a'.repeat(FORM_BYTES_MAX - 13)}`),
    status: [303],
  },
  {
    name: 'a form in chunks',
    bytes: (site) => requestOf('POST /theme', site, { 'Content-Type': TYPE, ...CHUNKED }, chunked('theme=dark')),
    status: [303],
  },
  {
    name: 'JSON',
    bytes: (site) => post(site, '{}', { 'Content-Type': 'application/json' }),
    status: [415],
    text: /was not sent as/,
  },
  { name: 'text', bytes: (site) => post(site, 'a=1', { 'Content-Type': 'text/plain' }), status: [415] },
  { name: 'no type', bytes: (site) => post(site, 'a=1', { 'Content-Type': '' }), status: [415] },
  {
    name: 'a thousand nested multipart bodies',
    bytes: (site) => post(site, deepMultipart(1000), { 'Content-Type': 'multipart/form-data; boundary=b1' }),
    status: [415],
  },
  {
    name: 'bytes that are not UTF-8',
    bytes: (site) => post(site, Buffer.from('theme=\xff\xfe', 'latin1')),
    status: [400],
    text: /not valid UTF-8/,
  },
  { name: 'percent signs', bytes: (site) => post(site, 'theme=%zz'), status: [400], text: /percent-encoded/ },
  { name: 'an encoded surrogate', bytes: (site) => post(site, 'theme=%ed%a0%80'), status: [400] },
  {
    name: 'thirty thousand fields',
    bytes: (site) => post(site, 'a&'.repeat(30_000)),
    status: [400],
    text: /more than 500 fields/,
  },
  {
    name: 'names of prototype properties',
    bytes: (site) => post(site, '__proto__=1&constructor=2&toString=3&theme=dark'),
    status: [303],
  },
  {
    name: 'a cookie of 100 KB',
    bytes: (site) => get(site, '/sign-in', { Cookie: `a=${'b'.repeat(100_000)}` }),
    status: [431, 'none'],
  },
  {
    name: 'a cookie of 3 KB',
    bytes: (site) => get(site, '/sign-in', { Cookie: `__Host-session=${'b'.repeat(3000)}` }),
    status: [200],
  },
  {
    name: 'five hundred cookies',
    bytes: (site) => get(site, '/sign-in', { Cookie: 'a=b;'.repeat(500) }),
    status: [200],
  },
  {
    name: 'malformed cookies',
    bytes: (site) => get(site, '/sign-in', { Cookie: ';;=;=x;__Host-session=;\x7f' }),
    status: [200, 400],
  },
  {
    name: 'two hundred fields',
    bytes: (site) =>
      get(site, '/sign-in', Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`X-${at}`, '1']))),
    status: [200, 400, 431, 'none'],
  },
  { name: 'a query of 64 KB', bytes: (site) => get(site, `/sign-in?to=${'a'.repeat(1 << 16)}`), status: [431, 'none'] },
  { name: 'a path that is not UTF-8', bytes: (site) => get(site, '/platforms/%ff'), status: [404] },
  { name: 'a path with a zero byte', bytes: (site) => get(site, '/platforms/%00'), status: [303] },
  { name: 'a path of slashes', bytes: (site) => get(site, '/'.repeat(500)), status: [404] },
  { name: 'another host as path', bytes: (site) => get(site, '//evil.example/'), status: [404] },
  { name: 'a path with ..', bytes: (site) => get(site, '/assets/../../etc/passwd'), status: [404] },
  { name: 'two lengths', bytes: (site) => post(site, 'theme=dark', CHUNKED), status: [400, 'none'] },
  {
    name: 'three requests at once',
    bytes: (site) => Buffer.concat([get(site, '/sign-in'), get(site, '/nothing'), get(site, '/sign-in')]),
    status: [200],
    answers: 3,
  },
  {
    name: 'a request inside a form',
    bytes: (site) => post(site, get(site, '/sign-in')),
    status: [400, 303],
    answers: 1,
  },
]

/** Sends bytes, and waits for the answer, or until the server closes the connection. */
async function answered(site: TestConsole, bytes: Buffer, answers = 1): Promise<string> {
  const client = rawClient(site.server.listener.port, { tls: true })
  client.socket.write(bytes)
  await until(
    () => `an answer: ${client.text().slice(0, 200)}`,
    () => client.isClosed() || isComplete(client.text(), answers),
  )
  client.socket.destroy()
  return client.text()
}

/** Whether the text has this many answers, the last of which is whole. */
function isComplete(text: string, answers: number): boolean {
  const last = text.lastIndexOf('HTTP/1.1 ')
  const headEnd = text.indexOf('\r\n\r\n', last)
  const length = Number(/content-length: (\d+)/i.exec(text.slice(last, headEnd))?.[1] ?? 0)
  return statusesOf(text).length >= answers && headEnd >= 0 && text.length >= headEnd + 4 + length
}

async function serves(t: Test, site: TestConsole, after: string): Promise<void> {
  t.equal((await site.browser().get('/sign-in')).status, 200, `still serves after: ${after}`)
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: a clear answer to each`, async (t) => {
    const site = await serveConsole(t, { implementation })
    for (const { name, bytes, status, answers = 1, text } of ROWS) {
      const received = await answered(site, bytes(site), answers)
      const statuses = statusesOf(received)
      t.ok(status.includes(statuses[0] ?? 'none'), `${name}: ${statuses.join(' ')} ${received.slice(0, 60)}`)
      if (answers !== 1) t.equal(statuses.length, answers, name)
      else t.ok(statuses.length <= 1, `${name}: one answer at most`)
      if (text !== undefined) t.match(received, text, name)
      await serves(t, site, name)
    }
  })

  t.test(
    `over ${implementation}: a form that arrives too slowly is refused, others are served meanwhile`,
    async (t) => {
      const formPace = { graceMs: 20, bytesPerSecondMin: MEGABYTE }
      const site = await serveConsole(t, { implementation, formPace })
      const slow = Array.from({ length: 50 }, (): RawClient => {
        const client = rawClient(site.server.listener.port, { tls: true })
        client.socket.write(
          requestOf('POST /theme', site, { 'Content-Type': TYPE, 'Content-Length': '60000' }, 'theme='),
        )
        return client
      })
      await serves(t, site, 'slow forms')
      for (const client of slow) {
        await until('an answer', () => client.isClosed() || isComplete(client.text(), 1))
        t.match(client.text(), /^HTTP\/1\.1 408 .*connection: close.*The form arrived too slowly/is)
        client.socket.destroy()
      }
    },
  )

  t.test(
    `over ${implementation}: connections that are idle, half-closed, or end in the middle of a form`,
    async (t) => {
      const site = await serveConsole(t, { implementation })
      const { port } = site.server.listener
      const open = Array.from({ length: 200 }, () => connect({ port, host: '127.0.0.1', rejectUnauthorized: false }))
      await Promise.all(
        open.map((socket) => new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()))),
      )
      await serves(t, site, 'idle connections')
      for (const [at, socket] of open.entries()) {
        socket.on('error', () => {})
        if (at % 4 === 0) socket.end(get(site, '/sign-in'))
        else if (at % 4 === 1)
          socket.write(requestOf('POST /theme', site, { 'Content-Type': TYPE, 'Content-Length': '9' }, 'theme'))
        else if (at % 4 === 2) socket.write('POST /theme HTT')
        else socket.end()
      }
      await serves(t, site, 'requests without an end')
      for (const socket of open) socket.destroy()
      await serves(t, site, 'aborted connections')
    },
  )
}

/** Values that no page expects. */
const VALUES = [
  '',
  '-1',
  '1e309',
  'NaN',
  '9'.repeat(30),
  '\u0000',
  '\u202e\ud83d\ude00',
  '__proto__',
  '../..',
  '\'"><b>',
  'a'.repeat(5000),
]

/** A request with more is refused with 431, because its head is longer than 4 KiB. */
const NAMES_PER_QUERY = 8

t.test('no page fails for any query', async (t) => {
  const site = await serveConsole(t, { hasOrigin: true })
  const owner = populate(site, site.organization, plainWords())
  const { answers } = await crawl(owner)
  const names = new Set(['q', 'sort', 'page', 'before', 'status', 'done', 'to', 'state', 'type', 'framework'])
  for (const path of answers.keys()) for (const name of new URL(path, site.origin).searchParams.keys()) names.add(name)
  const paths = new Set([...answers.keys()].map((path) => path.split('?')[0] ?? ''))
  for (const path of paths) {
    for (const value of VALUES.map((each) => each.slice(0, 200))) {
      for (let at = 0; at < names.size; at += NAMES_PER_QUERY) {
        const some = [...names].slice(at, at + NAMES_PER_QUERY)
        const query = new URLSearchParams(some.map((name) => [name, value]))
        const { status } = await owner.get(`${path}?${query}`)
        t.ok([200, 303, 400, 404].includes(status), `${path} with ${JSON.stringify(value)}: ${status}`)
      }
    }
  }
})

t.test('no form fails for any value', async (t) => {
  const site = await serveConsole(t, { hasOrigin: true })
  const owner = populate(site, site.organization, plainWords())
  const { forms } = await crawl(owner)
  t.ok(forms.size > ROUTES.filter(({ method }) => method === 'POST').length / 2)
  for (const [path, values] of forms) {
    for (const value of VALUES) {
      const fields = Object.fromEntries(Object.keys(values).map((name) => [name, value]))
      // Some forms end the session.
      const { status } = await site.signIn('owner', 'owner').post(path, fields)
      // 502: the identity provider does not answer.
      t.ok(
        (status >= 200 && status < 500) || status === 502,
        `${path} with ${JSON.stringify(value.slice(0, 20))}: ${status}`,
      )
    }
  }
})
