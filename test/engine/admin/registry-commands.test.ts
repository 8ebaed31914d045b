import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { admin, jsonLines, runAdmin } from '../../support/programs.ts'

t.test('list and search show platforms, show their domains, stats the counts', async (t) => {
  const all = await admin('registry', 'list')
  t.ok(all.length >= 600)
  t.match(all[0], { id: String, platform_name: String, vendor: String, platform_type: String, risk: { score: Number } })
  const found = await admin('registry', 'search', 'anthropic')
  t.ok(found.some((row) => row['platform_name'] === 'Claude'))
  t.same(await admin('registry', 'search', 'no such platform anywhere'), [])
  const domains = await admin('registry', 'show', 'chatgpt')
  t.ok(domains.some(({ domain, match, role }) => domain === 'chatgpt.com' && match === 'suffix' && role === 'web'))
  const stats = await admin('registry', 'stats')
  t.equal(stats.at(-1)?.['platforms'], all.length)
  t.ok(stats.length <= 25, 'at most 24 types, and all')
})

t.test('check finds the platform and the rule of a name', async (t) => {
  const rows = await admin('registry', 'check', 'API.OpenAI.com.', 'x.claude.ai', 'example.com', '127.0.0.1', '')
  t.match(rows, [
    { name: 'API.OpenAI.com.', rule: 'api.openai.com', match: 'exact', role: 'api' },
    { name: 'x.claude.ai', platform_name: 'Claude', rule: 'claude.ai', match: 'suffix' },
    { name: 'example.com', platform_name: null, match: 'none' },
    { name: '127.0.0.1', match: 'none' },
    { name: null, match: 'none' },
  ])
})

t.test("an operator's registry file is used; its errors name file, entry and field", async (t) => {
  const file = join(t.testdir(), 'own.yaml')
  writeFileSync(file, 'disable: [chatgpt]\n')
  t.match(await admin('registry', 'check', 'chatgpt.com', '--registry-file', file), [{ match: 'none' }])
  writeFileSync(file, 'platforms:\n  - id: chatgpt\n    risk: { score: 700, why: much }\n')
  const { status, stderr } = await runAdmin(['registry', 'list', '--registry-file', file])
  t.equal(status, 2)
  t.match(stderr, /^posture-admin: REGISTRY_FILE \S+own\.yaml:3: chatgpt: risk\.score: .*\n$/)
  t.match(await runAdmin(['registry', 'list', '--registry-file', '/nowhere.yaml']), {
    status: 2,
    stderr: /REGISTRY_FILE \/nowhere\.yaml/,
  })
  t.match(await runAdmin(['registry', 'show', 'nobody']), { status: 5, stderr: /NOT_FOUND no platform "nobody"/ })
})

t.test('validate shows every problem with its line, and diff what a file changes', async (t) => {
  const file = join(t.testdir(), 'own.yaml')
  writeFileSync(
    file,
    'platforms:\n  - id: chatgpt\n    risk: { score: 700, why: much }\n    nam: x\ndisable: [claude]\n',
  )
  const rejected = await runAdmin(['registry', 'validate', file])
  t.match(rejected, { status: 2, stderr: /^posture-admin: REGISTRY_FILE \S+own\.yaml: problems: 2\n$/ })
  t.match(jsonLines(rejected.stdout), [
    { file, line: 3, severity: 'error', entry: 'chatgpt', field: 'risk.score' },
    { file, line: 4, severity: 'error', entry: 'chatgpt', field: 'nam' },
  ])
  t.match(await runAdmin(['registry', 'diff', file]), { status: 2, stderr: /REGISTRY_FILE/ })

  writeFileSync(file, 'platforms:\n  - id: chatgpt\n    risk: { score: 7, why: Contract }\ndisable: [claude]\n')
  t.same(await runAdmin(['registry', 'validate', file]), { status: 0, stdout: '', stderr: '' })
  t.match(await admin('registry', 'diff', file), [
    { platform_id: 'claude', change: 'disabled', field: 'domains', after: null },
    { platform_id: 'chatgpt', platform_name: 'ChatGPT', change: 'changed', field: 'risk', after: '7: Contract' },
  ])

  writeFileSync(
    file,
    'platforms:\n  - id: chatgpt\n    domains: [{ domain: amazonaws.com, match: suffix, role: web, specificity: 1 }]\n',
  )
  t.match(await admin('registry', 'validate', file), [{ severity: 'warning', field: 'amazonaws.com' }])
  t.match(await runAdmin(['registry', 'validate', '--strict', file]), { status: 2 })
  t.match(await runAdmin(['registry', 'validate', '/nowhere.yaml']), { status: 2, stderr: /\/nowhere\.yaml/ })
})
