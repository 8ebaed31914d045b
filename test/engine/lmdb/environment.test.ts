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
