import { chmodSync, chownSync } from 'node:fs'
import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
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
    t.match(await provideCertificate(directory, own), { fingerprint: own.fingerprint }, 'then it can')
  } finally {
    process.seteuid?.(0)
  }
})
