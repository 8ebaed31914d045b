import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { listenOn } from '../support/free-port.ts'
import { ALL_SCOPES, admin, REPOSITORY, type RunningService, startService } from '../support/programs.ts'
import { testFolder } from '../support/test-folder.ts'

/*
 * The scripts of deploy/integrations, against a real service and a receiver that accepts only what
 * the vendor's documentation describes. Sources: Splunk, "Format events for HTTP Event Collector";
 * Microsoft, "Logs Ingestion API in Azure Monitor"; Elasticsearch, "Bulk API"; Atlassian, "Jira
 * Cloud platform REST API", version 3; ServiceNow, "Table API".
 */
const SCRIPTS = join(REPOSITORY, 'deploy/integrations')
/** Two pages of the API. */
const PLATFORMS = 120
/** Of these, platforms that wait for a decision: each ticket costs half a dozen processes. */
const WAITING = 6
/** Recommendations of the assessment. */
const OPEN = 4
const AUTHORIZATION = 'Scheme secret-of-the-vendor'

interface Request {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly body: string
}
type Reply = { readonly status: number; readonly json: unknown }

/** A vendor's server. `answer` throws for a request that the vendor would refuse. */
async function vendor(t: Test, answer: (request: Request) => Reply): Promise<{ url: string; requests: Request[] }> {
  const requests: Request[] = []
  const receive = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk
    const { method = '', url = '', headers } = incoming
    const request = { method, url: new URL(url, 'http://vendor.example'), headers, body }
    requests.push(request)
    const { status, json } = replyOf(answer, request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  }
  const server = createServer((incoming, response) => void receive(incoming, response))
  return { url: `http://127.0.0.1:${await listenOn(t, server)}`, requests }
}

function replyOf(answer: (request: Request) => Reply, request: Request): Reply {
  try {
    return answer(request)
  } catch (error) {
    return { status: 400, json: { error: String(error) } }
  }
}

interface Site {
  readonly service: RunningService
  readonly directory: string
  readonly key: string
}

/** A service with many platforms and a few recommendations. */
async function site(t: Test): Promise<Site> {
  const directory = testFolder(t)
  const data = ['--data-dir', join(directory, 'service')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [key] = await admin('key', 'create', 'export', ...ALL_SCOPES, '--org', 'Acme', ...data)
  const [token] = await admin('token', 'generate', 'office', '--org', 'Acme', ...data)
  const platforms = Array.from({ length: PLATFORMS }, (_, index) => {
    return [
      `  - id: own-${index}`,
      `    name: Own "${index}"`,
      '    vendor: Own',
      '    platform_type: llm_chat',
      `    url: https://ai-${index}.acme-own.com`,
      `    risk: { score: ${index % 100}, why: Test }`,
      '    source: [test]',
      '    domains:',
      `      - { domain: ai-${index}.acme-own.com, match: exact, role: web, specificity: 1 }`,
    ].join('\n')
  })
  const registry = join(directory, 'own.yaml')
  writeFileSync(registry, `platforms:\n${platforms.join('\n')}\n`)
  await admin('registry', 'add', registry, '--org', 'Acme', ...data)
  const seconds = (Date.now() / 1000).toFixed(3)
  const lines = platforms.map(
    (_, index) =>
      `${seconds} 318 192.0.2.48 TCP_TUNNEL/200 6120 CONNECT ai-${index}.acme-own.com:443 - HIER_DIRECT/198.51.100.20 -`,
  )
  writeFileSync(join(directory, 'squid.log'), `${lines.join('\n')}\n`)
  writeFileSync(join(directory, 'token'), `${token?.['token']}\n`, { mode: 0o600 })
  await admin('ingest', 'file', join(directory, 'squid.log'), '--token-file', join(directory, 'token'), ...data)
  const approved = platforms.slice(WAITING).map((_, index) => `own-${index + WAITING}`)
  await admin('approval', 'add', ...approved, '--org', 'Acme', ...data)
  const service = await startService(join(directory, 'service'), ['--plain-http'])
  t.teardown(() => service.child.kill('SIGKILL'))
  await admin('scan', 'run', '--org', 'Acme', ...data)
  const [assessment] = await admin('assessment', 'create', '--framework', 'hipaa', '--org', 'Acme', ...data)
  const id = String(assessment?.['id'])
  const items = await admin('assessment', 'show', id, '--items', '--org', 'Acme', ...data)
  for (const [index, { item_id: item }] of items.entries()) {
    const answer = index < OPEN ? 'no' : 'yes'
    await admin('assessment', 'answer', id, String(item), answer, '--org', 'Acme', ...data)
  }
  await admin('assessment', 'complete', id, '--org', 'Acme', ...data)
  return { service, directory, key: String(key?.['key']) }
}

const made = await site(t)

interface Ran {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a script with the settings of the service, and a file with the vendor's header. */
async function run(t: Test, script: string, settings: Readonly<Record<string, string>>): Promise<Ran> {
  const directory = t.testdirName
  mkdirSync(join(directory, 'state'), { recursive: true })
  const file = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, `${text}\n`, { mode: 0o600 })
    return path
  }
  const headers = file('vendor', `Authorization: ${AUTHORIZATION}`)
  const environment = {
    PATH: process.env['PATH'],
    POSTURE_URL: `http://127.0.0.1:${made.service.apiPort}`,
    POSTURE_HEADERS: file('posture', `X-API-Key: ${made.key}`),
    STATE: join(directory, 'state'),
    ...{ SPLUNK_HEADERS: headers, ELASTIC_HEADERS: headers, JIRA_HEADERS: headers, SERVICENOW_HEADERS: headers },
    ...settings,
  }
  return new Promise((resolve) => {
    execFile(join(SCRIPTS, script), { env: environment }, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

function authorized({ headers }: Request): void {
  if (headers.authorization !== AUTHORIZATION) throw new Error(`authorization: ${headers.authorization}`)
}

const platform = z.looseObject({ id: z.uuid(), platform_name: z.string(), scan_time: z.iso.datetime() })

t.test('posture-list.sh prints every page of a list, and says why it cannot', async (t) => {
  const { status, stdout } = await run(t, 'posture-list.sh', {})
  t.same([status, stdout], [2, ''], 'a list is required')
  const server = await vendor(t, () => ({ status: 403, json: { error: 'no scope' } }))
  const refused = await run(t, 'posture-tickets.sh', { POSTURE_URL: server.url })
  t.equal(refused.status, 1)
  t.match(refused.stderr, /recommendations: status 403: .*no scope/)
})

t.test('Splunk gets the platforms of each scan once, as events of the HTTP Event Collector', async (t) => {
  const event = z.strictObject({
    time: z.number(),
    source: z.literal('posture-service'),
    sourcetype: z.literal('posture:platform'),
    event: platform,
  })
  const names = new Set<string>()
  const server = await vendor(t, (request) => {
    authorized(request)
    if (request.url.pathname !== '/services/collector/event') throw new Error(request.url.pathname)
    for (const line of request.body.trim().split('\n')) names.add(event.parse(JSON.parse(line)).event.platform_name)
    return { status: 200, json: { text: 'Success', code: 0 } }
  })
  t.match(await run(t, 'splunk.sh', { SPLUNK_URL: server.url }), { status: 0, stderr: '' })
  t.equal(names.size, PLATFORMS)
  t.equal(server.requests.length, 2, 'at most 100 events in a request')
  t.match(await run(t, 'splunk.sh', { SPLUNK_URL: server.url }), { status: 0 })
  t.equal(server.requests.length, 2, 'the same scan is not sent again')
})

t.test('Sentinel gets the platforms as JSON arrays with a token of Microsoft Entra', async (t) => {
  const row = z.strictObject({
    TimeGenerated: z.iso.datetime(),
    PlatformId: z.uuid(),
    Platform: z.string(),
    Vendor: z.string(),
    Decision: z.string(),
    Risk: z.int(),
    Confidence: z.number(),
    Clients: z.int(),
    Domains: z.array(z.string()),
  })
  let rows = 0
  const server = await vendor(t, ({ url, headers, body }) => {
    if (url.pathname === '/tenant/oauth2/v2.0/token') {
      const form = Object.fromEntries(new URLSearchParams(body))
      t.same(form, {
        client_id: 'app',
        client_secret: 's&cret',
        grant_type: 'client_credentials',
        scope: 'https://monitor.azure.com/.default',
      })
      return { status: 200, json: { access_token: 'entra-token', expires_in: 3599 } }
    }
    t.equal(url.pathname, '/dataCollectionRules/dcr-1/streams/Custom-PosturePlatforms_CL')
    t.equal(url.searchParams.get('api-version'), '2023-01-01')
    t.match(headers, { authorization: 'Bearer entra-token', 'content-type': 'application/json' })
    rows += z.array(row).parse(JSON.parse(body)).length
    return { status: 204, json: null }
  })
  const secret = join(made.directory, 'azure')
  writeFileSync(secret, 'client_id=app&client_secret=s%26cret', { mode: 0o600 })
  const azure = {
    AZURE_LOGIN: `${server.url}/tenant`,
    AZURE_ENDPOINT: server.url,
    AZURE_RULE: 'dcr-1',
    AZURE_SECRET: secret,
  }
  t.match(await run(t, 'sentinel.sh', azure), { status: 0, stderr: '' })
  t.equal(rows, PLATFORMS)
})

t.test('Elasticsearch gets a document for each platform and scan, and its errors are reported', async (t) => {
  const action = z.strictObject({ index: z.strictObject({ _index: z.literal('posture-platforms'), _id: z.string() }) })
  const documents = new Map<string, unknown>()
  let errors = false
  const server = await vendor(t, (request) => {
    authorized(request)
    t.equal(request.headers['content-type'], 'application/x-ndjson')
    if (request.url.pathname !== '/_bulk' || !request.body.endsWith('\n')) throw new Error('malformed')
    const lines = request.body.trimEnd().split('\n')
    for (let at = 0; at < lines.length; at += 2) {
      const { _id } = action.parse(JSON.parse(lines[at] ?? '')).index
      documents.set(_id, platform.extend({ '@timestamp': z.iso.datetime() }).parse(JSON.parse(lines[at + 1] ?? '')))
    }
    const item = { index: errors ? { status: 400, error: { type: 'mapper_parsing_exception' } } : { status: 201 } }
    return { status: 200, json: { errors, items: [item] } }
  })
  t.match(await run(t, 'elastic.sh', { ELASTIC_URL: server.url }), { status: 0, stderr: '' })
  t.match(await run(t, 'elastic.sh', { ELASTIC_URL: server.url }), { status: 0 })
  t.equal(documents.size, PLATFORMS, 'a second run writes the same documents')
  errors = true
  t.match(await run(t, 'elastic.sh', { ELASTIC_URL: server.url }), { status: 1, stderr: /mapper_parsing_exception/ })
})

/** Tickets of the site: platforms that wait for a decision, and open recommendations. */
async function ticketIds(t: Test): Promise<string[]> {
  const { stdout } = await run(t, 'posture-tickets.sh', {})
  const ids = stdout
    .trim()
    .split('\n')
    .map((line) => z.strictObject({ id: z.uuid(), title: z.string(), text: z.string() }).parse(JSON.parse(line)).id)
  t.equal(ids.length, WAITING + OPEN)
  return ids.sort()
}

t.test('Jira gets one issue for each ticket, also when a run fails or loses its state', async (t) => {
  const issue = z.strictObject({
    fields: z.strictObject({
      project: z.strictObject({ key: z.literal('SEC') }),
      issuetype: z.strictObject({ name: z.literal('Task') }),
      summary: z.string().min(1).max(255),
      labels: z.tuple([z.literal('posture'), z.string().regex(/^\S+$/)]),
      description: z.strictObject({
        type: z.literal('doc'),
        version: z.literal(1),
        content: z.array(
          z.strictObject({
            type: z.literal('paragraph'),
            content: z.array(z.strictObject({ type: z.literal('text'), text: z.string().min(1) })),
          }),
        ),
      }),
    }),
  })
  const search = z.strictObject({ jql: z.string(), maxResults: z.int(), fields: z.array(z.string()) })
  const labels: string[] = []
  let failsAfter = 3
  const server = await vendor(t, (request) => {
    authorized(request)
    t.equal(request.headers['content-type'], 'application/json')
    if (request.url.pathname === '/rest/api/3/search/jql') {
      const { jql } = search.parse(JSON.parse(request.body))
      const [, label = ''] = /^project = "SEC" AND labels = "(\S+)"$/.exec(jql) ?? []
      return { status: 200, json: { issues: labels.includes(label) ? [{ id: '1' }] : [], isLast: true } }
    }
    if (request.url.pathname !== '/rest/api/3/issue') throw new Error(request.url.pathname)
    if (failsAfter-- === 0) return { status: 401, json: { errorMessages: ['expired'] } }
    labels.push(issue.parse(JSON.parse(request.body)).fields.labels[1])
    return { status: 201, json: { id: `${labels.length}`, key: `SEC-${labels.length}` } }
  })
  const jira = { JIRA_URL: server.url, JIRA_PROJECT: 'SEC' }
  t.match(await run(t, 'jira.sh', jira), { status: 22, stderr: /401/ })
  t.equal(labels.length, 3)
  t.match(await run(t, 'jira.sh', jira), { status: 0, stdout: /^SEC-4\n/ })
  const expected = (await ticketIds(t)).map((id) => `posture-${id}`)
  t.same(labels.toSorted(), expected)
  const asked = server.requests.length
  t.match(await run(t, 'jira.sh', jira), { status: 0, stdout: '' })
  t.equal(server.requests.length, asked, 'known tickets cause no request')
  rmSync(join(t.testdirName, 'state'), { recursive: true })
  t.match(await run(t, 'jira.sh', jira), { status: 0, stdout: '' })
  t.same(labels.toSorted(), expected, 'nothing is created twice')
})

t.test('ServiceNow gets one incident for each ticket, found by its correlation id', async (t) => {
  const incident = z.strictObject({
    short_description: z.string().min(1).max(160),
    description: z.string(),
    correlation_id: z.uuid(),
    correlation_display: z.string(),
    urgency: z.literal('2'),
    impact: z.literal('2'),
  })
  const ids: string[] = []
  const server = await vendor(t, (request) => {
    authorized(request)
    const { pathname, searchParams } = request.url
    if (pathname !== '/api/now/table/incident') throw new Error(pathname)
    if (request.method === 'GET') {
      const [, id = ''] = /^correlation_id=([0-9a-f-]{36})$/.exec(searchParams.get('sysparm_query') ?? '') ?? []
      return { status: 200, json: { result: ids.includes(id) ? [{ number: 'INC1' }] : [] } }
    }
    ids.push(incident.parse(JSON.parse(request.body)).correlation_id)
    return { status: 201, json: { result: { number: `INC${ids.length}` } } }
  })
  t.match(await run(t, 'servicenow.sh', { SERVICENOW_URL: server.url }), { status: 0, stdout: /^INC1\n/ })
  t.match(await run(t, 'servicenow.sh', { SERVICENOW_URL: server.url }), { status: 0, stdout: '' })
  t.same(ids.toSorted(), await ticketIds(t))
})
