import t from 'tap'
import { readFormatRule } from '../../../engine/admin/format-rule-file.ts'
import { LogLine, SCRATCH_BYTES, Verdict } from '../../../engine/formats/log-line.ts'
import { OwnFormat } from '../../../engine/formats/own-format.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'
import * as fc from '../../support/property.ts'

function ownFormat(yaml: string): OwnFormat {
  const rule = readFormatRule(Buffer.from(yaml))
  if ('errors' in rule) throw new Error(rule.errors.join('; '))
  return new OwnFormat(rule)
}

const COLUMNS = ownFormat(`
name: guest-proxy
delimiter: '|'
fields: { time: [1, 2], client: 3, host: 5, user: 4, action: 6, bytes_sent: 7, bytes_received: 8 }
blocked: [VERBOTEN]
`)
const PATHS = ownFormat(`
name: edge
json: true
fields: { time: meta.at, client: peer.0.ip, host: sni.name, user: who, bytes_sent: bytes.up }
`)
const PATTERN = ownFormat(`
name: access
pattern: '^\\[(?<time>[^\\]]+)\\] (?<client>\\S+) -> (?<host>[^: ]+)(?::\\d+)? (?<action>\\w+)(?: user=(?<user>\\S+))?$'
`)

const EVENT = { verdict: 'event', host: 'claude.ai', client: '10.0.0.7', format: 'own-format' } as const
const TIME = '2026-11-20T09:15:02'

const COLUMN_ROWS: readonly LogRow[] = [
  {
    name: 'all columns',
    line: '2026-11-20|09:15:02|10.0.0.7|jdoe|https://claude.ai/chat|OK|100|2000',
    ...EVENT,
    time: TIME,
    user: 'jdoe',
    sent: 100,
    received: 2000,
  },
  {
    name: 'a word of its own for blocked',
    line: '2026-11-20|09:15:02|10.0.0.7||claude.ai|Verboten||',
    ...EVENT,
    action: 'blocked',
  },
  {
    name: 'a known word for blocked',
    line: '2026-11-20|09:15:02|10.0.0.7||claude.ai|DENY||',
    ...EVENT,
    action: 'blocked',
  },
  {
    name: 'quoted columns',
    line: '2026-11-20|09:15:02|"10.0.0.7"|"a ""b"" | c"|"claude.ai"|OK||',
    ...EVENT,
    user: 'a "b" | c',
  },
  {
    name: 'fewer columns than the fields that are not needed',
    line: '2026-11-20|09:15:02|10.0.0.7||claude.ai',
    ...EVENT,
  },
  { name: 'a host that is an address', line: '2026-11-20|09:15:02|10.0.0.7||203.0.113.9|OK||', verdict: 'noDomain' },
  { name: 'an impossible time', line: '2026-13-40|09:15:02|10.0.0.7||claude.ai|OK||', verdict: 'reject' },
  { name: 'a header', line: 'date|time|client|user|host|action|sent|received', verdict: 'skip', format: 'any-csv' },
  { name: 'a client without an address', line: '2026-11-20|09:15:02|-||claude.ai|OK||', verdict: 'unknown' },
  {
    name: 'a syslog header before the line',
    line: '<134>Nov 20 09:15:02 fw app: 2026-11-20|09:15:02|10.0.0.7||claude.ai|OK||',
    ...EVENT,
  },
  {
    name: 'another format',
    line: 'dnsmasq[811]: query[A] claude.ai from 10.0.0.7',
    ...EVENT,
    format: 'dnsmasq',
  },
  {
    name: 'an envelope',
    line: JSON.stringify({ log: '2026-11-20|09:15:02|10.0.0.7|jdoe|claude.ai|OK|100|2000' }),
    ...EVENT,
    time: TIME,
    user: 'jdoe',
  },
]
const PATH_ROWS: readonly LogRow[] = [
  {
    name: 'paths',
    line: JSON.stringify({
      meta: { at: '2026-11-20T09:15:02Z' },
      peer: [{ ip: '10.0.0.7' }],
      'sni.name': 'claude.ai',
      who: 'jdoe',
      bytes: { up: 12 },
    }),
    ...EVENT,
    time: `${TIME}Z`,
    user: 'jdoe',
    sent: 12,
  },
  { name: 'no host', line: '{"peer":[{"ip":"10.0.0.7"}],"level":"info"}', verdict: 'noDomain', format: 'json-logs' },
  {
    name: 'a host that is an object',
    line: '{"peer":[{"ip":"10.0.0.7"}],"sni":{"name":{}}}',
    verdict: 'noDomain',
    format: 'json-logs',
  },
  {
    name: 'truncated',
    line: '{"peer":[{"ip":"10.0.0.7"}],"sni":{"name":"claude.ai"',
    verdict: 'reject',
    format: 'json-logs',
  },
  { name: 'no object', line: '"10.0.0.7"', verdict: 'unknown' },
]
const PATTERN_ROWS: readonly LogRow[] = [
  {
    name: 'groups',
    line: '[2026-11-20T09:15:02Z] 10.0.0.7 -> claude.ai:443 blocked user=jdoe',
    ...EVENT,
    time: `${TIME}Z`,
    user: 'jdoe',
    action: 'blocked',
  },
  { name: 'an optional group', line: '[2026-11-20T09:15:02Z] 10.0.0.7 -> claude.ai ok', ...EVENT, user: '' },
  { name: 'another line', line: '[2026-11-20T09:15:02Z] started', verdict: 'unknown' },
]

for (const [name, own, rows] of [
  ['columns', COLUMNS, COLUMN_ROWS],
  ['paths', PATHS, PATH_ROWS],
  ['a pattern', PATTERN, PATTERN_ROWS],
] as const) {
  t.test(name, async (t) => checkRows(t, 'own-format', rows, () => new MessageReader(undefined, undefined, own)))
}

t.test('no line hangs, and no line throws', async (t) => {
  const slow = ownFormat(`
name: slow
pattern: '^(?<client>(?:a+)+b|\\S+) (?<host>(?:[a-z]+\\.?)*)$'
`)
  const reader = new MessageReader(undefined, undefined, slow)
  t.match(reader.read(`${'a'.repeat(8000)} ${'a.'.repeat(3000)}!`), { verdict: 'unknown' })
  fc.check(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
      for (const own of [COLUMNS, PATHS, PATTERN]) {
        const bytes = new Uint8Array(1024 + SCRATCH_BYTES)
        const length = Buffer.from(bytes.buffer).write(text, 0, 1024)
        if (length > 0) own.read(new LogLine(bytes), 0, length)
      }
    }),
  )
  t.equal(slow.read(new LogLine(new Uint8Array(20_000 + SCRATCH_BYTES)), 0, 20_000), Verdict.unknown, 'too long')
})
