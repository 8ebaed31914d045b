import t from 'tap'
import { readFormatRule } from '../../../engine/admin/format-rule-file.ts'
import { LogLine, SCRATCH_BYTES, Verdict } from '../../../engine/formats/log-line.ts'
import { OwnFormat } from '../../../engine/formats/own-format.ts'
import { checkRows, type LogRows, MessageReader } from '../../support/log-rows.ts'
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

const TIME = '2026-11-20T09:15:02'

const COLUMN_ROWS: LogRows = {
  'all columns': [
    '2026-11-20|09:15:02|10.0.0.7|jdoe|https://claude.ai/chat|OK|100|2000',
    `event claude.ai from 10.0.0.7 at ${TIME}`,
    { user: 'jdoe', sent: 100, received: 2000 },
  ],
  'a word of its own for blocked': [
    '2026-11-20|09:15:02|10.0.0.7||claude.ai|Verboten||',
    'event claude.ai from 10.0.0.7, blocked',
  ],
  'a known word for blocked': [
    '2026-11-20|09:15:02|10.0.0.7||claude.ai|DENY||',
    'event claude.ai from 10.0.0.7, blocked',
  ],
  'quoted columns': [
    '2026-11-20|09:15:02|"10.0.0.7"|"a ""b"" | c"|"claude.ai"|OK||',
    'event claude.ai from 10.0.0.7',
    { user: 'a "b" | c' },
  ],
  'fewer columns than the fields that are not needed': [
    '2026-11-20|09:15:02|10.0.0.7||claude.ai',
    'event claude.ai from 10.0.0.7',
  ],
  'a host that is an address': ['2026-11-20|09:15:02|10.0.0.7||203.0.113.9|OK||', 'noDomain'],
  'an impossible time': ['2026-13-40|09:15:02|10.0.0.7||claude.ai|OK||', 'reject'],
  'a header': ['date|time|client|user|host|action|sent|received', 'skip', { format: 'any-csv' }],
  'a client without an address': ['2026-11-20|09:15:02|-||claude.ai|OK||', 'unknown'],
  'a syslog header before the line': [
    '<134>Nov 20 09:15:02 fw app: 2026-11-20|09:15:02|10.0.0.7||claude.ai|OK||',
    'event claude.ai from 10.0.0.7',
  ],
  'another format': [
    'dnsmasq[811]: query[A] claude.ai from 10.0.0.7',
    'event claude.ai from 10.0.0.7',
    { format: 'dnsmasq' },
  ],
  'an envelope': [
    JSON.stringify({ log: '2026-11-20|09:15:02|10.0.0.7|jdoe|claude.ai|OK|100|2000' }),
    `event claude.ai from 10.0.0.7 at ${TIME}`,
    { user: 'jdoe' },
  ],
}
const PATH_ROWS: LogRows = {
  paths: [
    JSON.stringify({
      meta: { at: '2026-11-20T09:15:02Z' },
      peer: [{ ip: '10.0.0.7' }],
      'sni.name': 'claude.ai',
      who: 'jdoe',
      bytes: { up: 12 },
    }),
    `event claude.ai from 10.0.0.7 at ${TIME}Z`,
    { user: 'jdoe', sent: 12 },
  ],
  'no host': ['{"peer":[{"ip":"10.0.0.7"}],"level":"info"}', 'noDomain', { format: 'json-logs' }],
  'a host that is an object': ['{"peer":[{"ip":"10.0.0.7"}],"sni":{"name":{}}}', 'noDomain', { format: 'json-logs' }],
  truncated: ['{"peer":[{"ip":"10.0.0.7"}],"sni":{"name":"claude.ai"', 'reject', { format: 'json-logs' }],
  'no object': ['"10.0.0.7"', 'unknown'],
}
const PATTERN_ROWS: LogRows = {
  groups: [
    '[2026-11-20T09:15:02Z] 10.0.0.7 -> claude.ai:443 blocked user=jdoe',
    `event claude.ai from 10.0.0.7 at ${TIME}Z, blocked`,
    { user: 'jdoe' },
  ],
  'an optional group': [
    '[2026-11-20T09:15:02Z] 10.0.0.7 -> claude.ai ok',
    'event claude.ai from 10.0.0.7',
    { user: '' },
  ],
  'another line': ['[2026-11-20T09:15:02Z] started', 'unknown'],
}

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
