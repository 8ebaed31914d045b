import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { platform, writeRegistryFile } from '../../support/own-platforms.ts'
import { admin, run, runAdmin } from '../../support/programs.ts'

t.test('a list for a program, with a summary on standard error', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  await admin('approval', 'add', 'ChatGPT', ...data)
  await admin('approval', 'reject', 'DeepSeek', ...data)
  const own = writeRegistryFile(join(directory, 'own.json'), [platform('corp-llm', 'llm.corp.example')], ['doubao'])
  await admin('registry', 'add', own, ...data)

  const rejected = await run('admin', ['blocklist', '--rejected', '--format', 'squid', ...data])
  t.equal(rejected.status, 0, rejected.stderr)
  t.match(rejected.stdout, /^# Block list of the Security Posture Service for "Acme"\n/)
  t.match(rejected.stdout, /\n\.deepseek\.com\n$/)
  t.match(rejected.stderr, /^1 platforms are rejected: 1 entries\n/)

  const out = join(directory, 'list.rpz')
  writeFileSync(out, 'the list before')
  const written = await run('admin', ['blocklist', '--not-approved', '--format', 'rpz', '--out', out, ...data])
  t.equal(written.status, 0, written.stderr)
  t.equal(written.stdout, '')
  t.match(
    written.stderr,
    'openai.com (OpenAI API Platform) would also block a platform that is not to be blocked: ChatGPT',
  )
  const text = readFileSync(out, 'utf8')
  t.match(text, '\nllm.corp.example CNAME .\n*.llm.corp.example CNAME .\n')
  t.notMatch(text, /^(?:\*\.)?(?:chatgpt|doubao)\.com/m, 'neither approved nor disabled platforms')
  t.equal(statSync(out).mode & 0o777 & ~process.umask(), 0o644 & ~process.umask())
  t.same(
    readdirSync(directory).filter((name) => name.endsWith('.part')),
    [],
  )

  const risky = await admin('blocklist', '--not-approved', '--min-risk', '85', '--format', 'edl', ...data)
  t.ok(risky.length > 0)
  t.ok(risky.every(({ risk }) => Number(risk) >= 85))
  t.match(
    risky.find(({ domain }) => domain === 'deepseek.com'),
    { domain: 'deepseek.com', covers: 'tree', platform_id: 'deepseek', platform_name: 'DeepSeek', risk: Number },
  )
})

t.test('links for devices', async (t) => {
  const data = ['--data-dir', join(t.testdir(), 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [made] = await admin('blocklist', 'link', 'create', 'Firewall', '--rejected', '--min-risk', '50', ...data)
  const secret = String(made?.['secret'])
  t.match(secret, /^svc_bl_[0-9a-f]{48}$/)
  t.match(made, { label: 'Firewall', blocks: 'rejected', min_risk: 50, path: `/blocklist/${made?.['id']}.FORMAT` })
  const listed = await admin('blocklist', 'link', 'list', '--org', 'Acme', ...data)
  t.match(listed, [{ label: 'Firewall', prefix: secret.slice(7, 15), revoked_at: null }])
  t.notMatch(JSON.stringify(listed), secret)
  const [revoked] = await admin('blocklist', 'link', 'revoke', secret.slice(7, 15), ...data)
  t.ok(revoked?.['revoked_at'])
  const actions = (await admin('audit', 'list', ...data)).map(({ action }) => action)
  t.same(actions.slice(-2), ['block-list-link.create', 'block-list-link.revoke'])
  const again = await runAdmin(['blocklist', 'link', 'revoke', secret, ...data])
  t.equal(again.status, 5)
  t.match(again.stderr, /block list link svc_bl_[0-9a-f]{8}\.\.\. is already revoked/)
  const unclear = await runAdmin(['blocklist', 'link', 'create', 'Firewall', ...data])
  t.match(unclear.stderr, /choose what to block: --not-approved or --rejected/)
})

t.test('errors name the option', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const cases: readonly { readonly args: readonly string[]; readonly status: number; readonly error: RegExp }[] = [
    { args: ['--format', 'rpz'], status: 2, error: /choose what to block: --not-approved or --rejected/ },
    { args: ['--not-approved'], status: 2, error: /choose a --format: rpz, hosts/ },
    { args: ['--not-approved', '--rejected', '--format', 'rpz'], status: 2, error: /--rejected.*cannot be used with/ },
    { args: ['--not-approved', '--format', 'bind'], status: 2, error: /expected one of rpz, hosts/ },
    { args: ['--not-approved', '--format', 'rpz', '--min-risk', '101'], status: 2, error: /from 0 to 100/ },
    {
      args: ['--not-approved', '--format', 'rpz', '--out', join(directory, 'no/such/file')],
      status: 4,
      error: /--out .*no\/such\/file: cannot create: no such file or directory/,
    },
  ]
  for (const { args, status, error } of cases) {
    const ended = await runAdmin(['blocklist', ...args, ...data])
    t.equal(ended.status, status, ended.stderr)
    t.match(ended.stderr, error)
  }
  t.notOk(existsSync(join(directory, 'no')))
})
