import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { exclusively } from '../../../../engine/kernel/process/exclusive.ts'

t.test('one process runs at a time, and a killed process leaves no lock', async (t) => {
  const directory = t.testdir({ a: {}, b: {} })
  const here = join(directory, 'a')
  const child = fork(fileURLToPath(new URL('../../../support/hold-exclusively.js', import.meta.url)), [here], {
    stdio: 'inherit',
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  await t.rejects(
    exclusively(here, 'reading', async () => {}),
    { code: 'STORE_IN_USE', message: /reading. Wait until it has finished/ },
  )
  t.equal(await exclusively(here, 'other work', async () => 1), 1)
  t.equal(await exclusively(join(directory, 'b'), 'reading', async () => 2), 2)
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  t.equal(await exclusively(here, 'reading', async () => 3), 3)
  await t.rejects(
    exclusively(here, 'reading', () => Promise.reject(new Error('it failed'))),
    /it failed/,
  )
  t.equal(await exclusively(here, 'reading', async () => 4), 4, 'failed work has released the lock')
})
