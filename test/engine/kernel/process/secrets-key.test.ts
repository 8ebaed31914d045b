import { chmodSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { SecretsKey, secretsKeyFile } from '../../../../engine/kernel/process/secrets-key.ts'

t.test('a secret is opened with the same key and context only', async (t) => {
  const directory = t.testdir()
  const file = secretsKeyFile('', directory)
  t.equal(file, `${directory}/secrets.key`)
  const key = new SecretsKey(file)
  const sealed = key.seal('pässword', 'acme')
  t.match(readFileSync(file, 'utf8'), /^[0-9a-f]{64}\n$/)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.same(readdirSync(directory), ['secrets.key'], 'no other file remains')
  t.equal(new SecretsKey(file).open(sealed, 'acme'), 'pässword')
  t.not(key.seal('pässword', 'acme').sealed, sealed.sealed, 'each has its own nonce')
  t.notMatch(Buffer.from(sealed.sealed, 'base64').toString('latin1'), /ssword/)
  t.throws(() => key.open(sealed, 'globex'), { code: 'SECRETS_KEY', message: /was changed/ })
  for (let at = 0; at < Buffer.from(sealed.sealed, 'base64').length; at++) {
    const bytes = Buffer.from(sealed.sealed, 'base64')
    bytes[at] = (bytes[at] ?? 0) ^ 1
    t.throws(() => key.open({ ...sealed, sealed: bytes.toString('base64') }, 'acme'), { code: 'SECRETS_KEY' })
  }
  t.throws(() => key.open({ ...sealed, sealed: '' }, 'acme'), { code: 'SECRETS_KEY' })
})

t.test('a key file that is missing, other, damaged or open to others is refused', async (t) => {
  const file = `${t.testdir()}/key`
  const key = new SecretsKey(file)
  const sealed = key.seal('secret', 'acme')
  renameSync(file, `${file}.old`)
  t.throws(() => key.open(sealed, 'acme'), { code: 'SECRETS_KEY', message: /no such file/ })
  key.seal('other', 'acme')
  t.throws(() => key.open(sealed, 'acme'), { code: 'SECRETS_KEY', message: /is not the key that/ })
  writeFileSync(file, 'no key')
  t.throws(() => key.open(sealed, 'acme'), { code: 'SECRETS_KEY', message: /expected 64 hex digits/ })
  renameSync(`${file}.old`, file)
  chmodSync(file, 0o644)
  t.throws(() => key.open(sealed, 'acme'), { code: 'SECRETS_KEY', message: /mode 0644 gives other users access/ })
  chmodSync(file, 0o600)
  t.equal(key.open(sealed, 'acme'), 'secret')
  t.throws(() => new SecretsKey('/proc/none/key').seal('secret', 'acme'), {
    code: 'SECRETS_KEY',
    message: /cannot be created/,
  })
})
