import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { roleOf } from '../../../engine/admin/federation.ts'
import { admin, runAdmin } from '../../support/programs.ts'

const SECRET = 'client-secret-0123456789'

t.test('sign-in set, show and remove; the secret is in no output and no stored byte', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const file = join(directory, 'client-secret')
  writeFileSync(file, `${SECRET}\n`, { mode: 0o600 })
  const given = ['--name', 'Okta', '--issuer', 'https://login.example', '--client-id', 'console']
  const groups = ['--group', 'security=admin', '--group', 'CN=a,OU=b=viewer']
  const rows = await admin('sign-in', 'set', ...given, ...groups, '--client-secret-file', file, ...data)
  t.same(rows.length, 1)
  t.match(rows[0], {
    ...{ name: 'Okta', issuer: 'https://login.example', client_id: 'console', scopes: 'openid profile email' },
    ...{
      name_claim: 'email',
      groups_claim: 'groups',
      groups: 'security=admin, CN=a,OU=b=viewer',
      default_role: 'none',
    },
  })
  t.match(readFileSync(join(directory, 'secrets.key'), 'utf8'), /^[0-9a-f]{64}\n$/)
  const [changed] = await admin('sign-in', 'set', '--default-role', 'viewer', ...data)
  t.match(changed, { issuer: 'https://login.example', default_role: 'viewer' }, 'the others stay')
  t.match(await admin('sign-in', 'show', ...data), [{ client_id: 'console' }])
  const audit = JSON.stringify(await admin('audit', 'list', '--json', ...data))
  t.match(audit, /sign-in\.set/)
  for (const name of readdirSync(join(directory, 'store'))) {
    t.notOk(readFileSync(join(directory, 'store', name)).includes(SECRET), name)
  }
  t.notMatch(`${audit}${JSON.stringify(rows)}`, SECRET)
  t.match(await runAdmin(['sign-in', 'set', '--issuer', 'https://evil.example', ...data]), {
    status: 2,
    stderr: /The client secret is required, because the stored one is for another issuer/,
  })
  await admin('sign-in', 'remove', ...data)
  t.match(await runAdmin(['sign-in', 'show', ...data]), {
    status: 5,
    stderr: /NOT_FOUND Acme has no identity provider/,
  })
})

t.test('wrong settings are refused with the flag', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const file = join(directory, 'client-secret')
  writeFileSync(file, SECRET, { mode: 0o600 })
  const good = ['sign-in', 'set', '--name', 'Okta', '--issuer', 'https://login.example', '--client-id', 'console']
  const refused = async (words: readonly string[], text: RegExp): Promise<void> => {
    const { status, stderr } = await runAdmin([...good, ...words, ...data])
    t.equal(status, 2)
    t.match(stderr, text)
    t.notMatch(stderr, SECRET)
  }
  const secret = ['--client-secret-file', file]
  await refused(secret, /--group: Nobody could sign in/)
  await refused([...secret, '--default-role', 'viewer', '--issuer', 'http://login.example'], /--issuer: Expected https/)
  await refused([...secret, '--default-role', 'viewer', '--scopes', 'email'], /--scopes: The scope openid is required/)
  await refused([...secret, '--group', 'security=king'], /expected GROUP=ROLE/)
  await refused(['--default-role', 'viewer'], /The client secret is required, because there is none yet/)
  await refused(['--default-role', 'viewer', '--client-secret-file', `${file}.none`], /no such file/)
  chmodSync(file, 0o644)
  await refused([...secret, '--default-role', 'viewer'], /mode 0644 gives other users access/)
  t.notOk(existsSync(join(directory, 'secrets.key')))
})

t.test('the highest role of the groups counts', async (t) => {
  const groups = [
    { group: 'a', role: 'viewer' },
    { group: 'b', role: 'owner' },
    { group: 'c', role: 'member' },
  ] as const
  t.equal(roleOf({ groups, defaultRole: 'none' }, ['a', 'c']), 'member')
  t.equal(roleOf({ groups, defaultRole: 'none' }, ['c', 'b', 'a']), 'owner')
  t.equal(roleOf({ groups, defaultRole: 'none' }, ['A', 'x']), undefined, 'exactly the same text')
  t.equal(roleOf({ groups, defaultRole: 'none' }, []), undefined)
  t.equal(roleOf({ groups, defaultRole: 'admin' }, ['a']), 'admin')
  t.equal(roleOf({ groups: [], defaultRole: 'viewer' }, []), 'viewer')
})
