import t from 'tap'
import { changeMessages, nodeMessage, readMessage } from '../../../../engine/cluster/replication/messages.ts'
import * as fc from '../../../support/property.ts'

const SENDER = { node: '018f0000-0000-7000-8000-000000000001', name: 'node-1', generation: 7 }
const MEGABYTE = 1024 * 1024

t.test('a message is read as it was written', async (t) => {
  for (const kind of ['tick', 'takeover', 'resignation'] as const) {
    t.same(readMessage(nodeMessage(kind, SENDER)), { kind, sender: SENDER })
  }
  const number = fc.integer({ min: 1, max: 2 ** 47 })
  const writes = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(number, number, writes, (generation, first, all) => {
      const changes = all.map((bytes, index) => ({ number: first + index, writes: Buffer.from(bytes) }))
      const [message, ...others] = changeMessages(generation, changes)
      t.same(others, [])
      const expected = { kind: 'changes', generation, first, writes: changes.map((change) => change.writes) }
      t.same(readMessage(message ?? Buffer.alloc(0)), expected)
    }),
  )
})

t.test('a large change is in several messages', async (t) => {
  const writes = Buffer.alloc(9 * MEGABYTE, 'abc')
  const parts = changeMessages(1, [{ number: 2, writes }]).map((bytes) => readMessage(bytes))
  t.match(parts, [
    { part: 0, parts: 3 },
    { part: 1, parts: 3 },
    { part: 2, parts: 3 },
  ])
  t.ok(Buffer.concat(parts.map((part) => (part.kind === 'change' ? part.writes : Buffer.alloc(0)))).equals(writes))
})

t.test('changes share a message up to its size, and stay in order', async (t) => {
  const sizes = [10, 3 * MEGABYTE, 2 * MEGABYTE, 5 * MEGABYTE, 20]
  const changes = sizes.map((size, index) => ({ number: index + 1, writes: Buffer.alloc(size, index) }))
  const read = changeMessages(1, changes).map((bytes) => readMessage(bytes))
  t.same(
    read.map((message) => (message.kind === 'changes' ? [message.first, message.writes.length] : message.kind)),
    [[1, 2], [3, 1], 'change', 'change', [5, 1]],
  )
})

t.test('other bytes are no message', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      if ((bytes[0] === 1 && bytes.length >= 17) || (bytes[0] === 5 && bytes.length >= 13)) return
      t.throws(() => readMessage(bytes))
    }),
  )
})
