import t from 'tap'
import { METHODS, packEvent, unpackEvent } from '../../../engine/kernel/event/event.ts'
import { slicesOf } from '../../../engine/kernel/lmdb/queue-chunk.ts'
import { replaceClients } from '../../../engine/store/replace-clients.ts'
import * as fc from '../../support/property.ts'
import { NOON, Sender } from '../../support/store.ts'

const anyEvent = fc.record({
  client: fc.oneof(fc.ipV4(), fc.ipV6()),
  method: fc.constantFrom(...METHODS),
  firstSeenMs: fc.constantFrom(0, 100, 70_000, NOON),
  count: fc.constantFrom(1, 127, 128, 70_000),
  optional: fc.constantFrom(
    {},
    { blocked: 1 },
    { user: 'jdoe' },
    { blocked: 1, user: 'ü'.repeat(60) },
    { bytesSent: 9 },
  ),
})

t.test('only client and user of an event change, whatever their lengths', async (t) => {
  fc.assert(
    fc.property(
      fc.array(anyEvent, { maxLength: 20 }),
      fc.constantFrom('', '::', `p-${'x'.repeat(27)}`, `p-${'x'.repeat(44)}`, `u-${'x'.repeat(180)}`),
      (some, other) => {
        const events = some.map(({ optional, ...rest }) =>
          new Sender().event('claude.ai', NOON, { ...rest, ...optional }),
        )
        const client = other === '' ? '::' : other
        const replaced = replaceClients(slicesOf(events.map(packEvent)), {
          ofClient: (address) => (address.length % 2 === 0 ? address : client),
          ofUser: (name) => (name === 'jdoe' ? other : name),
        })
        t.equal(replaced.count, events.length)
        for (const [index, event] of events.entries()) {
          const found = unpackEvent(replaced.bytes.subarray(replaced.starts[index], replaced.ends[index]), true)
          const { user, ...rest } = event
          const name = user === 'jdoe' ? other : user
          const expected = name === undefined || name === '' ? rest : { ...rest, user: name }
          // '::' is no name of a user, and the event is then not valid.
          t.same(
            found,
            name?.startsWith(':')
              ? found
              : { ...expected, client: event.client.length % 2 === 0 ? event.client : client },
          )
        }
        return true
      },
    ),
    { numRuns: 200 },
  )
})
