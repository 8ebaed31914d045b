import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Environment } from '../../../engine/lmdb/environment.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }

t.test('a transaction that throws leaves no change', async (t) => {
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

t.test('a store of a newer release is rejected unchanged', async (t) => {
  const path = t.testdir()
  await new Environment(path, { ...OPTIONS, schemaVersion: 2 }).close()
  t.throws(() => new Environment(path, OPTIONS), {
    code: 'STORE_VERSION',
    message: /written by a newer release \(schema 2\), this one reads up to 1/,
  })
})

/** What a process does that opens the environment while another one commits `commits` times. */
function openLate(path: string, commits: number): void {
  const file = join(path, 'lock.mdb')
  const lock = readFileSync(file)
  const numberOffset = 8
  lock.writeBigUInt64LE(lock.readBigUInt64LE(numberOffset) - BigInt(commits), numberOffset)
  // Writes to the file that LMDB has mapped.
  writeFileSync(file, lock, { flag: 'r+' })
}

for (const commits of [1, 2, 3, 50]) {
  t.test(`a process that opens the environment during ${commits} commits removes none`, async (t) => {
    const path = t.testdir()
    const environment = new Environment(path, OPTIONS)
    const table = environment.table('t')
    const put = (number: number): void =>
      environment.write(() => table.putSync(Buffer.from([number]), Buffer.alloc(99)))
    for (let number = 0; number < 60; number++) put(number)
    openLate(path, commits)
    put(60)
    openLate(path, commits)
    const other = new Environment(path, OPTIONS)
    put(61)
    const found = environment.read(() => [...table.getKeys()].map(([number]) => number))
    t.same(found, [...Array(62).keys()])
    await other.close()
    await environment.close()
  })
}

t.test('a lock file of another environment is refused', async (t) => {
  const path = t.testdir()
  const environment = new Environment(path, OPTIONS)
  const table = environment.table('t')
  const put = (): void => environment.write(() => table.putSync(Buffer.from('k'), Buffer.from('v')))
  for (let times = 0; times < 3; times++) put()
  openLate(path, 1)
  const lock = readFileSync(join(path, 'lock.mdb'))
  rmSync(join(path, 'lock.mdb'))
  for (const [number, message] of [
    [1000n, /lock.mdb: 1000 is no transaction of this store/],
    [1n, /the lock file was replaced; start the program again/],
  ] as const) {
    lock.writeBigUInt64LE(number, 8)
    writeFileSync(join(path, 'lock.mdb'), lock)
    t.throws(put, { code: 'STORE_UNWRITABLE', message })
  }
  await environment.close()
})

t.test('opening a table twice gives the same table', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  t.equal(environment.table('t'), environment.table('t'))
  environment.write(() => environment.table('t').putSync(Buffer.from('k'), Buffer.alloc(5000)))
  const before = environment.space().unusedBytes
  for (let times = 0; times < 10; times++) environment.tableBytes('t')
  t.equal(environment.space().unusedBytes, before, 'its pages are counted once')
  t.equal(environment.tableRecords('t'), 1)
  await environment.close()
})

t.test('twice as many readers as the service has threads can read', async (t) => {
  const path = t.testdir()
  const environments = Array.from({ length: 256 }, () => new Environment(path, OPTIONS))
  const key = Buffer.from('k')
  for (const environment of environments) environment.read(() => environment.table('t').get(key))
  t.pass('none was refused')
  for (const environment of environments) await environment.close()
})
