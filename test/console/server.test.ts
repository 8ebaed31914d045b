import t from 'tap'
import { redirect } from '../../console/http/answer.ts'
import { openForm, page } from '../../console/http/router.ts'
import { ROUTES } from '../../console/routes.ts'
import { serveConsole } from '../support/console.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'

for (const implementation of IMPLEMENTATIONS) {
  t.test(`${implementation}: every answer has the security header fields`, async (t) => {
    const site = await serveConsole(t, { implementation })
    const browser = site.signIn('ada@acme.example', 'viewer')
    const answer = await browser.get('/platforms')
    t.equal(answer.status, 200)
    t.match(answer.headers, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy':
        /^default-src 'none'; style-src 'self'; script-src 'self'; .*frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
    })
    t.notMatch(answer.text, /<style|style=|onclick|<script(?![^>]* src=)/, 'nothing inline')
    t.match(answer.text, /<a href="\/platforms" aria-current="page">/)
    const packed = await browser.get('/platforms', { 'accept-encoding': 'gzip' })
    t.match(packed.headers, { 'content-encoding': 'gzip' })
    t.equal(packed.text, answer.text)
  })

  t.test(`${implementation}: style sheet and script have strong entity tags`, async (t) => {
    const { server, signIn } = await serveConsole(t, { implementation })
    const { text } = await signIn('ada@acme.example', 'viewer').get('/platforms')
    const paths = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
    t.equal(paths.length, 3)
    for (const path of paths) {
      const plain = await server.ask(path)
      const etag = String(plain.headers['etag'])
      t.match(etag, /^"[0-9a-f]{16}"$/)
      t.match(plain.headers, { 'cache-control': 'public, max-age=31536000, immutable' })
      const gzip = await server.ask(path, { headers: { 'accept-encoding': 'gzip' } })
      t.equal(gzip.text, plain.text)
      t.not(gzip.headers['etag'], etag)
      const again = await server.ask(path, { headers: { 'if-none-match': etag } })
      t.match(again, { status: 304, text: '' })
    }
    t.equal((await server.ask('/assets/other.css')).status, 404)
  })

  t.test(`${implementation}: an answer can set several cookies`, async (t) => {
    const routes = [openForm('/both', () => redirect('/', ['__Host-theme=dark; Path=/', '__Host-oidc=a; Path=/']))]
    const { browser } = await serveConsole(t, { implementation, routes })
    const answer = await browser().post('/both')
    t.equal(answer.status, 303)
    t.same(answer.headers['set-cookie'], ['__Host-theme=dark; Path=/', '__Host-oidc=a; Path=/'])
  })
}

t.test('a visitor who is not signed in is redirected to the sign-in page, and back', async (t) => {
  const { browser } = await serveConsole(t)
  t.match((await browser().get('/')).headers, { location: '/sign-in' })
  const deep = await browser().get('/platforms?state=approved&q=chat')
  t.equal(deep.status, 303)
  t.equal(deep.headers['location'], '/sign-in?to=%2Fplatforms%3Fstate%3Dapproved%26q%3Dchat')
})

t.test('a link on another site opens the page, although it brings no Strict cookie', async (t) => {
  const { browser } = await serveConsole(t)
  const answer = await browser().get('/platforms?q=a&state=approved', { 'sec-fetch-site': 'cross-site' })
  t.equal(answer.status, 200)
  t.match(answer.text, /<meta http-equiv="refresh" content="0;url=\/platforms\?q=a&amp;state=approved"\/>/)
  t.equal((await browser().get('/platforms', { 'sec-fetch-site': 'same-origin' })).status, 303, 'no loop')
})

t.test('a node that does not receive the changes of its cluster shows nothing', async (t) => {
  const staleness = { isStale: false }
  const { signIn, server } = await serveConsole(t, { staleness })
  const browser = signIn('ada@acme.example', 'admin')
  t.equal((await browser.get('/platforms')).status, 200)
  staleness.isStale = true
  const refused = { status: 503, text: /This node does not receive the changes of its cluster/ }
  for (const path of ['/platforms', '/', '/sign-in', '/nothing']) {
    const answer = await browser.get(path)
    t.match(answer, refused, path)
    t.notMatch(answer.text, /ada@acme/)
  }
  t.match(await browser.post('/theme'), refused)
  t.match(await server.ask('/blocklist/00000000-0000-0000-0000-000000000000.hosts'), refused)
  staleness.isStale = false
  t.equal((await browser.get('/platforms')).status, 200)
})

t.test('unknown addresses and methods', async (t) => {
  const { browser, signIn, server } = await serveConsole(t)
  t.match(await browser().get('/nothing'), { status: 404, text: /Page not found/ })
  t.match(await signIn('ada@acme.example', 'viewer').get('/nothing'), { status: 404, text: /<nav/ })
  t.match(await browser().get('/theme'), { status: 405, headers: { allow: 'POST' } })
  t.match(await server.ask('/platforms', { method: 'DELETE' }), { status: 405, headers: { allow: 'GET, HEAD' } })
  const head = await server.ask('/nothing', { method: 'HEAD' })
  t.match(head, { status: 404, text: '' })
})

/** Fields of a request that a browser, or something else, sends with a form. */
const CROSS_SITE: readonly { readonly name: string; readonly headers: Record<string, string> }[] = [
  { name: 'another port of the same host', headers: { 'sec-fetch-site': 'same-site', origin: 'https://localhost:1' } },
  { name: 'another site', headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' } },
  { name: 'the address bar', headers: { 'sec-fetch-site': 'none' } },
  { name: 'another origin that claims to be this one', headers: { origin: 'https://evil.example' } },
  { name: 'an opaque origin', headers: { origin: 'null' } },
  { name: 'no Sec-Fetch-Site', headers: { 'sec-fetch-site': '' } },
  { name: 'no Origin', headers: { origin: '' } },
  { name: 'the same host by plain HTTP', headers: { origin: 'http://localhost' } },
]

t.test('every form is refused unless it came from this console', async (t) => {
  const { signIn, server, organization } = await serveConsole(t)
  const browser = signIn('ada@acme.example', 'owner')
  for (const { path } of ROUTES.filter(({ method }) => method === 'POST')) {
    for (const { name, headers } of CROSS_SITE) {
      const sent = Object.fromEntries(
        Object.entries({ ...browser.formHeaders(), ...headers }).filter(([, value]) => value !== ''),
      )
      const cookie = [...browser.cookies].map(([each, value]) => `${each}=${value}`).join('; ')
      const answer = await server.ask(path.replace(/:\w+/g, 'x'), {
        method: 'POST',
        headers: { ...sent, cookie },
        body: `organization=${organization.id}`,
      })
      t.match(answer, { status: 403, text: /did not come from this console/ }, `${path} from ${name}`)
      t.equal(answer.headers['set-cookie'], undefined)
    }
  }
})

t.test('the configured origin counts, not the Host field', async (t) => {
  const { browser, server } = await serveConsole(t, { origin: 'https://posture.example' })
  const origin = `https://localhost:${server.listener.port}`
  t.equal((await browser().post('/theme', { theme: 'dark' }, { origin })).status, 403)
  t.equal((await browser().post('/theme', { theme: 'dark' })).status, 303, 'from https://posture.example')
})

t.test('requests that are not forms are refused', async (t) => {
  const { browser, server } = await serveConsole(t)
  const headers = browser().formHeaders()
  const ask = (body: Uint8Array | string, more: Record<string, string> = {}) =>
    server.ask('/theme', { method: 'POST', headers: { ...headers, ...more }, body })
  t.match(await ask('{}', { 'content-type': 'application/json' }), { status: 415 })
  t.match(await ask('--x', { 'content-type': 'multipart/form-data; boundary=x' }), { status: 415 })
  t.match(await ask(Buffer.from('theme=\xff', 'latin1')), { status: 400, text: /not valid UTF-8/ })
  t.match(await ask('theme=%ff'), { status: 400, text: /percent-encoded/ })
  t.match(await ask('theme=%'), { status: 400, text: /percent-encoded/ })
  t.match(await ask('a=1&'.repeat(501)), { status: 400, text: /500 fields/ })
  t.match(await ask('x'.repeat(10 * 1024 * 1024)), { status: 413 })
  t.match(await ask('theme=dark&to=//evil.example'), { status: 303, headers: { location: '/' } })
  t.match(await ask('theme=dark&to=/\\evil.example'), { status: 303, headers: { location: '/' } })
  t.match(await ask('theme=dark&to=/platforms?q=a'), { status: 303, headers: { location: '/platforms?q=a' } })
})

t.test('the theme is chosen by cookie, without a script', async (t) => {
  const { signIn } = await serveConsole(t)
  const browser = signIn('ada@acme.example', 'viewer')
  t.notMatch((await browser.get('/platforms')).text, /data-theme/)
  await browser.post('/theme', { theme: 'dark', to: '/platforms' })
  t.match((await browser.get('/platforms')).text, /<html lang="en" data-theme="dark">/)
  await browser.post('/theme', { theme: 'system', to: '/platforms' })
  t.notMatch((await browser.get('/platforms')).text, /data-theme/)
})

t.test('a page that fails is an internal error, and its reason is not shown', async (t) => {
  const routes = [
    page('/broken', 'signed-in', () => {
      throw new TypeError('secret detail')
    }),
  ]
  const { signIn } = await serveConsole(t, { routes })
  const answer = await signIn('vic@acme.example', 'viewer').get('/broken')
  t.match(answer, { status: 500, text: /Internal error/ })
  t.notMatch(answer.text, /secret detail/)
})
