import t from 'tap'
import {
  addToSketch,
  clientsInSketch,
  mergedSketch,
  SKETCH_BYTES,
  SKETCH_CLIENTS_MAX,
} from '../../../engine/store/candidates.ts'
import * as fc from '../../support/property.ts'

const hashOf = (client: number): number => Math.imul(client + 1, 0x9e3779b1) ^ Math.imul(client, 0x85ebca6b)

function sketchOf(clients: readonly number[]): Uint8Array {
  const sketch = new Uint8Array(SKETCH_BYTES)
  for (const client of clients) addToSketch(sketch, hashOf(client))
  return sketch
}

const rows: readonly { clients: number; from: number; to: number }[] = [
  { clients: 0, from: 0, to: 0 },
  { clients: 1, from: 1, to: 1 },
  { clients: 3, from: 3, to: 3 },
  { clients: 10, from: 8, to: 11 },
  { clients: 100, from: 80, to: 120 },
  { clients: 400, from: 300, to: 500 },
]
for (const { clients, from, to } of rows) {
  t.test(`${clients} clients count as ${from} to ${to}`, async (t) => {
    const count = clientsInSketch(sketchOf(Array.from({ length: clients }, (_, at) => at * 7919)))
    t.ok(count >= from && count <= to, String(count))
  })
}

t.test('a full sketch counts as the maximum', async (t) => {
  t.equal(clientsInSketch(new Uint8Array(SKETCH_BYTES).fill(255)), SKETCH_CLIENTS_MAX)
})

t.test('merging gives the sketch of both, in any order', async (t) => {
  const clients = fc.array(fc.integer({ min: 0, max: 1_000_000 }), { maxLength: 300 })
  fc.assert(
    fc.property(clients, clients, (one, other) => {
      const both = Buffer.from(sketchOf([...one, ...other]))
      return both.equals(mergedSketch(sketchOf(one), sketchOf(other))) && both.equals(mergedSketch(both, sketchOf(one)))
    }),
  )
  t.pass()
})
