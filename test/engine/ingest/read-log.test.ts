import { appendFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { MessagePipeline } from '../../../engine/ingest/message-pipeline.ts'
import {
  BLOCK_BYTES,
  type FileReport,
  type LineProblem,
  LogReader,
  openLog,
  READ_WORK_BYTES,
} from '../../../engine/ingest/read-log.ts'
import { LogStore } from '../../../engine/ingest/store-log.ts'
import type { LineMatch } from '../../../engine/kernel/event/match-tally.ts'
import { DAY_MS, systemClock } from '../../../engine/kernel/process/clock.ts'
import { MESSAGE_BYTES_MAX } from '../../../engine/limits.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import { manyLines, matching, NOW, other } from '../../support/many-lines.ts'
import { openPipeline, type TestPipeline } from '../../support/pipeline.ts'
import { quietLog, registries } from '../../support/store.ts'
import { squid } from '../../support/syslog-service.ts'

interface Reading {
  readonly opened: TestPipeline
  readonly directory: string
  readonly problems: LineProblem[]
  readonly matches: LineMatch[]
  read(name: string, more?: { dryRun?: boolean; stopAfter?: number; onMatch?: () => unknown }): Promise<FileReport>
  write(name: string, content: string | Uint8Array): string
  /** Number of messages in the buffer. */
  stored(): number
}

function reading(t: Test): Reading {
  const opened = openPipeline(t, { clock: systemClock })
  const { store, authenticator, directory } = opened
  const acceptor = new EventAcceptor(store, systemClock, quietLog, () => {})
  const bytes = Buffer.from(opened.token.raw)
  const token = authenticator.find(bytes, 0, bytes.length)
  if (token === undefined) throw new Error('unknown token')
  const problems: LineProblem[] = []
  const matches: LineMatch[] = []
  return {
    opened,
    directory,
    problems,
    matches,
    write(name, content) {
      const path = join(directory, name)
      writeFileSync(path, content)
      // The file's modification time is in the past, so nothing writes to it any more.
      utimesSync(path, NOW / 1000, NOW / 1000)
      return path
    },
    async read(name, { dryRun = false, stopAfter = Number.POSITIVE_INFINITY, onMatch = () => {} } = {}) {
      const pipeline = new MessagePipeline(new Uint8Array(READ_WORK_BYTES), new RegistryInForce(store), authenticator, {
        tokenRate: undefined,
        noteUnauthorized: () => {},
      })
      let asked = 0
      const stopped = (): boolean => ++asked > stopAfter
      const stop = new Promise(() => {})
      const freeSpace = async () => runScan(store, registries, token.organizationId, 'buffer', systemClock)
      const storage = new LogStore(store, acceptor, pipeline, { stopped, stop, freeSpace })
      const reader = new LogReader(store.readLines, dryRun ? undefined : storage, pipeline, token, {
        windowStartMs: NOW - 30 * DAY_MS,
        onMatch: (match) => {
          matches.push(match)
          onMatch()
        },
        onProblem: (problem) => problems.push(problem),
        onProgress: () => {},
        stopped,
        stop,
      })
      const { report, fault } = await reader.read(openLog(join(directory, name)))
      // The report of a file that was not understood is whole.
      if (fault !== undefined && fault.code !== 'LOG_FORMAT') throw fault
      const { matched, duplicates, unmatched, noDomain, skipped, rejected, unknown, ambiguous } = report
      t.equal(
        matched + duplicates + unmatched + noDomain + skipped + rejected + unknown + ambiguous,
        report.messages,
        'it balances',
      )
      return report
    },
    stored() {
      return store.buffer.read(opened.organization.id, 0, 1_000_000).reduce((sum, { event }) => sum + event.count, 0)
    },
  }
}

const rows: Readonly<
  Record<string, readonly [content: string | Buffer, Partial<FileReport>, Partial<LineProblem>[]?]>
> = {
  'an empty file': ['', { lines: 0, messages: 0 }],
  'line feeds only': ['\n\n\r\n', { lines: 3, messages: 0 }],
  'a last line without line feed': [`${matching(1)}\n${matching(2)}`, { lines: 2, matched: 2 }],
  'CR LF': [`${matching(1)}\r\n${other(2)}\r\n`, { lines: 2, matched: 1, unmatched: 1 }],
  'unknown lines are reported by their number': [
    `${matching(1)}\n\nlink is up\n${other(2)}\n${NOW / 1000}.119    318 192.0.2.45 nothing else\n`,
    { lines: 5, matched: 1, unmatched: 1, unknown: 1, rejected: 1, formats: { 'proxy-native': 3 } },
    [
      { line: 3, format: '', reason: 'no format recognized' },
      { line: 5, format: 'proxy-native' },
    ],
  ],
  'as syslogd has written them': [`Nov 20 12:00:00 proxy-1 squid[1]: ${matching(1)}\n`, { matched: 1 }],
  'UTF-16': [Buffer.from(`\ufeff${matching(1)}\r\n${other(1)}\r\n`, 'utf16le'), { matched: 1, unmatched: 1 }],
  'UTF-8 with a byte order mark': [`\ufeff${matching(1)}\n`, { matched: 1 }],
  gzip: [gzipSync(`${matching(1)}\n${other(1)}\n`), { matched: 1, unmatched: 1 }],
  'a quoted field with line feeds is one message': [
    `a,"b\nc\nd",e\n${matching(1)}\n`,
    { lines: 4, messages: 2, matched: 1, unknown: 1 },
    [{ line: 1 }],
  ],
  'an unclosed quote is a line of its own': [
    `a,"b\n${matching(1)}\n${matching(2)}\n`,
    { lines: 3, messages: 3, matched: 2, unknown: 1 },
  ],
  'pretty-printed JSON is one message per object': [
    `[\n{\n  "a": "}{",\n  "b": {"c": "\\""}\n},\n{\n  "a": 1\n}\n]\n${matching(1)}\n`,
    { lines: 10, messages: 3, matched: 1, noDomain: 2 },
    [],
  ],
  'an unclosed brace is a line of its own': [
    `{ "a":\n${matching(1)}\n`,
    { lines: 2, messages: 2, matched: 1, rejected: 1 },
  ],
  'the start of a line longer than a message is read': [
    `${matching(1)} ${'x'.repeat(MESSAGE_BYTES_MAX * 2)}\n${matching(2)}\n`,
    { lines: 2, messages: 2, matched: 2 },
  ],
  'a line longer than a block, and later lines': [
    `${matching(1)} ${'x'.repeat(BLOCK_BYTES * 3)}\n${matching(2)}\nwhat\n`,
    { lines: 3, messages: 3, matched: 2, unknown: 1 },
    [{ line: 3 }],
  ],
}

for (const [name, [content, report, problems]] of Object.entries(rows)) {
  t.test(name, async (t) => {
    const reader = reading(t)
    reader.write('log', content)
    const found = await reader.read('log')
    t.match(found, report)
    if (problems !== undefined) t.match(reader.problems, problems)
    t.equal(reader.stored(), found.matched)
  })
}

t.test('a dry run reports the same and stores nothing', async (t) => {
  const reader = reading(t)
  const { text, matching: count } = manyLines(2)
  reader.write('log', text)
  t.match(await reader.read('log', { dryRun: true }), { matched: count, duplicates: 0 })
  t.equal(reader.stored(), 0)
  t.match(await reader.read('log'), { matched: count, duplicates: 0 }, 'nothing was remembered')
  t.equal(reader.stored(), count)
})

t.test('a file counts once: read again, renamed, compressed, grown', async (t) => {
  const reader = reading(t)
  const { text, lines, matching: count } = manyLines(3)
  reader.write('log', text)
  t.match(await reader.read('log'), { matched: count, duplicates: 0, lines })
  t.match(await reader.read('log'), { matched: 0, duplicates: count, lines }, 'again')
  reader.write('log.1', text)
  t.match(await reader.read('log.1'), { matched: 0, duplicates: count }, 'under another name')
  reader.write('log.gz', gzipSync(text))
  t.match(await reader.read('log.gz'), { matched: 0, duplicates: count }, 'compressed')
  appendFileSync(join(reader.directory, 'log'), `${matching(7)}\n${other(7)}\n`)
  t.match(await reader.read('log'), { matched: 1, duplicates: count, lines: lines + 2 }, 'grown')
  reader.write('next', `${text.slice(0, text.indexOf('\n', BLOCK_BYTES * 2 - 1) + 1)}${matching(9)}\n`)
  const alike = await reader.read('next')
  t.ok(alike.duplicates > count / 3, 'a file that begins alike: its first block')
  reader.write('another', `${other(1)}\n${text}`)
  t.match(
    await reader.read('another'),
    { matched: count, duplicates: 0 },
    'a file with another beginning is another file',
  )
  t.equal(reader.stored(), count * 2 + 1 + alike.matched)
})

t.test('an object of pretty-printed JSON across blocks is one message', async (t) => {
  const reader = reading(t)
  const COUNT = 20_000
  const objects = Array.from({ length: COUNT }, (_, index) => {
    return JSON.stringify(
      { index, text: 'x'.repeat(index % 200), list: [{ a: '}{' }] },
      undefined,
      index % 5 === 0 ? '\t' : 2,
    )
  })
  reader.write('log', `${objects.join('\n')}\n`)
  const { messages, lines } = await reader.read('log')
  t.equal(messages, COUNT)
  t.equal(lines, objects.join('\n').split('\n').length)
})

t.test('an interrupted import continues where it stopped', async (t) => {
  const reader = reading(t)
  const { text, matching: count } = manyLines(4)
  reader.write('log', text)
  let before = 0
  // Stops a little later each time.
  for (const stopAfter of [1, 2, 3, 5]) {
    const { matched, duplicates } = await reader.read('log', { stopAfter })
    t.equal(duplicates, before, 'what was read before')
    before += matched
    t.equal(reader.stored(), before)
  }
  t.match(await reader.read('log'), { matched: count - before, duplicates: before })
  t.equal(reader.stored(), count)
})

t.test("an unknown time becomes the file's modification time, in whole milliseconds", async (t) => {
  const reader = reading(t)
  const path = reader.write('log', '{"time":"1969-12-31T23:00:00Z","src_ip":"10.0.0.1","dns_query":"claude.ai"}\n')
  const writtenMs = NOW - 3 * 86_400_000
  utimesSync(path, writtenMs / 1000 + 0.0004567, writtenMs / 1000 + 0.0004567)
  t.match(await reader.read('log'), { matched: 1 })
  const { store, organization } = reader.opened
  t.match(store.buffer.read(organization.id, 0, 9), [{ event: { lastSeenMs: writtenMs } }])
})

t.test("duplicates of collectors' events are not counted as matches before the evidence window", async (t) => {
  const reader = reading(t)
  const event = (sequence: number, days: number): string => {
    const time = new Date(NOW - days * DAY_MS).toISOString()
    const id = `0011223344556677000000000000000${sequence}`
    const times = { first_seen: time, last_seen: time }
    return `${JSON.stringify({ id, name: 'claude.ai', client: '10.0.0.1', method: 'dns', ...times, count: 1 })}\n`
  }
  reader.write('first', event(1, 40) + event(2, 1))
  reader.write('second', event(3, 40) + event(2, 1) + event(1, 40))
  t.match(await reader.read('first'), { matched: 2, duplicates: 0, outsideWindow: 1 })
  t.match(await reader.read('second'), { matched: 1, duplicates: 2, outsideWindow: 1 })
})

for (const dryRun of [true, false]) {
  t.test(`matches before the window are counted, and the newest time is known${dryRun ? ', dry' : ''}`, async (t) => {
    const reader = reading(t)
    const at = (days: number, client: string): string => `${squid('claude.ai', client, NOW - days * DAY_MS)}\n`
    reader.write('old', `${at(40, '10.0.0.1')}${at(31, '2001:0DB8::1')}${at(90, '10.0.0.1')}${other(1)}\n`)
    reader.write('mixed', at(40, '10.0.0.2') + at(1, '10.0.0.3'))
    reader.write('ahead', `${squid('claude.ai', '10.0.0.4', Date.now() + DAY_MS)}\n`)
    t.match(await reader.read('old', { dryRun }), { matched: 3, outsideWindow: 3, newestMs: NOW - 31 * DAY_MS })
    t.match(await reader.read('mixed', { dryRun }), { matched: 2, outsideWindow: 1, newestMs: NOW - DAY_MS })
    const ahead = await reader.read('ahead', { dryRun })
    t.ok(ahead.newestMs <= Date.now(), 'a time in the future counts as now')
    t.same(
      reader.matches.slice(0, 3).map(({ client, timeMs, count }) => ({ client, timeMs, count })),
      [
        { client: '10.0.0.1', timeMs: NOW - 40 * DAY_MS, count: 1 },
        { client: '2001:db8::1', timeMs: NOW - 31 * DAY_MS, count: 1 },
        { client: '10.0.0.1', timeMs: NOW - 90 * DAY_MS, count: 1 },
      ],
    )
    t.ok(
      Number.isNaN(
        (
          await reader.read(
            reader
              .write('none', `${other(1)}\n`)
              .split('/')
              .at(-1) ?? '',
          )
        ).newestMs,
      ),
    )
  })
}

t.test('a truncated compressed file is stored up to the end, and later recognized as read', async (t) => {
  const reader = reading(t)
  const packed = gzipSync(manyLines(3).text)
  const path = reader.write('log.gz', packed)
  truncateSync(path, Math.floor(packed.length / 2))
  await t.rejects(reader.read('log.gz'), { code: 'LOG_DAMAGED' })
  const stored = reader.stored()
  t.ok(stored > 1000)
  reader.write('log.gz', packed)
  const { matched, duplicates } = await reader.read('log.gz')
  // The line at the interruption may be read twice.
  t.ok(Math.abs(duplicates - stored) <= 1, `${duplicates} of ${stored}`)
  t.ok(Math.abs(matched + stored - manyLines(3).matching) <= 1)
})

t.test('copies that are older, shorter, many, or have the same header count each message once', async (t) => {
  const reader = reading(t)
  const lines = (from: number, to: number): string =>
    Array.from({ length: to - from }, (_, index) => `${matching(from + index)}\n`).join('')
  reader.write('full', lines(0, 1000))
  t.match(await reader.read('full'), { matched: 1000, duplicates: 0 })
  reader.write('head', lines(0, 100))
  t.match(await reader.read('head'), { matched: 0, duplicates: 100 })
  reader.write('other-end', lines(0, 50) + lines(2000, 2010))
  t.match(await reader.read('other-end'), { matched: 10, duplicates: 50 })
  t.match(await reader.read('full'), { matched: 0, duplicates: 1000 })
  for (let round = 0; round < 2; round++) {
    for (let file = 0; file < 100; file++) {
      reader.write(`one-${file}`, `Timestamp;Client;Domain\n2026-11-20 11:00:00;10.1.0.${file};claude.ai\n`)
      const expected = round === 0 ? { matched: 1, duplicates: 0 } : { matched: 0, duplicates: 1 }
      t.match(await reader.read(`one-${file}`), expected, `file ${file}`)
    }
  }
  for (let round = 0; round < 2; round++) {
    reader.write('single', `${matching(5000)}\n${round === 0 ? '' : `${matching(5001)}\n`}`)
    t.match(await reader.read('single'), { matched: 1, duplicates: round })
  }
  reader.write('half', lines(0, 1000).slice(0, 30_000))
  t.match(await reader.read('half'), { matched: 0 }, 'a copy that ends within a line')
})

t.test('wherever an import is interrupted, the next one continues without loss or repetition', async (t) => {
  const reader = reading(t)
  const COUNT = 70_000
  const short = (index: number): string =>
    `query[A] claude.ai from 10.${index >> 16}.${(index >> 8) & 255}.${index & 255}\n`
  reader.write('log', Array.from({ length: COUNT }, (_, index) => short(index)).join(''))
  let matched = 0
  for (let stopAfter = 1; stopAfter < 9; stopAfter++) matched += (await reader.read('log', { stopAfter })).matched
  const last = await reader.read('log')
  t.equal(matched + last.matched, COUNT)
  t.equal(last.messages, COUNT)
  t.equal((await reader.read('log')).duplicates, COUNT)
})

t.test('a last line that is still being written is left for the next import', async (t) => {
  const reader = reading(t)
  const path = reader.write('log', `${matching(1)}\n${matching(2).slice(0, 40)}`)
  utimesSync(path, new Date(), new Date())
  t.match(await reader.read('log'), { matched: 1, messages: 1, unfinished: true })
  reader.write('log', `${matching(1)}\n${matching(2)}\n`)
  t.match(await reader.read('log'), { matched: 1, duplicates: 1, unfinished: false })
})

t.test('each object of a JSON array is a message, in any layout', async (t) => {
  const reader = reading(t)
  const event = (index: number): string =>
    JSON.stringify({
      '@timestamp': '2026-11-20T11:00:00Z',
      source: { ip: `10.0.0.${index}` },
      url: { original: 'https://claude.ai/' },
    })
  const pretty = (index: number): string => JSON.stringify(JSON.parse(event(index)), undefined, 2)
  const rows: readonly (readonly [string, string])[] = [
    ['one line', `[${event(1)},${event(2)}, ${event(3)}]\n`],
    ['a line each', `[\n${event(4)},\n${event(5)},\n${event(6)}\n]\n`],
    [
      'indented',
      `${JSON.stringify(
        [7, 8, 9].map((index) => JSON.parse(event(index))),
        undefined,
        2,
      )}\n`,
    ],
    ['printed for people, no array', `${pretty(10)}\n${pretty(11)}\n${pretty(12)}`],
  ]
  for (const [name, content] of rows) {
    reader.write('json', content)
    t.match(await reader.read('json'), { messages: 3, matched: 3, rejected: 0, unknown: 0 }, name)
  }
})

t.test('objects without line feeds between them are messages', async (t) => {
  const reader = reading(t)
  const lines = Array.from({ length: 2000 }, (_, index) => matching(index))
  const events = lines.map((message, index) => ({ id: String(index), timestamp: NOW, message: `${message} }{` }))
  const record = (from: number, to: number): string =>
    JSON.stringify({
      messageType: 'DATA_MESSAGE',
      owner: '123456789012',
      logGroup: '/aws/route53/queries',
      logStream: 'vpc-1',
      subscriptionFilters: ['all'],
      logEvents: events.slice(from, to),
    })
  const wrapped = lines.map((log) => JSON.stringify({ log: `${log} {}{}`, stream: 'stdout' }))
  const files: readonly (readonly [name: string, content: string])[] = [
    ['subscription records of CloudWatch, joined', record(0, 700) + record(700, 1400) + record(1400, 2000)],
    ['subscription records, a line each', `${record(0, 700)}\n${record(700, 1400)}\n${record(1400, 2000)}\n`],
    ['objects, joined', wrapped.join('')],
    ['objects, a line each', wrapped.join('\n')],
  ]
  for (const [name, content] of files) {
    reader.write(name, content)
    t.match(await reader.read(name, { dryRun: true }), { messages: 2000, matched: 2000 }, name)
    reader.write(name, content.slice(0, -10))
    t.match(await reader.read(name, { dryRun: true }), { messages: 2000, matched: 1999 }, `${name}, truncated`)
  }
})

t.test('truncated CSV lines do not affect others', async (t) => {
  const reader = reading(t)
  const rows = Array.from({ length: 50 }, (_, index) => {
    return `2026-11-20 09:15:${String(index).padStart(2, '0')},10.0.0.${index},claude.ai,allow,"Mozilla/5.0${index % 7 === 0 ? '' : '"'}`
  })
  reader.write('csv', `Time,Client,Domain,Action,Agent\n${rows.join('\n')}\n`)
  t.match(await reader.read('csv'), { messages: 51, matched: 50 })
})

t.test('reading ends when the organization is removed', async (t) => {
  const { opened, write, read, stored } = reading(t)
  const { administration, organization } = opened
  write('a.log', `${matching(1)}\n`)
  const onMatch = (): unknown => administration.organizations.remove(organization, () => {})
  await t.rejects(read('a.log', { onMatch }), { code: 'NOT_FOUND', message: /the organization was removed/ })
  t.equal(stored(), 0)
})

t.test('reading that waits for the writer can be stopped', async (t) => {
  const { opened, write, read, stored } = reading(t)
  write('a.log', `${matching(1)}\n`)
  Object.assign(opened.store.environment, {
    write: () => {
      throw new Error('no transaction')
    },
  })
  await t.rejects(read('a.log', { stopAfter: 2 }), { code: 'STORE_UNWRITABLE', message: /stopped/ })
  t.equal(stored(), 0)
})
