import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { connectionsWithin } from '../../engine/kernel/process/descriptors.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { exchange, statusesOf } from '../support/raw-client.ts'
import { type ServiceSite, startSite } from '../support/service-site.ts'
import { PROMPT_MS, until } from '../support/wait.ts'

/**
 * Client errors and attacks. Each costs only its own connection, and the next request is answered.
 */
interface Site extends ServiceSite {
  readonly url: string
}

async function start(t: Test, implementation: string, more: readonly string[] = ['--plain-http']): Promise<Site> {
  const threads = ['--api-threads', implementation === 'uws' ? '2' : '1']
  const site = await startSite(t, ['--http-server', implementation, '--ingest-port', 'off', ...threads, ...more])
  const scheme = more.includes('--plain-http') ? 'http' : 'https'
  return { ...site, url: `${scheme}://localhost:${site.service.apiPort}/api/v1/scores` }
}

async function serves(t: Test, { url, key }: Site, what: string): Promise<void> {
  const answer = await request(url, { headers: { 'x-api-key': key }, reset: true })
  t.equal(answer.statusCode, 200, `still serves after: ${what}`)
  await answer.body.dump()
}

/**
 * Idle connections, as a share of the file descriptors: fewer than the API accepts (0.3, divided
 * among its threads), because it closes more at once. Each of 200 addresses has at most 50 of them,
 * below --max-connections-per-address.
 */
const IDLE_DESCRIPTORS_SHARE = 0.25

const get = (more = '', path = '/api/v1/scores'): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`

/**
 * `status`: that of the first answer; none if the connection is only closed. `also`: accepted if
 * the two implementations differ.
 */
const ROWS: readonly {
  name: string
  bytes: string | Buffer
  status: readonly (number | 'none')[]
  answers?: number
}[] = [
  { name: 'bytes that are not a request', bytes: Buffer.from('00010203ff0d0a0d0a', 'hex'), status: [400, 505, 'none'] },
  {
    name: 'a TLS ClientHello on a plain port',
    bytes: Buffer.from('160301020001000001fc0303', 'hex'),
    status: [400, 505, 'none'],
  },
  { name: 'no Host field', bytes: 'GET /api/v1/scores HTTP/1.1\r\n\r\n', status: [400, 'none'] },
  { name: 'a megabyte in one field', bytes: get(`X-Big: ${'a'.repeat(1 << 20)}\r\n`), status: [431, 'none'] },
  { name: 'a field of 5,000 bytes', bytes: get(`X-Big: ${'a'.repeat(5000)}\r\n`), status: [431] },
  { name: 'a URL of 64 KiB', bytes: get('', `/api/v1/scores?${'a'.repeat(1 << 16)}`), status: [431, 'none'] },
  { name: 'two lengths', bytes: get('Content-Length: 1\r\nTransfer-Encoding: chunked\r\n'), status: [400] },
  { name: 'a negative length', bytes: get('Content-Length: -5\r\n'), status: [400] },
  { name: 'a length that is not a number', bytes: get('Content-Length: 0x5\r\n'), status: [400] },
  { name: 'a body', bytes: `${get('X-API-Key: KEY\r\nContent-Length: 5\r\n')}hello`, status: [400] },
  {
    name: 'a chunked body',
    bytes: `${get('X-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n')}5\r\nhello\r\n0\r\n\r\n`,
    status: [400],
  },
  {
    name: 'a request within a body',
    bytes: `${get('X-API-Key: KEY\r\nContent-Length: 50\r\n')}${get()}`,
    status: [400],
    answers: 1,
  },
  { name: 'TRACE', bytes: get().replace('GET', 'TRACE'), status: [405] },
  { name: 'a nonstandard method', bytes: get().replace('GET', 'BREW'), status: [400, 405] },
  { name: 'CONNECT', bytes: 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', status: [400, 405, 404, 505, 'none'] },
  { name: 'three pipelined requests', bytes: get().repeat(3), status: [401], answers: 3 },
  { name: 'a path with a zero byte', bytes: get('', '/api/v1/\0scores'), status: [400, 404, 505] },
  { name: 'a path with ..', bytes: get('', '/api/v1/../../etc/passwd'), status: [404] },
]

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}`, async (t) => {
    const site = await start(t, implementation)
    for (const { name, bytes, status, answers } of ROWS) {
      const sent = typeof bytes === 'string' ? bytes.replace('KEY', site.key) : bytes
      const { text } = await exchange(site.service.apiPort, sent, { waitMs: 1500 })
      const found = statusesOf(text)
      t.ok(status.includes(found[0] ?? 'none'), `${name}: ${found.join(' ')} ${JSON.stringify(text.slice(0, 60))}`)
      if (answers !== undefined) t.equal(found.length, answers, name)
      t.notMatch(text, /^server:/im, 'no header field names the server')
      await serves(t, site, name)
    }

    t.test('guessing is slowed down, and known keys keep working', async (t) => {
      const { url } = site
      const statuses = new Map<number, number>()
      for (let guess = 0; guess < 80; guess++) {
        const answer = await request(url, { headers: { 'x-api-key': `svc_pk_${String(guess).padStart(64, '0')}` } })
        await answer.body.dump()
        statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1)
      }
      t.ok((statuses.get(401) ?? 0) <= 60, 'no more than 60 answers a minute')
      t.ok((statuses.get(429) ?? 0) >= 20)
      await serves(t, site, 'guesses')
    })

    t.test('a client that never finishes its request is disconnected while others are served', async (t) => {
      const started = Date.now()
      const slow = exchange(site.service.apiPort, 'GET /api/v1/scores HTTP/1.1\r\nHost: x\r\nX-', { waitMs: 25_000 })
      await serves(t, site, 'a request that does not end')
      const { closed } = await slow
      t.ok(closed, 'closed by the service')
      t.ok(Date.now() - started < 20_000, `${Date.now() - started} ms`)
    })

    t.test('slowhttptest in three modes does not stop the service', async (t) => {
      for (const transport of ['-H', '-X', '-B']) {
        const words = [transport, '-c', '200', '-r', '100', '-l', '6', '-i', '1', '-p', '2', '-u', site.url]
        const attack = spawn('slowhttptest', words, { stdio: ['ignore', 'pipe', 'pipe'] })
        let output = ''
        attack.stdout.on('data', (chunk) => {
          output += String(chunk)
        })
        const ended = new Promise((resolve) => attack.on('close', resolve))
        for (let second = 0; second < 5; second++) {
          await serves(t, site, `slowhttptest ${transport}`)
          await new Promise((resolve) => setTimeout(resolve, 1000))
        }
        await ended
        t.notMatch(output, /service available:\s*NO/, transport)
      }
    })

    t.test('many idle connections do not stop the service', async (t) => {
      const sockets: Socket[] = []
      const closeAll = (): void => {
        for (const socket of sockets)
          socket
            .removeAllListeners('error')
            .on('error', () => {})
            .destroy()
      }
      // The next tests need a service that accepts connections, whatever this one finds.
      t.teardown(closeAll)
      const count = Math.min(10_000, connectionsWithin(IDLE_DESCRIPTORS_SHARE))
      while (sockets.length < count) {
        const some = Array.from({ length: Math.min(500, count - sockets.length) }, (_, index) => {
          const localAddress = `127.0.1.${1 + ((sockets.length + index) % 200)}`
          return new Promise<Socket>((resolve, reject) => {
            const socket = connect({ port: site.service.apiPort, host: '127.0.0.1', localAddress }, () =>
              resolve(socket),
            )
            socket.on('error', reject)
          })
        })
        sockets.push(...(await Promise.all(some)))
      }
      const started = performance.now()
      await serves(t, site, `${count} idle connections`)
      t.ok(performance.now() - started < PROMPT_MS)
      closeAll()
      await serves(t, site, 'all of them gone at once')
    })

    t.test('a client that closes its sending side gets its answer, and a reset affects no other client', async (t) => {
      const socket = connect({ port: site.service.apiPort, host: '127.0.0.1', allowHalfOpen: true })
      let text = ''
      socket.on('data', (chunk) => {
        text += String(chunk)
      })
      const closed = new Promise((resolve) => socket.on('close', resolve))
      socket.write(get())
      await new Promise((resolve) => setTimeout(resolve, 200))
      socket.end()
      await closed
      t.match(text, /HTTP\/1\.1 (401|429)/)
      // From another address, because 1,000 requests without a key disconnect theirs for a minute.
      for (let reset = 0; reset < 50; reset++) {
        const other = connect({ port: site.service.apiPort, host: '127.0.0.1', localAddress: '127.0.2.1' })
        other.on('error', () => {})
        other.write(get().repeat(20))
        setTimeout(() => other.resetAndDestroy(), reset % 5)
      }
      await new Promise((resolve) => setTimeout(resolve, 300))
      await serves(t, site, 'resets')
    })
  })

  t.test(`SIGTERM over ${implementation} completes answers in progress and exits with status 0`, async (t) => {
    const { service, url, key, dataDirectory } = await start(t, implementation, [])
    const ca = readFileSync(join(dataDirectory, 'tls/certificate.pem'))
    const dispatcher = new Agent({ connect: { ca } })
    let whole = 0
    let ends = false
    const clients = Array.from({ length: 20 }, async () => {
      while (!ends) {
        try {
          const answer = await request(url, { dispatcher, headers: { 'x-api-key': key } })
          JSON.parse(await answer.body.text())
          whole++
        } catch (error) {
          // The connection was closed between two requests, or the port is closed.
          const { code } = error as { code?: string }
          if (!ends && whole === 0) throw error
          if (!['UND_ERR_SOCKET', 'ECONNRESET', 'ECONNREFUSED'].includes(code ?? '')) throw error
          return
        }
      }
    })
    await until('answers', () => whole > 20)
    service.child.kill('SIGTERM')
    const { status, stderr } = await service.ended
    ends = true
    await Promise.all(clients)
    await dispatcher.destroy()
    t.equal(status, 0, stderr)
    t.ok(whole > 20)
    t.notMatch(stderr, /"level":[56]0/)
  })
}
