import t from 'tap'
import { DayOrder, LogTime, SourceDayOrder } from '../../../engine/formats/log-time.ts'

t.test('an administrator sets the order, unless the source has shown its own', async (t) => {
  const order = new SourceDayOrder()
  const receivedMs = Date.parse('2026-11-20T12:00:00Z')
  order.settleIfUnknown(DayOrder.monthFirst)
  t.equal(order.of(5, 6, 2026, 0, false, receivedMs), DayOrder.monthFirst)
  t.equal(order.of(20, 11, 2026, 0, false, receivedMs), DayOrder.dayFirst)
  order.settleIfUnknown(DayOrder.monthFirst)
  t.equal(order.of(5, 6, 2026, 0, false, receivedMs), DayOrder.dayFirst)
})

t.test('a day above twelve sets the order for later lines', async (t) => {
  const time = new LogTime()
  const bytes = Buffer.from('11/20/2026 09:15:02 05/06/2026 09:15:02')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  time.read(view, 0, 19, Date.parse('2026-11-20T12:00:00Z'))
  t.equal(time.dayOrder.settled, DayOrder.monthFirst)
  time.read(view, 20, bytes.length, Date.parse('2026-11-20T12:00:00Z'))
  t.equal(new Date(time.ms).toISOString(), '2026-05-06T09:15:02.000Z')
})

/**
 * The dates read from the lines of one source. A line is its text, or its text and its time of
 * receipt.
 */
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
    name: 'a file from the United States, whose last line would be recent in the other order',
    received: '2026-11-10T12:00:00Z',
    lines: ['10/11/2026 9:15:02 AM', '10/11/2026 9:15:03 AM', '10/11/2026 9:15:04 AM', '10/12/2026 9:15:02 AM'],
    are: ['2026-10-11', '2026-10-11', '2026-10-11', '2026-10-12'],
  },
  {
    name: 'a file from Australia',
    received: '2026-11-20T12:00:00Z',
    lines: ['01/11/2026 9:15:02 AM', '01/11/2026 9:15:02 PM', '02/11/2026 9:15:02 AM', '05/11/2026 9:15:02 AM'],
    are: ['2026-11-01', '2026-11-01', '2026-11-02', '2026-11-05'],
  },
  {
    name: 'a year from the United States, day by day',
    received: '2026-11-20T12:00:00Z',
    lines: ['01/01/2026 9:15:02 AM', '01/02/2026 9:15:02 AM', '01/03/2026 9:15:02 AM', '01/05/2026 9:15:02 AM'],
    are: ['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-05'],
  },
  {
    name: 'successive days, with 24 hours',
    received: '2026-11-20T12:00:00Z',
    lines: ['03/03/2026 09:15:02', '03/04/2026 09:15:02', '03/05/2026 09:15:02'],
    are: ['2026-03-03', '2026-03-04', '2026-03-05'],
  },
  {
    name: 'lines written as events happen, with AM and the day first',
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
    name: 'one line near the time of receipt does not set the order',
    received: '2026-11-10T12:00:00Z',
    lines: ['11/10/2026 09:15:02', '10/11/2026 09:15:02', '12/10/2026 09:15:02'],
    are: ['2026-11-10', '2026-11-10', '2026-10-12'],
  },
  {
    name: 'a number above twelve overrides all hints, also back to the first order',
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
    name: 'an order that would put a day in the future is not used, unless the other would as well',
    received: '2026-11-10T12:00:00Z',
    lines: ['12/10/2026 9:15:02 AM', '10/12/2026 9:15:02 AM', '12/11/2027 9:15:02 AM'],
    are: ['2026-10-12', '2026-10-12', '2027-12-11'],
  },
]
for (const { name, received, lines, are } of sequences) {
  t.test(name, async (t) => t.same(days(received, lines), are))
}
