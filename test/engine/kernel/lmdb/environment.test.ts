import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Environment } from '../../../../engine/kernel/lmdb/environment.ts'
import { until } from '../../../support/wait.ts'

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

/** Runs `code` in another process, which has Environment and the path of one. */
function inAnother(t: Test, path: string, code: string) {
  const module = new URL('../../../../engine/kernel/lmdb/environment.js', import.meta.url).pathname
  const program = `import { existsSync, writeSync } from 'node:fs'
    const { Environment } = await import('${module}')
    const [path, options] = ['${path}', ${JSON.stringify(OPTIONS)}]
    const say = (text) => writeSync(1, text + '\\n')
    ${code}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (text: Buffer) => {
    said += text
  })
  const ended = once(child, 'close')
  return { child, ended, says: (text: string) => until(`not ${text}`, () => said.includes(text)), said: () => said }
}

const HOLD = `const environment = new Environment(path, options)
  environment.write(() => {
    say('writes')
    while (!existsSync(path + '/release')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    say('wrote')
  })
  await environment.close()`

for (const readOnly of [false, true]) {
  t.test(`a process opens an environment after the transaction of another, readOnly ${readOnly}`, async (t) => {
    const path = t.testdir()
    const environment = new Environment(path, OPTIONS)
    environment.write(() => environment.table('t').putSync(Buffer.from('k'), Buffer.from('v')))
    await environment.close()
    const writer = inAnother(t, path, HOLD)
    await writer.says('writes')
    const open = `say('opens'); const environment = new Environment(path, { ...options, readOnly: ${readOnly} })`
    const opener = inAnother(t, path, `${open}; say('opened'); await environment.close()`)
    await opener.says('opens')
    // Without the lock, it would open now. A longer time only finds more faults.
    await later(500)
    t.notOk(opener.said().includes('opened'))
    writeFileSync(join(path, 'release'), '')
    await opener.says('opened')
    t.match(await opener.ended, [0])
    t.match(await writer.ended, [0])
  })
}

t.test('the lock of a process that was killed in a transaction is free', async (t) => {
  const path = t.testdir()
  const writer = inAnother(t, path, HOLD)
  await writer.says('writes')
  writer.child.kill('SIGKILL')
  await writer.ended
  const environment = new Environment(path, OPTIONS)
  environment.write(() => environment.table('t').putSync(Buffer.from('k'), Buffer.from('v')))
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
