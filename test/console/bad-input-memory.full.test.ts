import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { FORM_BYTES_MAX } from '../../console/form.ts'
import { BOUNDARY } from '../support/console.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { type RawClient, rawClient, statusesOf } from '../support/raw-client.ts'
import { startSite } from '../support/service-site.ts'
import { until } from '../support/wait.ts'

const MIB = 1024 * 1024
const CLIENTS = 40
const BODY_BYTES = 10 * MIB
/**
 * All clients together send 400 MiB. Garbage of the connections, TLS and pages stays below a third
 * of it, however slow the machine is.
 */
const GROWTH_MAX = 128 * MIB

/** Bytes of a process in memory: the most since resetPeak(). */
function peak(pid: number): number {
  const [, kilobytes = ''] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** proc(5), clear_refs. */
function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

interface Attack {
  readonly name: string
  /** The lines of the head after the Host field. */
  readonly head: readonly string[]
  readonly piece: Buffer
  /** The answer, to a client that reads it. */
  readonly status: number
}

const FORM = 'Content-Type: application/x-www-form-urlencoded'
/** Each part contains another. */
const NESTED = Array.from(
  { length: 2000 },
  (_, at) => `--b${at}\r\nContent-Type: multipart/mixed; boundary=b${at + 1}\r\n\r\n`,
).join('')

function attacks(cookie: string): readonly Attack[] {
  const letters = Buffer.alloc(64 * 1024, 'a')
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), letters, Buffer.from('\r\n')])
  const upload = `Content-Type: multipart/form-data; boundary=${BOUNDARY}`
  const open = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="`
  return [
    {
      name: 'forms of 10 MB',
      head: ['POST /theme', FORM, `Content-Length: ${BODY_BYTES}`],
      piece: letters,
      status: 413,
    },
    {
      name: 'forms of 10 MB in chunks',
      head: ['POST /theme', FORM, 'Transfer-Encoding: chunked'],
      piece: chunk,
      status: 413,
    },
    { name: 'huge cookies', head: ['GET /sign-in', 'Cookie: a='], piece: letters, status: 431 },
    {
      name: 'nested multipart bodies',
      head: ['POST /try-file', upload, `Cookie: ${cookie}`, `Content-Length: ${BODY_BYTES}`],
      piece: Buffer.from(`--${BOUNDARY}\r\n${NESTED}`),
      status: 400,
    },
    {
      name: 'a field of 10 MB in an upload',
      head: ['POST /try-file', upload, `Cookie: ${cookie}`, `Content-Length: ${BODY_BYTES}`],
      piece: Buffer.concat([Buffer.from(`${open}note"\r\n\r\n`), letters]),
      status: 400,
    },
    {
      name: 'part heads of 10 MB in an upload',
      head: ['POST /try-file', upload, `Cookie: ${cookie}`, `Content-Length: ${BODY_BYTES}`],
      piece: Buffer.from(`${open}${'n'.repeat(60 * 1024)}`),
      status: 400,
    },
  ]
}

/** Writes until all is sent, or the server closes the connection. */
async function send({ socket, isClosed }: RawClient, head: string, piece: Buffer): Promise<void> {
  // One for each time that the server reads slower.
  socket.setMaxListeners(0)
  socket.write(head)
  for (let sent = 0; sent < BODY_BYTES && !isClosed(); sent += piece.length) {
    if (socket.write(piece.subarray(0, BODY_BYTES - sent))) continue
    await new Promise<void>((resolve) => {
      socket.once('drain', resolve)
      socket.once('close', resolve)
    })
  }
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`${implementation}: bad input of many clients does not pass through memory`, async (t) => {
    const site = await startSite(t, ['--ingest-port', 'off', '--http-server', implementation])
    const { service, origin } = site
    const { consolePort } = service
    const pid = Number(service.child.pid)
    const browser = await site.owner()
    t.equal((await browser.get('/overview')).status, 200)

    for (const { name, head, piece, status } of attacks(browser.cookie)) {
      const [first = '', ...lines] = head
      const own = [`Host: localhost:${consolePort}`, `Origin: ${origin}`, 'Sec-Fetch-Site: same-origin', ...lines]
      // Without the end of the head, the first piece is a part of it.
      const end = name === 'huge cookies' ? '' : '\r\n\r\n'
      resetPeak(pid)
      const before = peak(pid)
      const clients = Array.from({ length: CLIENTS }, () => rawClient(consolePort, { tls: true }))
      await Promise.all(clients.map((each) => send(each, `${first} HTTP/1.1\r\n${own.join('\r\n')}${end}`, piece)))
      const growth = peak(pid) - before
      t.ok(growth < GROWTH_MAX, `${name}: ${Math.round(growth / MIB)} MiB`)
      for (const each of clients) each.socket.destroy()
      const statuses = new Set(clients.flatMap((each) => statusesOf(each.text()).slice(0, 1)))
      // Only some uploads are read at the same time. A client that still writes when the server
      // closes the connection may lose the answer.
      const expected = [status, 429, 503]
      t.same(
        [...statuses].filter((found) => !expected.includes(found)),
        [],
        name,
      )
      t.equal((await browser.get('/overview')).status, 200, `still serves after: ${name}`)
    }

    resetPeak(pid)
    const before = peak(pid)
    const slow = Array.from({ length: 200 }, () => rawClient(consolePort, { tls: true }))
    const own = [`Host: localhost:${consolePort}`, `Origin: ${origin}`, 'Sec-Fetch-Site: same-origin', FORM]
    for (const { socket } of slow) {
      socket.write(`POST /theme HTTP/1.1\r\n${own.join('\r\n')}\r\nContent-Length: ${FORM_BYTES_MAX}\r\n\r\n`)
      socket.write(Buffer.alloc(FORM_BYTES_MAX - 1, 'a'))
    }
    await Promise.all(slow.map(({ socket }) => until('the bytes are sent', () => socket.writableLength === 0)))
    t.equal((await browser.get('/overview')).status, 200, 'pages meanwhile')
    const growth = peak(pid) - before
    t.ok(growth < GROWTH_MAX, `forms without their last byte: ${Math.round(growth / MIB)} MiB`)
    for (const { socket } of slow) socket.destroy()
    t.equal((await browser.get('/overview')).status, 200)
    t.equal((await site.stop()).status, 0)
  })
}
