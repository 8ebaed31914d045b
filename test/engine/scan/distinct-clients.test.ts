import t from 'tap'
import {
  DistinctClients,
  ESTIMATE_ERROR,
  EXACT_CLIENTS_MAX,
  hashClient,
} from '../../../engine/scan/distinct-clients.ts'

const bytes = new Uint8Array(32)
const view = new DataView(bytes.buffer)

function client(index: number): number {
  const { written } = new TextEncoder().encodeInto(
    `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
    bytes,
  )
  return hashClient(view, 0, written)
}

function sketchOf(first: number, end: number): DistinctClients {
  const sketch = new DistinctClients()
  for (let index = first; index < end; index++) sketch.add(client(index))
  return sketch
}

t.test('the count is exact up to its limit, with any repetitions', async (t) => {
  for (const count of [0, 1, 2, EXACT_CLIENTS_MAX]) {
    const sketch = sketchOf(0, count)
    for (let index = 0; index < count; index++) sketch.add(client(index))
    t.equal(sketch.estimate, count)
    t.equal(sketch.exact, true)
  }
  t.equal(sketchOf(0, EXACT_CLIENTS_MAX + 1).exact, false)
})

for (const count of [300, 1000, 5000, 20_000, 100_000, 1_000_000]) {
  t.test(`${count} clients are counted within three standard errors`, async (t) => {
    const { estimate } = sketchOf(0, count)
    t.ok(Math.abs(estimate - count) <= 3 * ESTIMATE_ERROR * count, `${estimate}`)
  })
}

t.test('merging sketches equals one sketch of all clients, for each mixture of formats', async (t) => {
  for (const [a, b, end] of [
    [0, 100, 200],
    [0, 100, 5000],
    [0, 3000, 3050],
    [0, 3000, 9000],
  ] as const) {
    const merged = sketchOf(a, b)
    merged.merge(sketchOf(b - 50, end))
    t.equal(merged.estimate, sketchOf(a, end).estimate)
    t.equal(DistinctClients.fromBytes(merged.toBytes()).estimate, merged.estimate, 'also when stored and read')
  }
})

t.test('another client never lowers the count, including across formats', async (t) => {
  const sketch = new DistinctClients()
  let before = 0
  for (let index = 0; index < 20_000; index++) {
    sketch.add(client(index * 7919))
    const { estimate } = sketch
    if (estimate < before) t.fail(`${estimate} behind ${before} with ${index + 1} clients`)
    before = estimate
  }
  t.ok(before > 18_000 && before < 22_000, `${before}`)
})

t.test('a copy and its original are counted apart, and a part is compared with all', async (t) => {
  for (const count of [0, 5, EXACT_CLIENTS_MAX + 10]) {
    const all = sketchOf(0, count)
    const copy = all.clone()
    t.same(copy.toBytes(), all.toBytes())
    t.ok(copy.isAllOf(all))
    all.add(client(count))
    t.not(Buffer.compare(copy.toBytes(), all.toBytes()), 0)
    t.notOk(copy.isAllOf(all))
  }
})
