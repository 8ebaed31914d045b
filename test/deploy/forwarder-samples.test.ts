import t from 'tap'
import { FORWARDERS, PARTS, PLACEHOLDERS, snippet } from '../../deploy/docs/page-tables.ts'
import { SAMPLES } from '../../deploy/log-samples.ts'
import { MessageReader } from '../support/log-rows.ts'
import { readMessage } from '../support/read-messages.ts'
import { matcher } from '../support/store.ts'

const HEADER = '<134>1 2026-11-20T09:15:03+01:00 relay - - - [svc@00000 key="svc_mt_x"] '

/** How a line reaches the service. */
const TRANSPORTS: readonly { readonly name: string; readonly wrap: (line: string) => string }[] = [
  { name: 'directly from the device or a file', wrap: (line) => line },
  { name: "through syslog-ng, with the device's PRI", wrap: (line) => `${HEADER}${line}` },
  { name: 'through rsyslog, without a PRI', wrap: (line) => `${HEADER}${line.replace(/^<\d+>/, '')}` },
]

for (const { device, lines, format, host, client } of SAMPLES) {
  t.test(`the sample of ${device} is read as it states`, async (t) => {
    for (const { name, wrap } of TRANSPORTS) {
      const reader = new MessageReader()
      const reads = lines.map((line) => readMessage(reader, wrap(line)))
      t.match(reads.pop(), { verdict: 'event', format, host, client }, name)
      for (const heading of reads) t.equal(heading.verdict, 'skip', `${name}: headings`)
    }
    t.ok(matcher.match(host), 'it names a platform')
  })
}

t.test('the table lists all placeholders of the snippets, and no others', async (t) => {
  const words = FORWARDERS.flatMap((forwarder) => PARTS.map((part) => snippet(forwarder, part))).flatMap(
    (text) => text.match(/\b[A-Z]+_[A-Z]+\b/g) ?? [],
  )
  t.same([...new Set(words)].sort(), Object.keys(PLACEHOLDERS).sort())
})

t.test('the token is only in the parts that define the destination', async (t) => {
  for (const forwarder of FORWARDERS) {
    for (const part of PARTS) {
      const name = `${forwarder} ${part}`
      t.equal(snippet(forwarder, part).includes('MONITORING_TOKEN'), part.startsWith('service'), name)
    }
  }
})
