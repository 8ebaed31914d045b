import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { programFor } from '../../../engine/cli/program.ts'
import { ALL_SCOPES, admin } from '../../support/programs.ts'

/** The output of the commands on a terminal with this many columns. */
async function printed(t: Tap, columns: number, ...words: readonly string[]): Promise<string> {
  let text = ''
  t.intercept(process.stdout, 'isTTY', { value: true, configurable: true })
  const before = process.env['COLUMNS']
  process.env['COLUMNS'] = `${columns}`
  const program = await programFor(words, (part) => {
    text += part
  })
  await program.parseAsync([...words], { from: 'user' })
  if (before === undefined) delete process.env['COLUMNS']
  else process.env['COLUMNS'] = before
  return text
}
type Tap = { intercept: typeof t.intercept }

t.test('every table fits 40 and 80 columns; a secret has its own line', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'service')]
  const org = ['--org', 'Acme Widgets International', ...data]
  await admin('organization', 'create', 'Acme Widgets International', '--domain', 'acme-widgets.example', ...data)
  await admin('organization', 'create', 'Other', '--domain', 'other.example', ...data)
  await admin('key', 'create', 'dashboard', ...ALL_SCOPES, ...org)
  await admin('approval', 'add', 'Microsoft Copilot', 'GitHub Copilot', ...org)
  await admin('member', 'add', 'alice@acme-widgets.example', ...org)
  const [token] = await admin('token', 'generate', 'sensor in the main office', ...org)
  const log = join(directory, 'messages.log')
  const known = 'Nov 20 09:15:02 dnsmasq[712]: query[A] claude.ai from 10.20.30.45'
  writeFileSync(log, `${known}\nnothing that any format knows, and long enough to be wrapped in a narrow terminal\n`)
  const [assessment] = await admin('assessment', 'create', '--framework', 'hipaa', ...org)
  await admin('assessment', 'create', '--framework', 'nist-800-53', ...org)
  const commands = [
    ['organization', 'list', ...data],
    ['key', 'list', ...org],
    ['token', 'list', ...org],
    ['token', 'bind', String(token?.['id']), '--address', '192.0.2.0/24', ...org],
    ['member', 'list', ...org],
    ['approval', 'list', ...org],
    ['scan', 'list', ...org],
    ['audit', 'list', ...data],
    ['ingest', 'file', log, '--token', String(token?.['token']), ...data],
    ['ingest', 'sources', ...data],
    ['ingest', 'rejects', ...org],
    ['ingest', 'counters', ...data],
    ['assessment', 'list', ...org],
    ['assessment', 'show', String(assessment?.['id']), ...org],
    ['assessment', 'show', String(assessment?.['id']), '--items', ...org],
    ['assessment', 'frameworks'],
    ['retention', 'show', ...org],
    ['registry', 'list'],
    ['registry', 'show', 'chatgpt'],
    ['registry', 'check', 'api.openai.com', 'example.com'],
    ['registry', 'stats'],
    ['doctor', ...data],
  ]
  for (const columns of [40, 80]) {
    for (const words of commands) {
      const lines = (await printed(t, columns, ...words)).split('\n')
      const longest = Math.max(...lines.map((line) => line.length))
      t.ok(lines.length > 1 && longest <= columns, `${words.slice(0, 2).join(' ')}: ${longest} of ${columns} columns`)
    }
    for (const [words, secret] of [
      [['key', 'create', `key for ${columns}`, ...ALL_SCOPES], /^svc_pk_[0-9a-f]{64}$/],
      [['token', 'generate', `token for ${columns}`], /^svc_mt_[0-9a-f]{48}$/],
    ] as const) {
      const lines = (await printed(t, columns, ...words, ...org)).split('\n')
      t.equal(lines.filter((line) => secret.test(line)).length, 1, `${words[0]}: alone on its line`)
      t.ok(lines.includes('Save it now; it will not be shown again'))
    }
  }
})

t.test("JSON output has one typed object per line with the API's names, and null for missing values", async (t) => {
  const data = ['--data-dir', join(t.testdir(), 'service')]
  const org = ['--org', 'Acme', ...data]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [key] = await admin('key', 'create', 'dashboard', ...ALL_SCOPES, ...org)
  t.match(key, { last_used_at: null, revoked_at: null, scopes: Array, created_at: /Z$/ })
  const [token] = await admin('token', 'generate', 'sensor', ...org)
  t.match(token, { date_order: null, zone: 'UTC', bound_to: [] })
  t.same(await admin('token', 'bind', String(token?.['id']), '--port', '5514', ...org), [
    { address: null, port: 5514, token_id: token?.['id'] },
  ])
  const [scan] = await admin('scan', 'run', ...org)
  t.match(scan, {
    organization_id: String,
    domain: 'acme.example',
    failure: null,
    summary: { platforms_discovered: 0, shadow_ai_count: 0, overall_risk_score: Number },
  })
  const [doctor] = await admin('doctor', ...data)
  t.match(doctor, { version: String, schema_version: Number, store_bytes: Number, disk_full: false })
  for (const words of [
    ['audit', 'list', ...data],
    ['doctor', ...data],
    ['registry', 'list'],
    ['registry', 'check', '', 'chatgpt.com'],
    ['key', 'list', ...org],
  ]) {
    const rows = await admin(...words)
    t.ok(rows.length > 0)
    t.notMatch(JSON.stringify(rows), /:""/, `${words.slice(0, 2).join(' ')}: no empty string`)
  }
})
