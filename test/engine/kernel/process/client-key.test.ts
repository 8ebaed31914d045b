import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { aessiv } from '@noble/ciphers/aes.js'
import t from 'tap'
import { isPseudonym } from '../../../../engine/kernel/event/client.ts'
import { clientKeyFile, createClientKey, Pseudonyms } from '../../../../engine/kernel/process/client-key.ts'
import { SecretsKey, secretsKeyFile } from '../../../../engine/kernel/process/secrets-key.ts'
import { skipUnlessRoot as skip } from '../../../support/other-user.ts'
import * as fc from '../../../support/property.ts'

const ACME = '11111111-1111-4111-8111-111111111111'
const GLOBEX = '22222222-2222-4222-8222-222222222222'

t.test('the library encrypts as in the example of RFC 5297 (appendix A.1)', async (t) => {
  const hex = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex')
  const key = hex('fffefdfc fbfaf9f8 f7f6f5f4 f3f2f1f0 f0f1f2f3 f4f5f6f7 f8f9fafb fcfdfeff')
  const data = hex('10111213 14151617 18191a1b 1c1d1e1f 20212223 24252627')
  const sealed = aessiv(key, data).encrypt(hex('11223344 55667788 99aabbcc ddee'))
  t.equal(Buffer.from(sealed).toString('hex'), '85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c')
})

t.test('a client always has the same pseudonym, which only the key of its organization reveals', async (t) => {
  const directory = t.testdir()
  const keyId = createClientKey(directory, ACME)
  t.equal(createClientKey(directory, ACME), keyId, 'the key stays')
  t.equal(statSync(clientKeyFile(directory, ACME).file).mode & 0o777, 0o600)
  const acme = new Pseudonyms(directory, ACME, keyId)
  const globex = new Pseudonyms(directory, GLOBEX, createClientKey(directory, GLOBEX))
  const anyClient = fc
    .oneof(fc.ipV4(), fc.ipV6())
    .map((text) => new URL(`http://${text.includes(':') ? `[${text}]` : text}/`).hostname.replace(/^\[|\]$/g, ''))
  fc.assert(
    fc.property(anyClient, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (client, user) => {
      const pseudonym = acme.ofClient(client)
      t.ok(isPseudonym(pseudonym), pseudonym)
      t.equal(new Pseudonyms(directory, ACME, keyId).ofClient(client), pseudonym)
      t.not(globex.ofClient(client), pseudonym)
      t.notMatch(pseudonym, client)
      t.same(acme.ofClient(acme.reveal(pseudonym).text), pseudonym)
      t.throws(() => globex.reveal(pseudonym), { code: 'USAGE' })
      t.same(acme.reveal(acme.ofUser(user)), { kind: 'user', text: user })
      const changed = pseudonym.replace(/.(?=.$)/, (letter) => (letter === 'A' ? 'B' : 'A'))
      t.throws(() => acme.reveal(changed), { code: 'USAGE' })
      t.throws(() => acme.reveal(pseudonym.replace('p-', 'u-')), { code: 'USAGE' })
      return true
    }),
    { numRuns: 30 },
  )
  t.same(acme.reveal(acme.ofClient('192.0.2.7')), { kind: 'client', text: '192.0.2.7' })
  t.same(acme.reveal(acme.ofClient('2001:db8::7')), { kind: 'client', text: '2001:db8::7' })
  t.equal(acme.ofClient('::ffff:192.0.2.7'), acme.ofClient('192.0.2.7'))
  t.equal(acme.ofUser('x'.repeat(128)).length <= 255, true)
  t.ok(isPseudonym(acme.ofUser('x'.repeat(128))))
  t.throws(() => acme.reveal('192.0.2.7'), { code: 'USAGE', message: /p- or u-/ })
})

t.test('another key is refused, and a missing one', async (t) => {
  const directory = t.testdir()
  t.throws(() => new Pseudonyms(directory, ACME, ''), { code: 'SECRETS_KEY', message: /no such file/ })
  const keyId = createClientKey(directory, ACME)
  clientKeyFile(directory, ACME).remove()
  t.not(createClientKey(directory, ACME), keyId)
  t.throws(() => new Pseudonyms(directory, ACME, keyId), { code: 'SECRETS_KEY', message: /is not the key of/ })
})

t.test('nodes that share a folder `keys` have the same keys, also when it is read-only', { skip }, async (t) => {
  const directory = t.testdir({ one: { keys: {} }, two: { keys: {} } })
  const [one, two] = ['one', 'two'].map((name) => join(directory, name)) as [string, string]
  const keyId = createClientKey(one, ACME)
  const sealed = new SecretsKey(secretsKeyFile('', one)).seal('secret', 'acme')
  t.same(readdirSync(one), ['keys'])
  // As Kubernetes mounts a Secret: of root, readable by the group.
  execFileSync('mount', ['--bind', '--options', 'ro', join(one, 'keys'), join(two, 'keys')])
  try {
    t.equal(createClientKey(two, ACME), keyId)
    t.equal(new SecretsKey(secretsKeyFile('', two)).open(sealed, 'acme'), 'secret')
    clientKeyFile(two, ACME).remove()
    t.equal(createClientKey(two, ACME), keyId, 'the key stays')
    t.throws(() => createClientKey(two, GLOBEX), {
      code: 'SECRETS_KEY',
      message: /two\/keys\/clients-.*: cannot be created: EROFS\. Create it with 128 random hex digits/,
    })
  } finally {
    execFileSync('umount', [join(two, 'keys')])
  }
})
