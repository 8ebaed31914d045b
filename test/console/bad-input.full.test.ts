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

type Row = readonly [
  name: string,
  bytes: (site: TestConsole) => Buffer,
  /** Accepted statuses of the first answer; 'none' if the connection is closed without one. */
  status: readonly (number | 'none')[],
  /** What the page says. */
  text?: RegExp | undefined,
  answers?: number,
]

const ROWS: readonly Row[] = [
  ['a form of 10 MB', (site) => post(site, 'a'.repeat(10 * MEGABYTE)), [413], /The form is too large/],
  [
    'a form of 10 MB in chunks',
    (site) => requestOf('POST /theme', site, { 'Content-Type': TYPE, ...CHUNKED }, chunked('a'.repeat(10 * MEGABYTE))),
    [413],
    /The form is too large/,
  ],
  ['the largest form', (site) => post(site, `theme=dark&x=${'a'.repeat(FORM_BYTES_MAX - 13)}`), [303]],
  [
    'a form in chunks',
    (site) => requestOf('POST /theme', site, { 'Content-Type': TYPE, ...CHUNKED }, chunked('theme=dark')),
    [303],
  ],
  ['JSON', (site) => post(site, '{}', { 'Content-Type': 'application/json' }), [415], /was not sent as/],
  ['text', (site) => post(site, 'a=1', { 'Content-Type': 'text/plain' }), [415]],
  ['no type', (site) => post(site, 'a=1', { 'Content-Type': '' }), [415]],
  [
    'a thousand nested multipart bodies',
    (site) => post(site, deepMultipart(1000), { 'Content-Type': 'multipart/form-data; boundary=b1' }),
    [415],
  ],
  ['bytes that are not UTF-8', (site) => post(site, Buffer.from('theme=\xff\xfe', 'latin1')), [400], /not valid UTF-8/],
  ['percent signs', (site) => post(site, 'theme=%zz'), [400], /percent-encoded/],
  ['an encoded surrogate', (site) => post(site, 'theme=%ed%a0%80'), [400]],
  ['thirty thousand fields', (site) => post(site, 'a&'.repeat(30_000)), [400], /more than 500 fields/],
  ['names of prototype properties', (site) => post(site, '__proto__=1&constructor=2&toString=3&theme=dark'), [303]],
  ['a cookie of 100 KB', (site) => get(site, '/sign-in', { Cookie: `a=${'b'.repeat(100_000)}` }), [431, 'none']],
  ['a cookie of 3 KB', (site) => get(site, '/sign-in', { Cookie: `__Host-session=${'b'.repeat(3000)}` }), [200]],
  ['five hundred cookies', (site) => get(site, '/sign-in', { Cookie: 'a=b;'.repeat(500) }), [200]],
  ['malformed cookies', (site) => get(site, '/sign-in', { Cookie: ';;=;=x;__Host-session=;\x7f' }), [200, 400]],
  [
    'two hundred fields',
    (site) => get(site, '/sign-in', Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`X-${at}`, '1']))),
    [200, 400, 431, 'none'],
  ],
  ['a query of 64 KB', (site) => get(site, `/sign-in?to=${'a'.repeat(1 << 16)}`), [431, 'none']],
  ['a path that is not UTF-8', (site) => get(site, '/platforms/%ff'), [404]],
  ['a path with a zero byte', (site) => get(site, '/platforms/%00'), [303]],
  ['a path of slashes', (site) => get(site, '/'.repeat(500)), [404]],
  ['another host as path', (site) => get(site, '//evil.example/'), [404]],
  ['a path with ..', (site) => get(site, '/assets/../../etc/passwd'), [404]],
  ['two lengths', (site) => post(site, 'theme=dark', CHUNKED), [400, 'none']],
  [
    'three requests at once',
    (site) => Buffer.concat([get(site, '/sign-in'), get(site, '/nothing'), get(site, '/sign-in')]),
    [200],
    undefined,
    3,
  ],
  ['a request inside a form', (site) => post(site, get(site, '/sign-in')), [400, 303], undefined, 1],
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
    for (const [name, bytes, status, text, answers = 1] of ROWS) {
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
