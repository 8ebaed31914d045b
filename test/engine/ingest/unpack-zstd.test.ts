import { spawnSync } from 'node:child_process'
import t from 'tap'
import { unpackZstd } from '../../../engine/ingest/request-body.ts'
import * as fc from '../../support/property.ts'

const MAX = 1024 * 1024

function zstd(bytes: Uint8Array, ...words: string[]): Buffer {
  const { stdout, status } = spawnSync('zstd', ['-q', '-c', ...words], { input: bytes, maxBuffer: 64 * MAX })
  if (status !== 0) throw new Error('zstd failed')
  return stdout
}

async function unpacked(bytes: Uint8Array): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of unpackZstd(bytes, MAX)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const TEXT = Buffer.from(Array.from({ length: 50_000 }, (_, at) => `line ${at * 7919} `).join('')).subarray(0, MAX)

for (const words of [['-1'], ['-19'], ['--no-check'], [`--stream-size=${TEXT.length}`], ['--no-compress-literals']]) {
  t.test(`zstd ${words.join(' ')}`, async (t) => {
    t.ok((await unpacked(zstd(TEXT, ...words))).equals(TEXT))
  })
}

t.test('an empty frame, and bytes that do not compress', async (t) => {
  t.equal((await unpacked(zstd(Buffer.alloc(0)))).length, 0)
  const random = Buffer.from(Array.from({ length: 3000 }, (_, at) => (at * at * 31 + (at >> 3)) & 0xff))
  t.ok((await unpacked(zstd(random))).equals(random))
})

const TOO_LARGE = { code: 'ERR_BUFFER_TOO_LARGE' }
const HEADER = Buffer.from('28b52ffd', 'hex')
const damaged: readonly {
  name: string
  bytes: Buffer
  error: { readonly code: string } | { readonly message: RegExp }
}[] = [
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
  t.test(name, (t) => t.rejects(unpacked(bytes), error))
}

t.test('a bomb is decompressed no further than it is read', async (t) => {
  let bytes = 0
  for await (const chunk of unpackZstd(zstd(Buffer.alloc(64 * MAX)), MAX)) {
    bytes += chunk.length
    if (bytes > MAX) break
  }
  t.ok(bytes < 12 * MAX, `${bytes} bytes`)
})

t.test('any change of a frame: rejected, or decompressed to a few blocks', async () => {
  const frame = zstd(TEXT.subarray(0, 4000))
  await fc.assert(
    fc.asyncProperty(fc.nat(frame.length - 1), fc.integer({ min: 1, max: 255 }), async (at, value) => {
      const changed = Buffer.from(frame)
      changed[at] = (changed[at] ?? 0) ^ value
      const outcome = await unpacked(changed).catch((error: unknown) => error)
      // RFC 8878 §3.1.1.2.4: a block has at most 128 KiB.
      return outcome instanceof Error || (outcome as Buffer).length <= 128 * 1024
    }),
    { numRuns: 500 },
  )
})
