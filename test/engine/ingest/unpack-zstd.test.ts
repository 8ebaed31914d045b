import { spawnSync } from 'node:child_process'
import t from 'tap'
import { unpackZstd } from '../../../engine/ingest/unpack-zstd.ts'
import * as fc from '../../support/property.ts'

const MAX = 1024 * 1024

function zstd(bytes: Uint8Array, ...words: string[]): Buffer {
  const { stdout, status } = spawnSync('zstd', ['-q', '-c', ...words], { input: bytes, maxBuffer: 64 * MAX })
  if (status !== 0) throw new Error('zstd failed')
  return stdout
}

const TEXT = Buffer.from(Array.from({ length: 50_000 }, (_, at) => `line ${at * 7919} `).join('')).subarray(0, MAX)

for (const words of [['-1'], ['-19'], ['--no-check'], [`--stream-size=${TEXT.length}`], ['--no-compress-literals']]) {
  t.test(`zstd ${words.join(' ')}`, async (t) => {
    const unpacked = await unpackZstd(zstd(TEXT, ...words), { maxOutputLength: MAX })
    t.ok(unpacked.equals(TEXT))
  })
}

t.test('an empty frame, and bytes that do not compress', async (t) => {
  t.equal((await unpackZstd(zstd(Buffer.alloc(0)), { maxOutputLength: MAX })).length, 0)
  const random = Buffer.from(Array.from({ length: 3000 }, (_, at) => (at * at * 31 + (at >> 3)) & 0xff))
  t.ok((await unpackZstd(zstd(random), { maxOutputLength: MAX })).equals(random))
})

const TOO_LARGE = { code: 'ERR_BUFFER_TOO_LARGE' }
const HEADER = Buffer.from('28b52ffd', 'hex')
const bomb = zstd(Buffer.alloc(64 * MAX))
const damaged: readonly {
  name: string
  bytes: Buffer
  error: { readonly code: string } | { readonly message: RegExp }
}[] = [
  { name: 'a bomb', bytes: bomb, error: TOO_LARGE },
  {
    name: 'a window of 2 TB, which would be allocated',
    bytes: Buffer.concat([HEADER, Buffer.from('00f8010000', 'hex')]),
    error: TOO_LARGE,
  },
  {
    name: 'a content of 2^63 bytes',
    bytes: Buffer.concat([HEADER, Buffer.from('e00000000000000080010000', 'hex')]),
    error: TOO_LARGE,
  },
  { name: 'no bytes', bytes: Buffer.alloc(0), error: { message: /frame/ } },
  { name: 'other bytes', bytes: Buffer.from('{"events":[]}'), error: { message: /frame/ } },
  { name: 'a truncated frame', bytes: zstd(TEXT).subarray(0, 2000), error: { message: /truncated|one/ } },
  { name: 'two frames', bytes: Buffer.concat([zstd(TEXT), zstd(TEXT)]), error: { message: /one/ } },
  {
    name: 'a header alone',
    bytes: Buffer.concat([HEADER, Buffer.from('c000', 'hex')]),
    error: { message: /truncated/ },
  },
]
for (const { name, bytes, error } of damaged) {
  t.test(name, (t) => t.rejects(unpackZstd(bytes, { maxOutputLength: MAX }), error))
}

t.test('any bytes and any change: rejected or decompressed, never more than the limit', async () => {
  const frame = zstd(TEXT.subarray(0, 4000))
  await fc.assert(
    fc.asyncProperty(fc.nat(frame.length - 1), fc.integer({ min: 1, max: 255 }), async (at, value) => {
      const changed = Buffer.from(frame)
      changed[at] = (changed[at] ?? 0) ^ value
      const outcome = await unpackZstd(changed, { maxOutputLength: 8000 }).catch((error: unknown) => error)
      return outcome instanceof Error || (outcome as Buffer).length <= 8000
    }),
    { numRuns: 500 },
  )
})
