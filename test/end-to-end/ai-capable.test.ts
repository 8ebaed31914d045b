import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { admin, run } from '../support/programs.ts'
import { startSite } from '../support/service-site.ts'

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
  const site = await startSite(t)
  const { directory, data, org, key, token } = site
  const api = site.client(site.service.apiPort)
  const scanOf = async (names: readonly (readonly [name: string, client: string])[]) => {
    const log = join(directory, 'queries.log')
    const time = new Date(Date.now() - 60_000).toUTCString().split(' ')
    const stamp = `${time[1]}-${time[2]}-${time[3]} ${time[4]}.000`
    const lines = names.map(([name, client]) => {
      return `${stamp} queries: info: client @0x7f ${client}#40404 (${name}): query: ${name} IN A +E(0)K (192.0.2.53)\n`
    })
    writeFileSync(log, lines.join(''))
    const ingested = await run('admin', ['ingest', 'file', log, ...data], {
      SVC_TOKEN: token,
      TZ: 'UTC',
    })
    t.equal(ingested.status, 0, ingested.stderr)
    const [scan] = await admin('scan', 'run', ...org)
    const { body } = await api('/api/v1/discovery', { headers: { 'x-api-key': key } })
    return { scan, discovery: body as Discovery }
  }

  const before = await scanOf([...CAPABLE, ...NOT_USE].map((name) => [name, '10.0.0.1']))
  t.same(before.discovery.scan.summary, { platforms_discovered: 0, shadow_ai_count: 0, overall_risk_score: 0 })
  t.same(before.discovery.platforms, [])
  t.match(before.scan, { events: CAPABLE.length + NOT_USE.length, ai_capable_count: CAPABLE.length })
  const rows = await admin('export', 'platforms', '--format', 'ndjson', ...org)
  t.same([...new Set(rows.map(({ use }) => use))].sort(), ['ai_capable', 'touched'])
  const list = await admin('platform', 'list', ...org)
  t.same(
    list.map(({ use }) => use),
    CAPABLE.map(() => 'ai_capable'),
  )
  t.match(await admin('platform', 'show', 'ada', ...org), [{ used_matches: 0, touched_matches: 1 }])

  const after = await scanOf([
    ['chatgpt.com', '10.0.0.1'],
    ['api.openai.com', '10.0.0.1'],
    ['api.openai.com', '10.0.0.2'],
  ])
  t.match(after.discovery.scan.summary, { platforms_discovered: 2, shadow_ai_count: 2 })
  const openAi = after.discovery.platforms.find(({ platform_name }) => platform_name === 'OpenAI API Platform')
  t.same(openAi?.metadata.access, [{ kind: 'api', matches: 2, domains: ['api.openai.com'] }])
  t.equal(openAi?.metadata.programmatic_clients, 1, 'the other client also used the site')
  const [shown] = await admin('platform', 'show', 'openai-api', ...org)
  t.match(shown, { use: 'ai', access: [{ kind: 'api', matches: 2 }], programmatic_clients: 1 })
  const clients = await admin('platform', 'show', 'openai-api', '--clients', ...org)
  t.same(
    clients.map(({ access }) => access),
    [['api'], ['api']],
  )
  const doctor = await admin('doctor', ...data)
  t.notMatch(JSON.stringify(doctor), /"finding"/)
})
