import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, linkSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { asUser } from '../../../../engine/kernel/process/become-user.ts'
import { DirectoryLock, LOCK_PREFIX } from '../../../../engine/kernel/process/directory-lock.ts'
import type { LockOrder, LockReport } from '../../../support/lock-process.ts'
import { skipUnlessRoot } from '../../../support/other-user.ts'
import { until } from '../../../support/wait.ts'

const PROCESSES = 8
const ROUNDS = 10

t.test('of many processes that start at the same time, one has the lock', async (t) => {
  const processes = await startProcesses(t)
  for (const stale of [false, true]) {
    await t.test(stale ? 'a stale lock is replaced' : 'the directory has no lock', async (t) => {
      const parent = t.testdir()
      for (let round = 0; round < ROUNDS; round++) {
        const directory = join(parent, `${round}`)
        mkdirSync(directory)
        if (stale) await leaveStaleLock(directory)
        const taken = await orderAll(processes, { directory })
        t.equal(sum(taken), 1, `round ${round}: ${taken}`)
        t.equal(await DirectoryLock.isTaken(directory), true)
        t.equal(await DirectoryLock.take(directory), undefined)
      }
    })
  }
})

t.test('a lock that processes take and release in turn has one holder at a time', async (t) => {
  const processes = await startProcesses(t)
  const taken = await orderAll(processes, { directory: t.testdir(), times: 200 })
  t.ok(sum(taken) > 0, `${taken}`)
})

t.test('a process that is paused at any step of replacing a stale lock takes it from no other', async (t) => {
  const parent = t.testdir()
  for (let stopBefore = 1; ; stopBefore++) {
    const [paused] = (await startProcesses(t, 1)).all
    if (paused === undefined) throw new Error('no process')
    const directory = join(parent, `${stopBefore}`)
    mkdirSync(directory)
    await leaveStaleLock(directory)
    const reported = once(paused, 'message')
    let isPaused = true
    void reported.then(() => {
      isPaused = false
    })
    paused.send({ directory, stopBefore } satisfies LockOrder)
    await until('the process is paused, or has the lock', () => !isPaused || stateOf(paused) === 'T')
    if (!isPaused) return t.ok(stopBefore > 4, `it was paused before ${stopBefore - 1} steps`)
    const lock = await DirectoryLock.take(directory)
    paused.kill('SIGCONT')
    const [taken] = await reported
    t.equal((lock === undefined ? 0 : 1) + taken, 1, `paused before step ${stopBefore}`)
    await lock?.release()
    paused.kill('SIGKILL')
  }
})

/** The state of a process: the field after its name in /proc/PID/stat (proc(5)). */
function stateOf({ pid }: ChildProcess): string | undefined {
  return /\) (.)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
}

interface LockProcesses {
  readonly all: readonly ChildProcess[]
  /** Aborted when a process has ended, as it does after an error. */
  readonly signal: AbortSignal
}

async function startProcesses(t: Test, count = PROCESSES): Promise<LockProcesses> {
  const program = fileURLToPath(new URL('../../../support/lock-process.js', import.meta.url))
  const ended = new AbortController()
  const all = Array.from({ length: count }, () => fork(program).once('exit', () => ended.abort()))
  t.teardown(() => all.map((child) => child.kill('SIGKILL')))
  await Promise.all(all.map((child) => once(child, 'message')))
  return { all, signal: ended.signal }
}

/** Gives all processes the same order and returns their reports. */
function orderAll({ all, signal }: LockProcesses, order: LockOrder): Promise<LockReport[]> {
  return Promise.all(
    all.map(async (child) => {
      const reported = once(child, 'message', { signal })
      child.send(order)
      const [report] = await reported
      return report as LockReport
    }),
  )
}

/** Leaves a socket without a listener, as a killed process does. */
async function leaveStaleLock(directory: string): Promise<void> {
  // The path of a socket has at most 107 bytes.
  const descriptor = openSync(directory, 'r')
  const own = `/proc/self/fd/${descriptor}/socket`
  const server = createServer().listen(own)
  await once(server, 'listening')
  linkSync(own, join(directory, `${LOCK_PREFIX}1.sock`))
  server.close()
  await once(server, 'close')
  closeSync(descriptor)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

t.test('root takes the lock with the rights of the user of the directory', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir()
  chownSync(directory, 1234, 1234)
  const user = { uid: 1234, gid: 1234 }
  for (const found of ['no lock', 'a released lock']) {
    const lock = await DirectoryLock.take(directory, '', (step) => asUser(user, step))
    t.ok(lock, found)
    const names = readdirSync(directory)
    t.equal(names.length, 1)
    t.match(lstatSync(join(directory, names[0] ?? '')), { uid: 1234, gid: 1234 })
    await lock?.release()
  }
})
