import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { writeSignature } from '../../../deploy/release/files.ts'
import { publicKeyText } from '../../../deploy/release/registry-signing.ts'
import { newKey } from '../../support/registry-updates.ts'

t.test('a release file is verified by the command in the guide', async (t) => {
  const folder = t.testdir({ 'a.deb': 'content' })
  const key = newKey()
  writeFileSync(join(folder, 'posture-release.pem'), publicKeyText(key))
  writeFileSync(join(folder, 'other.pem'), publicKeyText(newKey()))
  await writeSignature(join(folder, 'a.deb'), key)
  const verify = (publicKey: string): string => {
    const args = [
      'pkeyutl',
      '-verify',
      '-pubin',
      '-inkey',
      publicKey,
      '-rawin',
      '-in',
      'a.deb',
      '-sigfile',
      'a.deb.sig',
    ]
    const { status, stdout } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' })
    return `${status} ${stdout.trim()}`
  }
  t.equal(verify('posture-release.pem'), '0 Signature Verified Successfully')
  t.equal(verify('other.pem'), '1 Signature Verification Failure')
  writeFileSync(join(folder, 'a.deb'), 'Content')
  t.equal(verify('posture-release.pem'), '1 Signature Verification Failure')
})
