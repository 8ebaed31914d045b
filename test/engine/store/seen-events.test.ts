import t from 'tap'
import { Environment } from '../../../engine/lmdb/environment.ts'
import { Family } from '../../../engine/store/family.ts'
import { uuidBytes } from '../../../engine/store/keys.ts'
import { SeenEvents } from '../../../engine/store/seen-events.ts'

const OPTIONS = { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 }
const ACME = '00000000-0000-4000-8000-000000000001'
const instance = (number: number): string => number.toString(16).padStart(16, '0')

t.test('remembered instances are limited, and those silent the longest are removed', async (t) => {
  const environment = new Environment(t.testdir(), OPTIONS)
  t.teardown(() => environment.close())
  const seen = new SeenEvents(environment, 20)
  const unseen = (number: number, nowMs: number): boolean =>
    environment.write(() => seen.keepUnseen(ACME, [{ instance: instance(number), first: 1, count: 1 }], nowMs))
      .length === 1
  for (let number = 0; number < 50; number++) {
    t.equal(unseen(number, 1000 + number), true)
    // An instance that is always in use, with a new sequence each time.
    environment.write(() =>
      seen.keepUnseen(ACME, [{ instance: instance(999), first: number + 1, count: 1 }], 1000 + number),
    )
  }
  const kept = [...new Family(environment.table('seen'), 'seen events').range(uuidBytes(ACME))]
  t.ok(kept.length <= 20, `${kept.length}`)
  t.equal(unseen(49, 2000), false, 'the latest')
  t.equal(
    environment.write(() => seen.keepUnseen(ACME, [{ instance: instance(999), first: 1, count: 1 }], 2000)).length,
    0,
  )
  t.equal(unseen(0, 2000), true, 'the first is forgotten')
})
