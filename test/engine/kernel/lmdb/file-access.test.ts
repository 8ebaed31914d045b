import { chmodSync, chownSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Environment } from '../../../../engine/kernel/lmdb/environment.ts'
import { ENVIRONMENT_FILES } from '../../../../engine/kernel/lmdb/file-access.ts'
import { asUser } from '../../../../engine/kernel/process/become-user.ts'
import { openAs, skipUnlessRoot } from '../../../support/other-user.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }

t.test('a directory that cannot be used is one error line that names the setting', async (t) => {
  const directory = t.testdir({ file: 'text' })
  const rows = [
    { path: join(directory, 'file'), found: /--data-dir .*file: not a directory; name a directory/ },
    { path: join(directory, 'file/below'), found: /not a directory/ },
    { path: '/proc/posture', found: /it cannot be created here/ },
  ]
  for (const { path, found } of rows) {
    t.throws(() => new Environment(path, OPTIONS), { code: 'STORE_UNWRITABLE', message: found }, path)
  }
  if (process.getuid?.() !== 0) {
    chmodSync(directory, 0o500)
    t.throws(() => new Environment(join(directory, 'below'), OPTIONS), {
      code: 'STORE_UNWRITABLE',
      message: /no permission/,
    })
    chmodSync(directory, 0o700)
  }
  t.throws(() => new Environment(directory, { ...OPTIONS, mustExist: true }), {
    code: 'NOT_FOUND',
    message: /no store in/,
  })
  for (const missing of [join(directory, 'nowhere'), join(directory, 'nowhere/below')]) {
    t.throws(() => new Environment(missing, { ...OPTIONS, mustExist: true }), {
      code: 'NOT_FOUND',
      message: `--data-dir: no store in ${missing}; name the directory that the program uses`,
    })
  }
})

t.test('a file that is not LMDB is rejected', async (t) => {
  const directory = t.testdir()
  writeFileSync(join(directory, 'data.mdb'), Buffer.alloc(8192, 7))
  t.throws(() => new Environment(directory, OPTIONS), { code: 'STORE_DAMAGED', message: /data.mdb: not an LMDB file/ })
  rmSync(join(directory, 'data.mdb'))
  writeFileSync(join(directory, 'mutex.mdb'), Buffer.alloc(8192, 7))
  const message = /mutex.mdb: not an LMDB file; stop the programs that use it, and remove it/
  t.throws(() => new Environment(directory, OPTIONS), { code: 'STORE_DAMAGED', message })
})

t.test('root does not open an environment in a directory of another user', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir({ theirs: {} })
  const theirs = join(directory, 'theirs')
  chownSync(theirs, 1234, 1234)
  for (const path of [theirs, join(theirs, 'missing')]) {
    for (const options of [{}, { readOnly: true }, { mustExist: true }]) {
      t.throws(() => new Environment(path, { ...OPTIONS, ...options }), {
        code: 'STORE_UNWRITABLE',
        message: `--data-dir ${path}: belongs to uid 1234, whose files root must not use; run this as that user`,
      })
    }
  }
  t.same(readdirSync(theirs), [])
})

t.test(
  'opened with the rights of another user, files are checked with these rights',
  { skip: skipUnlessRoot },
  async (t) => {
    const path = join(t.testdir(), 'store')
    await new Environment(path, OPTIONS).close()
    const user = { uid: 1234, gid: 1234 }
    const message = /no permission to write/
    t.throws(() => asUser(user, () => new Environment(path, OPTIONS)), { code: 'STORE_UNWRITABLE', message })
    for (const name of ['', ...ENVIRONMENT_FILES.filter((each) => each !== 'lock.mdb')])
      chownSync(join(path, name), 1234, 1234)
    t.throws(() => asUser(user, () => new Environment(path, OPTIONS)), { message: /lock\.mdb belongs to user root/ })
    chownSync(join(path, 'lock.mdb'), 1234, 1234)
    await asUser(user, () => new Environment(path, OPTIONS)).close()
    t.equal(process.geteuid?.(), 0)
  },
)

t.test(
  'a file that the user may not open is a fault, although LMDB would abort the process',
  { skip: skipUnlessRoot },
  async (t) => {
    const path = join(t.testdir(), 'store')
    await new Environment(path, OPTIONS).close()
    const files = ENVIRONMENT_FILES.map((file) => join(path, file))
    const [data = '', lock = '', mutex = '', mutexLock = ''] = files
    const rows = [
      {
        name: 'lock.mdb',
        foreign: [path, data, mutex, mutexLock],
        found:
          /: \S+lock\.mdb belongs to user root \(uid 0\), .*uid 1234\)? may not read and write it; .*chown --reference=\S+data\.mdb \S+lock\.mdb/,
      },
      {
        name: 'data.mdb',
        foreign: [path, lock, mutex, mutexLock],
        found:
          /: \S+data\.mdb belongs to user root \(uid 0\), .*uid 1234\)? may not read (and write )?it; run this as user root/,
      },
      {
        name: 'mutex.mdb',
        foreign: [path, data, lock, mutexLock],
        found: /: \S+mutex\.mdb belongs to user root \(uid 0\), .*chown --reference=\S+data\.mdb \S+mutex\.mdb/,
      },
      { name: 'none', foreign: [path, ...files], found: /^opened$/ },
    ]
    for (const { name, foreign, found } of rows) {
      for (const file of [path, ...files]) chownSync(file, 0, 0)
      for (const file of foreign) chownSync(file, 1234, 1234)
      for (const readOnly of [false, true]) {
        const { status, stdout } = openAs(1234, path, { ...OPTIONS, readOnly })
        t.equal(status, 0, 'not by a signal')
        t.match(stdout, found, `${name}, ${readOnly ? 'to read' : 'to write'}`)
      }
    }
    rmSync(lock)
    for (const file of [path, data]) chownSync(file, 0, 0)
    chmodSync(path, 0o755)
    chmodSync(data, 0o644)
    t.match(openAs(1234, path, { ...OPTIONS, readOnly: true }), { status: 0, stdout: /\/store belongs to user root/ })
  },
)
