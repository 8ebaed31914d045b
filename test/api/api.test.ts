import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { makeApiKey } from '../../engine/store/access-key.ts'
import { firstBodyKey, PublishedList } from '../../engine/store/published.ts'
import { SCOPES, type Scope } from '../../engine/store/secrets.ts'
import { type ApiSite, serveApi } from '../support/api-site.ts'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { makeOrganization, type TestStore } from '../support/store.ts'

/** Lists that tests publish are not made by a scan, so the store is not checked. */
const startApi = (t: Test, implementation: (typeof IMPLEMENTATIONS)[number]): Promise<ApiSite> =>
  serveApi(t, implementation, {}, { unchecked: true })

/** Publishes a discovery list with this many platforms, directly in the store. */
function publishPlatforms({ store }: TestStore, id: string, count: number): void {
  const platforms = Array.from({ length: count }, (_, index) => JSON.stringify({ id: `${id}-${index}` }))
  store.environment.write(() => store.published.replace(id, PublishedList.discovery, '{"id":"scan"}', platforms))
}

const ENDPOINTS: readonly { path: string; scope: Scope; empty: unknown; paged: boolean }[] = [
  { path: '/api/v1/scores', scope: 'scores:read', empty: { scores: [] }, paged: false },
  { path: '/api/v1/recommendations', scope: 'recommendations:read', empty: { recommendations: [] }, paged: true },
  { path: '/api/v1/discovery', scope: 'discovery:read', empty: { scan: null, platforms: [] }, paged: true },
  { path: '/api/v1/assessments', scope: 'assessments:read', empty: { assessments: [] }, paged: true },
]

/** Queries that a paged endpoint rejects with 400. */
const BAD_QUERIES = [
  ...[
    'limit=0',
    'limit=101',
    'limit=-1',
    'limit=1.5',
    'limit=x',
    'limit=',
    'limit=1&limit=2',
    'limit=1e1',
    'limit=%31%20',
  ],
  ...[
    'offset=-1',
    'offset=1.5',
    'offset=x',
    'offset=',
    'offset=1&offset=1',
    'offset=99999999999999999',
    'offset=9007199254740992',
    'limit=5&offset=NaN',
  ],
]

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}`, async (t) => {
    t.test('each endpoint has its empty answer, scope and parameters', async (t) => {
      const api = await startApi(t, implementation)
      makeOrganization(api.opened, 'Acme')
      for (const { path, scope, empty, paged } of ENDPOINTS) {
        const own = { 'x-api-key': api.key('Acme', [scope]) }
        const others = {
          'x-api-key': api.key(
            'Acme',
            SCOPES.filter((each) => each !== scope),
          ),
        }
        const answer = await api.ask(path, { headers: own })
        t.equal(answer.status, 200, path)
        t.same(answer.body, empty)
        t.equal(answer.headers['content-type'], 'application/json')
        t.match(await api.ask(path, { headers: others }), {
          status: 403,
          body: { error: `The API key does not hold the scope ${scope}` },
        })
        t.equal((await api.ask(`${path}?unknown=1`, { headers: own })).status, 200, 'unknown parameters have no effect')
        for (const query of BAD_QUERIES) {
          const { status, body } = await api.ask(`${path}?${query}`, { headers: own })
          t.equal(status, paged ? 400 : 200, `${path}?${query}`)
          if (paged) t.match(body, { error: /^Invalid (limit|offset): expected / })
          api.now.ms += 61_000
        }
        const head = await api.ask(path, { method: 'HEAD', headers: own })
        t.equal(head.status, 200)
        t.equal(head.text, '')
        t.equal(head.headers['content-length'], String(answer.text.length), 'HEAD has the Content-Length of GET')
      }
    })

    t.test('checks run in order: path, method, key, plan, scope, rate, parameters', async (t) => {
      const api = await startApi(t, implementation)
      makeOrganization(api.opened, 'Free', 'free')
      makeOrganization(api.opened, 'Acme')
      const free = api.key('Free', ['scores:read'])
      const acme = api.key('Acme', ['discovery:read'])
      const rows = [
        { name: 'another path, without a key', path: '/api/v1/nothing', status: 404 },
        { name: 'the path of an object property', path: '/constructor', status: 404 },
        { name: 'a path with a trailing slash', path: '/api/v1/scores/', status: 404 },
        { name: 'another method, without a key', path: '/api/v1/scores', method: 'POST', status: 405 },
        { name: 'OPTIONS', path: '/api/v1/scores', method: 'OPTIONS', status: 405 },
        { name: 'no key, bad limit', path: '/api/v1/discovery?limit=0', status: 401 },
        { name: 'a plan without the API, a missing scope', path: '/api/v1/discovery', key: free, status: 403 },
        { name: 'a missing scope, bad limit', path: '/api/v1/assessments?limit=0', key: acme, status: 403 },
        { name: 'bad limit', path: '/api/v1/discovery?limit=0', key: acme, status: 400 },
      ]
      for (const { name, path, method = 'GET', key, status } of rows) {
        const answer = await api.ask(path, { method, headers: key === undefined ? {} : { 'x-api-key': key } })
        t.equal(answer.status, status, name)
        t.match(answer.body, { error: /\S/ }, name)
        t.equal(answer.headers['access-control-allow-origin'], undefined, 'no CORS')
        t.equal(
          answer.headers['server'] ?? answer.headers['uwebsockets'] ?? answer.headers['x-powered-by'],
          undefined,
          'no header field names the server',
        )
        if (status === 405) t.equal(answer.headers['allow'], 'GET, HEAD')
      }
      const plan = await api.ask('/api/v1/scores', { headers: { 'x-api-key': free } })
      t.match(plan.body, { error: /requires the Enterprise plan.*sales@vendor\.example/ })
    })

    t.test('all invalid keys get the same answer', async (t) => {
      const api = await startApi(t, implementation)
      makeOrganization(api.opened, 'Acme')
      const key = api.key('Acme')
      const wrong = [
        '',
        'x',
        makeApiKey(),
        key.slice(0, -1),
        `${key}0`,
        key.toUpperCase(),
        ` svc${key}`,
        key.replace('pk', 'mt'),
        key.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')),
      ]
      for (const each of [...wrong, 'ä', `svc_pk_${'0'.repeat(64)}`, 'x'.repeat(2000)]) {
        const answer = await api.ask('/api/v1/scores', {
          headers: { 'x-api-key': Buffer.from(each).toString('latin1') },
        })
        t.equal(answer.status, 401, each.slice(0, 20))
        t.same(answer.body, { error: 'Invalid API key' })
      }
      t.equal((await api.ask('/api/v1/scores', { headers: { 'x-api-key': key } })).status, 200)
      api.administration.apiKeys.revoke(api.administration.organization('Acme'), key.slice(7, 15))
      t.equal(
        (await api.ask('/api/v1/scores', { headers: { 'x-api-key': key } })).status,
        401,
        'revoked between two requests',
      )
    })

    t.test('the 61st request within 60 s is rejected, and other keys are not affected', async (t) => {
      const api = await startApi(t, implementation)
      makeOrganization(api.opened, 'Acme')
      const [key, other] = [api.key('Acme'), api.key('Acme')]
      const ask = (each: string) => api.ask('/api/v1/scores', { headers: { 'x-api-key': each } })
      for (let request = 1; request <= 60; request++) {
        const answer = await ask(key)
        t.equal(answer.status, 200)
        t.equal(answer.headers['ratelimit-remaining'], String(60 - request))
        api.now.ms += 500
      }
      const refused = await ask(key)
      t.match(refused, {
        status: 429,
        body: { error: 'Rate limit exceeded; try again in 30 s' },
        headers: { 'retry-after': '30', 'ratelimit-limit': '60', 'ratelimit-remaining': '0', 'ratelimit-reset': '30' },
      })
      t.equal((await ask(other)).status, 200)
      api.now.ms += 30_000
      t.equal((await ask(key)).status, 200, 'one more request is allowed')
      t.equal((await ask(key)).status, 429)
    })

    t.test('a list has pages and a tag, and may change between two pages', async (t) => {
      const api = await startApi(t, implementation)
      const { id } = makeOrganization(api.opened, 'Acme')
      publishPlatforms(api.opened, id, 250)
      const headers = { 'x-api-key': api.key('Acme') }
      const seen: string[] = []
      for (const offset of [0, 100, 200]) {
        const { body } = await api.ask(`/api/v1/discovery?offset=${offset}`, { headers })
        t.match(body, { scan: { id: 'scan' } }, 'every page has the complete scan')
        seen.push(...(body as { platforms: { id: string }[] }).platforms.map((platform) => platform.id))
      }
      t.same(
        seen,
        Array.from({ length: 250 }, (_, index) => `${id}-${index}`),
      )
      const across = await api.ask('/api/v1/discovery?offset=95&limit=10', { headers })
      t.same((across.body as { platforms: unknown[] }).platforms.length, 10)
      t.same((await api.ask('/api/v1/discovery?offset=250', { headers })).body, { scan: { id: 'scan' }, platforms: [] })

      const tag = String(across.headers['etag'])
      t.match(tag, /^"[0-9a-f]{32}"$/)
      const unchanged = await api.ask('/api/v1/discovery', { headers: { ...headers, 'if-none-match': `"x", ${tag}` } })
      t.equal(unchanged.status, 304)
      t.equal(unchanged.text, '')
      t.equal(unchanged.headers['etag'], tag)
      const paging = { ...headers, 'if-match': tag }
      t.equal((await api.ask('/api/v1/discovery?offset=100', { headers: paging })).status, 200)
      publishPlatforms(api.opened, id, 249)
      t.equal((await api.ask('/api/v1/discovery?offset=200', { headers: paging })).status, 412)
      t.equal((await api.ask('/api/v1/discovery', { headers: { ...headers, 'if-none-match': tag } })).status, 200)
    })

    t.test('a long answer is compressed if the client accepts gzip, and has a separate tag', async (t) => {
      const api = await startApi(t, implementation)
      const { id } = makeOrganization(api.opened, 'Acme')
      const own = { 'x-api-key': api.key('Acme') }
      const small = await api.ask('/api/v1/discovery', { headers: { ...own, 'accept-encoding': 'gzip' } })
      t.equal(small.headers['content-encoding'], undefined, 'too short')
      publishPlatforms(api.opened, id, 250)
      for (const query of ['', '?limit=100&offset=0', '?offset=100', '?offset=200', '?offset=200&limit=50']) {
        const path = `/api/v1/discovery${query}`
        const plain = await api.ask(path, { headers: own })
        t.equal(plain.headers['content-encoding'], undefined)
        t.match(plain.headers['vary'], /Accept-Encoding/)
        for (let time = 0; time < 2; time++) {
          const packed = await api.ask(path, { headers: { ...own, 'accept-encoding': 'gzip, br' } })
          t.equal(packed.headers['content-encoding'], 'gzip')
          t.ok(packed.bytes.length < plain.text.length / 2)
          t.equal(gunzipSync(packed.bytes).toString(), plain.text)
          t.equal(packed.headers['content-length'], String(packed.bytes.length))
          t.not(packed.headers['etag'], plain.headers['etag'], 'another representation')
          for (const tag of [packed.headers['etag'], plain.headers['etag']].map(String)) {
            t.equal((await api.ask(path, { headers: { ...own, 'if-none-match': tag } })).status, 304)
            t.equal((await api.ask(path, { headers: { ...own, 'if-match': tag } })).status, 200)
          }
        }
        api.now.ms += 61_000
      }
    })

    t.test('a page that does not hold whole parts of the list is sent as it is', async (t) => {
      const api = await startApi(t, implementation)
      const { id } = makeOrganization(api.opened, 'Acme')
      const headers = { 'x-api-key': api.key('Acme'), 'accept-encoding': 'gzip' }
      publishPlatforms(api.opened, id, 250)
      for (const query of ['?offset=50', '?limit=99', '?offset=100&limit=10', '?offset=200&limit=49', '?offset=300']) {
        const answer = await api.ask(`/api/v1/discovery${query}`, { headers })
        t.equal(answer.headers['content-encoding'], undefined, query)
        t.type(JSON.parse(answer.text).platforms.length, 'number')
        t.equal(
          (await api.ask(`/api/v1/discovery${query}`, { headers, method: 'HEAD' })).headers['etag'],
          answer.headers['etag'],
        )
      }
    })

    t.test('conditions on several lines form one list, and `*` gets the current tag', async (t) => {
      const api = await startApi(t, implementation)
      const { id } = makeOrganization(api.opened, 'Acme')
      const key = api.key('Acme')
      const asked = async (fields: Record<string, string | string[]>): Promise<[number, unknown]> => {
        const headers = { 'x-api-key': key, ...fields } as Record<string, string>
        const answer = await api.ask('/api/v1/discovery', { headers })
        return [answer.status, answer.headers['etag']]
      }
      const small = (await asked({}))[1] as string
      t.same(await asked({ 'if-none-match': '*', 'accept-encoding': 'gzip' }), [304, small], 'too short to compress')
      publishPlatforms(api.opened, id, 250)
      const [, tag] = (await asked({})) as [number, string]
      const packed = tag.replace(/"$/, '-gzip"')
      t.same(await asked({ 'if-none-match': '*' }), [304, tag])
      t.same(await asked({ 'if-none-match': '*', 'accept-encoding': 'gzip' }), [304, packed])
      t.same(await asked({ 'if-none-match': packed }), [304, packed], 'the tag that the client has')
      t.same(await asked({ 'if-none-match': tag, 'accept-encoding': 'gzip' }), [304, tag])
      t.same(await asked({ 'if-none-match': ['"x"', tag] }), [304, tag])
      t.same(await asked({ 'if-match': ['"x"', tag] }), [200, tag])
      t.same(await asked({ 'if-match': ['"x"', '"y"'] }), [412, tag])
      t.same(await asked({ 'if-none-match': '"a,*,b"' }), [200, tag])
      t.same(await asked({ 'if-match': '"a,*,b"' }), [412, tag])
    })

    t.test('an older list without a prepared body has the same answer', async (t) => {
      const api = await startApi(t, implementation)
      const { id } = makeOrganization(api.opened, 'Acme')
      const own = { 'x-api-key': api.key('Acme') }
      publishPlatforms(api.opened, id, 130)
      const ready = await api.ask('/api/v1/discovery', { headers: own })
      const { environment, apiVersions } = api.opened.store
      environment.write(() => {
        environment.table('published').removeSync(firstBodyKey(id, PublishedList.discovery))
        apiVersions.change(id)
      })
      const assembled = await api.ask('/api/v1/discovery', { headers: own })
      t.equal(assembled.text, ready.text)
      t.equal(assembled.headers['etag'], ready.headers['etag'])
    })
  })
}
