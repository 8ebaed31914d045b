import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { type ReadFileOptions, readFile } from '../../dry-run/read-file.ts'
import { type FileReport, fileReport } from '../../dry-run/report.ts'
import type { ByteSource } from '../../engine/kernel/process/byte-source.ts'
import { MESSAGE_BYTES_MAX } from '../../engine/limits.ts'
import { OwnMatcher } from '../../registry/own-matcher.ts'
import { matching, NOW, other } from '../support/many-lines.ts'
import { platform } from '../support/own-platforms.ts'
import { REPOSITORY } from '../support/programs.ts'
import * as fc from '../support/property.ts'
import { matcher } from '../support/store.ts'

const CAPTURES = join(REPOSITORY, 'test/captures')
const NO_LIMIT = { matcher, windowStartMs: 0, cpuMsMax: Number.POSITIVE_INFINITY }

/** A pipe that brings the bytes in pieces. */
function pipeOf(bytes: Uint8Array, pieceBytes = 5000): ByteSource {
  let at = 0
  return {
    live: true,
    bytesTotal: 0,
    get bytesRead() {
      return at
    },
    async read(into, to, most) {
      const got = Math.min(most, pieceBytes, bytes.length - at)
      into.set(bytes.subarray(at, at + got), to)
      at += got
      return got
    },
    close() {},
  }
}

/** A pipe that repeats the text. */
function endless(text: string): ByteSource {
  const bytes = Buffer.from(text)
  return {
    ...{ live: true, bytesTotal: 0, bytesRead: 0, close() {} },
    async read(into, at, most) {
      const got = Math.min(most, bytes.length)
      into.set(bytes.subarray(0, got), at)
      return got
    },
  }
}

async function read(bytes: Uint8Array | string, options: Partial<ReadFileOptions> = {}): Promise<FileReport> {
  const report = await readFile(pipeOf(Buffer.from(bytes)), { ...NO_LIMIT, ...options })
  t.same(fileReport.parse(report), report, 'the parent accepts the report')
  return report
}

t.test('every capture of the tests gives the names that the collector finds', async (t) => {
  for (const name of readdirSync(CAPTURES, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const folder = join(CAPTURES, name.name)
    const file = readdirSync(folder).find((each) => each.startsWith('input.'))
    if (file === undefined) continue
    const { names } = JSON.parse(readFileSync(join(folder, 'expect.json'), 'utf8')) as {
      readonly names: readonly { readonly name: string }[]
    }
    const report = await read(readFileSync(join(folder, file)))
    t.match(report, { kind: 'capture', ended: 'complete' }, name.name)
    if (report.kind !== 'capture') continue
    t.equal(report.coverage.names, names.length, `${name.name}: names`)
    const matched = names.filter((each) => matcher.match(each.name) !== undefined).length
    t.equal(report.coverage.names_matched, matched, `${name.name}: matches`)
    t.equal(
      report.platforms.reduce((sum, { matches }) => sum + matches, 0),
      matched,
    )
  }
})

t.test('the report of a capture has its compression and what could not be seen', async (t) => {
  const plain = readFileSync(join(CAPTURES, 'tls-encrypted-client-hello/input.pcap'))
  const report = await read(gzipSync(plain))
  t.match(report, { kind: 'capture', format: 'pcap', compression: 'gzip', bytes: plain.length })
  t.match(report, { coverage: { hellos_ech: Number } })
  t.ok(report.kind === 'capture' && report.coverage.hellos_ech > 0)
  t.match(await read(readFileSync(join(CAPTURES, 'pcapng-zstd/input.pcapng.zst'))), {
    ...{ kind: 'capture', format: 'pcapng', compression: 'zstd' },
  })
})

t.test('the report of a log has messages by outcome, platforms with clients, and other names', async (t) => {
  const lines = [matching(1), matching(2), matching(2), other(1), 'link is up user=ada', 'link is up user=eve']
  const report = await read(`${lines.join('\n')}\n`)
  t.match(report, {
    ...{ kind: 'log', lines: 6, messages: 6, ended: 'complete', damage: '', compression: 'none' },
    formats: [{ id: 'proxy-native', messages: 4 }],
    outcomes: { matched: 3, unmatched: 1, unknown: 2, rejected: 0, noDomain: 0, skipped: 0, ambiguous: 0 },
    platforms: [{ id: 'claude', name: 'Claude', matches: 3, clients: 2, names: ['claude.ai'], firstMs: NOW }],
    platformsTotal: 1,
    unmatchedNames: [{ name: 'www.example.com', count: 1 }],
    problems: [{ format: '', reason: 'no format recognized', count: 2, line: 5, sample: 'link is up user=…' }],
  })
  t.notMatch(JSON.stringify(report), /ada|eve|10\.0\.0/, 'neither users nor addresses')
})

const dns = '20-Nov-2026 12:00:00.000 client @0x7f 192.0.2.45#5353 (claude.ai): query: claude.ai IN A + (192.0.2.1)'
const FORMATS: readonly (readonly [name: string, content: string | Buffer, format: string])[] = [
  ['a query log of BIND', `${dns}\n`, 'bind-query'],
  ['dnsmasq', 'Nov 20 12:00:00 dnsmasq[123]: query[A] claude.ai from 192.0.2.45\n', 'dnsmasq'],
  ['UTF-16 of PowerShell', Buffer.from(`\ufeff${matching(1)}\r\n`, 'utf16le'), 'proxy-native'],
  ['syslog around it', `<134>1 2026-11-20T12:00:00Z proxy squid - - - ${matching(1)}\n`, 'proxy-native'],
  ['gzip', gzipSync(`${matching(1)}\n`), 'proxy-native'],
  ['no line feed at the end', matching(1), 'proxy-native'],
]
for (const [name, content, format] of FORMATS) {
  t.test(`a log: ${name}`, async (t) => {
    t.match(await read(content as Buffer), {
      ...{ kind: 'log', platforms: [{ id: 'claude', matches: 1 }], formats: [{ id: format, messages: 1 }] },
    })
  })
}

t.test('messages that are too long are counted: only their beginning is read', async (t) => {
  const long = (bytes: number): string => `${matching(1)} `.padEnd(bytes, 'x')
  const lines = [long(MESSAGE_BYTES_MAX), long(MESSAGE_BYTES_MAX + 1), matching(2), long(3 * MESSAGE_BYTES_MAX)]
  t.match(await read(`${lines.join('\n')}\n`), { kind: 'log', lines: 4, messages: 4, truncated: 2 })
})

t.test('matches before the evidence window are counted', async (t) => {
  const report = await read(`${matching(1)}\n`, { windowStartMs: NOW + 1 })
  t.match(report, { kind: 'log', outsideWindow: 1 })
})

t.test('the custom platforms of an organization count, in captures and logs', async (t) => {
  const entry = platform('acme-chat', 'www.example.com')
  const own = new OwnMatcher(matcher, { platforms: [entry], disable: ['claude'] })
  const report = await read(`${matching(1)}\n${other(1)}\n`, { matcher: own })
  t.match(report, { platforms: [{ id: 'acme-chat', names: ['www.example.com'] }], platformsTotal: 1 })
})

const REFUSED: readonly (readonly [name: string, content: Buffer, reason: RegExp])[] = [
  ['an empty file', Buffer.alloc(0), /^The file is empty$/],
  ['a zip archive', Buffer.from('504b0304140000000800', 'hex'), /looks like zip: unpack it first/],
  ['an xz file', Buffer.from('fd377a585a000004', 'hex'), /looks like xz/],
  ['gzip of nothing', gzipSync(''), /^The file is empty$/],
  ['a damaged gzip file', Buffer.from('1f8b080000000000ffffffffffff', 'hex'), /gzip: /],
  ['a capture that ends in its header', Buffer.from('d4c3b2a1020004000000', 'hex'), /expected a file header of 24/],
]
for (const [name, content, reason] of REFUSED) {
  t.test(`refused: ${name}`, async (t) => {
    t.match(await read(content), { kind: 'refused', reason })
  })
}

t.test('a damaged file is read up to the damage', async (t) => {
  const whole = gzipSync(Array.from({ length: 20_000 }, (_, index) => matching(index)).join('\n'))
  const report = await read(whole.subarray(0, whole.length / 2))
  t.match(report, { kind: 'log', ended: 'complete', damage: /gzip: unexpected end of file/ })
  t.ok(report.kind === 'log' && report.outcomes.matched > 1000)
  const capture = readFileSync(join(CAPTURES, 'demo/input.pcap'))
  t.match(await read(capture.subarray(0, capture.length - 5)), { kind: 'capture', damage: /^byte \d+: / })
})

t.test('a compressed log is refused with the words of ingest file, an unknown one has a report', async (t) => {
  t.match(await read(Buffer.from('BZh91AY&SY...')), { kind: 'refused', reason: /looks like bzip2: unpack it first/ })
  const unknown = await read(Buffer.from('the weather is fine\n'))
  t.match(unknown, {
    ...{ kind: 'log', damage: '', notUnderstood: /no message is in a known format.*write a rule/ },
    problems: [{ reason: 'no format recognized' }],
  })
})

t.test('limits end the reading, and the report says so', async (t) => {
  const line = `${matching(1)}\n`
  const bomb = gzipSync(line.repeat(300_000))
  t.ok(bomb.length < 200_000)
  const cut = await read(bomb, { bytesMax: 1_000_000 })
  t.match(cut, { kind: 'log', ended: 'bytes', damage: '' })
  t.ok(cut.kind === 'log' && cut.bytes === 1_000_000 && cut.lines === Math.ceil(1_000_000 / line.length))
  const exact = gzipSync(line.repeat(1000))
  t.match(await read(exact, { bytesMax: line.length * 1000 }), { kind: 'log', ended: 'complete', lines: 1000 })
  const { user, system } = process.cpuUsage()
  const cpuMsMax = (user + system) / 1000 + 1000
  t.match(await readFile(endless(`${line}`.repeat(100)), { ...NO_LIMIT, cpuMsMax }), { kind: 'log', ended: 'time' })
  const capture = readFileSync(join(CAPTURES, 'demo/input.pcap'))
  t.match(await read(capture, { bytesMax: 50_000 }), { kind: 'capture', ended: 'bytes', damage: '' })
})

t.test('many names take bounded memory, and the most frequent are listed', async (t) => {
  const lines = [other(1), other(1)]
  for (let index = 0; index < 30_000; index++) lines.push(other(index).replace('www.', `host-${index}.`))
  const report = await read(`${lines.join('\n')}\n`)
  t.match(report, { outcomes: { unmatched: 30_002 } })
  t.ok(report.kind === 'log' && report.unmatchedNames.length === 20)
  t.match(report, { unmatchedNames: [{ name: 'www.example.com', count: 2 }] })
})

t.test('arbitrary bytes, alone or after the beginning of a known format, give a report', async (_t) => {
  const heads = ['', 'd4c3b2a1', '0a0d0d0a1c0000004d3c2b1a', '1f8b0800', '28b52ffd', 'efbbbf', 'fffe'].map((hex) =>
    Buffer.from(hex, 'hex'),
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...heads), fc.uint8Array({ maxLength: 3000 }), async (head, rest) => {
      const report = await readFile(pipeOf(Buffer.concat([head, rest]), 97), NO_LIMIT)
      return fileReport.safeParse(report).success
    }),
    { numRuns: 300 },
  )
})
