import { X509Certificate } from 'node:crypto'
import { chmodSync, chownSync, copyFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkedFingerprint, provideCertificate } from '../../../engine/http/certificate.ts'
import { opensslCertificate } from '../../support/openssl-certificate.ts'
import { skipUnlessRoot } from '../../support/other-user.ts'

t.test('an unreadable file is an error that names the user and the fix', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir()
  const own = await provideCertificate(directory, undefined)
  const files = [own.keyFile, own.certificateFile]
  for (const closed of files) {
    for (const file of files) chmodSync(file, file === closed ? 0o600 : 0o644)
    process.seteuid?.(1234)
    try {
      await t.rejects(provideCertificate(directory, own), {
        code: 'CERTIFICATE',
        message: new RegExp(
          `^${closed} is not readable by uid 1234; chgrp \\d+ ${closed} && chmod g\\+r ${closed}, and make`,
        ),
      })
    } finally {
      process.seteuid?.(0)
    }
  }
  for (const file of files) {
    chownSync(file, 0, process.getegid?.() ?? 0)
    chmodSync(file, 0o640)
  }
  process.seteuid?.(1234)
  try {
    t.match(
      await provideCertificate(directory, own),
      { fingerprint: own.fingerprint },
      'the group of the service may read them',
    )
  } finally {
    process.seteuid?.(0)
  }
})

t.test('a private key that other users can read is refused, at the start and when it is renewed', async (t) => {
  const own = await provideCertificate(t.testdir(), undefined)
  for (const mode of [0o644, 0o604, 0o660]) {
    chmodSync(own.keyFile, mode)
    const message = `private key ${own.keyFile}: mode 0${mode.toString(8)} gives other users access; run chmod 600 ${own.keyFile}`
    await t.rejects(provideCertificate('', own), { code: 'CERTIFICATE', message })
    t.throws(() => checkedFingerprint(own), { code: 'CERTIFICATE', message })
  }
  chmodSync(own.keyFile, 0o400)
  t.equal(checkedFingerprint(own), own.fingerprint)
})

t.test('a self-signed certificate has the requested names', async (t) => {
  const directory = t.testdir()
  const names = ['posture.example', '*.apps.example', '192.0.2.7', '2001:db8::7']
  const made = await provideCertificate(directory, undefined, names)
  const certificate = new X509Certificate(readFileSync(made.certificateFile))
  for (const name of ['posture.example', 'x.apps.example', 'localhost']) t.ok(certificate.checkHost(name), name)
  for (const address of ['192.0.2.7', '2001:db8::7', '127.0.0.1', '::1']) t.ok(certificate.checkIP(address), address)
  t.notOk(certificate.checkHost('other.example'))

  const rows: readonly { name: string; names: readonly string[]; isKept: boolean }[] = [
    { name: 'the same', names, isKept: true },
    { name: 'another order, case and form', names: ['2001:DB8:0::7', ...names.slice(0, 3).reverse()], isKept: true },
    { name: 'names that it always has', names: [...names, 'localhost', '::1'], isKept: true },
    { name: 'one more', names: [...names, 'more.example'], isKept: false },
    { name: 'one less', names: names.slice(1), isKept: false },
    { name: 'none, which keeps those of setup', names: [], isKept: true },
  ]
  let { fingerprint } = made
  for (const { name, names, isKept } of rows) {
    const next = await provideCertificate(directory, undefined, names)
    t.equal(next.fingerprint === fingerprint, isKept, name)
    t.equal(next.made, !isKept, name)
    t.equal(next.pin, made.pin, 'the key stays, so its pins hold')
    fingerprint = next.fingerprint
  }
  rmSync(made.certificateFile)
  const renewed = await provideCertificate(directory, undefined, [])
  t.match(renewed, { made: true, pin: made.pin }, 'renewed by hand')
})

t.test("an operator's certificate is never replaced, not even at the path of the self-signed one", async (t) => {
  const directory = t.testdir()
  const own = opensslCertificate(join(directory, 'own'), 'rsa')
  const made = await provideCertificate(join(directory, 'tls'), undefined)
  copyFileSync(own.keyFile, made.keyFile)
  copyFileSync(own.certificateFile, made.certificateFile)
  t.match(await provideCertificate(join(directory, 'tls'), undefined, ['more.example']), { made: false })
  t.match(await provideCertificate(join(directory, 'tls'), own, ['more.example']), { made: false })
})
