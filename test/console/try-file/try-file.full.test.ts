import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { ConsoleCounters, consoleRows, makeConsoleCounters } from '../../../console/metrics.ts'
import { type Browser, multipart, serveConsole, type TestConsole } from '../../support/console.ts'
import { IMPLEMENTATIONS, type TestServer } from '../../support/https.ts'
import { matching, other } from '../../support/many-lines.ts'
import { platform } from '../../support/own-platforms.ts'
import { REPOSITORY } from '../../support/programs.ts'
import { rawClient } from '../../support/raw-client.ts'
import { makeOrganization, quietLog } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

const MIB = 1024 * 1024
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
type Test = { teardown(work: () => unknown): void }

/** The header section of an upload over a raw connection. */
function head(browser: Browser, bytes: number): string {
  const fields = { ...browser.formHeaders(), 'content-type': multipart([]).type, cookie: browser.cookie }
  const lines = Object.entries({
    ...fields,
    host: new URL(browser.formHeaders()['origin'] ?? '').host,
    'content-length': String(bytes),
  })
  return `POST /try-file HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`
}

/** A program in place of the one that reads files. */
function program(t: Test, name: string, source: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'posture-try-file-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, name)
  writeFileSync(path, source)
  return path
}

const report = (reason: string): string => `process.stdout.write('${JSON.stringify({ kind: 'refused', reason })}')`

/** Reads nothing at first, then all, and reports how many bytes. */
const slowReader = (t: Test): string =>
  program(
    t,
    'slow-reader.mjs',
    `setTimeout(() => process.stdin.on('data', () => {}).on('end', () => ${report('read')}), 500)`,
  )
const idle = (t: Test): string => program(t, 'idle-program.mjs', 'setInterval(() => {}, 1000)')

/** The processes of a program. */
function processesOf(path: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => commandOf(pid).endsWith(`\0${path}\0`))
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

/** Makes a platform of its own of the organization match `www.example.com`. */
function addOwnPlatform({ store, organization, clock }: TestConsole): void {
  const entry = platform('acme-chat', 'www.example.com')
  store.environment.write(() => {
    store.ownPlatforms.put(organization.id, { entry, disabled: false, addedAtMs: clock.nowMs(), provisioned: false })
  })
}

const capture = (name: string): Buffer => readFileSync(join(REPOSITORY, 'test/captures', name))
const text = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

for (const implementation of IMPLEMENTATIONS) {
  t.test(`${implementation}: a capture shows the platforms of its names`, async (t) => {
    const { signIn } = await serveConsole(t, { implementation })
    const browser = signIn('ada@acme.example', 'member')
    const form = await browser.get('/try-file')
    t.equal(form.status, 200)
    t.match(form.text, /<form [^>]*enctype="multipart\/form-data"/)
    const answer = await browser.postFile('/try-file', capture('demo/input.pcap'), 'office <b>.pcap')
    t.equal(answer.status, 200)
    const shown = text(answer.text)
    t.match(shown, 'office &lt;b>.pcap')
    t.match(shown, /a capture in pcap format, [\d.]+ KiB/)
    t.match(shown, /AI platforms \d+ \d+ not approved Matches 90 of 129 names Packets 542 read/)
    for (const name of ['ChatGPT', 'GitHub Copilot', 'Claude']) t.match(shown, name)
    t.match(shown, 'What a sensor could not see')
    t.notMatch(answer.text, /<script(?![^>]* src=)|<style|style=/)
  })
}

t.test('a log shows messages by outcome and redacted samples', async (t) => {
  const { signIn } = await serveConsole(t)
  const log = [matching(1), matching(2), other(1), 'link is up user=ada.lovelace'].join('\n')
  for (const file of [Buffer.from(log), gzipSync(log)]) {
    const answer = await signIn('ada@acme.example', 'member').postFile('/try-file', file, 'proxy.log')
    t.equal(answer.status, 200)
    const shown = text(answer.text)
    t.match(shown, /a log in the format proxy-native/)
    t.match(shown, /Matches 2 of 4 messages/)
    t.match(shown, /Name an AI platform 50 % · 2 Name another host 25 % · 1 Have no known format 25 % · 1/)
    t.match(shown, /Most frequent other names of no platform in the registry www\.example\.com 1/)
    t.match(shown, /no format recognized 1, first in line 4 link is up user=…/)
    t.notMatch(shown, 'lovelace')
    t.match(answer.text, /href="data:text\/csv;charset=utf-8,Platform%2CNames/)
  }
})

t.test('a log in no known format says which logs to try, and lines above 64 KiB are explained', async (t) => {
  const { signIn } = await serveConsole(t)
  const file = Buffer.from(`${'x'.repeat(70_000)}\nlink is up\n`)
  const { text } = await signIn('ada@acme.example', 'member').postFile('/try-file', file, 'unknown.log')
  t.match(text, /Next: try another log.*href="\/setup-guide"/s)
  t.notMatch(text, /Next: send this log/)
  t.match(text, /Some messages are too long.*64 KiB.*1 of 2/s)
})

t.test('tried files are counted by result', async (t) => {
  const counters = makeConsoleCounters()
  const { signIn } = await serveConsole(t, { counters: new ConsoleCounters(counters) })
  const browser = signIn('ada@acme.example', 'member')
  await browser.postFile('/try-file', Buffer.from('link is up\n'), 'some.log')
  await browser.postFile('/try-file', Buffer.alloc(0), 'empty.log')
  const [, , , values] =
    consoleRows(counters, [], 0).find(([name]) => name === 'posture_console_tried_files_total') ?? []
  t.same(values, { read: 1, refused: 1, busy: 0, failed: 0 })
})

t.test('the custom platforms of the organization count, those of others do not', async (t) => {
  const site = await serveConsole(t)
  addOwnPlatform(site)
  const browser = site.signIn('ada@acme.example', 'member')
  const log = Buffer.from(`${other(1)}\n`)
  t.match(text((await browser.postFile('/try-file', log)).text), /AI platforms 1 1 not approved.*Own acme-chat/)
  const elsewhere = makeOrganization(site, 'Globex')
  const guest = site.signIn('eve@globex.example', 'member', elsewhere)
  t.match(
    text((await guest.postFile('/try-file', log)).text),
    /AI platforms 0 0 not approved.*No AI platform in this file/,
  )
})

t.test('nothing is stored, and the log has neither name nor content of the file', async (t) => {
  const lines: string[] = []
  const record = (...words: unknown[]) => lines.push(JSON.stringify(words))
  const log = Object.assign(Object.create(quietLog), { info: record, warn: record, error: record })
  const { signIn, store, organization } = await serveConsole(t, { trials: { log } })
  const before = store.auditLog.ofOrganization(organization.id).length
  const browser = signIn('ada@acme.example', 'member')
  for (const file of [Buffer.from(`${matching(1)}\nsecret-line\n`), Buffer.from('504b03041400', 'hex')]) {
    await browser.postFile('/try-file', file, 'secret-name.log')
  }
  t.equal(store.auditLog.ofOrganization(organization.id).length, before)
  t.equal(store.buffer.count(organization.id), 0)
  t.same(store.sources.ofOrganization(organization.id), [])
  t.notMatch(lines.join(), /secret/)
})

const ERRORS: readonly {
  name: string
  body: Buffer
  headers?: Record<string, string>
  status: number
  message: RegExp
}[] = [
  {
    name: 'a zip archive',
    body: multipart([file('504b03041400')]).body,
    status: 422,
    message: /looks like zip: unpack it/,
  },
  { name: 'an empty file', body: multipart([file('')]).body, status: 400, message: /The file is empty/ },
  {
    name: 'another form',
    body: Buffer.from('file=x'),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    message: /multipart\/form-data/,
  },
  {
    name: 'not multipart',
    body: Buffer.alloc(10_000_000, 'x'),
    status: 400,
    message: /not valid multipart|Choose a file/,
  },
]

function file(hex: string) {
  return { field: 'file', name: 'a', bytes: Buffer.from(hex, 'hex') }
}

for (const implementation of IMPLEMENTATIONS) {
  for (const { name, body, headers, status, message } of ERRORS) {
    t.test(`${implementation}: ${name} is refused, and the form is shown again`, async (t) => {
      const { signIn } = await serveConsole(t, { implementation })
      const browser = signIn('ada@acme.example', 'member')
      const type = { 'content-type': multipart([]).type, ...headers }
      const answer = await browser.postBody('/try-file', body, type)
      t.equal(answer.status, status)
      t.match(answer.text, message)
      t.match(answer.text, /role="alert"/)
      t.match(answer.text, /enctype="multipart\/form-data"/)
    })
  }

  t.test(`${implementation}: 70 MiB are read to their end, and refused`, async (t) => {
    const { signIn } = await serveConsole(t, { implementation, trials: { program: slowReader(t) } })
    const answer = await signIn('ada@acme.example', 'member').postFile('/try-file', Buffer.alloc(70 * MIB, 'x'))
    t.equal(answer.status, 413)
    t.match(answer.text, 'The file is larger than 64 MiB. Try a part of it')
  })

  t.test(`${implementation}: a body beyond what is read is refused at once, and the connection closed`, async (t) => {
    const { signIn, server } = await serveConsole(t, { implementation })
    const browser = signIn('ada@acme.example', 'member')
    const client = rawClient(server.listener.port, { tls: true })
    client.socket.write(head(browser, 300 * MIB))
    await until('the answer', () => client.text().startsWith('HTTP/1.1 413'))
    await client.closed
  })

  t.test(`${implementation}: an upload does not pass through memory as a whole`, async (t) => {
    const { signIn, server } = await serveConsole(t, { implementation, trials: { program: slowReader(t) } })
    const browser = signIn('ada@acme.example', 'member')
    const client = rawClient(server.listener.port, { tls: true })
    const [start = '', end = ''] = multipart([{ field: 'file', name: 'a', bytes: Buffer.from('@') }])
      .body.toString()
      .split('@')
    const bytes = 60 * MIB
    client.socket.write(head(browser, start.length + bytes + end.length) + start)
    const used = (): number => {
      collectGarbage()
      return process.memoryUsage().arrayBuffers
    }
    const before = used()
    let most = 0
    const piece = Buffer.alloc(256 * 1024, 'x')
    for (let sent = 0; sent < bytes; sent += piece.length) {
      if (!client.socket.write(piece)) await once(client.socket, 'drain')
      if (sent % (4 * MIB) === 0) most = Math.max(most, used() - before)
    }
    client.socket.write(end)
    await until('the answer', () => client.text().startsWith('HTTP/1.1 422'))
    t.ok(most < bytes / 2, `${(most / MIB).toFixed(1)} MiB`)
    client.socket.destroy()
  })

  t.test(`${implementation}: a client that disconnects ends the process`, async (t) => {
    for (const isComplete of [false, true]) {
      const path = idle(t)
      const { signIn, server } = await serveConsole(t, { implementation, trials: { program: path } })
      const browser = signIn('ada@acme.example', 'member')
      const { body } = multipart([{ field: 'file', name: 'a', bytes: Buffer.from('x'.repeat(5000)) }])
      const client = rawClient(server.listener.port, { tls: true })
      client.socket.write(head(browser, body.length))
      client.socket.write(isComplete ? body : body.subarray(0, 3000))
      const pid = await until('the process runs', () => processesOf(path)[0])
      client.socket.destroy()
      await until('the process has ended', () => commandOf(pid) === '')
    }
  })
}

/** Begins an upload, and returns what completes it. Its process runs until then. */
async function begun(
  server: TestServer,
  browser: Browser,
  path: string,
  running: number,
): Promise<() => Promise<string>> {
  const { body } = multipart([{ field: 'file', name: 'a', bytes: Buffer.from('x'.repeat(5000)) }])
  const client = rawClient(server.listener.port, { tls: true })
  client.socket.write(head(browser, body.length))
  client.socket.write(body.subarray(0, 3000))
  await until('the process runs', () => processesOf(path).length === running)
  return async () => {
    client.socket.write(body.subarray(3000))
    await until('the answer', () => client.text().includes('</html>'))
    client.socket.destroy()
    return client.text()
  }
}

t.test('one file of an organization is read at a time, two of all, and others wait', async (t) => {
  const path = slowReader(t)
  const site = await serveConsole(t, { trials: { program: path } })
  const [first, second, third] = ['Globex', 'Initech', 'Umbrella'].map((name) =>
    site.signIn(`ada@${name}.example`, 'member', makeOrganization(site, name)),
  ) as [Browser, Browser, Browser]
  const log = Buffer.from('x')
  const endFirst = await begun(site.server, first, path, 1)
  const endSecond = await begun(site.server, second, path, 2)
  t.match(await first.postFile('/try-file', log), {
    status: 429,
    headers: { 'retry-after': '60' },
    text: /Another file/,
  })
  const waiting = third.postFile('/try-file', log)
  t.match(await endFirst(), /^HTTP\/1.1 422 /)
  t.match(await waiting, { status: 422, text: /role="alert">read</ })
  t.match(await endSecond(), /^HTTP\/1.1 422 /)
})

t.test('a file does not wait for long', async (t) => {
  const path = slowReader(t)
  const site = await serveConsole(t, { trials: { program: path, waitMsMax: 100 } })
  const [first, second, third] = ['Globex', 'Initech', 'Umbrella'].map((name) =>
    site.signIn(`ada@${name}.example`, 'member', makeOrganization(site, name)),
  ) as [Browser, Browser, Browser]
  const ends = [await begun(site.server, first, path, 1), await begun(site.server, second, path, 2)]
  const answer = await third.postFile('/try-file', Buffer.from('x'))
  t.match(answer, { status: 503, headers: { 'retry-after': '60' }, text: /other files/ })
  for (const end of ends) t.match(await end(), /^HTTP\/1.1 422 /)
})

t.test('only members with the role can send a file, from a page of the console', async (t) => {
  const { signIn, browser, server } = await serveConsole(t, { trials: { program: '/does/not/exist' } })
  const viewer = signIn('vera@acme.example', 'viewer')
  const { type, body } = multipart([file('00')])
  t.match(await viewer.postFile('/try-file', Buffer.from('x')), { status: 403, headers: { connection: 'close' } })
  t.match(await browser().postFile('/try-file', Buffer.from('x')), { status: 401 })
  const member = signIn('ada@acme.example', 'member')
  const crossSite = { 'sec-fetch-site': 'cross-site', 'content-type': type }
  t.match(await member.postBody('/try-file', body, crossSite), { status: 403 })
  t.match(await server.ask('/try-file', { method: 'POST', body, headers: { cookie: member.cookie } }), { status: 403 })
})
