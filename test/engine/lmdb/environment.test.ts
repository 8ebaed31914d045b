import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Environment, type EnvironmentOptions } from '../../../engine/lmdb/environment.ts'
import { Fault } from '../../../engine/process/error-codes.ts'
import { skipNamespaces as skip } from '../../support/namespace.ts'
import { openAs, skipUnlessRoot } from '../../support/other-user.ts'
import { SmallDisk } from '../../support/small-disk.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }

t.test('what a transaction throws leaves nothing of it', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  const table = environment.table('t')
  t.throws(() =>
    environment.write(() => {
      table.putSync(Buffer.from('k'), Buffer.from('v'))
      throw new Error('no')
    }),
  )
  t.equal(
    environment.read(() => table.get(Buffer.from('k'))),
    undefined,
  )
  await environment.close()
})

t.test('a store of a newer release is refused, not touched', async (t) => {
  const path = t.testdir()
  await new Environment(path, { ...OPTIONS, schemaVersion: 2 }).close()
  t.throws(() => new Environment(path, OPTIONS), {
    code: 'STORE_VERSION',
    message: /written by a newer release \(schema 2\), this one reads up to 1/,
  })
})

t.test('a directory that cannot be used is one line that names the setting', async (t) => {
  const directory = t.testdir({ file: 'text' })
  const rows = [
    { path: join(directory, 'file'), found: /--data-dir .*file: not a directory; name a directory/ },
    { path: join(directory, 'file/below'), found: /not a directory/ },
    { path: '/proc/posture', found: /it cannot be made here/ },
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

t.test('a table that is opened twice is one table', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  t.equal(environment.table('t'), environment.table('t'))
  environment.write(() => environment.table('t').putSync(Buffer.from('k'), Buffer.alloc(5000)))
  const before = environment.space().unusedBytes
  for (let times = 0; times < 10; times++) environment.tableBytes('t')
  t.equal(environment.space().unusedBytes, before, 'its pages are counted once')
  t.equal(environment.tableRecords('t'), 1)
  await environment.close()
})

t.test('bytes that are no LMDB file are refused', async (t) => {
  const directory = t.testdir()
  writeFileSync(join(directory, 'data.mdb'), Buffer.alloc(8192, 7))
  t.throws(() => new Environment(directory, OPTIONS), { code: 'STORE_DAMAGED', message: /data.mdb: not an LMDB file/ })
})

t.test('without free space nothing is written, and what is there can be read', async (t) => {
  const path = t.testdir()
  const environment = new Environment(path, OPTIONS)
  environment.write(() => environment.table('t').putSync(Buffer.from('k'), Buffer.from('v')))
  await environment.close()
  const full = new Environment(path, { ...OPTIONS, freeBytesMin: Number.MAX_SAFE_INTEGER })
  t.equal(full.full, true)
  t.throws(() => full.write(() => t.fail('ran')), {
    code: 'STORE_FULL',
    message: /--data-dir .* MB free, expected at least/,
  })
  t.equal(
    full.read(() => full.table('t').get(Buffer.from('k'))?.toString()),
    'v',
  )
  await full.close()
})

t.test('a disk that others fill is full before a page of LMDB finds no room', { skip }, async (t) => {
  const disk = new SmallDisk(t, 24)
  const environment = new Environment(join(disk.directory, 'store'), OPTIONS)
  const data = join(environment.path, 'data.mdb')
  const table = environment.table('t')
  const put = (key: number) => environment.write(() => table.putSync(Buffer.from([key]), Buffer.alloc(1024 * 1024)))
  put(0)
  const size = statSync(data).size
  t.ok(size >= 2 * 1024 * 1024, `${size} bytes: longer than what stands in it`)
  disk.fillUpTo(0)
  t.equal(disk.freeBytes, 0)
  // Only what the file has ahead is there, and half of it is left for what takes away.
  let written = 1
  t.throws(
    () => {
      for (; written < 10; written++) put(written)
    },
    { code: 'STORE_FULL', message: /^--data-dir .*: no space left; free some space$/ },
  )
  t.ok(written > 1, `${written} of 1 MB were written on a full disk`)
  t.equal(statSync(data).size, size, 'LMDB asked for no room')
  environment.shrink(() => table.removeSync(Buffer.from([0])))
  t.equal(environment.tableRecords('t'), written - 1)
  const refused = (): unknown => {
    for (let more = 0; more < 40; more++) {
      try {
        environment.shrink(() => table.putSync(Buffer.from([100 + more]), Buffer.alloc(256 * 1024)))
      } catch (error) {
        return error
      }
    }
    return undefined
  }
  t.match(refused(), { code: 'STORE_FULL', cause: undefined }, 'not by LMDB, which would be the cause')
  t.equal(environment.full, true, 'so says who looks before')
  disk.free()
  // It looks once a second.
  while (environment.full) await later(50)
  const records = environment.tableRecords('t')
  put(written)
  t.equal(environment.tableRecords('t'), records + 1)
  await environment.close()
})

t.test('the file is made longer under the lock of LMDB', async (t) => {
  const path = t.testdir()
  const data = join(path, 'data.mdb')
  const environment = new Environment(path, OPTIONS)
  const table = environment.table('t')
  // So that less than 2 MB are left of 4.
  for (let key = 0; key < 2; key++) {
    environment.write(() => table.putSync(Buffer.from([key]), Buffer.alloc(1.25 * 1024 * 1024)))
  }
  const size = statSync(data).size
  const program = fileURLToPath(new URL('../../support/write-once.js', import.meta.url))
  const waiting = async (how: string) => {
    const file = join(path, how)
    const child = fork(program, [how, path, file])
    t.teardown(() => child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    await once(child, 'message')
    return { ended, goOn: () => writeFileSync(file, '') }
  }
  const writer = await waiting('ours')
  const holder = await waiting('lmdb')
  writer.goOn()
  await later(500)
  t.equal(statSync(data).size, size, 'it waits')
  holder.goOn()
  t.equal((await holder.ended)[0], 0)
  t.equal((await writer.ended)[0], 0)
  t.ok(statSync(data).size > size, 'then it has made the file longer')
  await environment.close()
})

t.test('a fault of the work stays what it is, also on a full disk', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  const path = environment.path
  await environment.close()
  const full = new Environment(path, { ...OPTIONS, freeBytesMin: Number.MAX_SAFE_INTEGER })
  const notFound = (): void => {
    throw new Fault('NOT_FOUND', 'made for the test')
  }
  t.throws(() => full.shrink(notFound), { code: 'NOT_FOUND' })
  await full.close()
})

t.test('as many readers as the service has threads, twice over', async (t) => {
  const path = t.testdir()
  const environments = Array.from({ length: 256 }, () => new Environment(path, OPTIONS))
  const key = Buffer.from('k')
  for (const environment of environments) environment.read(() => environment.table('t').get(key))
  t.pass('none was refused')
  for (const environment of environments) await environment.close()
})

t.test('what root opens stays whose it is', { skip: skipUnlessRoot }, async (t) => {
  const withoutLock = async (path: string) => {
    await new Environment(path, OPTIONS).close()
    rmSync(join(path, 'lock.mdb'))
    chownSync(join(path, 'data.mdb'), 1234, 1234)
  }
  const rows: readonly ({
    name: string
    make: (path: string) => unknown
    uid: number
  } & Partial<EnvironmentOptions>)[] = [
    { name: 'without lock.mdb, which root makes anew', make: withoutLock, uid: 1234 },
    { name: 'the same to be read only', make: withoutLock, readOnly: true, uid: 1234 },
    { name: 'the same where the opener gives what is new', make: withoutLock, give: 'by the opener', uid: 1234 },
    { name: 'an empty directory', make: (path) => chownSync(path, 1234, 1234), uid: 1234 },
    {
      name: 'one that is to be made',
      make(path) {
        rmSync(path, { recursive: true })
        chownSync(join(path, '..'), 1234, 1234)
      },
      uid: 1234,
    },
    {
      name: 'that the opener gives itself',
      make: (path) => chownSync(path, 1234, 1234),
      give: 'by the opener',
      uid: 0,
    },
    { name: "root's own", make: () => {}, uid: 0 },
  ]
  for (const { name, make, uid, ...options } of rows) {
    const path = join(t.testdir(), 'store')
    mkdirSync(path)
    await make(path)
    const environment = new Environment(path, { ...OPTIONS, ...options })
    for (const file of ['data.mdb', 'lock.mdb']) {
      t.match(statSync(join(path, file)), { uid, gid: uid, mode: 0o100600 }, `${name}: ${file}`)
    }
    if (name === 'one that is to be made') t.match(statSync(path), { uid, gid: uid }, name)
    await environment.close()
  }
})

t.test(
  'a file that this user may not open is a fault, where LMDB would end the process',
  { skip: skipUnlessRoot },
  async (t) => {
    const path = join(t.testdir(), 'store')
    await new Environment(path, OPTIONS).close()
    const [data, lock] = [join(path, 'data.mdb'), join(path, 'lock.mdb')]
    const rows = [
      {
        name: 'lock.mdb',
        mine: [path, data],
        found:
          /: \S+lock\.mdb belongs to user root \(uid 0\), .*uid 1234\)? may not read and write it; .*chown --reference=\S+data\.mdb \S+lock\.mdb/,
      },
      {
        name: 'data.mdb',
        mine: [path, lock],
        found:
          /: \S+data\.mdb belongs to user root \(uid 0\), .*uid 1234\)? may not read (and write )?it; run this as user root/,
      },
      { name: 'none', mine: [path, data, lock], found: /^opened$/ },
    ]
    for (const { name, mine, found } of rows) {
      for (const file of [path, data, lock]) chownSync(file, 0, 0)
      for (const file of mine) chownSync(file, 1234, 1234)
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
