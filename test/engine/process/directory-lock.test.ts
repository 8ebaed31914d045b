import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, linkSync, mkdirSync, openSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { DirectoryLock, LOCK_PREFIX } from '../../../engine/process/directory-lock.ts'
import type { LockOrder, LockReport } from '../../support/lock-process.ts'

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

interface LockProcesses {
  readonly all: readonly ChildProcess[]
  /** Aborted when a process has ended, as it does after an error. */
  readonly signal: AbortSignal
}

async function startProcesses(t: Test): Promise<LockProcesses> {
  const program = fileURLToPath(new URL('../../support/lock-process.js', import.meta.url))
  const ended = new AbortController()
  const all = Array.from({ length: PROCESSES }, () => fork(program).once('exit', () => ended.abort()))
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
  linkSync(own, join(directory, `${LOCK_PREFIX}sock`))
  server.close()
  await once(server, 'close')
  closeSync(descriptor)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
