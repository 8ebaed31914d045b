import { once } from 'node:events'
import { BroadcastChannel } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { TaskThread } from '../../../../engine/kernel/process/task-thread.ts'
import type { FailingTask, FailingThreadData } from '../../../support/failing-task.ts'

/** Longer than any of these tests: what waits for it has failed. */
const HOUR_MS = 3_600_000

let sites = 0

/** A thread that a test can end with an uncaught exception. */
function site(t: Test) {
  const name = `failing thread ${process.pid} ${++sites}`
  const channel = new BroadcastChannel(name)
  t.teardown(() => channel.close())
  const data: FailingThreadData = { channel: name }
  const errors: Error[] = []
  let onFailed: (error: Error) => void = () => {}
  const failed = new Promise<Error>((resolve) => {
    onFailed = resolve
  })
  const thread = new TaskThread<FailingTask, FailingTask>({
    file: new URL('../../../support/failing-task.js', import.meta.url),
    data,
    onError: (error) => {
      errors.push(error)
      onFailed(error)
    },
  })
  t.teardown(() => thread.discard())
  return {
    thread,
    failed,
    errors,
    /** Resolves when the thread runs a task that never ends. */
    hangs: () => once(channel as unknown as EventTarget, 'message'),
    fail: () => channel.postMessage('fail'),
  }
}

t.test('a task that fails leaves a thread that answers the next one', async (t) => {
  const { thread } = site(t)
  t.equal(thread.hasStarted, false)
  t.equal(await thread.run('answer'), 'answer')
  await t.rejects(thread.run('fail'), { message: 'the task failed' })
  t.equal(thread.hasStarted, false, 'it was discarded')
  t.equal(await thread.run('answer'), 'answer')
  await thread.close('answer', HOUR_MS)
})

t.test('a thread that fails during a task fails the task, and another one answers the next', async (t) => {
  const { thread, hangs, fail } = site(t)
  const hanging = hangs()
  const task = t.rejects(thread.run('hang'), { message: 'the thread failed' })
  await hanging
  fail()
  await task
  t.equal(await thread.run('answer'), 'answer')
})

t.test('a thread that fails between tasks is reported, and another one answers the next', async (t) => {
  const { thread, fail, failed } = site(t)
  t.equal(await thread.run('answer'), 'answer')
  fail()
  t.match(await failed, { message: 'the thread failed' })
  t.equal(await thread.run('answer'), 'answer')
})

t.test('close ends although the thread fails during the last task', async (t) => {
  const { thread, hangs, fail } = site(t)
  t.equal(await thread.run('answer'), 'answer')
  const hanging = hangs()
  const closed = thread.close('hang', HOUR_MS)
  await hanging
  fail()
  await closed
})

t.test('close ends although a failing task discards the thread at the same time', async (t) => {
  const { thread, hangs, fail } = site(t)
  const hanging = hangs()
  const task = t.rejects(thread.run('hang'), { message: 'the thread failed' })
  await hanging
  const closed = thread.close('answer', HOUR_MS)
  fail()
  await Promise.all([closed, task])
  t.equal(thread.hasStarted, false)
})

t.test('close and discard at the same time both end', async (t) => {
  const { thread, hangs } = site(t)
  const hanging = hangs()
  const task = t.rejects(thread.run('hang'))
  await hanging
  await Promise.all([thread.close('answer', HOUR_MS), thread.discard(), task])
  await thread.close('answer', HOUR_MS)
  await thread.discard()
})

t.test('a thread that never ends its task delays close until the deadline only', async (t) => {
  const { thread, hangs } = site(t)
  t.equal(await thread.run('answer'), 'answer')
  const hanging = hangs()
  const closed = thread.close('hang', 100)
  await hanging
  await closed
})
