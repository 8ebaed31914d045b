import t from 'tap'
import { deferred, deferredFailure } from '../../../engine/process/deferred.ts'

t.test('is settled once, from outside', async (t) => {
  const first = deferred<number>()
  first.resolve(1)
  first.resolve(2)
  first.reject(new Error('late'))
  t.equal(await first.promise, 1)

  const second = deferred()
  second.reject(new Error('failed'))
  second.resolve()
  await t.rejects(second.promise, { message: 'failed' })
})

t.test('a failure before anybody awaits it is not unhandled, and ends a race', async (t) => {
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  t.teardown(() => process.off('unhandledRejection', onUnhandled))
  const failure = deferredFailure()
  failure.reject(new Error('failed'))
  // Unhandled rejections are reported when the queue of microtasks is empty, which it is before a timer.
  await new Promise((resolve) => setTimeout(resolve, 0))
  t.same(unhandled, [])
  await t.rejects(Promise.race([failure.promise, new Promise(() => {})]), { message: 'failed' })
})
