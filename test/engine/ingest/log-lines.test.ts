import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { BLOCK_BYTES, blockBytesMax, LogBlocks } from '../../../engine/ingest/log-lines.ts'
import type { ByteSource } from '../../../engine/process/byte-source.ts'

const LINE_BYTES_MAX = 1000

/** Gives out so many bytes at a time, in turn. */
function sourceOf(bytes: Buffer, sizes: readonly number[], failsAtEnd = false): ByteSource {
  let at = 0
  let turn = 0
  return {
    read(into, offset, length) {
      const size = Math.min(length, sizes[turn++ % sizes.length] ?? length, bytes.length - at)
      if (size === 0 && failsAtEnd) throw new Error('damaged')
      into.set(bytes.subarray(at, at + size), offset)
      at += size
      return size
    },
    bytesRead: 0,
    bytesTotal: bytes.length,
    live: false,
    close() {},
  }
}

interface Cut {
  readonly blocks: readonly { readonly bytes: number; readonly firstLine: number; readonly hash: string }[]
  readonly text: Buffer
}

async function cut(bytes: Buffer, sizes: readonly number[] = [1 << 20]): Promise<Cut> {
  const blocks = new LogBlocks(sourceOf(bytes, sizes), LINE_BYTES_MAX)
  const found: Cut['blocks'][number][] = []
  const texts: Buffer[] = []
  for (let block = await blocks.next(); block !== undefined; block = await blocks.next()) {
    const hash = createHash('sha256').update(block.bytes).digest('hex')
    found.push({ bytes: block.bytes.length, firstLine: block.firstLine, hash })
    texts.push(Buffer.from(block.bytes))
  }
  return { blocks: found, text: Buffer.concat(texts) }
}

function lines(count: number, size = 100): string {
  return Array.from({ length: count }, (_, index) => `${index} `.padEnd(size, 'x')).join('\n')
}

const small: { name: string; bytes: Buffer; text: string }[] = [
  { name: 'nothing', bytes: Buffer.alloc(0), text: '' },
  { name: 'one line', bytes: Buffer.from('a\n'), text: 'a\n' },
  { name: 'a last line without line feed', bytes: Buffer.from('a\nb'), text: 'a\nb' },
  { name: 'the mark of UTF-8', bytes: Buffer.from('\ufeffa\n'), text: 'a\n' },
  { name: 'UTF-16, little end first', bytes: Buffer.from('\ufeffäöü\nb\n', 'utf16le'), text: 'äöü\nb\n' },
  { name: 'UTF-16, big end first', bytes: Buffer.from('\ufeffäöü\nb\n', 'utf16le').swap16(), text: 'äöü\nb\n' },
  { name: 'UTF-16 that ends within a character', bytes: Buffer.from('\ufeffab', 'utf16le').subarray(0, 5), text: 'a' },
]
for (const { name, bytes, text } of small) {
  t.test(name, async (t) => t.equal((await cut(bytes)).text.toString(), text))
}

t.test('blocks are whole lines, and each begins where the one before has ended', async (t) => {
  const text = Buffer.from(lines(30_000))
  const { blocks, text: all } = await cut(text)
  t.ok(blocks.length > 2)
  t.ok(all.equals(text))
  let line = 1
  let at = 0
  for (const block of blocks) {
    t.equal(block.firstLine, line)
    const bytes = text.subarray(at, at + block.bytes)
    line += bytes.toString().split('\n').length - 1
    at += block.bytes
    if (at < text.length) t.ok(block.bytes >= BLOCK_BYTES && bytes.at(-1) === 0x0a)
  }
})

t.test('the blocks are the same however the bytes come, and when the file has grown', async (t) => {
  const long = 'y'.repeat(BLOCK_BYTES * 2 + 12_345)
  const text = Buffer.from(`${lines(9000)}\n${long}\n${lines(12_000, 90)}\n${long}${long}`)
  const whole = await cut(text)
  for (const sizes of [[65_536], [1000, 70_000, 3], [262_144], [100_001]]) {
    t.same((await cut(text, sizes)).blocks, whole.blocks, `${sizes} bytes at a time`)
  }
  const grown = await cut(Buffer.concat([text, Buffer.from('\nmore\n')]))
  t.same(grown.blocks.slice(0, whole.blocks.length - 1), whole.blocks.slice(0, -1))
})

t.test(
  'a line that never ends is cut, what is left of it is left out, and the lines behind it keep their numbers',
  async (t) => {
    const long = 'y'.repeat(BLOCK_BYTES * 3)
    const { blocks, text } = await cut(Buffer.from(`first\n${long}\nthird\nfourth`))
    t.same(
      blocks.map(({ bytes, firstLine }) => [bytes, firstLine]),
      [
        [blockBytesMax(LINE_BYTES_MAX), 1],
        ['third\nfourth'.length, 3],
      ],
    )
    t.ok(text.toString().endsWith('ythird\nfourth'))
  },
)

t.test('a line as long as a block allows is whole', async (t) => {
  for (const less of [-1, 0, 1]) {
    const text = Buffer.from(`${'x'.repeat(blockBytesMax(LINE_BYTES_MAX) - 1 + less)}\nnext\n`)
    const { blocks } = await cut(text)
    t.ok(blocks.every(({ bytes }) => bytes <= blockBytesMax(LINE_BYTES_MAX)))
    t.equal(blocks.at(-1)?.firstLine, 2)
  }
})

t.test('what came before a read that fails is given out, then it is told', async (t) => {
  const blocks = new LogBlocks(sourceOf(Buffer.from('a\nb'), [2], true), LINE_BYTES_MAX)
  t.equal((await blocks.next())?.bytes.toString(), 'a\nb')
  await t.rejects(blocks.next(), /damaged/)
})

t.test('any bytes in any pieces: the same blocks, within their bound', async () => {
  const piece = fc.oneof(
    fc.constant('\n'),
    fc.integer({ min: 1, max: 700_000 }).map((size) => 'z'.repeat(size)),
    fc.integer({ min: 1, max: 9000 }).map((count) => `${lines(count, 60)}\n`),
  )
  const sizes = fc.array(fc.integer({ min: 1000, max: 300_000 }), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 8 }), sizes, async (pieces, one) => {
      const text = Buffer.from(pieces.join(''))
      const [a, b] = [await cut(text, one), await cut(text)]
      return (
        JSON.stringify(a.blocks) === JSON.stringify(b.blocks) &&
        a.blocks.every(({ bytes }) => bytes > 0 && bytes <= blockBytesMax(LINE_BYTES_MAX))
      )
    }),
    { numRuns: 60 },
  )
})
