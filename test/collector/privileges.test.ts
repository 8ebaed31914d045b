import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { userToBecome } from '../../collector/privileges.ts'
import { skipNamespaces } from '../support/namespace.ts'

t.test('the collector started as root becomes the configured user', { skip: skipNamespaces }, async (t) => {
  const passwd = `${t.testdir()}/passwd`
  const system = 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n'
  writeFileSync(passwd, `${system}admin:x:0:10::/:/bin/sh\n`)
  const wanted = (user: string, outbox = 'memory') => userToBecome({ user, outbox }, passwd)
  t.match(wanted(''), { name: 'nobody', uid: 65534, gid: 65533 })
  t.match(wanted('7:8'), { uid: 7, gid: 8 })
  t.equal(wanted('root'), undefined, 'root stays root')
  t.equal(wanted('0:0'), undefined)
  for (const wrong of [
    'nosuch',
    '7',
    '7:',
    ':7',
    '-1:1',
    '4294967295:1',
    '1:4294967295',
    '9999999999:1',
    '0:10',
    'admin',
  ]) {
    t.throws(() => wanted(wrong), { code: 'USAGE', message: /^--run-as: / }, wrong)
  }
  writeFileSync(passwd, `${system}posture-collector:x:71:72::/:/bin/false\n`)
  t.match(wanted(''), { name: 'posture-collector', uid: 71, gid: 72 })
  const theirs = `${t.testdir({ outbox: {} })}/outbox`
  chownSync(theirs, 4321, 4321)
  t.match(wanted('', theirs), { uid: 4321, gid: 4321 }, 'who controls the outbox')
  t.match(wanted('', `${theirs}/new`), { uid: 4321 }, 'and one that does not exist yet')
  t.match(wanted('7:8', theirs), { uid: 7, gid: 8 })
  // The directory of the test was made again.
  writeFileSync(passwd, `${system}posture-collector:x:71:72::/:/bin/false\n`)
  chmodSync(join(theirs, '..'), 0o1777)
  t.match(wanted('', theirs), { name: 'posture-collector' }, 'not who was first in a directory that all can write')
})
