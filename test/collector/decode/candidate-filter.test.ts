import t from 'tap'
import { COUNTER_COUNT, Counter } from '../../../collector/batch/counters.ts'
import { FoundName, NameForm } from '../../../collector/decode/name.ts'
import { CandidateFilter } from '../../../collector/decode/name-sink.ts'
import { ipFrame, udp } from '../../support/packets.ts'
import { dnsQuery } from '../../support/packets-dns.ts'
import { FrameDecoder } from '../decode-frames.ts'

function query(name: string): Buffer {
  return ipFrame(
    { source: '10.0.0.7', destination: '192.0.2.53' },
    udp({ sourcePort: 50_000, destinationPort: 53 }, dnsQuery([name])),
  )
}

const HOSTS = ['unknown.ai', 'API.Unknown.AI', 'www.example.com', 'llm.acme.example', 'claude.ai', 'ads.unknown.ai']
for (const { candidates, rows } of [
  { candidates: false, rows: ['claude.ai'] },
  { candidates: true, rows: ['unknown.ai', 'api.unknown.ai', 'llm.acme.example', 'claude.ai'] },
]) {
  t.test(`rows ${candidates ? 'with' : 'without'} candidates`, async (t) => {
    const decoder = new FrameDecoder({ everyName: false, candidates })
    for (const round of ['new names', 'known names']) {
      const { names } = decoder.decode(HOSTS.map(query))
      t.same(
        names.map(({ name }) => name),
        rows,
        round,
      )
      t.same(
        names.filter(({ rule }) => rule >= 0).map(({ name }) => name),
        ['claude.ai'],
      )
    }
  })
}

t.test('at most 256 new names are read in a run; the others are counted, and read in the next one', async (t) => {
  const counters = new Uint32Array(COUNTER_COUNT)
  const filter = new CandidateFilter(counters)
  const accepts = (host: string): boolean => {
    const bytes = Buffer.from(host)
    const name = new FoundName(new DataView(bytes.buffer, bytes.byteOffset, bytes.length))
    name.set(name.view, 0, bytes.length, NameForm.dotted)
    return filter.accepts(name)
  }
  const hosts = Array.from({ length: 300 }, (_, at) => `site${at}.ai`)
  filter.begin()
  t.equal(hosts.filter(accepts).length, 256)
  t.equal(counters[Counter.candidatesUnread], 44)
  filter.begin()
  t.ok(hosts.filter(accepts).length > 290, 'a hash may displace another')
})
