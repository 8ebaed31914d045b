import t from 'tap'
import { BodyCache, type StoredBody } from '../../api/body-cache.ts'
import * as fc from '../support/property.ts'

function body(): StoredBody {
  return { key: Buffer.alloc(0), isChecked: true, bytes: undefined }
}

/**
 * Size limit of a cached body; number of bodies of that size that are always cached; number of
 * bodies that fit into memory.
 */
const BODY_BYTES_MAX = 512 * 1024
const UNCONDITIONAL_BODIES = 49
const CAPACITY_BODIES = 64
const BLOCKS = 8

const keptOf = (bodies: readonly StoredBody[]): StoredBody[] => bodies.filter(({ bytes }) => bytes !== undefined)

t.test('the cache stores a copy, independent of the original bytes', async (t) => {
  const cache = new BodyCache()
  const one = body()
  const bytes = Uint8Array.of(1, 2, 3)
  const kept = cache.keep(one, bytes)
  bytes.fill(9)
  t.same([...kept], [1, 2, 3])
  t.equal(one.bytes, kept)
  cache.drop(one)
  t.equal(one.bytes, undefined)
  cache.drop(one)
})

t.test('a full cache stays bounded: most bodies stay, and occasionally the oldest block is replaced', async (t) => {
  const cache = new BodyCache()
  const bodies = Array.from({ length: UNCONDITIONAL_BODIES + 40 * 64 }, body)
  for (const one of bodies.slice(0, UNCONDITIONAL_BODIES)) cache.keep(one, new Uint8Array(BODY_BYTES_MAX))
  t.equal(keptOf(bodies).length, UNCONDITIONAL_BODIES)
  for (const one of bodies.slice(UNCONDITIONAL_BODIES)) cache.keep(one, new Uint8Array(BODY_BYTES_MAX))
  // One of every 64 rejected bodies is cached anyway, 40 in total. The first 15 use the remaining
  // memory. Then, four times, one replaces the oldest block of 8 bodies.
  t.equal(keptOf(bodies).length, CAPACITY_BODIES - 8 + 1)
  t.equal(keptOf(bodies.slice(0, 32)).length, 0, 'the oldest was removed first')
  t.equal(keptOf(bodies.slice(32, UNCONDITIONAL_BODIES)).length, UNCONDITIONAL_BODIES - 32)
})

t.test('a body over the size limit is not cached, and a dropped body frees its space', async (t) => {
  const cache = new BodyCache()
  const long = body()
  const bytes = new Uint8Array(BODY_BYTES_MAX + 1)
  t.equal(cache.keep(long, bytes), bytes)
  t.equal(long.bytes, undefined)
  const bodies = Array.from({ length: UNCONDITIONAL_BODIES }, body)
  for (let times = 0; times < 3; times++) {
    for (const one of bodies) cache.keep(one, new Uint8Array(BODY_BYTES_MAX))
    t.equal(keptOf(bodies).length, UNCONDITIONAL_BODIES)
    for (const one of bodies) cache.drop(one)
  }
})

t.test('all bodies that fit stay cached, at any size', async (t) => {
  for (const kilobytes of [1, 30, 74, 300, 511]) {
    const cache = new BodyCache()
    const bodies = Array.from({ length: Math.floor((24 * 1024) / kilobytes) }, body)
    const round = (): number => {
      const missing = bodies.filter(({ bytes }) => bytes === undefined)
      for (const one of missing) cache.keep(one, new Uint8Array(kilobytes * 1024))
      return missing.length
    }
    t.equal(round(), bodies.length)
    t.equal(round(), 0, `${bodies.length} bodies of ${kilobytes} KB`)
  }
})

t.test('replacing a body does not count its space twice', async (t) => {
  const cache = new BodyCache()
  const one = body()
  for (let times = 0; times < 200; times++) {
    const bytes = new Uint8Array(BODY_BYTES_MAX)
    t.not(cache.keep(one, bytes), bytes)
  }
})

t.test('a cached body equals the stored one, at any order of changes', async (t) => {
  const step = fc.record({
    of: fc.nat(60),
    bytes: fc.oneof(fc.nat(2000), fc.integer({ min: 200_000, max: BODY_BYTES_MAX })),
    drops: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 120 }), (steps) => {
      const cache = new BodyCache()
      const bodies = Array.from({ length: 61 }, body)
      const put = new Map<StoredBody, number>()
      const memory = new Set<ArrayBufferLike>()
      for (const [number, { of, bytes, drops }] of steps.entries()) {
        const one = bodies[of] as StoredBody
        if (drops) cache.drop(one)
        else {
          const kept = cache.keep(one, new Uint8Array(bytes).fill(number))
          if (kept.length !== bytes || !kept.every((byte) => byte === number)) return false
          if (one.bytes === kept) put.set(one, number)
        }
        for (const { bytes } of keptOf(bodies)) if (bytes !== undefined) memory.add(bytes.buffer)
      }
      const isRight = (one: StoredBody): boolean => one.bytes?.every((byte) => byte === put.get(one)) ?? true
      return bodies.every(isRight) && memory.size <= BLOCKS
    }),
    { numRuns: 20 },
  )
  t.pass('held')
})
