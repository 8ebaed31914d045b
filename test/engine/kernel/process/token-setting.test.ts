import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import t from 'tap'
import { z } from 'zod'
import { addSettingOptions, readSettings } from '../../../../engine/kernel/process/settings.ts'
import { tokenOf, tokenSettings } from '../../../../engine/kernel/process/token-setting.ts'

const schema = z.object(tokenSettings)
const TOKEN = `svc_mt_${'a1'.repeat(24)}`
const OTHER = `svc_mt_${'b2'.repeat(24)}`
const isRoot = process.geteuid?.() === 0

function read(words: readonly string[], environment: NodeJS.ProcessEnv = {}, owners: readonly number[] = []): string {
  const command = addSettingOptions(new Command().exitOverride(), schema)
  command.parse([...words], { from: 'user' })
  return tokenOf(readSettings(schema, { command, environment }), { command, environment, owners })
}

t.test('a flag overrides both variables; two at one level are an error', async (t) => {
  const file = join(t.testdir(), 'token')
  writeFileSync(file, `${TOKEN}\n`, { mode: 0o600 })
  const rows: readonly { words: string[]; environment: NodeJS.ProcessEnv; found: string | RegExp }[] = [
    { words: ['--token-file', file], environment: {}, found: TOKEN },
    { words: [], environment: { SVC_TOKEN_FILE: file }, found: TOKEN },
    { words: [], environment: { SVC_TOKEN: OTHER, SVC_TOKEN_FILE: '' }, found: OTHER },
    { words: ['--token-file', file], environment: { SVC_TOKEN: OTHER }, found: TOKEN },
    { words: ['--token', OTHER], environment: { SVC_TOKEN_FILE: file }, found: OTHER },
    { words: [], environment: {}, found: /a monitoring token is required: give it by SVC_TOKEN or --token/ },
    { words: [], environment: { SVC_TOKEN: OTHER, SVC_TOKEN_FILE: file }, found: /set twice/ },
    { words: ['--token', OTHER, '--token-file', file], environment: {}, found: /set twice/ },
    { words: ['--token', 'secret'], environment: {}, found: /^--token: expected svc_mt_ and 48 hex digits$/ },
  ]
  for (const { words, environment, found } of rows) {
    const what = `${words.join(' ')} ${Object.keys(environment).join(' ')}`
    if (typeof found === 'string') t.equal(read(words, environment), found, what)
    else t.throws(() => read(words, environment), { code: 'USAGE', message: found }, what)
  }
})

t.test('requirements of a token file', async (t) => {
  const directory = t.testdir()
  const make = (name: string, mode: number, text = `${TOKEN}\n`): string => {
    const path = join(directory, name)
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }
  for (const mode of [0o600, 0o400, 0o700]) t.equal(read(['--token-file', make(`good-${mode}`, mode)]), TOKEN)
  for (const mode of [0o644, 0o604, 0o620, 0o660, 0o666, 0o601]) {
    const path = make(`bad-${mode}`, mode)
    const message = `--token-file ${path}: mode 0${mode.toString(8)} gives other users access; run chmod 600 ${path}`
    t.throws(() => read(['--token-file', path]), { code: 'USAGE', message })
  }
  symlinkSync(join(directory, 'good-384'), join(directory, 'link'))
  t.equal(read(['--token-file', join(directory, 'link')]), TOKEN, 'Kubernetes mounts links')
  mkdirSync(join(directory, 'folder'))
  execFileSync('mkfifo', ['-m', '600', join(directory, 'pipe')])
  const wrong = [
    ['nothing', /nothing: no such file$/],
    ['folder', /folder: not a file$/],
    ['pipe', /pipe: not a file$/],
  ] as const
  for (const [name, message] of wrong) t.throws(() => read(['--token-file', join(directory, name)]), { message })
  const other = make('passwd', 0o644, 'root:x:0:0:root:/root:/bin/bash\n')
  const message = `--token-file ${other}: expected svc_mt_ and 48 hex digits, found something else`
  t.throws(() => read(['--token-file', other]), { message }, 'no advice to change the permissions of another file')
  for (const text of [
    '',
    '\n',
    'svc_mt_12',
    `${TOKEN} ${TOKEN}`,
    `SVC_TOKEN=${TOKEN}`,
    'x'.repeat(5000),
    TOKEN.toUpperCase(),
  ]) {
    t.throws(
      () => read([], { SVC_TOKEN_FILE: make('text', 0o600, text) }),
      { message: /^SVC_TOKEN_FILE \S+: expected svc_mt_ and 48 hex digits, found something else$/ },
      'the line does not contain it',
    )
  }
})

t.test('allowed owners of a token file', { skip: isRoot ? false : 'only root can give files to others' }, async (t) => {
  const path = join(t.testdir(), 'token')
  writeFileSync(path, TOKEN, { mode: 0o640 })
  t.equal(read(['--token-file', path]), TOKEN, 'the group may read a file of root')
  chownSync(path, 1234, 1234)
  t.throws(() => read(['--token-file', path]), { message: /belongs to uid 1234; expected root/ })
  t.throws(() => read(['--token-file', path], {}, [1234]), { message: /mode 0640/ }, 'but not another one')
  chmodSync(path, 0o600)
  t.equal(read(['--token-file', path], {}, [1234]), TOKEN)
})
