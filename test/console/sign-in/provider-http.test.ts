import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createNetServer } from 'node:net'
import t from 'tap'
import type { ProviderRequestResult } from '../../../console/metrics.ts'
import { ProviderHttp, type ProviderHttpOptions } from '../../../console/sign-in/provider-http.ts'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { deferred } from '../../../engine/kernel/process/deferred.ts'
import { connectProxy } from '../../support/connect-proxy.ts'
import { LOOPBACK } from '../../support/console.ts'
import { listenOn } from '../../support/free-port.ts'

const GET = { method: 'GET', headers: {}, body: undefined, redirect: 'manual' } as const

function providerHttp(options: Partial<ProviderHttpOptions> = {}): ProviderHttp {
  return new ProviderHttp({ allowed: LOOPBACK, ...options })
}

async function listen(t: { teardown(work: () => unknown): void }, answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listenOn(t, createServer(answer))}`
}

t.test('a response is read with its status and type; a redirect is not followed', async (t) => {
  const url = await listen(t, (request, response) => {
    if (request.url === '/moved') response.writeHead(302, { location: '/other' }).end()
    else if (request.url === '/none') response.writeHead(204).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1}')
  })
  const fetch = providerHttp().fetchFor('acme')
  const response = await fetch(`${url}/`, GET)
  t.equal(response.headers.get('content-type'), 'application/json')
  t.same(await response.json(), { a: 1 })
  t.equal((await fetch(`${url}/moved`, GET)).status, 302)
  t.equal((await fetch(`${url}/none`, GET)).status, 204)
})

/** A server that sends this text to every connection. */
async function listenRaw(t: { teardown(work: () => unknown): void }, text: string): Promise<string> {
  const server = createNetServer((socket) => void socket.on('error', () => {}).end(text))
  return `http://127.0.0.1:${await listenOn(t, server)}`
}

t.test('a status that HTTP does not have fails with its number, and holds no place of the limits', async (t) => {
  const results: ProviderRequestResult[] = []
  const fetch = providerHttp({ note: (result) => results.push(result) }).fetchFor('acme')
  for (const status of ['600', '999', '099', '000']) {
    const url = await listenRaw(t, `HTTP/1.1 ${status} Odd\r\nContent-Length: 2\r\n\r\n{}`)
    for (let times = 0; times < 5; times++) {
      await t.rejects(fetch(`${url}/keys?secret`, GET), {
        name: 'ProviderError',
        message: `${url}/keys: the response has the status ${Number(status)}, expected one from 200 to 599`,
      })
    }
  }
  const last = await listenRaw(t, 'HTTP/1.1 599 Odd\r\nContent-Length: 2\r\n\r\n{}')
  t.equal((await fetch(last, GET)).status, 599)
  t.same(results, [...Array(20).fill('failed'), 'server_error'])
})

t.test('a provider that switches the protocol fails, and holds no place of the limits', async (t) => {
  const text = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'
  const url = await listenRaw(t, text)
  const fetch = providerHttp().fetchFor('acme')
  for (let times = 0; times < 6; times++) await t.rejects(fetch(url, GET), /switched to another protocol/)
})

t.test('a form is sent', async (t) => {
  const url = await listen(t, (request, response) => {
    request.pipe(response)
  })
  const body = new URLSearchParams({ code: 'a b' })
  const response = await providerHttp().fetchFor('acme')(url, { ...GET, method: 'POST', body })
  t.equal(await response.text(), 'code=a+b')
})

t.test('a response that is too long, too deep, has too many values or no end, fails', async (t) => {
  const url = await listen(t, (request, response) => {
    if (request.url?.startsWith('/long')) response.end('x'.repeat(256 * 1024 + 1))
    else if (request.url === '/deep') response.end('['.repeat(100_000))
    else if (request.url === '/wide') response.end(`[${'0,'.repeat(100_000)}0]`)
    else if (request.url === '/fits') response.end('x'.repeat(256 * 1024))
    else response.write('x')
  })
  const fetch = providerHttp().fetchFor('acme')
  await t.rejects(fetch(`${url}/long?secret`, GET), {
    message: `${url}/long: the response: too many bytes: expected at most 262144`,
  })
  await t.rejects(fetch(`${url}/deep`, GET), { message: `${url}/deep: the response: nested deeper than 16` })
  await t.rejects(fetch(`${url}/wide`, GET), {
    message: `${url}/wide: the response: too many values: expected at most 20000`,
  })
  t.equal((await (await fetch(`${url}/fits`, GET)).text()).length, 256 * 1024)
  const impatient = providerHttp({ requestMs: 500 }).fetchFor('acme')
  await t.rejects(impatient(`${url}/endless`, GET), { message: `${url}/endless: no answer within 0.5 seconds` })
})

t.test('an organization has four requests at once, and all organizations 32', async (t) => {
  const waiting: (() => void)[] = []
  const all = deferred<void>()
  const next = deferred<void>()
  const url = await listen(t, (_, response) => {
    waiting.push(() => response.end('done'))
    if (waiting.length === 32) all.resolve()
    if (waiting.length === 33) next.resolve()
  })
  const http = providerHttp()
  const requests = Array.from({ length: 32 }, (_, at) => http.fetchFor(`organization ${at >> 2}`)(url, GET))
  await t.rejects(http.fetchFor('organization 0')(url, GET), /Too many people sign in/)
  await t.rejects(http.fetchFor('another')(url, GET), /Too many people sign in/)
  await all.promise
  for (const end of waiting) end()
  for (const each of requests) t.equal((await each).status, 200)
  const more = http.fetchFor('another')(url, GET)
  await next.promise
  waiting[32]?.()
  t.equal((await more).status, 200)
})

t.test('plain HTTP only reaches this machine; failures of the connection are named', async (t) => {
  const fetch = providerHttp().fetchFor('acme')
  await t.rejects(fetch('http://192.0.2.1/token', GET), {
    message: 'http://192.0.2.1/token is plain HTTP; expected https',
  })
  const url = await listen(t, () => {})
  const free = url.replace(/\d+$/, '1')
  await t.rejects(fetch(`${free}/x?code=secret`, GET), { message: `${free}/x: the connection is refused` })
})

t.test('certificates are checked, and the proxy of the environment is used', async (t) => {
  const { keyFile, certificateFile } = await provideCertificate(`${t.testdir()}/tls`, undefined)
  const server = createTlsServer(
    { key: readFileSync(keyFile), cert: readFileSync(certificateFile) },
    (_, response) => void response.end('{}'),
  )
  const port = await listenOn(t, server)
  const fetch = providerHttp().fetchFor('acme')
  const untrusted = /the certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. NODE_EXTRA_CA_CERTS/
  await t.rejects(fetch(`https://localhost:${port}/`, GET), untrusted)
  const proxy = await connectProxy(t)
  await t.rejects(fetch(`https://login.example:${port}/`, GET), untrusted)
  t.same(proxy.asked, [`login.example:${port}`])
})

t.test('no request goes to this machine, a private network or a redirect, unless the operator allows it', async (t) => {
  let requests = 0
  const url = await listen(t, (_, response) => {
    requests++
    response.writeHead(302, { location: 'http://127.0.0.1:1/metrics' }).end()
  })
  const { port } = new URL(url)
  const fetch = providerHttp({ allowed: [] }).fetchFor('acme')
  for (const host of ['localhost', '127.0.0.1', '127.1', '0x7f.1', '2130706433', '[::1]']) {
    await t.rejects(fetch(`http://${host}:${port}/metrics`, GET), {
      name: 'ProviderError',
      message: /is on this machine or in a local or private network, .* --outbound-networks$/,
    })
  }
  for (const host of ['10.0.0.1', '169.254.169.254', '[fd00:ec2::254]', '[::ffff:127.0.0.1]', '0.0.0.0', 'localhost']) {
    await t.rejects(fetch(`https://${host}:${port}/`, GET), /is on this machine or in a local or private network/, host)
  }
  t.equal(requests, 0)
  t.equal((await providerHttp().fetchFor('acme')(url, GET)).status, 302)
  t.equal(requests, 1)
})

t.test('an address of a private network is refused before the proxy is asked', async (t) => {
  const proxy = await connectProxy(t)
  const fetch = providerHttp({ allowed: [] }).fetchFor('acme')
  await t.rejects(fetch('https://169.254.169.254/latest', GET), /is on this machine or in a local or private network/)
  await t.rejects(fetch('https://[::ffff:10.0.0.1]/', GET), /is on this machine or in a local or private network/)
  t.same(proxy.asked, [])
})

t.test('requests are counted by result', async (t) => {
  const counted: ProviderRequestResult[] = []
  const url = await listen(t, (request, response) => {
    if (request.url === '/endless') response.write('x')
    else response.writeHead(Number(request.url?.slice(1))).end()
  })
  const note = (result: ProviderRequestResult): void => void counted.push(result)
  const fetch = providerHttp({ note }).fetchFor('acme')
  await fetch(`${url}/200`, GET)
  await fetch(`${url}/401`, GET)
  await fetch(`${url}/503`, GET)
  await t.rejects(fetch('https://10.0.0.1/', GET))
  await t.rejects(fetch('http://127.0.0.1:1/', GET))
  await t.rejects(fetch('http://login.example/', GET))
  await t.rejects(providerHttp({ note, requestMs: 300 }).fetchFor('acme')(`${url}/endless`, GET))
  t.same(counted, ['answered', 'answered', 'server_error', 'refused', 'failed', 'failed', 'timed_out'])
})
