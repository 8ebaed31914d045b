import t from 'tap'
import { SourceMemory } from '../../../engine/formats/log-line.ts'
import { MessageReader } from '../../support/log-rows.ts'
import { readMessage } from '../../support/read-messages.ts'

/** Each proxy is 192.0.2.99, and each original client 10.0.0.7. */
const LINES: Readonly<Record<string, readonly string[]>> = {
  'Check Point': [
    '<134>1 2026-11-20T08:15:03Z cp CheckPoint 22103 - [action:"Accept"; ifdir:"outbound"; time:"1795162502"; dst:"198.51.100.20"; product:"URL Filtering"; resource:"https://claude.ai/"; src:"192.0.2.99"; proxy_src_ip:"10.0.0.7"; src_user_name:"alice"]',
  ],
  'Cisco Secure Firewall': [
    '%FTD-1-430003: FirstPacketSecond: 2026-11-20T08:15:02Z, SrcIP: 192.0.2.99, DstIP: 198.51.100.20, OriginalClientSrcIP: 10.0.0.7, User: alice, URL: https://claude.ai',
  ],
  FortiGate: [
    'date=2026-11-20 time=08:15:02 logid="0317013312" type="utm" subtype="webfilter" user="alice" srcip=192.0.2.99 dstip=198.51.100.20 hostname="claude.ai" url="/" action="passthrough" forwardedfor="10.0.0.7, 192.0.2.98"',
  ],
  'W3C extended': [
    '#Fields: date time c-ip cs(X-Forwarded-For) cs-username cs-method cs-host sc-status',
    '2026-11-20 08:15:02 192.0.2.99 10.0.0.7,+192.0.2.98 alice CONNECT claude.ai 200',
  ],
  'common log': ['10.0.0.7, 192.0.2.99 - alice [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39'],
  JSON: [
    '{"time":"2026-11-20T08:15:02Z","client_ip":"192.0.2.99","x_forwarded_for":"unknown, 10.0.0.7","url":"https://claude.ai/","user":"alice"}',
  ],
  'key=value': [
    'time=2026-11-20T08:15:02Z client_ip=192.0.2.99 xff=10.0.0.7 url=https://claude.ai/ user=alice action=allow',
  ],
}

for (const [name, lines] of Object.entries(LINES)) {
  t.test(`${name}: the client is the proxy, or the original client if the token says so`, async (t) => {
    for (const [isForwarded, client] of [
      [false, '192.0.2.99'],
      [true, '10.0.0.7'],
    ] as const) {
      const reader = new MessageReader(Object.assign(new SourceMemory(), { isForwarded }))
      const read = lines.map((line) => readMessage(reader, line)).at(-1)
      t.match(read, { verdict: 'event', host: 'claude.ai', client, user: 'alice' })
    }
  })
}
