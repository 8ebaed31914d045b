import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Environment } from '../../../../engine/kernel/lmdb/environment.ts'
import { type ReplicationState, repeatChange } from '../../../../engine/kernel/lmdb/replication.ts'
import { isFault } from '../../../../engine/kernel/process/error-codes.ts'
import * as fc from '../../../support/property.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0, replicable: true }
const TABLES = ['one', 'two'] as const
const PRIMARY: ReplicationState = {
  ...{
    mode: 'primary',
    node: 'a',
    primary: 'node-1',
    generation: 1,
    change: 0,
    unpublishedBytes: 0,
    sequence: 1,
    created: 'now',
  },
}
const BYTES_MAX = 1_000_000

function environmentIn(t: Test, path: string): Environment {
  const environment = new Environment(path, OPTIONS)
  for (const name of TABLES) environment.table(name)
  t.teardown(() => environment.close())
  return environment
}

/** A primary with the state, and a replica that is a copy of it. */
function pair(t: Test): { readonly primary: Environment; readonly replica: Environment; readonly directory: string } {
  const directory = t.testdir({ a: {}, b: {} })
  const primary = environmentIn(t, join(directory, 'a'))
  const replica = environmentIn(t, join(directory, 'b'))
  primary.writeUnrecorded(() => primary.replication.putState(PRIMARY))
  replica.writeUnrecorded(() => replica.replication.putState({ ...PRIMARY, mode: 'replica' }))
  return { primary, replica, directory }
}

/** All records of all tables. */
function contentOf(environment: Environment): string[] {
  return environment.read(() =>
    TABLES.flatMap((name) =>
      Array.from(environment.table(name).getRange({}), ({ key, value }) => {
        return `${name} ${key.toString('hex')} ${value.toString('hex')}`
      }),
    ),
  )
}

function repeatAll(primary: Environment, replica: Environment, after = 0): number {
  const changes = primary.read(() => primary.replication.unpublished(after, BYTES_MAX))
  replica.writeUnrecorded(() => {
    for (const { writes } of changes) replica.replication.repeat(writes)
  })
  return changes.at(-1)?.number ?? after
}

const write = fc.record({
  table: fc.constantFrom(...TABLES),
  key: fc.uint8Array({ minLength: 1, maxLength: 4 }),
  value: fc.option(fc.uint8Array({ maxLength: 3000 }), { nil: undefined }),
})

t.test('a replica that repeats the changes has the same records', async (t) => {
  const { primary, replica } = pair(t)
  let repeated = 0
  fc.assert(
    fc.property(fc.array(fc.array(write, { maxLength: 5 }), { maxLength: 5 }), (transactions) => {
      for (const writes of transactions) {
        primary.write(() => {
          for (const { table, key, value } of writes) {
            if (value === undefined) primary.table(table).removeSync(Buffer.from(key))
            else primary.table(table).putSync(Buffer.from(key), Buffer.from(value))
          }
        })
      }
      repeated = repeatAll(primary, replica, repeated)
      t.same(contentOf(replica), contentOf(primary))
    }),
  )
  t.equal(primary.read(() => primary.replication.state)?.change, repeated, 'changes have consecutive numbers')
})

t.test('a transaction that throws or writes nothing is no change', async (t) => {
  const { primary } = pair(t)
  t.throws(() =>
    primary.write(() => {
      primary.table('one').putSync(Buffer.from('k'), Buffer.from('v'))
      throw new Error('no')
    }),
  )
  primary.write(() => {})
  t.equal(
    primary.read(() => primary.replication.firstUnpublished),
    undefined,
  )
  primary.shrink(() => primary.table('one').putSync(Buffer.from('k'), Buffer.from('v')))
  t.equal(
    primary.read(() => primary.replication.firstUnpublished),
    1,
  )
  t.equal(primary.replication.lastRecorded, 1)
})

t.test('changes of another process are recorded with those of this one', async (t) => {
  const { primary, replica, directory } = pair(t)
  const other = environmentIn(t, join(directory, 'a'))
  primary.write(() => primary.table('one').putSync(Buffer.from('a'), Buffer.from('1')))
  other.write(() => other.table('two').putSync(Buffer.from('b'), Buffer.from('2')))
  primary.write(() => primary.table('one').removeSync(Buffer.from('a')))
  t.equal(repeatAll(primary, replica), 3)
  t.same(contentOf(replica), ['two 62 32'])
})

t.test('only the primary writes', async (t) => {
  const { primary, replica } = pair(t)
  const put = (environment: Environment) => () =>
    environment.write(() => environment.table('one').putSync(Buffer.from('k'), Buffer.from('v')))
  t.throws(put(replica), { code: 'NOT_PRIMARY', message: /a replica; node-1 is the primary: change it there/ })
  replica.writeUnrecorded(() => replica.replication.putState({ ...PRIMARY, mode: 'replica', primary: '' }))
  t.throws(put(replica), { code: 'NOT_PRIMARY', message: /no node is the primary at the moment/ })
  primary.writeUnrecorded(() => primary.replication.putState({ ...PRIMARY, mode: 'paused' }))
  t.throws(put(primary), { code: 'NOT_PRIMARY', message: /the brokers are not reachable/ })
  t.same(contentOf(primary), [])
  primary.writeUnrecorded(() => primary.replication.forget())
  put(primary)()
  t.equal(
    primary.read(() => primary.replication.state),
    undefined,
  )
  t.equal(
    primary.read(() => primary.replication.firstUnpublished),
    undefined,
    'a store of its own records nothing',
  )
})

t.test('published changes are removed, the others stay through a restart', async (t) => {
  const { primary, directory } = pair(t)
  for (let number = 1; number <= 5; number++)
    primary.write(() => primary.table('one').putSync(Buffer.from([number]), Buffer.alloc(100)))
  primary.shrinkUnrecorded(() =>
    primary.replication.putState({ ...PRIMARY, ...primary.replication.removeTo(3, primary.replication.state) }),
  )
  cpSync(join(directory, 'a'), join(directory, 'c'), { recursive: true })
  const again = environmentIn(t, join(directory, 'c'))
  const numbers = again.read(() => again.replication.unpublished(0, BYTES_MAX)).map(({ number }) => number)
  t.same(numbers, [4, 5])
  t.equal(again.read(() => again.replication.unpublished(0, 1)).length, 1, 'one fits always')
})

t.test('a table that this release lacks, and bytes that are no change, are refused', async (t) => {
  const { primary, replica } = pair(t)
  primary.table('newer')
  primary.write(() => primary.table('newer').putSync(Buffer.from('k'), Buffer.from('v')))
  t.throws(() => repeatAll(primary, replica), { code: 'STORE_VERSION', message: /lacks: newer; upgrade this node/ })
  const nothing = { put() {}, remove() {}, migrate() {} }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
      try {
        repeatChange(Buffer.from(bytes), nothing)
      } catch (error) {
        t.ok(error instanceof RangeError || isFault(error, 'STORE_VERSION'))
      }
    }),
  )
})

t.test('the primary migrates all stores at one place among the changes', async (t) => {
  const directory = t.testdir({ a: {}, b: {}, old: {} })
  const [key, text] = [Buffer.from('k'), (value: string) => Buffer.from(value)]
  const open = (name: string, schemaVersion: number): Environment => {
    const environment = new Environment(join(directory, name), { ...OPTIONS, schemaVersion, migrate: 'by the caller' })
    for (const table of TABLES) environment.table(table)
    t.teardown(() => environment.close())
    // Depends on what the store has at that place.
    environment.migrate((version) => {
      if (version > 1) environment.table('two').putSync(key, environment.table('one').get(key) ?? text('none'))
    })
    return environment
  }
  for (const name of ['a', 'b', 'old']) {
    const environment = open(name, 1)
    const mode = name === 'a' ? 'primary' : 'replica'
    environment.writeUnrecorded(() => environment.replication.putState({ ...PRIMARY, mode }))
    await environment.close()
  }
  const [primary, replica, old] = [open('a', 2), open('b', 2), open('old', 1)]
  t.same(
    [primary, replica, old].map((each) => each.isMigrationPending),
    [true, true, false],
  )
  t.throws(() => primary.write(() => primary.table('one').putSync(key, text('new form'))), {
    code: 'STORE_VERSION',
    message: /the primary of the cluster is of an older release/,
  })
  t.throws(() => replica.migrateCluster(), { code: 'NOT_PRIMARY' })
  const older = open('a', 1)
  older.write(() => older.table('one').putSync(key, text('before')))
  primary.migrateCluster()
  primary.write(() => primary.table('one').putSync(key, text('after')))
  t.notOk(primary.isMigrationPending)
  t.throws(() => repeatAll(primary, old), { code: 'STORE_VERSION', message: /written by a newer release \(schema 2\)/ })
  t.same(contentOf(old), [], 'the transaction was aborted')
  repeatAll(primary, replica)
  t.same(contentOf(replica), contentOf(primary))
  t.equal(primary.table('two').get(key)?.toString(), 'before')
  t.equal(replica.schemaVersion, 2)
  t.notOk(replica.isMigrationPending)
  t.throws(() => open('old', 3), { code: 'STORE_VERSION', message: /schema 1; upgrade one release at a time/ })
})

t.test('writers that can wait do so before the limit of others, and while the brokers are not reachable', async (t) => {
  const { primary } = pair(t)
  const { replication } = primary
  const areSlow = (state: Partial<ReplicationState>): boolean => {
    primary.writeUnrecorded(() => replication.putState({ ...PRIMARY, ...state }))
    return primary.read(() => replication.areBrokersSlow)
  }
  const mebibytes = (count: number) => ({ unpublishedBytes: count * 1024 * 1024 })
  t.equal(areSlow(mebibytes(7)), false)
  t.equal(areSlow(mebibytes(9)), true)
  t.equal(areSlow({ mode: 'paused' }), true)
  t.equal(areSlow({ mode: 'replica' }), false)
  primary.writeUnrecorded(() => replication.forget())
  t.equal(
    primary.read(() => replication.areBrokersSlow),
    false,
    'a store of its own',
  )
})
