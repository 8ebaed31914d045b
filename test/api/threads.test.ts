import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { ALL_SCOPES, admin, startService } from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'

/** State shared by a service's threads: the limit of a key holds over many connections. */
t.test('all threads together accept sixty requests of a key, and sixty without a valid one', async (t) => {
  const threads = ['--api-threads', '4', '--access-log-max-per-second', '1000']
  const { service, key, org, stop } = await startSite(t, ['--plain-http', '--ingest-port', 'off', ...threads])
  const agents = Array.from({ length: 24 }, () => new Agent({ connections: 1 }))
  const statuses = async (headers: Record<string, string>): Promise<Map<number, number>> => {
    const found = new Map<number, number>()
    await Promise.all(
      agents.map(async (dispatcher) => {
        for (let each = 0; each < 6; each++) {
          const answer = await request(`http://127.0.0.1:${service.apiPort}/api/v1/scores`, { dispatcher, headers })
          await answer.body.dump()
          found.set(answer.statusCode, (found.get(answer.statusCode) ?? 0) + 1)
        }
      }),
    )
    return found
  }
  const began = performance.now()
  t.same(Object.fromEntries(await statuses({ 'x-api-key': key })), { 200: 60, 429: 84 })
  t.same(Object.fromEntries(await statuses({})), { 401: 60, 429: 84 })
  t.ok(performance.now() - began < 60_000, 'within the window')
  const loggedThreads = new Set(service.output.stderr.match(/"thread":\d+/g))
  // With node:http, Node 20 cannot share a port. engine/http/uws.full.test.ts repeats this with
  // Node 24.
  const one = process.versions.node.startsWith('20.') && process.env['UWS'] === undefined
  t.equal(loggedThreads.size > 1, !one, `${loggedThreads.size} threads have answered`)
  const metrics = await request(`http://127.0.0.1:${service.metricsPort}/metrics`)
  const text = await metrics.body.text()
  t.match(text, /^posture_api_answers_total\{status="429"\} 168$/m)
  t.match(text, /^posture_api_answers_aborted_total 0$/m)
  t.match(text, /^posture_api_rate_table_full_total\{table="keys"\} 0$/m)
  await Promise.all(agents.map((agent) => agent.close()))
  t.match(await stop(), { status: 0 })
  const [listed] = await admin('key', 'list', ...org)
  t.match(listed, { last_used_at: /^\d{4}-/ }, 'the last use is stored')
})

t.test('a restart gives no key another sixty requests', async (t) => {
  const directory = join(t.testdir(), 'service')
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [made] = await admin('key', 'create', 'test', ...ALL_SCOPES, '--org', 'Acme', ...data)
  const began = performance.now()
  for (const [run, expected] of [
    ['before', { 200: 60, 429: 4 }],
    ['after', { 429: 64 }],
  ] as const) {
    const service = await startService(directory, ['--plain-http', '--ingest-port', 'off'])
    const found: Record<number, number> = {}
    for (let each = 0; each < 64; each++) {
      const headers = { 'x-api-key': String(made?.['key']) }
      const { statusCode, body } = await request(`http://127.0.0.1:${service.apiPort}/api/v1/scores`, { headers })
      await body.dump()
      found[statusCode] = (found[statusCode] ?? 0) + 1
    }
    service.child.kill('SIGTERM')
    t.match(await service.ended, { status: 0 })
    t.ok(performance.now() - began < 60_000, 'within the window')
    t.same(found, expected, run)
  }
})

t.test('responses have Strict-Transport-Security if --hsts is set', async (t) => {
  for (const hsts of [false, true]) {
    const directory = join(t.testdir(), `${hsts}`)
    const service = await startService(directory, ['--plain-http', '--ingest-port', 'off', ...(hsts ? ['--hsts'] : [])])
    for (const port of [service.apiPort, service.consolePort]) {
      const { headers, body } = await request(`http://127.0.0.1:${port}/`)
      await body.dump()
      t.equal(headers['strict-transport-security'], hsts ? 'max-age=31536000' : undefined, `${port}`)
    }
    service.child.kill('SIGTERM')
    await service.ended
  }
})
