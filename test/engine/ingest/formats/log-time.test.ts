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
