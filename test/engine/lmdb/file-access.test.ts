import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Environment, type EnvironmentOptions } from '../../../engine/lmdb/environment.ts'
import { ENVIRONMENT_FILES } from '../../../engine/lmdb/file-access.ts'
import { openAs, skipUnlessRoot } from '../../support/other-user.ts'

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
    message: /there is no store in/,
  })
  for (const missing of [join(directory, 'nowhere'), join(directory, 'nowhere/below')]) {
    t.throws(() => new Environment(missing, { ...OPTIONS, mustExist: true }), {
      code: 'NOT_FOUND',
      message: `--data-dir: there is no store in ${missing}; name the directory that the program was started with`,
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

t.test('files opened by root keep their owner', { skip: skipUnlessRoot }, async (t) => {
  const withoutLocks = async (path: string) => {
    await new Environment(path, OPTIONS).close()
    for (const file of ENVIRONMENT_FILES) if (file !== 'data.mdb') rmSync(join(path, file))
    chownSync(join(path, 'data.mdb'), 1234, 1234)
  }
  const rows: readonly ({
    name: string
    make: (path: string) => unknown
    uid: number
  } & Partial<EnvironmentOptions>)[] = [
    { name: 'without the locks, which root creates again', make: withoutLocks, uid: 1234 },
    { name: 'the same, read-only', make: withoutLocks, readOnly: true, uid: 1234 },
    {
      name: 'the same, when the caller sets the owner of new files',
      make: withoutLocks,
      chown: 'by the caller',
      uid: 1234,
    },
    { name: 'an empty directory', make: (path) => chownSync(path, 1234, 1234), uid: 1234 },
    {
      name: 'one to be created',
      make(path) {
        rmSync(path, { recursive: true })
        chownSync(join(path, '..'), 1234, 1234)
      },
      uid: 1234,
    },
    {
      name: 'whose owner the caller sets itself',
      make: (path) => chownSync(path, 1234, 1234),
      chown: 'by the caller',
      uid: 0,
    },
    { name: "root's own", make: () => {}, uid: 0 },
  ]
  for (const { name, make, uid, ...options } of rows) {
    const path = join(t.testdir(), 'store')
    mkdirSync(path)
    await make(path)
    const environment = new Environment(path, { ...OPTIONS, ...options })
    for (const file of ENVIRONMENT_FILES) {
      t.match(statSync(join(path, file)), { uid, gid: uid, mode: 0o100600 }, `${name}: ${file}`)
    }
    if (name === 'one to be created') t.match(statSync(path), { uid, gid: uid }, name)
    await environment.close()
  }
})

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
