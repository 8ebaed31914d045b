import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

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

const rows: readonly LogRow[] = [
  {
    name: 'commas: the client is the address inside',
    line: csv(),
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'unknown',
  },
  {
    name: 'blanks and quoted strings',
    line: blanks({ 12: '"Mozilla/5.0 (X11, ""Linux"")"', 41: '-' }),
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
  },
  { name: 'TABs', line: columns().join('\t'), verdict: 'event', host: 'claude.ai', client: '192.0.2.45' },
  {
    name: 'quoted commas',
    line: csv({ 11: '"a=1,b=2"', 12: '"Mozilla/5.0 (KHTML, like Gecko)"' }),
    verdict: 'event',
    host: 'claude.ai',
  },
  { name: 'no address inside', line: csv({ 43: '-' }), verdict: 'event', host: 'claude.ai', client: '203.0.113.7' },
  {
    name: 'IPv6',
    line: blanks({ 6: '2001:db8::45', 43: '-', 3: '-' }),
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8::45',
  },
  {
    name: 'a host with its port, in capitals',
    line: csv({ 17: 'API.OpenAI.com:443', 16: '-' }),
    verdict: 'event',
    host: 'api.openai.com',
  },
  {
    name: 'no host, but the name that was looked up',
    line: csv({ 17: '-', 16: 'api.groq.com', 18: '-' }),
    verdict: 'event',
    host: 'api.groq.com',
  },
  {
    name: 'a transaction truncated after the host',
    line: columns().slice(0, 19).join(','),
    verdict: 'event',
    host: 'claude.ai',
    client: '203.0.113.7',
  },
  { name: 'no host: the referer is not a host', line: csv({ 16: '-', 17: '-', 18: '-' }), verdict: 'noDomain' },
  { name: 'an address as host', line: csv({ 17: '198.51.100.20', 16: 'x.example.com' }), verdict: 'noDomain' },
  { name: 'truncated before the host', line: columns().slice(0, 17).join(','), verdict: 'reject', reason: /^cs-host/ },
  { name: '30 February', line: csv({ 0: '2026-02-30' }), verdict: 'reject', reason: /^time/ },
  { name: 'a word in place of a number', line: csv({ 3: 'many' }).slice(0, 60), verdict: 'unknown' },
  { name: 'a host in place of the client', line: blanks({ 6: 'claude.ai' }), verdict: 'unknown' },
  {
    name: 'a log that begins alike',
    line: '2026-11-20 08:15:02 192.0.2.45 GET claude.ai / 200 1 2 3 4',
    verdict: 'unknown',
  },
  { name: 'a single label', line: csv({ 17: 'intranet', 16: '-' }), verdict: 'noDomain' },
  { name: 'a mail address as host', line: csv({ 17: 'jdoe@example.com' }), verdict: 'noDomain' },
  { name: 'month 13', line: csv({ 0: '2026-13-20' }), verdict: 'reject', reason: /^time/ },
  { name: 'hour 24', line: csv({ 1: '24:15:02' }), verdict: 'reject', reason: /^time/ },
  {
    name: 'numbers and an address only',
    line: '2026-11-20 08:15:02 1 2 3 4 2001:db8:10::45',
    verdict: 'reject',
    reason: /^cs-host/,
  },
]
checkRows(t, 'netskope', rows)

t.test('long values take linear time', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(csv({ 11: 'x'.repeat(65_536) })).host, 'claude.ai')
  t.equal(reader.read(`2026-11-20,08:15:02,1,2,3,4,192.0.2.45${','.repeat(200_000)}`).verdict, 'noDomain')
})

checkMutations(
  t,
  rows.map((row) => row.line),
)
