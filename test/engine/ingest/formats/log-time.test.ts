import t from 'tap'
import { DayOrder, LogTime, TimeFound } from '../../../../engine/ingest/formats/log-time.ts'

const RECEIVED = '2026-11-20T12:00:00Z'

function read(text: string, options: { received?: string; order?: DayOrder } = {}): string {
  const bytes = Buffer.from(`xx${text}xx`)
  const time = new LogTime()
  time.dayOrder = options.order ?? DayOrder.unknown
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found = time.read(view, 2, bytes.length - 2, Date.parse(options.received ?? RECEIVED))
  if (found === TimeFound.none) return 'none'
  if (found === TimeFound.impossible) return 'impossible'
  const iso = new Date(time.ms).toISOString()
  return time.isLocal ? iso.slice(0, -1) : iso
}

const rows: { text: string; is: string; received?: string; order?: DayOrder }[] = [
  { text: '1795162502', is: '2026-11-20T08:15:02.000Z' },
  { text: '1795162502.119 rest', is: '2026-11-20T08:15:02.119Z' },
  { text: '1795162502.5', is: '2026-11-20T08:15:02.500Z' },
  { text: '1795162502123', is: '2026-11-20T08:15:02.123Z' },
  { text: '1795162502123456', is: '2026-11-20T08:15:02.123Z' },
  { text: '1795162502123456789', is: '2026-11-20T08:15:02.123Z' },
  { text: '17951625021', is: 'none' },
  { text: '2026-11-20T09:15:02Z', is: '2026-11-20T09:15:02.000Z' },
  { text: '2026-11-20t09:15:02z', is: '2026-11-20T09:15:02.000Z' },
  { text: '2026-11-20T09:15:02.123456789+01:00', is: '2026-11-20T08:15:02.123Z' },
  { text: '2026-11-20T09:15:02-0930', is: '2026-11-20T18:45:02.000Z' },
  { text: '2026-11-20T09:15:02+0530', is: '2026-11-20T03:45:02.000Z' },
  { text: '2026-11-20T09:15:02+11', is: '2026-11-19T22:15:02.000Z' },
  { text: '2026-11-20 09:15:02 UTC', is: '2026-11-20T09:15:02.000Z' },
  { text: '2026-11-20 09:15:02 GMT', is: '2026-11-20T09:15:02.000Z' },
  { text: '2026-11-20 09:15:02 CET', is: '2026-11-20T09:15:02.000' },
  { text: '2026-11-20 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '2026-11-20 09:15:02,123 INFO', is: '2026-11-20T09:15:02.123' },
  { text: '2026-11-20 09:15:02,192.0.2.1', is: '2026-11-20T09:15:02.000' },
  { text: '2026-11-20 09:15:02,443,tcp', is: '2026-11-20T09:15:02.000' },
  { text: '2026/11/20 9:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '2026:11:20-09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '2026-11-20,09:15:02,', is: '2026-11-20T09:15:02.000' },
  { text: '2026-11-20\t09:15:02\t12', is: '2026-11-20T09:15:02.000' },
  { text: '20/11/2026:09:15:02 GMT', is: '2026-11-20T09:15:02.000Z' },
  { text: '2026-13-20 09:15:02', is: 'impossible' },
  { text: '2026-02-29 09:15:02', is: 'impossible' },
  { text: '2028-02-29 09:15:02', is: '2028-02-29T09:15:02.000' },
  { text: '2026-11-31 09:15:02', is: 'impossible' },
  { text: '2026-11-20 24:15:02', is: 'impossible' },
  { text: '2026-11-20 23:59:60', is: '2026-11-20T23:59:59.000' },
  { text: '2026-11-20', is: 'none' },
  { text: '20-Nov-2026 09:15:02.046 queries', is: '2026-11-20T09:15:02.046' },
  { text: '20/Nov/2026:09:15:02 +0100] "', is: '2026-11-20T08:15:02.000Z' },
  { text: '1/Nov/2026:09:15:02 +0000', is: '2026-11-01T09:15:02.000Z' },
  { text: '31/Feb/2026:09:15:02 +0000', is: 'impossible' },
  { text: 'Nov 20 09:15:02 host', is: '2026-11-20T09:15:02.000' },
  { text: 'Nov  5 09:15:02', is: '2026-11-05T09:15:02.000' },
  { text: 'Nov 20 2026 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: 'Nov 20 09:15:02 2026', is: '2026-11-20T09:15:02.000' },
  { text: 'Nov 20 09:15:02.123', is: '2026-11-20T09:15:02.123' },
  { text: '*Nov 20 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: 'Fri Nov 20 09:15:02 2026', is: '2026-11-20T09:15:02.000' },
  { text: 'Fri, 20 Nov 2026 09:15:02 GMT', is: '2026-11-20T09:15:02.000Z' },
  { text: 'Nov 20 host', is: 'none' },
  { text: 'November rain', is: 'none' },
  { text: 'Dec 31 23:59:59', received: '2027-01-01T00:00:05Z', is: '2026-12-31T23:59:59.000' },
  { text: 'Jan  1 00:00:01', received: '2026-12-31T23:59:59Z', is: '2027-01-01T00:00:01.000' },
  { text: 'Nov 22 00:00:01', is: '2025-11-22T00:00:01.000' },
  { text: 'Feb 29 10:00:00', received: '2026-03-01T00:00:00Z', is: '2024-02-29T10:00:00.000' },
  { text: 'Feb 30 10:00:00', is: 'impossible' },
  { text: '11/20/2026 9:15:02 AM', is: '2026-11-20T09:15:02.000' },
  { text: '11/20/2026 12:15:02 AM', is: '2026-11-20T00:15:02.000' },
  { text: '11/20/2026 12:15:02 PM', is: '2026-11-20T12:15:02.000' },
  { text: '11/20/2026 1:15:02\u202fPM', is: '2026-11-20T13:15:02.000' },
  { text: '11/20/2026 1:15:02\u00a0PM', is: '2026-11-20T13:15:02.000' },
  { text: '20/11/2026 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '20.11.2026 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '20. 11. 2026 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '20.11.26 09:15', is: '2026-11-20T09:15:00.000' },
  { text: '20-11-2026 09:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '05/06/2026 09:15:02', is: '2026-06-05T09:15:02.000' },
  { text: '05/06/2026 09:15:02', order: DayOrder.monthFirst, is: '2026-05-06T09:15:02.000' },
  { text: '05/06/2026 9:15:02 AM', is: '2026-05-06T09:15:02.000' },
  { text: '05/06/2026 09:15:02', received: '2026-05-06T09:15:03Z', is: '2026-05-06T09:15:02.000' },
  { text: '9/16/19 10:00', is: '2019-09-16T10:00:00.000' },
  { text: '13/13/2026 10:00', is: 'impossible' },
  { text: '01/11/2026 9:15:02 AM', is: '2026-11-01T09:15:02.000' },
  { text: '10/11/2026 9:15:02 AM', received: '2026-11-10T12:00:00Z', is: '2026-10-11T09:15:02.000' },
  { text: '10/12/2026 9:15:02 AM', received: '2026-11-10T12:00:00Z', is: '2026-10-12T09:15:02.000' },
  { text: '12/10/2026 09:15:02', received: '2026-11-10T12:00:00Z', is: '2026-10-12T09:15:02.000' },
  { text: '11/10/2026 09:15:02', received: '2026-11-10T12:00:00Z', is: '2026-11-10T09:15:02.000' },
  { text: '2026-11-20 오후 3:15:02 0A14', is: '2026-11-20T15:15:02.000' },
  { text: '2026-11-20 오전 12:15:02', is: '2026-11-20T00:15:02.000' },
  { text: '2026/11/20 下午 03:15:02', is: '2026-11-20T15:15:02.000' },
  { text: '2026/11/20 上午 03:15:02', is: '2026-11-20T03:15:02.000' },
  { text: '2026/11/20 午後03:15:02', is: '2026-11-20T15:15:02.000' },
  { text: '2026. 11. 20. 9:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '2026. 11. 20. 오후 9:15:02', is: '2026-11-20T21:15:02.000' },
  { text: '2026.11.20 9:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '20.11.2026 г. 9:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '20.11.2026. 9:15:02', is: '2026-11-20T09:15:02.000' },
  { text: '20-Nov-26 9:15:02 AM', is: '2026-11-20T09:15:02.000' },
  { text: '20 Nov 09:15:02', is: 'none' },
  { text: 'Sep 20, 2026 @ 09:15:02.123', is: '2026-09-20T09:15:02.123' },
  { text: 'Nov 20, 2026 9:15:02 PM', is: '2026-11-20T21:15:02.000' },
  { text: 'Nov 20, 2026, 9:15:02 PM', is: '2026-11-20T21:15:02.000' },
  { text: 'Nov 20, 2026', is: 'none' },
  { text: '20.11.2026, 21:15:02', is: '2026-11-20T21:15:02.000' },
  { text: '11/20/2026, 9:15:02 PM', is: '2026-11-20T21:15:02.000' },
  { text: '20/11/2026 3:15:02 μμ', is: '2026-11-20T15:15:02.000' },
  { text: '20/11/2026 3:15:02 πμ 0A14', is: '2026-11-20T03:15:02.000' },
  { text: '20/11/2026 9:15:02 p. m.', is: '2026-11-20T21:15:02.000' },
  { text: '20/11/2026 9:15:02 p.\u00a0m. x', is: '2026-11-20T21:15:02.000' },
  { text: '20/11/2026 9:15:02 P.M.', is: '2026-11-20T21:15:02.000' },
  { text: '20/11/2026 12:15:02 a.m.', is: '2026-11-20T00:15:02.000' },
  { text: '20/11/2026 9:15:02 pmx', is: '2026-11-20T09:15:02.000' },
  { text: '20.11.2026 9.15.02 0A14', is: '2026-11-20T09:15:02.000' },
  { text: '20/11/2026 21.15.02', is: '2026-11-20T21:15:02.000' },
  { text: '20.11.2026 25.15.02', is: 'impossible' },
  { text: '20.11.2026 10.00.00.5', is: 'none' },
  { text: '20.11.2026 10.0.0.5', is: 'none' },
  { text: '20.11.2026 10.100.20.5', is: 'none' },
  { text: 'Fri Nov 20 09:15:02 CET 2024', is: '2024-11-20T09:15:02.000' },
  { text: 'Fri Nov 20 09:15:02 UTC 2024', is: '2024-11-20T09:15:02.000Z' },
  { text: 'Fri Nov 20 09:15:02 CET 22', is: '2026-11-20T09:15:02.000' },
  { text: 'Nov 20 09:15:02 FWA 2024', is: '2026-11-20T09:15:02.000' },
  { text: '192.0.2.45 10:00', is: 'none' },
  { text: '1.2.3.4', is: 'none' },
  { text: '', is: 'none' },
  { text: 'x', is: 'none' },
]

for (const { text, is, ...options } of rows) {
  t.equal(read(text, options), is, JSON.stringify(text))
}

t.test('a day above twelve settles the order for what follows', async (t) => {
  const time = new LogTime()
  const bytes = Buffer.from('11/20/2026 09:15:02 05/06/2026 09:15:02')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  time.read(view, 0, 19, Date.parse(RECEIVED))
  t.equal(time.dayOrder, DayOrder.monthFirst)
  time.read(view, 20, bytes.length, Date.parse(RECEIVED))
  t.equal(new Date(time.ms).toISOString(), '2026-05-06T09:15:02.000Z')
})

/** What a source's lines are read as, each as the day that is found; a line is its text, or that and when it came. */
function days(received: string, lines: readonly (string | readonly [string, string])[]): string[] {
  const time = new LogTime()
  return lines.map((line) => {
    const [text, came] = typeof line === 'string' ? [line, received] : line
    const bytes = Buffer.from(text)
    time.read(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, bytes.length, Date.parse(came))
    return new Date(time.ms).toISOString().slice(0, 10)
  })
}

const sequences: { name: string; received: string; lines: (string | [string, string])[]; are: string[] }[] = [
  {
    name: 'a file of the United States, whose last line would be near in the other order',
    received: '2026-11-10T12:00:00Z',
    lines: ['10/11/2026 9:15:02 AM', '10/11/2026 9:15:03 AM', '10/11/2026 9:15:04 AM', '10/12/2026 9:15:02 AM'],
    are: ['2026-10-11', '2026-10-11', '2026-10-11', '2026-10-12'],
  },
  {
    name: 'a file of Australia',
    received: '2026-11-20T12:00:00Z',
    lines: ['01/11/2026 9:15:02 AM', '01/11/2026 9:15:02 PM', '02/11/2026 9:15:02 AM', '05/11/2026 9:15:02 AM'],
    are: ['2026-11-01', '2026-11-01', '2026-11-02', '2026-11-05'],
  },
  {
    name: 'a year of the United States, day by day',
    received: '2026-11-20T12:00:00Z',
    lines: ['01/01/2026 9:15:02 AM', '01/02/2026 9:15:02 AM', '01/03/2026 9:15:02 AM', '01/05/2026 9:15:02 AM'],
    are: ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-05'],
  },
  {
    name: 'days follow upon each other, with 24 hours',
    received: '2026-11-20T12:00:00Z',
    lines: ['03/03/2026 09:15:02', '03/04/2026 09:15:02', '03/05/2026 09:15:02'],
    are: ['2026-03-03', '2026-03-04', '2026-03-05'],
  },
  {
    name: 'what is written as it happens, with AM and the day first',
    received: '',
    lines: [
      ['10/11/2026 9:15:02 AM', '2026-11-10T09:15:03Z'],
      ['10/11/2026 9:15:03 AM', '2026-11-10T09:15:04Z'],
      ['10/11/2026 9:15:04 AM', '2026-11-10T09:15:05Z'],
      ['10/11/2026 9:15:05 AM', '2026-11-10T09:15:06Z'],
      ['11/12/2026 9:15:05 AM', '2026-12-11T09:15:06Z'],
    ],
    are: ['2026-10-11', '2026-10-11', '2026-11-10', '2026-11-10', '2026-12-11'],
  },
  {
    name: 'one line near the time of receipt does not settle the order',
    received: '2026-11-10T12:00:00Z',
    lines: ['11/10/2026 09:15:02', '10/11/2026 09:15:02', '12/10/2026 09:15:02'],
    are: ['2026-11-10', '2026-11-10', '2026-10-12'],
  },
  {
    name: 'a number above twelve settles it against all hints, and again the other way',
    received: '2026-11-10T12:00:00Z',
    lines: [
      '11/10/2026 9:15:02 AM',
      '13/10/2026 9:15:02 AM',
      '11/10/2026 9:15:02 AM',
      '10/14/2026 9:15 AM',
      '10/11/2026 9:15 AM',
    ],
    are: ['2026-11-10', '2026-10-13', '2026-10-11', '2026-10-14', '2026-10-11'],
  },
  {
    name: 'an order in which a day would be ahead is not taken, unless the other is ahead as well',
    received: '2026-11-10T12:00:00Z',
    lines: ['12/10/2026 9:15:02 AM', '10/12/2026 9:15:02 AM', '12/11/2027 9:15:02 AM'],
    are: ['2026-10-12', '2026-10-12', '2027-12-11'],
  },
]
for (const { name, received, lines, are } of sequences) {
  t.test(name, async (t) => t.same(days(received, lines), are))
}
