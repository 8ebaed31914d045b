import t from 'tap'
import { KeyedHash, keyedNames } from '../../registry/keyed-hash.ts'
import { collidingTexts } from '../support/colliding-texts.ts'
import * as fc from '../support/property.ts'

const POSITIONS = 300

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const hashOf = (keyed: KeyedHash, bytes: Uint8Array): number => keyed.bytes(viewOf(bytes), 0, bytes.byteLength)

/** Pairs of words of which one bit and a constant canceled each other in an earlier hash. */
function flippedWords(): Buffer[] {
  return Array.from({ length: 512 }, (_, flips) => {
    const words = Uint32Array.from({ length: 10 }, (_, word) => {
      const canceled = word > 0 && ((flips >> (word - 1)) & 1) === 1
      return ((((flips >> word) & 1) << 31) ^ (canceled ? 0x8001_0000 : 0)) >>> 0
    })
    return Buffer.from(words.buffer)
  })
}

const attacks: readonly { readonly name: string; readonly keys: () => readonly Buffer[] }[] = [
  { name: 'equal FNV-1a hash', keys: () => collidingTexts(10).map((text) => Buffer.from(text)) },
  { name: 'flips of bits that cancel each other', keys: flippedWords },
  { name: 'zeros of different lengths', keys: () => Array.from({ length: 256 }, (_, length) => Buffer.alloc(length)) },
  {
    name: 'consecutive addresses',
    keys: () => Array.from({ length: 1024 }, (_, client) => Buffer.from([10, 0, client >> 8, client & 255])),
  },
  {
    name: 'multiples of the number of buckets',
    keys: () => Array.from({ length: 1024 }, (_, key) => Buffer.from(Uint32Array.of(key << 16).buffer)),
  },
]
for (const { name, keys } of attacks) {
  t.test(`keys of an attack spread over the buckets: ${name}`, async (t) => {
    const all = keys()
    const buckets = 2 * 2 ** Math.ceil(Math.log2(all.length))
    const places = [(hash: number) => hash & (buckets - 1), (hash: number) => hash >>> (32 - Math.log2(buckets))]
    for (const placeOf of places) {
      // The flips are a linear map over GF(2): 32 keys of a bucket have a probability of 2^-30.
      const counts = new Map<number, number>()
      const keyed = new KeyedHash(POSITIONS)
      for (const key of all) {
        const bucket = placeOf(hashOf(keyed, key))
        counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
      }
      const fullest = Math.max(...counts.values())
      t.ok(fullest < 32, `${fullest} of ${all.length} keys in a bucket of ${buckets}`)
    }
  })
}

t.test('two different keys have equal low bits as often as the bound says', async () => {
  const key = fc.uint8Array({ maxLength: 12 })
  fc.assert(
    fc.property(key, key, (one, other) => {
      fc.pre(Buffer.compare(one, other) !== 0)
      // Expected 64 times, with a standard deviation below 8. Eight of them are never exceeded.
      let equal = 0
      for (let draw = 0; draw < 1024; draw++) {
        const keyed = new KeyedHash(12)
        if (((hashOf(keyed, one) ^ hashOf(keyed, other)) & 15) === 0) equal++
      }
      return equal > 0 && equal < 128
    }),
    { numRuns: 20 },
  )
})

t.test('a hash of parts is that of the whole', async (t) => {
  const keyed = new KeyedHash(POSITIONS)
  const whole = Buffer.from('a user of the client 2001:db8::1')
  const view = viewOf(whole)
  fc.assert(
    fc.property(fc.nat(whole.length), (middle) => {
      const front = keyed.bytes(view, 0, middle)
      return keyed.bytes(view, middle, whole.length, middle, front) === hashOf(keyed, whole)
    }),
  )
  t.equal(
    keyed.word(viewOf(whole).getUint32(0, true), 0, 0),
    keyed.bytes(view, 0, 4),
    'a word is hashed as its bytes, the lowest first',
  )
  t.equal(keyed.byte(whole[0] ?? 0, 7, 5), keyed.bytes(view, 0, 1, 7, 5))
})

t.test('names in any case have the same hash, and no other bytes', async (t) => {
  const of = (text: string) => hashOf(keyedNames, Buffer.from(text, 'latin1'))
  t.equal(of('API.ChatGPT.com'), of('api.chatgpt.com'))
  t.equal(of('az.AZ'), of('AZ.az'))
  for (const [one, other] of [
    ['@', '`'],
    ['[', '{'],
    ['\u00c1', '\u00e1'],
  ] as const) {
    t.not(of(one), of(other), 'letters only')
  }
})

t.test('each instance has its own numbers', async (t) => {
  const key = Buffer.from('chatgpt.com')
  t.not(hashOf(new KeyedHash(POSITIONS), key), hashOf(new KeyedHash(POSITIONS), key))
})
