import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader } from '../../support/log-rows.ts'

/** The default columns up to x-type; some of them changed. */
function columns(changes: Readonly<Record<number, string>> = {}): string[] {
  const all = new Array<string>(49).fill('-')
  const known: Record<number, string> = {
    ...{
      0: '2026-11-20',
      1: '08:15:02',
      2: '41',
      3: '1520',
      4: '9120',
      5: '10640',
      6: '203.0.113.7',
      7: '198.51.100.20',
    },
    ...{ 8: 'jdoe@example.com', 9: 'GET', 10: 'https', 11: 'q=1', 12: 'Mozilla/5.0', 13: 'text/html', 14: '200' },
    ...{ 16: 'claude.ai', 17: 'claude.ai', 18: '/new', 19: '443', 20: 'https://ref.example.net/x', 23: 'Claude' },
    ...{ 41: '1795162502', 43: '192.0.2.45', 44: 'CloudApp', 48: 'http_transaction' },
  }
  for (const [index, value] of Object.entries({ ...known, ...changes })) all[Number(index)] = value
  return all
}
const csv = (changes?: Readonly<Record<number, string>>): string => columns(changes).join(',')
const blanks = (changes?: Readonly<Record<number, string>>): string => columns(changes).join(' ')

const rows: LogRows = {
  'commas: the client is the address inside': [
    csv(),
    'event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, unknown',
  ],
  'blanks and quoted strings': [
    blanks({ 12: '"Mozilla/5.0 (X11, ""Linux"")"', 41: '-' }),
    'event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z',
  ],
  TABs: [columns().join('\t'), 'event claude.ai from 192.0.2.45'],
  'quoted commas': [csv({ 11: '"a=1,b=2"', 12: '"Mozilla/5.0 (KHTML, like Gecko)"' }), 'event claude.ai'],
  'no address inside': [csv({ 43: '-' }), 'event claude.ai from 203.0.113.7'],
  IPv6: [blanks({ 6: '2001:db8::45', 43: '-', 3: '-' }), 'event claude.ai from 2001:db8::45'],
  'a host with its port, in capitals': [csv({ 17: 'API.OpenAI.com:443', 16: '-' }), 'event api.openai.com'],
  'no host, but the name that was looked up': [csv({ 17: '-', 16: 'api.groq.com', 18: '-' }), 'event api.groq.com'],
  'a transaction truncated after the host': [columns().slice(0, 19).join(','), 'event claude.ai from 203.0.113.7'],
  'no host: the referer is not a host': [csv({ 16: '-', 17: '-', 18: '-' }), 'noDomain'],
  'an address as host': [csv({ 17: '198.51.100.20', 16: 'x.example.com' }), 'noDomain'],
  'truncated before the host': [columns().slice(0, 17).join(','), 'reject: cs-host'],
  '30 February': [csv({ 0: '2026-02-30' }), 'reject: time'],
  'a word in place of a number': [csv({ 3: 'many' }).slice(0, 60), 'unknown'],
  'a host in place of the client': [blanks({ 6: 'claude.ai' }), 'unknown'],
  'a log that begins alike': ['2026-11-20 08:15:02 192.0.2.45 GET claude.ai / 200 1 2 3 4', 'unknown'],
  'a single label': [csv({ 17: 'intranet', 16: '-' }), 'noDomain'],
  'a mail address as host': [csv({ 17: 'jdoe@example.com' }), 'noDomain'],
  'month 13': [csv({ 0: '2026-13-20' }), 'reject: time'],
  'hour 24': [csv({ 1: '24:15:02' }), 'reject: time'],
  'numbers and an address only': ['2026-11-20 08:15:02 1 2 3 4 2001:db8:10::45', 'reject: cs-host'],
}
checkFormat(t, 'netskope', rows)

t.test('long values take linear time', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(csv({ 11: 'x'.repeat(65_536) })).host, 'claude.ai')
  t.equal(reader.read(`2026-11-20,08:15:02,1,2,3,4,192.0.2.45${','.repeat(200_000)}`).verdict, 'noDomain')
})
