import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { platform, writeRegistryFile } from '../../support/own-platforms.ts'
import { admin, runAdmin, startService } from '../../support/programs.ts'

/** FILES is a directory. */
const ROWS: readonly { readonly words: string; readonly error: RegExp }[] = [
  // A receiver to which the service would not connect is refused when it is created.
  {
    words: 'alert channel add c --kind webhook --url https://10.0.0.1/x',
    error: /USAGE --url: 10\.0\.0\.1 is on this machine or in a local or private network/,
  },
  { words: 'alert channel add c --kind syslog --host [::1]', error: /USAGE --host: \[::1\] is on this machine/ },
  // An error names the flag that was used.
  { words: 'alert channel add c --kind webhook --url http://a.example/x', error: /USAGE --url: Expected https/ },
  { words: 'alert channel add c --kind webhook --url-file FILES/url', error: /USAGE --url-file: Expected https/ },
  // A platform does not take the matches of another one by accident.
  {
    words: 'registry add FILES/takes.json',
    error: /REGISTRY_FILE \S+takes\.json: mine: chatgpt\.com belongs to ChatGPT; to take its matches, .* chatgpt$/m,
  },
  { words: 'registry add FILES/takes.json --service-wide', error: /mine: chatgpt\.com belongs to ChatGPT/ },
  // No advice to change the permissions of a file that has no secret.
  {
    words: 'ingest file --token-file /etc/passwd FILES/url',
    error: /USAGE --token-file \/etc\/passwd: expected svc_mt_ and 48 hex digits, found something else$/m,
  },
  {
    words: 'alert channel add c --kind slack --url-file /etc/passwd',
    error: /--url-file \/etc\/passwd: mode 0644 gives other users access; use a file of its own for the secret/,
  },
  // Neither Node, OpenSSL, zod nor commander speak to users.
  {
    words: '--data-dir X token list',
    error: /options go after the command: posture-admin token \.\.\. --data-dir; see/,
  },
  { words: '--no-such-flag', error: /USAGE unknown option '--no-such-flag'; see posture-admin --help$/m },
  { words: 'organization set Acme --window 9999', error: /USAGE --window: expected .* from 1 to 400.*, found "9999"/ },
  { words: 'scan diff 2026-13-01 2026-11-01', error: /USAGE before: expected .*, found "2026-13-01"/ },
  { words: 'blocklist --format x', error: /USAGE --format: expected one of .*, found "x"/ },
  { words: 'registry add FILES/none.yaml', error: /REGISTRY_FILE \S+none\.yaml: no such file or directory$/m },
  { words: 'registry add FILES/key.yaml', error: /REGISTRY_FILE \S+key\.yaml:3: claude: nam: unknown key "nam"$/m },
  {
    words: 'registry add FILES/tab.yaml',
    error: /REGISTRY_FILE \S+tab\.yaml:2: .*[Tt]abs are not allowed as indentation$/m,
  },
  {
    words: 'alert channel add c --kind webhook --url https://a.example --ca-file FILES/none',
    error: /USAGE --ca-file \S+none: no such file or directory$/m,
  },
  { words: 'alert channel add c --kind webhook', error: /USAGE --url-file: The URL is required/ },
]

t.test('messages say what was wrong, where, and what to do', async (t) => {
  const directory = t.testdir({ data: {} })
  const data = ['--data-dir', join(directory, 'data')]
  writeFileSync(join(directory, 'url'), 'http://a.example/x', { mode: 0o600 })
  writeFileSync(join(directory, 'key.yaml'), 'platforms:\n  - id: claude\n    nam: x\n')
  writeFileSync(join(directory, 'tab.yaml'), 'platforms:\n\t- id: claude\n')
  writeRegistryFile(join(directory, 'takes.json'), [platform('mine', 'chatgpt.com')])
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  for (const { words, error } of ROWS) {
    const { status, stderr } = await runAdmin([...words.replaceAll('FILES', directory).split(' '), ...data])
    t.equal(status, 2, words)
    t.match(stderr, error, words)
  }
})

t.test('a receiver in an allowed network is created', async (t) => {
  const data = ['--data-dir', join(t.testdir(), 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const words = ['alert', 'channel', 'add', 'c', '--kind', 'webhook', '--url', 'https://10.0.0.1/x']
  t.match(await admin(...words, '--outbound-networks', '10.0.0.0/8', ...data), [{ name: 'c' }])
})

t.test('commands use the networks and the key file of the service without an option', async (t) => {
  const directory = join(t.testdir(), 'data')
  const keyFile = join(t.testdirName, 'elsewhere.key')
  const settings = ['--outbound-networks', '10.0.0.0/8,127.0.0.0/8', '--secrets-key-file', keyFile]
  const service = await startService(directory, settings)
  t.teardown(() => service.child.kill('SIGKILL'))
  const data = ['--data-dir', directory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const add = ['alert', 'channel', 'add', 'c', '--kind', 'webhook', '--url']
  t.match(await runAdmin([...add, 'https://192.168.0.1/x', ...data]), { status: 2, stderr: /--outbound-networks/ })
  t.match(await admin(...add, 'https://127.0.0.1:1/x', ...data), [{ name: 'c' }])
  t.match(await runAdmin(['alert', 'channel', 'test', 'c', ...data]), {
    stderr: /ALERT_NOT_SENT c: nothing listens there/,
  })
  t.match(await runAdmin(['doctor', ...data]), { status: 0, stderr: '' })
  t.match(await runAdmin(['backup', join(t.testdirName, 'backup'), ...data]), { stdout: keyFile })
})

t.test('a registry file that names both platforms moves a domain', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const file = writeRegistryFile(join(directory, 'own.json'), [platform('mine', 'chatgpt.com')], ['chatgpt'])
  t.match(await admin('registry', 'add', file, ...data), [{ id: 'chatgpt', change: 'disabled' }, { id: 'mine' }])
  writeRegistryFile(file, [platform('mine', 'chatgpt.com')])
  t.match(await admin('registry', 'add', file, ...data), [{ id: 'chatgpt' }, { id: 'mine' }], 'disabled before')
})
