import t from 'tap'
import type { FileProcess } from '../../../console/try-file/file-process.ts'
import { FILE_BYTES_MAX } from '../../../console/try-file/limits.ts'
import type { Unready } from '../../../console/try-file/trials.ts'
import { type Outcome, receiveFile } from '../../../console/try-file/upload.ts'
import type { BodyEnd } from '../../../engine/http/port.ts'
import { deferred } from '../../../engine/kernel/process/deferred.ts'
import { BOUNDARY, type FilePart, multipart } from '../../support/console.ts'
import * as fc from '../../support/property.ts'

const REPORT = { kind: 'refused', reason: 'as the process says' } as const

/** Takes a file as the process would, and reports at its end. */
class TakenFile {
  readonly chunks: Uint8Array[] = []
  isCanceled = false
  readonly #result = deferred<Awaited<FileProcess['result']>>()
  readonly result = this.#result.promise

  async write(chunk: Uint8Array): Promise<void> {
    this.chunks.push(chunk)
  }
  end(): void {
    this.#result.resolve({ kind: 'report', report: REPORT })
  }
  cancel(): void {
    this.isCanceled = true
    this.#result.resolve({ kind: 'failed', why: 'canceled' })
  }
}

interface Received {
  readonly outcome: Outcome
  /** The bytes that the process got; undefined without a process. */
  readonly bytes: Buffer | undefined
  readonly isCanceled: boolean
}

interface Options {
  readonly type?: string
  readonly end?: BodyEnd
  readonly unready?: Unready
}

/** Receives a body that arrives in these pieces. */
async function receive(pieces: Iterable<Uint8Array>, options: Options = {}): Promise<Received> {
  const { type = `multipart/form-data; boundary=${BOUNDARY}`, end = 'ended', unready } = options
  let taken: TakenFile | undefined
  const upload = {
    contentType: type,
    isAborted: () => false,
    async chunks(_bytesMax: number, take: (chunk: Uint8Array) => void | Promise<void>): Promise<BodyEnd> {
      for (const piece of pieces) await take(piece)
      return end
    },
  }
  const outcome = await receiveFile(upload, async () => {
    if (unready !== undefined) return unready
    taken = new TakenFile()
    return taken as unknown as FileProcess
  })
  const bytes = taken && Buffer.concat(taken.chunks)
  return { outcome, bytes, isCanceled: taken?.isCanceled ?? false }
}

const PLAIN: FilePart = { field: 'file', name: 'a.log', bytes: Buffer.from('hello\r\n--\r\nworld') }
const body = (...parts: readonly FilePart[]): Buffer => multipart(parts).body
const raw = (text: string): Buffer => Buffer.from(text.replaceAll('\n', '\r\n').replaceAll('BOUNDARY', BOUNDARY))
const READ = { kind: 'refused', status: 422, message: REPORT.reason } as const
const headed = (headers: string, content = 'hello'): Buffer =>
  raw(`--BOUNDARY\n${headers}\n\n${content}\n--BOUNDARY--\n`)

const ROWS: readonly (Options & {
  name: string
  body: Buffer
  outcome: Partial<Extract<Outcome, { kind: 'refused' }>>
  bytes?: string
})[] = [
  { name: 'one file', body: body(PLAIN), outcome: READ, bytes: PLAIN.bytes.toString() },
  {
    name: 'a part of another name, quoted boundary, upper case',
    type: `Multipart/Form-Data; charset=utf-8; boundary="${BOUNDARY}"`,
    body: body(PLAIN),
    outcome: READ,
    bytes: PLAIN.bytes.toString(),
  },
  {
    name: 'a preamble and an epilogue (RFC 2046 §5.1.1)',
    body: Buffer.concat([Buffer.from('preamble\r\n'), body(PLAIN), Buffer.from('epilogue')]),
    outcome: READ,
    bytes: PLAIN.bytes.toString(),
  },
  { name: 'no boundary', type: 'multipart/form-data', body: body(PLAIN), outcome: { status: 415 } },
  { name: 'an empty boundary', type: 'multipart/form-data; boundary=', body: body(PLAIN), outcome: { status: 400 } },
  {
    name: 'multipart/mixed',
    type: `multipart/mixed; boundary=${BOUNDARY}`,
    body: body(PLAIN),
    outcome: { status: 415 },
  },
  { name: 'another type', type: 'application/json', body: Buffer.from('{}'), outcome: { status: 415 } },
  { name: 'no type', type: '', body: body(PLAIN), outcome: { status: 415 } },
  { name: 'no body', body: Buffer.alloc(0), outcome: { status: 400 } },
  { name: 'no part', body: raw('--BOUNDARY--\n'), outcome: { status: 400 } },
  {
    name: 'a form sent without a choice',
    body: body({ ...PLAIN, name: '', bytes: Buffer.alloc(0) }),
    outcome: { status: 400, message: 'Choose a file first' },
  },
  {
    name: 'an empty file',
    body: body({ ...PLAIN, bytes: Buffer.alloc(0) }),
    outcome: { status: 400, message: 'The file is empty' },
  },
  { name: 'two files', body: body(PLAIN, PLAIN), outcome: { status: 400, message: 'The form has more than one file' } },
  { name: 'a file in another field', body: body({ ...PLAIN, field: 'other' }), outcome: { status: 400 } },
  { name: 'a hundred parts', body: body(...new Array<FilePart>(100).fill(PLAIN)), outcome: { status: 400 } },
  { name: 'a field', body: headed('Content-Disposition: form-data; name="file"'), outcome: { status: 400 } },
  { name: 'a part without headers', body: raw('--BOUNDARY\n\nhello\n--BOUNDARY--\n'), outcome: { status: 400 } },
  {
    name: 'a nested multipart',
    body: headed(
      'Content-Disposition: form-data; name="file"\nContent-Type: multipart/mixed; boundary=x',
      '--x\n\nhello\n--x--',
    ),
    outcome: { status: 400 },
  },
  {
    name: 'a header of a megabyte',
    body: headed(`Content-Disposition: form-data; name="file"; filename="${'x'.repeat(1e6)}"`),
    outcome: READ,
    bytes: 'hello',
  },
  {
    name: 'a thousand headers',
    body: headed(`${'X: y\n'.repeat(1000)}Content-Disposition: form-data; name="file"; filename="a"`),
    outcome: { status: 400 },
  },
  { name: 'an end in the middle of the file', body: body(PLAIN).subarray(0, -60), outcome: { status: 400 } },
  { name: 'an end in the middle of a header', body: body(PLAIN).subarray(0, 60), outcome: { status: 400 } },
  { name: 'a body that is too slow', body: body(PLAIN).subarray(0, 150), end: 'too slow', outcome: { status: 408 } },
  { name: 'a body over the limit', body: Buffer.alloc(0), end: 'too large', outcome: { status: 413 } },
  { name: 'a client that disconnects', body: body(PLAIN).subarray(0, 150), end: 'aborted', outcome: { status: 408 } },
  { name: 'another file of the organization', unready: 'own', body: body(PLAIN), outcome: { status: 429 } },
  { name: 'files of others', unready: 'others', body: body(PLAIN), outcome: { status: 503 } },
  {
    name: 'a large registry',
    unready: 'registry',
    body: body(PLAIN),
    outcome: { status: 422, message: /own domains/ as never },
  },
]

for (const { name, body: bytes, outcome, bytes: expected, ...options } of ROWS) {
  t.test(name, async (t) => {
    const received = await receive([bytes], options)
    t.match(received.outcome, { kind: 'refused', ...outcome })
    if (expected !== undefined) t.equal(received.bytes?.toString(), expected)
    else if (received.bytes !== undefined) t.ok(received.isCanceled, 'the process is ended')
    const split = await receive(
      Array.from(bytes.subarray(0, 5000), (_, at) => bytes.subarray(at, at + 1)),
      options,
    )
    if (bytes.length < 5000) t.same(split.outcome, received.outcome, 'the same byte by byte')
  })
}

t.test('a file name is one line of visible characters', async (t) => {
  const report = { kind: 'log' } as never
  const named = async (name: string): Promise<string> => {
    const upload = {
      contentType: multipart([]).type,
      isAborted: () => false,
      chunks: chunksOf(body({ ...PLAIN, name })),
    }
    const outcome = await receiveFile(upload, async () => {
      const file = new TakenFile()
      const process = { write: (chunk: Uint8Array) => file.write(chunk), end() {}, cancel() {} }
      return { ...process, result: Promise.resolve({ kind: 'report', report }) } as unknown as FileProcess
    })
    return outcome.kind === 'read' ? outcome.name : JSON.stringify(outcome)
  }
  t.equal(await named('proxy.log'), 'proxy.log')
  t.equal(await named('../../etc/passwd'), 'passwd')
  t.equal(await named('C:\\logs\\proxy.log'), 'proxy.log')
  t.equal(await named('a\u202egol.exe\u0007'), 'agol.exe')
  t.equal((await named('x'.repeat(1000))).length, 200)
})

function chunksOf(bytes: Buffer): (max: number, take: (chunk: Uint8Array) => void | Promise<void>) => Promise<BodyEnd> {
  return async (_max, take) => {
    await take(bytes)
    return 'ended'
  }
}

t.test('a file over the limit is refused, and what follows is discarded', async (t) => {
  function* pieces(): Generator<Uint8Array> {
    const whole = body({ ...PLAIN, bytes: Buffer.from('@') }).toString('latin1')
    const [before = '', after = ''] = whole.split('@')
    yield Buffer.from(before)
    const piece = Buffer.alloc(1 << 20, 'x')
    for (let sent = 0; sent < FILE_BYTES_MAX + (6 << 20); sent += piece.length) yield piece
    yield Buffer.from(after)
  }
  const { outcome, bytes, isCanceled } = await receive(pieces())
  t.match(outcome, { status: 413, message: 'The file is larger than 64 MiB. Try a part of it' })
  t.ok(isCanceled && (bytes?.length ?? 0) <= FILE_BYTES_MAX)
})

t.test('any file arrives unchanged, whatever it contains and however it is split', async (_t) => {
  const contents = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 2000 }),
    fc
      .array(fc.constantFrom('\r', '\n', '-', '--', BOUNDARY.slice(0, 20), '\r\n--', 'x'), { minLength: 1 })
      .map((words) => Buffer.from(words.join(''))),
  )
  await fc.assert(
    fc.asyncProperty(contents, fc.integer({ min: 1, max: 300 }), async (bytes, size) => {
      const whole = body({ ...PLAIN, bytes })
      const pieces: Uint8Array[] = []
      for (let at = 0; at < whole.length; at += size) pieces.push(whole.subarray(at, at + size))
      const received = await receive(pieces)
      return received.bytes !== undefined && Buffer.compare(received.bytes, bytes) === 0
    }),
    { numRuns: 200 },
  )
})

t.test('a damaged form ends with an answer', async (_t) => {
  const whole = body(PLAIN, { ...PLAIN, field: 'b' })
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat({ max: whole.length - 1 }), fc.integer({ min: 0, max: 255 })), { maxLength: 8 }),
      fc.nat({ max: whole.length }),
      async (changes, length) => {
        const damaged = Buffer.from(whole.subarray(0, length))
        for (const [at, byte] of changes) if (at < damaged.length) damaged[at] = byte
        const { outcome } = await receive([damaged.subarray(0, length / 2), damaged.subarray(length / 2)])
        return outcome.kind === 'read' || (outcome.status >= 400 && outcome.status < 500)
      },
    ),
    { numRuns: 500 },
  )
})
