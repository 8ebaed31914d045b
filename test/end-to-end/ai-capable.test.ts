import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { admin, run, startService } from '../support/programs.ts'

/** Names of general software with AI features, as a browser requests them. */
const CAPABLE = ['www.canva.com', 'www.figma.com', 'www.notion.so', 'zapier.com', 'airtable.com']
/** Hosts that were requested without any use of the platform. */
const NOT_USE = ['bzrcdn.openai.com', 'acme.ada.support', 'copilot.cloud.microsoft', 'my-shop.lovable.app']

interface Discovery {
  readonly scan: { readonly summary: Readonly<Record<string, number>> }
  readonly platforms: readonly {
    readonly platform_name: string
    readonly metadata: { readonly use: string; readonly access: unknown; readonly programmatic_clients?: number }
  }[]
}

t.test('a DNS log with no AI has no shadow AI, from the log to API, CLI and exports', async (t) => {
  const directory = t.testdir()
  const dataDirectory = join(directory, 'service')
  const service = await startService(dataDirectory)
  const data = ['--data-dir', dataDirectory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [key] = await admin('key', 'create', 'dashboard', '--org', 'Acme', '--scope', 'discovery:read', ...data)
  const [token] = await admin('token', 'generate', 'dns', '--org', 'Acme', ...data)
  const scanOf = async (names: readonly (readonly [name: string, client: string])[]) => {
    const log = join(directory, 'queries.log')
    const time = new Date(Date.now() - 60_000).toUTCString().split(' ')
    const stamp = `${time[1]}-${time[2]}-${time[3]} ${time[4]}.000`
    const lines = names.map(([name, client]) => {
      return `${stamp} queries: info: client @0x7f ${client}#40404 (${name}): query: ${name} IN A +E(0)K (192.0.2.53)\n`
    })
    writeFileSync(log, lines.join(''))
    const ingested = await run('admin', ['ingest', 'file', log, ...data], {
      SVC_TOKEN: String(token?.['token']),
      TZ: 'UTC',
    })
    t.equal(ingested.status, 0, ingested.stderr)
    const [scan] = await admin('scan', 'run', '--org', 'Acme', ...data)
    const dispatcher = new Agent({ connect: { ca: readFileSync(join(dataDirectory, 'tls/certificate.pem')) } })
    const answer = await request(`https://localhost:${service.apiPort}/api/v1/discovery`, {
      dispatcher,
      headers: { 'x-api-key': String(key?.['key']) },
    })
    const discovery = (await answer.body.json()) as Discovery
    await dispatcher.close()
    return { scan, discovery }
  }

  const before = await scanOf([...CAPABLE, ...NOT_USE].map((name) => [name, '10.0.0.1']))
  t.same(before.discovery.scan.summary, { platforms_discovered: 0, shadow_ai_count: 0, overall_risk_score: 0 })
  t.same(before.discovery.platforms, [])
  t.match(before.scan, { events: CAPABLE.length + NOT_USE.length, ai_capable_count: CAPABLE.length })
  const rows = await admin('export', 'platforms', '--format', 'ndjson', '--org', 'Acme', ...data)
  t.same([...new Set(rows.map(({ use }) => use))].sort(), ['ai_capable', 'touched'])
  const list = await admin('platform', 'list', '--org', 'Acme', ...data)
  t.same(
    list.map(({ use }) => use),
    CAPABLE.map(() => 'ai_capable'),
  )
  t.match(await admin('platform', 'show', 'ada', '--org', 'Acme', ...data), [{ used_matches: 0, touched_matches: 1 }])

  const after = await scanOf([
    ['chatgpt.com', '10.0.0.1'],
    ['api.openai.com', '10.0.0.1'],
    ['api.openai.com', '10.0.0.2'],
  ])
  t.match(after.discovery.scan.summary, { platforms_discovered: 2, shadow_ai_count: 2 })
  const api = after.discovery.platforms.find(({ platform_name }) => platform_name === 'OpenAI API Platform')
  t.same(api?.metadata.access, [{ kind: 'api', matches: 2, domains: ['api.openai.com'] }])
  t.equal(api?.metadata.programmatic_clients, 1, 'the other client also used the site')
  const [shown] = await admin('platform', 'show', 'openai-api', '--org', 'Acme', ...data)
  t.match(shown, { use: 'ai', access: [{ kind: 'api', matches: 2 }], programmatic_clients: 1 })
  const clients = await admin('platform', 'show', 'openai-api', '--clients', '--org', 'Acme', ...data)
  t.same(
    clients.map(({ access }) => access),
    [['api'], ['api']],
  )
  const doctor = await admin('doctor', ...data)
  t.notMatch(JSON.stringify(doctor), /"finding"/)
  service.child.kill('SIGTERM')
  await service.ended
})
