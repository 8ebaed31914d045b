import { join } from 'node:path'
import t from 'tap'
import { Environment } from '../../../engine/kernel/lmdb/environment.ts'
import { type Migration, migrate, SCHEMA_VERSION } from '../../../engine/store/migrate.ts'
import { run, runAdmin } from '../../support/programs.ts'

const KEY = Buffer.from('key')

/** Appends to a record, to show the order and number of runs. */
function appending(text: string): Migration {
  return (environment) => {
    const table = environment.table('a')
    table.putSync(KEY, Buffer.concat([table.get(KEY) ?? Buffer.alloc(0), Buffer.from(text)]))
  }
}

function open(path: string, schemaVersion: number): Environment {
  const environment = new Environment(path, {
    setting: '--data-dir',
    schemaVersion,
    freeBytesMin: 0,
    migrate: 'by the caller',
  })
  environment.table('a')
  return environment
}

t.test('missing migrations run once, in order, all or none', async (t) => {
  const path = t.testdir()
  const failing: Migration = () => {
    throw new Error('out of luck')
  }
  const steps: { migrations: Migration[]; fails?: boolean; schema: number; text: string | undefined }[] = [
    { migrations: [], schema: 1, text: undefined },
    { migrations: [appending('2')], schema: 2, text: '2' },
    { migrations: [appending('2')], schema: 2, text: '2' },
    { migrations: [appending('2'), appending('3'), failing], fails: true, schema: 2, text: '2' },
    { migrations: [appending('2'), appending('3'), appending('4')], schema: 4, text: '234' },
  ]
  for (const { migrations, fails = false, schema, text } of steps) {
    const environment = open(path, migrations.length + 1)
    if (fails) t.throws(() => migrate(environment, migrations), /out of luck/)
    else migrate(environment, migrations)
    t.equal(environment.schemaVersion, schema)
    t.equal(environment.table('a').get(KEY)?.toString(), text)
    await environment.close()
  }
})

t.test('a schema without a migration is an internal error', async (t) => {
  const environment = open(t.testdir(), 2)
  t.throws(() => migrate(environment, []), /no migration to version 2/)
  t.equal(environment.schemaVersion, 0)
  await environment.close()
})

t.test('both programs reject a store of a newer release with one line', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'store')
  const newer = SCHEMA_VERSION + 1
  await new Environment(path, { setting: '--data-dir', schemaVersion: newer, freeBytesMin: 0 }).close()
  const line = `STORE_VERSION ${path}: written by a newer release (schema ${newer}), this one reads up to ${SCHEMA_VERSION}; install the newer release\n`
  const data = ['--data-dir', directory]
  t.match(await runAdmin(['organization', 'list', ...data]), { status: 4, stderr: `posture-admin: ${line}` })
  const service = await run('service', ['--api-port', '0', '--console-port', 'off', '--ingest-port', '0', ...data])
  t.equal(service.status, 4)
  t.ok(service.stderr.endsWith(`posture-service: ${line}`), service.stderr)
})
