import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Environment } from '../../../../engine/kernel/lmdb/environment.ts'
import { Fault } from '../../../../engine/kernel/process/error-codes.ts'
import { skipNamespaces as skip } from '../../../support/namespace.ts'
import { SmallDisk } from '../../../support/small-disk.ts'
import { until } from '../../../support/wait.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }

t.test('without free space nothing is written, and existing data can be read', async (t) => {
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

t.test('a disk that other programs fill counts as full before LMDB runs out of pages', { skip }, async (t) => {
  const disk = new SmallDisk(t, 24)
  const environment = new Environment(join(disk.directory, 'store'), OPTIONS)
  const data = join(environment.path, 'data.mdb')
  const table = environment.table('t')
  const put = (key: number) => environment.write(() => table.putSync(Buffer.from([key]), Buffer.alloc(1024 * 1024)))
  put(0)
  const size = statSync(data).size
  t.ok(size >= 2 * 1024 * 1024, `${size} bytes: longer than its content`)
  disk.fillUpTo(0)
  t.equal(disk.freeBytes, 0)
  // Only the preallocated part of the file is left, and half of it is reserved for deletions.
  let written = 1
  t.throws(
    () => {
      for (; written < 10; written++) put(written)
    },
    { code: 'STORE_FULL', message: /^--data-dir .*: no space left; free some space$/ },
  )
  t.ok(written > 1, `${written} of 1 MB were written on a full disk`)
  t.equal(statSync(data).size, size, 'LMDB did not extend its file')
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
  t.match(refused(), { code: 'STORE_FULL', cause: undefined }, 'refused before LMDB ran out of pages')
  t.equal(environment.full, true, 'the environment reports the full disk')
  disk.free()
  // The environment checks the disk once a second.
  await until('free space', () => !environment.full)
  const records = environment.tableRecords('t')
  put(written)
  t.equal(environment.tableRecords('t'), records + 1)
  await environment.close()
})

t.test("the file is extended under LMDB's write lock", async (t) => {
  const path = t.testdir()
  const data = join(path, 'data.mdb')
  const environment = new Environment(path, OPTIONS)
  const table = environment.table('t')
  // Leaves less than 2 MB of 4.
  for (let key = 0; key < 2; key++) {
    environment.write(() => table.putSync(Buffer.from([key]), Buffer.alloc(1.25 * 1024 * 1024)))
  }
  const size = statSync(data).size
  const program = fileURLToPath(new URL('../../../support/write-once.js', import.meta.url))
  const waiting = async (how: string) => {
    const file = join(path, how)
    const child = fork(program, [how, path, file])
    t.teardown(() => child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    await once(child, 'message')
    return { ended, child, proceed: () => writeFileSync(file, '') }
  }
  const writer = await waiting('ours')
  const holder = await waiting('lmdb')
  const writing = once(writer.child, 'message')
  writer.proceed()
  await writing
  await untilAsleep(writer.child.pid ?? 0)
  t.equal(statSync(data).size, size, 'it waits')
  holder.proceed()
  t.equal((await holder.ended)[0], 0)
  t.equal((await writer.ended)[0], 0)
  t.ok(statSync(data).size > size, 'then it has made the file longer')
  await environment.close()
})

/** The process has used no CPU time for a while, so it waits for something. */
async function untilAsleep(pid: number): Promise<void> {
  let before = ''
  let same = 0
  await until('the process sleeps', () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    const now = [fields[0], fields[11], fields[12]].join(' ')
    same = now === before && fields[0] === 'S' ? same + 1 : 0
    before = now
    return same === 20
  })
}

t.test('a Fault of the work is thrown unchanged, even on a full disk', async (t) => {
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
