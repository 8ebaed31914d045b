import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { admin, runAdmin } from '../../support/programs.ts'

/** Lines of an access log, now, of these hosts and clients. */
function logOf(requests: readonly (readonly [host: string, client: string])[]): string {
  const seconds = Math.floor(Date.now() / 1000) - requests.length
  return requests
    .map(
      ([host, client], at) => `${seconds + at}.119 318 ${client} TCP_TUNNEL/200 1 CONNECT ${host}:443 - DIRECT/- -\n`,
    )
    .join('')
}

t.test('candidates of a log are listed, dismissed, restored and added', async (t) => {
  const folder = t.testdir({})
  const data = ['--data-dir', join(folder, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [token] = await admin('token', 'generate', 'proxy', ...data)
  const log = join(folder, 'access.log')
  const requests = [
    ['claude.ai', '192.0.2.1'],
    ['api.unknown.ai', '192.0.2.1'],
    ['unknown.ai', '192.0.2.2'],
    ['unknown.ai', '192.0.2.3'],
    ['llm.corp-tools.example', '192.0.2.9'],
    ['www.example.com', '192.0.2.9'],
  ] as const
  writeFileSync(log, logOf(requests))
  await admin('ingest', 'file', ...data, '--token', String(token?.['token']), log)
  const candidates = (...words: string[]) => admin('registry', 'candidates', ...words, ...data)
  const listed = await candidates('list')
  t.match(listed, [
    { name: 'unknown.ai', score: 75, requests: 3, clients: 3, signals: ['ai_domain', 'with_ai', 'several_clients'] },
    { name: 'llm.corp-tools.example', score: 60, requests: 1, clients: 1, signals: ['ai_term'] },
  ])
  t.equal(listed.length, 2)
  t.notMatch(JSON.stringify(listed), /192\.0\.2/)
  await admin('scan', 'run', ...data)
  t.match(await admin('scan', 'show', ...data), [{ platform_name: 'Claude' }], 'candidates are no findings')
  t.equal((await admin('scan', 'show', ...data)).length, 1)

  t.match(await candidates('dismiss', 'LLM.corp-tools.example'), [{ name: 'unknown.ai' }])
  t.match(await candidates('list', '--dismissed'), [{ name: 'llm.corp-tools.example' }])
  writeFileSync(log, logOf([['llm.corp-tools.example', '192.0.2.8'], ...requests.slice(0, 1)]))
  await admin('ingest', 'file', ...data, '--token', String(token?.['token']), log)
  t.equal((await candidates('list')).length, 1, 'a dismissed name stays dismissed when it is seen again')
  t.equal((await candidates('restore', 'llm.corp-tools.example')).length, 2)

  t.match(await candidates('add', 'unknown.ai', '--id', 'unknown', '--name', 'Unknown AI'), [
    { id: 'unknown', platform_name: 'Unknown AI', change: 'added', risk: { score: 50 } },
  ])
  t.match(await candidates('list'), [{ name: 'llm.corp-tools.example' }])
  t.match(await admin('registry', 'check', 'x.unknown.ai', ...data), [{ id: 'unknown' }])
  const actions = (await admin('audit', 'list', ...data)).map(({ action, subject }) => `${action} ${subject}`)
  t.match(
    actions.filter((text) => /^(candidate|registry)/.test(text)),
    ['candidate.dismiss llm.corp-tools.example', 'candidate.restore llm.corp-tools.example', 'registry.add unknown'],
  )
})

t.test('what cannot be added or dismissed', async (t) => {
  const folder = t.testdir({})
  const data = ['--data-dir', join(folder, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const rows: Readonly<Record<string, readonly [words: readonly string[], status: number, stderr: RegExp]>> = {
    'an unknown candidate': [['dismiss', 'none.ai'], 5, /"none.ai" is not a candidate/],
    'no host name': [['dismiss', 'none'], 2, /"none" is not a host name/],
    'no id': [['add', 'none.ai'], 2, /--id/],
    'an invalid id': [['add', 'none.ai', '--id', 'No Id'], 2, /the id "No Id"/],
    'an id of the registry': [['add', 'none.ai', '--id', 'claude'], 5, /belongs to Claude/],
    'a name of the registry': [['add', 'claude.ai', '--id', 'mine'], 5, /belongs to Claude/],
    'a risk above 100': [['add', 'none.ai', '--id', 'a', '--risk', '101'], 2, /0 to 100/],
  }
  for (const [name, [words, status, stderr]] of Object.entries(rows)) {
    t.match(await runAdmin(['registry', 'candidates', ...words, ...data]), { status, stderr }, name)
  }
  t.match(await admin('registry', 'candidates', 'list', ...data), [])
})
