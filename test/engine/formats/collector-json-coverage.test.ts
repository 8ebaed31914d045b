import t from 'tap'
import { FormatDetector } from '../../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES } from '../../../engine/formats/log-line.ts'
import { coverageFromMessage } from '../../../engine/ingest/read-coverage.ts'
import { COVERAGE_BYTES_MAX } from '../../../engine/limits.ts'
import { counters, coverageMessage, report } from '../../support/coverage.ts'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows } from '../../support/log-rows.ts'

const REPORT = report({ madeMs: Date.parse('2026-11-20T09:15:02.123Z'), counters: { packets: 120_000, hellos_ech: 7 } })
const good = coverageMessage(REPORT)
const spaced = JSON.stringify(JSON.parse(good), undefined, 1).replaceAll('\n', ' ')

checkRows(t, 'collector-json', {
  'a report as the collector writes it': [good, 'skip'],
  'with blanks and a line end': [`${spaced}\r\n`, 'skip'],
  'with members of a later release': [good.replace('"ended"', '"hosts":["a"],"ended"'), 'skip'],
  'truncated at the end': [good.slice(0, -1), 'reject', { reason: /^JSON: / }],
  'truncated in the counters': [good.slice(0, -40), 'reject', { reason: /^JSON: / }],
  'with text after the report': [`${good} x`, 'reject', { reason: /^JSON: / }],
  'longer than any report': [
    `${good.slice(0, -1)}${' '.repeat(COVERAGE_BYTES_MAX)}}`,
    'reject',
    { reason: /^coverage: .* 16384 bytes$/ },
  ],
  'no object in it': [
    '{"coverage":"instance","counters":{"instance":1}}',
    'reject',
    { reason: /^coverage: expected an object$/ },
  ],
  'no colon': ['{"coverage" {"instance":"x","counters":{}}}', 'reject', { reason: /^JSON: / }],
})

/** The text of the report in a message with other bytes around it, or ''. */
function messageText(message: string): string {
  const line = new LogLine(new Uint8Array(64 * 1024 + SCRATCH_BYTES))
  const bytes = Buffer.from(message)
  line.bytes.set(bytes, 9)
  new FormatDetector().read(line, 9, 9 + bytes.length)
  return line.text(line.coverageStart, line.coverageEnd)
}

t.test("the report's offsets are set, and the report is read unchanged", async (t) => {
  t.same(coverageFromMessage(messageText(`${good}\n`)), REPORT)
  t.same(coverageFromMessage(messageText(spaced)), REPORT)
  const full = report({ counters: Object.fromEntries(Object.keys(counters()).map((name) => [name, 2 ** 50])) })
  t.same(coverageFromMessage(messageText(coverageMessage(full))), full)
})

const OTHERS: readonly (readonly [name: string, message: string])[] = [
  ['nothing', ''],
  ['no object', '"coverage"'],
  ['another first member', `{"x":1,${good.slice(1)}`],
  ['the coverage of a test run', '{"coverage":{"lines":98.5,"branches":91}}'],
  ['no instance', good.replace('"instance"', '"host"')],
  ['no counters', good.replace('"counters"', '"numbers"')],
]
for (const [name, message] of OTHERS) {
  t.test(`no report: ${name}`, async (t) => {
    t.equal(messageText(message), '')
  })
}

t.test('an event after a report has no report', async (t) => {
  const line = new LogLine(new Uint8Array(64 * 1024 + SCRATCH_BYTES))
  const detector = new FormatDetector()
  const event = `{"id":"${'0'.repeat(31)}1","name":"claude.ai","client":"::1","method":"dns","first_seen":"2026-11-20T09:15:02Z"}`
  for (const [message, length] of [
    [good, good.length],
    [event, 0],
  ] as const) {
    line.bytes.set(Buffer.from(message))
    detector.read(line, 0, message.length)
    t.equal(line.coverageEnd - line.coverageStart, length)
  }
})

checkMutations(t, [good, spaced])
