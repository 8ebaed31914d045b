import { AssertionError } from 'node:assert'
import t, { type Test } from 'tap'
import { OPENAPI_PATH } from '../../api/document.ts'
import { openApiAnswer, openApiDocument } from '../../api/openapi.ts'
import { EXAMPLES } from '../../api/openapi-examples.ts'
import { type Json, refusals } from '../../api/openapi-responses.ts'
import { ROUTES } from '../../api/routes.ts'
import { loadTemplates } from '../../engine/assess/templates.ts'
import { METHODS } from '../../engine/kernel/event/event.ts'
import { EXACT_CLIENTS_MAX } from '../../engine/scan/distinct-clients.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import type { Answer as ItemAnswer } from '../../engine/store/assessments.ts'
import { FRAMEWORK_IDS } from '../../engine/store/framework.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { RECOMMENDATION_STATUSES } from '../../engine/store/recommendations.ts'
import { SCOPES } from '../../engine/store/secrets.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { SALES_EMAIL, serveApi } from '../support/api-site.ts'
import { category, item } from '../support/assessments.ts'
import { assertContract } from '../support/contract.ts'
import { report } from '../support/coverage.ts'
import { type Answer, type Ask, IMPLEMENTATIONS } from '../support/https.ts'
import * as fc from '../support/property.ts'
import { makeOrganization, NOON, registries, Sender } from '../support/store.ts'

const DOCUMENT = openApiDocument(ROUTES, SALES_EMAIL)
const PATHS = Object.keys(ROUTES)
const PAGED = PATHS.filter((path) => ROUTES[path]?.paged)

/** The API. Every answer is checked against the OpenAPI document before the test gets it. */
async function startService(t: Test, implementation: (typeof IMPLEMENTATIONS)[number]) {
  const site = await serveApi(t, implementation, { document: openApiAnswer(ROUTES, SALES_EMAIL) })
  /** The answers so far, such as `GET /api/v1/scores 200`. */
  const seen = new Set<string>()
  return {
    ...site,
    seen,
    key: ({ name }: Organization): Record<string, string> => ({ 'x-api-key': site.key(name) }),
    async ask(path: string, options: Ask = {}): Promise<Answer> {
      const answer = await site.ask(path, options)
      const method = options.method ?? 'GET'
      assertContract(DOCUMENT, method, path, answer)
      seen.add(`${method} ${path.split('?')[0]} ${answer.status}`)
      // Advances the clock, so that the rate limit rejects only what a test intends.
      site.now.ms += 1001
      return answer
    },
  }
}
type Service = Awaited<ReturnType<typeof startService>>

/**
 * Creates scans with all possible metadata, and completed assessments of all frameworks with
 * recommendations of every status.
 */
function fill({ opened, administration }: Service, acme: Organization): void {
  const { store, clock } = opened
  const sender = new Sender()
  const names = ['claude.ai', 'chatgpt.com', 'api.openai.com', 'gemini.google.com', 'github.com', 'huggingface.co']
  const events = METHODS.flatMap((method, at) =>
    names.map((name, day) =>
      sender.event(name, NOON - day * 86_400_000, {
        ...{ method, client: `10.0.0.${at + day}`, count: 10 },
        ...(method === 'log' ? { blocked: 3 } : {}),
      }),
    ),
  )
  // More clients than are counted exactly, and more names than are published.
  const manyClients = Array.from({ length: EXACT_CLIENTS_MAX + 50 }, (_, at) =>
    sender.event(`host-${at % 30}.claude.ai`, NOON, { client: `10.1.${at >> 8}.${at & 255}` }),
  )
  store.environment.write(() => {
    store.buffer.append(acme.id, [...events, ...manyClients])
    store.coverage.add(acme.id, report({ counters: { packets: 1000, names: 90, hellos_ech: 7 } }), NOON)
  })
  administration.approvals.add(acme, loadCatalog(), ['claude'])
  runScan(store, registries, acme.id, 'administrator', clock)
  for (const frameworkId of FRAMEWORK_IDS) {
    const answers: readonly ItemAnswer[] = ['no', 'partial', 'yes', 40, 'not_applicable']
    const categories = loadTemplates()[frameworkId].categories.map((each, place) => ({
      ...each,
      items: each.items.map((one, at) => ({
        ...one,
        answer: place === 1 ? ('not_applicable' as const) : (answers[at % answers.length] ?? 'no'),
        note: '',
      })),
    }))
    administration.assessments.import(acme, { frameworkId, title: 'Spring', categories }, { complete: true })
    clock.add(90_000)
  }
  for (const [at, status] of RECOMMENDATION_STATUSES.entries()) {
    const id = store.recommendations.ofOrganization(acme.id)[at]?.id ?? ''
    if (status !== 'open') administration.recommendations.setStatus(acme, id, status, 'Accepted')
  }
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: every answer on every path is documented`, async (t) => {
    const service = await startService(t, implementation)
    const { opened, ask, seen } = service
    const organizations = ['Acme', 'Empty', 'Free'].map((name) =>
      makeOrganization(opened, name, name === 'Free' ? 'free' : 'enterprise'),
    )
    const [acme, empty, free] = organizations as [Organization, Organization, Organization]
    fill(service, acme)
    const lists: Record<string, unknown[]> = {}
    for (const path of PATHS) {
      const { scope, paged } = ROUTES[path] ?? { scope: 'scores:read', paged: false }
      const headers = service.key(acme)
      const whole = await ask(path, { headers })
      Object.assign(lists, whole.body)
      await ask(path, { headers: service.key(empty) })
      for (const method of ['GET', 'HEAD']) {
        const expected = async (status: number, words: Record<string, string>, query = ''): Promise<void> => {
          const answer = await ask(`${path}${query}`, { method, headers: words })
          t.equal(answer.status, status, `${method} ${path}${query}`)
        }
        const tag = String(whole.headers['etag'])
        await expected(200, headers)
        await expected(200, { ...headers, 'if-match': tag }, paged ? '?limit=2&offset=1' : '')
        await expected(304, { ...headers, 'if-none-match': tag })
        await expected(412, { ...headers, 'if-match': '"0"' })
        await expected(401, {})
        await expected(401, { 'x-api-key': 'svc_pk_1' })
        await expected(403, service.key(free))
        const others = SCOPES.filter((each) => each !== scope)
        const { raw } = service.administration.apiKeys.create(acme, 'others', others)
        await expected(403, { 'x-api-key': raw })
        await expected(200, { ...headers, 'accept-encoding': 'gzip' })
        t.equal((await ask(path, { method, headers, body: 'x' })).status, 400, 'a body')
        if (paged) await expected(400, headers, '?limit=0')
        if (paged) await expected(400, headers, '?offset=-1')
        await expected(404, headers, '/')
        const manyClients = service.key(acme)
        for (let request = 0; request < 60; request++) {
          await ask(path, { method, headers: manyClients })
          service.now.ms -= 1001
        }
        await expected(429, manyClients)
        service.administration.apiKeys.revoke(acme, manyClients['x-api-key']?.slice(7, 15) ?? '')
        service.administration.apiKeys.revoke(acme, raw.slice(7, 15))
        service.now.ms += 61_000
      }
      for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
        t.equal((await ask(path, { method, headers })).status, 405, `${method} ${path}`)
      }
    }
    t.equal(lists['scores']?.length, FRAMEWORK_IDS.length)
    t.equal(lists['assessments']?.length, FRAMEWORK_IDS.length)
    t.equal(lists['recommendations']?.length, 100, 'more than a page')
    t.ok((lists['platforms']?.length ?? 0) >= 5)
    t.ok(JSON.stringify(lists).includes('"score":null'), 'a category without an item that applies')
    t.match(JSON.stringify(lists), /"clients_error":0\.\d.*"domains_total":3\d/)
    t.match(JSON.stringify(lists), /"blocked_matches":\d.*"visible_share":0\.\d/)

    t.test('the document is served without a key', async (t) => {
      const answer = await ask(OPENAPI_PATH)
      t.same(answer.body, DOCUMENT)
      const head = await ask(OPENAPI_PATH, { method: 'HEAD' })
      t.equal(head.headers['content-length'], String(Buffer.byteLength(answer.text)))
      const tag = String(answer.headers['etag'])
      t.equal(head.headers['etag'], tag)
      for (const method of ['GET', 'HEAD']) {
        t.equal((await ask(OPENAPI_PATH, { method, headers: { 'if-none-match': tag } })).status, 304)
      }
      t.equal((await ask(OPENAPI_PATH, { headers: { 'if-none-match': '"x"' } })).status, 200)
      for (const method of ['POST', 'OPTIONS', 'DELETE']) t.equal((await ask(OPENAPI_PATH, { method })).status, 405)
      t.equal((await ask(`${OPENAPI_PATH}/`)).status, 404)
      for (const method of ['GET', 'HEAD']) {
        t.equal((await ask(OPENAPI_PATH, { method, body: 'x' })).status, 400, `${method} with a body`)
        service.now.ms += 61_000
        for (let request = 0; request < 60; request++) {
          t.equal((await ask(OPENAPI_PATH, { method })).status, 200)
          service.now.ms -= 1001
        }
        const refused = await ask(OPENAPI_PATH, { method })
        t.match(refused, { status: 429, headers: { 'retry-after': '60' } })
        service.now.ms += 61_000
      }
    })

    t.test('every documented status occurred', async (t) => {
      // The next test covers the 500. Unknown paths and methods use the documented response of an
      // existing path.
      const reported = documented().filter((each) => !/ (404|405|500)$/.test(each))
      t.same(
        reported.filter((each) => !seen.has(each)),
        [],
      )
    })
  })

  t.test(`over ${implementation}: each documented message occurs`, async (t) => {
    const service = await startService(t, implementation)
    const { opened, ask } = service
    const acme = makeOrganization(opened, 'Acme')
    const free = makeOrganization(opened, 'Free', 'free')
    const headers = service.key(acme)
    const { raw } = service.administration.apiKeys.create(acme, 'other', ['discovery:read'])
    const asked: Record<string, () => Promise<Answer>> = {
      path: () => ask('/api/v1/nothing'),
      method: () => ask('/api/v1/scores', { method: 'POST' }),
      key: () => ask('/api/v1/scores'),
      plan: () => ask('/api/v1/scores', { headers: service.key(free) }),
      scope: () => ask('/api/v1/scores', { headers: { 'x-api-key': raw } }),
      rate: async () => {
        const manyClients = service.key(acme)
        for (let request = 0; request < 60; request++) {
          await ask('/api/v1/scores', { headers: manyClients })
          service.now.ms -= 1001 - 500
        }
        return ask('/api/v1/scores', { headers: manyClients })
      },
      guesses: async () => {
        for (let request = 0; request < 60; request++) {
          await ask('/api/v1/scores')
          service.now.ms -= 1001 - 500
        }
        return ask('/api/v1/scores')
      },
      body: () => ask('/api/v1/scores', { headers, body: 'x' }),
      limit: () => ask('/api/v1/discovery?limit=101', { headers }),
      offset: () => ask('/api/v1/discovery?offset=x', { headers }),
      changed: () => ask('/api/v1/scores', { headers: { ...headers, 'if-match': '"0"' } }),
      fault: () => {
        opened.store.apiVersions.get = () => {
          throw new Error('made for the test')
        }
        return ask('/api/v1/scores', { headers })
      },
    }
    for (const { status, example, message } of refusals(SALES_EMAIL)) {
      const answer = await asked[example]?.()
      t.match(answer, { status, body: { error: message } }, example)
    }
    t.equal((await ask('/api/v1/scores', { method: 'HEAD', headers })).status, 500, 'a fault, to HEAD')
  })

  t.test(`over ${implementation}: no answer to one organization's key contains another's data`, async (t) => {
    const service = await startService(t, implementation)
    let shown = 0
    await fc.assert(
      fc.asyncProperty(organizationData(), organizationData(), async (first, second) => {
        fc.pre(first.mark !== second.mark)
        const all = [make(service, first), make(service, second)]
        for (const [at, own] of all.entries()) {
          const other = all[1 - at]
          const answers = await everyAnswer(service, own.organization, other?.organization)
          for (const each of other?.secrets ?? []) if (answers.includes(each)) throw new Error(`${each} is shown`)
          shown += own.secrets.filter((each) => answers.includes(each)).length
        }
      }),
      { numRuns: 12 },
    )
    t.ok(shown > 50, 'each key gets its own data, so the check can find it')
  })
}

t.test('the check detects an undocumented answer', async (t) => {
  const fixed = {
    'cache-control': 'private, no-cache',
    vary: 'X-API-Key, Accept-Encoding',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'",
  }
  const rate = { 'ratelimit-limit': '60', 'ratelimit-remaining': '59', 'ratelimit-reset': '60' }
  const headers = { ...fixed, ...rate, 'content-type': 'application/json', etag: `"${'0'.repeat(32)}"` }
  const answer = (words: Partial<Answer>): Answer => {
    const body = words.body ?? { scores: [] }
    const text = JSON.stringify(body)
    return { status: 200, headers, bytes: Buffer.from(text), text, body, ...words }
  }
  assertContract(DOCUMENT, 'GET', '/api/v1/scores', answer({}))
  const found = EXAMPLES['/api/v1/discovery']?.['scan']?.value ?? {}
  assertContract(DOCUMENT, 'GET', '/api/v1/discovery', answer({ body: found }))
  const [platform] = found['platforms'] as { metadata: object }[]
  const grown = { ...found, platforms: [{ ...platform, metadata: { ...platform?.metadata, later: 1 } }] }
  const rows: { name: string; method?: string; path?: string; answer: Partial<Answer> }[] = [
    { name: 'a status', answer: { status: 202 } },
    { name: 'a 400 of the document itself', path: OPENAPI_PATH, answer: { status: 400, body: { error: 'x' } } },
    { name: 'a field that is missing', answer: { headers: { ...headers, etag: undefined } } },
    { name: 'an additional field', answer: { headers: { ...headers, 'access-control-allow-origin': '*' } } },
    { name: 'a tag in another form', answer: { headers: { ...headers, etag: 'W/"1"' } } },
    { name: 'a rate that is not a number', answer: { headers: { ...headers, 'ratelimit-remaining': 'many' } } },
    { name: 'another type', answer: { headers: { ...headers, 'content-type': 'text/html' } } },
    { name: 'another body', answer: { body: { assessments: [] } } },
    { name: 'a body to HEAD', method: 'HEAD', answer: {} },
    { name: 'another path', path: '/api/v1/nothing', answer: {} },
    { name: 'metadata that the document does not have yet', path: '/api/v1/discovery', answer: { body: grown } },
  ]
  for (const { name, method = 'GET', path = '/api/v1/scores', answer: words } of rows) {
    t.throws(() => assertContract(DOCUMENT, method, path, answer(words)), AssertionError, name)
  }
})

/** All documented answers, such as `GET /api/v1/scores 200`. */
function documented(): string[] {
  const paths = DOCUMENT['paths'] as Record<string, Record<string, { responses: Json }>>
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { responses }]) =>
      Object.keys(responses).map((status) => `${method.toUpperCase()} ${path} ${status}`),
    ),
  )
}

interface OrganizationData {
  /**
   * Contained in every name of the organization, so that a test finds it wherever the name is
   * shown.
   */
  readonly mark: string
  readonly hosts: readonly string[]
  readonly assessments: readonly { readonly framework: number; readonly answers: readonly ItemAnswer[] }[]
}

function organizationData(): fc.Arbitrary<OrganizationData> {
  const answer = fc.oneof(fc.constantFrom<ItemAnswer>('yes', 'partial', 'no', 'not_applicable'), fc.nat({ max: 100 }))
  return fc.record({
    mark: fc.stringMatching(/^[a-z]{16}$/),
    hosts: fc.array(fc.constantFrom('claude.ai', 'chatgpt.com', 'huggingface.co'), { maxLength: 6 }),
    assessments: fc.array(
      fc.record({
        framework: fc.nat({ max: FRAMEWORK_IDS.length - 1 }),
        answers: fc.array(answer, { minLength: 1, maxLength: 5 }),
      }),
      { maxLength: 3 },
    ),
  })
}

/** Creates an organization with this data. Returns it with all texts that are specific to it. */
function make({ opened, administration }: Service, data: OrganizationData) {
  const { store, clock } = opened
  const organization = makeOrganization(opened, `${data.mark}-${clock.nowMs()}`)
  clock.add(1000)
  const sender = new Sender()
  store.environment.write(() => {
    const events = data.hosts.map((host) => sender.event(`${data.mark}.${host}`, NOON))
    store.buffer.append(organization.id, events)
  })
  runScan(store, registries, organization.id, 'administrator', clock)
  for (const { framework, answers } of data.assessments) {
    const items = answers.map((each, at) => item(`I${at}`, each, { recommendation: `Do ${data.mark} ${at}.` }))
    // One item with a weight, so that there is a score.
    const categories = [category(data.mark, 1, [...items, item('last', 'no')])]
    const frameworkId = FRAMEWORK_IDS[framework] ?? 'hipaa'
    administration.assessments.import(organization, { frameworkId, title: data.mark, categories }, { complete: true })
  }
  const records = [
    ...store.scans.ofOrganization(organization.id),
    ...store.assessments.ofOrganization(organization.id),
    ...store.recommendations.ofOrganization(organization.id),
  ]
  const detections = ['claude', 'chatgpt', 'huggingface'].flatMap(
    (id) => store.evidence.detection(organization.id, id)?.id ?? [],
  )
  return { organization, secrets: [data.mark, organization.id, ...records.map(({ id }) => id), ...detections] }
}

/**
 * Header fields and bodies of all answers to a key of one organization, including requests for
 * another organization's data.
 */
async function everyAnswer(service: Service, own: Organization, other?: Organization): Promise<string> {
  const headers = service.key(own)
  const texts: string[] = []
  for (const path of [...PATHS, OPENAPI_PATH]) {
    const queries = ['', `?organization_id=${other?.id}`, '?limit=1', '?limit=1&offset=1', '?limit=x', '?offset=100']
    for (const query of PAGED.includes(path) ? queries : queries.slice(0, 2)) {
      const answer = await service.ask(path + query, { headers })
      texts.push(JSON.stringify(answer.headers), answer.text)
    }
    const unmet = await service.ask(path, { headers: { ...headers, 'if-match': `"${other?.id}"` } })
    texts.push(JSON.stringify(unmet.headers), unmet.text)
  }
  return texts.join('\n')
}
