import t from 'tap'
import { deferred, deferredFailure } from '../../../../engine/kernel/process/deferred.ts'

t.test('a deferred promise is settled once, from outside', async (t) => {
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

t.test('a rejection before the first await is not unhandled, and ends a race', async (t) => {
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  t.teardown(() => process.off('unhandledRejection', onUnhandled))
  const failure = deferredFailure()
  failure.reject(new Error('failed'))
  // Node reports unhandled rejections when the microtask queue is empty, which is before a timer
  // fires.
  await new Promise((resolve) => setTimeout(resolve, 0))
  t.same(unhandled, [])
  await t.rejects(Promise.race([failure.promise, new Promise(() => {})]), { message: 'failed' })
})
