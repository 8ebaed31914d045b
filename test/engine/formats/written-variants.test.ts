import t from 'tap'
import { PRODUCTS } from '../../../deploy/log-samples.ts'
import { readMessages } from '../../support/read-messages.ts'

/**
 * Messages of one source as devices, relays and their releases write them, and the requests in
 * them: client and host.
 */
const CISCO = 'asa-1 %ASA-6-302013: Built outbound TCP connection 1 for outside:198.51.100.20/80 (198.51.100.20/80)'
const VARIANTS: Readonly<Record<string, readonly [messages: readonly string[], requests: readonly string[]]>> = {
  'dnsmasq with log-queries=proto': [
    [
      'Nov 20 09:15:02 dnsmasq[1]: UDP 436 10.0.1.1/36363 query[A] chatgpt.com from 10.0.1.1',
      'Nov 20 09:15:02 dnsmasq[1]: TCP 437 fd00:1::2/36364 forwarded claude.ai to 192.0.2.53',
      'TCP 437 fd00:1::2/36364 query[HTTPS] claude.ai from fd00:1::2',
    ],
    ['10.0.1.1 chatgpt.com', 'fd00:1::2 claude.ai'],
  ],
  'PowerDNS Recursor behind the PROXY protocol': [
    [
      'msg="Question" subsystem="syncres" ts="1795162502.3" proto="tcp" qname="claude.ai" qtype="A" remote="10.0.3.1:51800 (proxied by 127.0.0.1:58786)"',
      "3 [4711/1] question for 'claude.ai|A' from 10.0.3.3:51800 (proxied by 127.0.0.1:4711)",
      "3 [4711/1] TCP question for 'claude.ai|A' from 10.0.3.4:51800",
    ],
    ['10.0.3.1 claude.ai', '10.0.3.3 claude.ai', '10.0.3.4 claude.ai'],
  ],
  'CoreDNS with a broken zone': [
    ['[INFO] [fe80::5:2%!l(MISSING)an0]:54939 - 57566 "A IN chatgpt.com. udp 43 false 4096" NOERROR qr 107 0.01s'],
    ['fe80::5:2 chatgpt.com'],
  ],
  'other forms of CoreDNS': [
    [
      '10.0.7.1:51234 - [20/Nov/2026:09:15:02 +0100] 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s',
      '10.0.7.2 - [20/Nov/2026:09:15:02 +0100] "A IN claude.ai. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s',
      '20/Nov/2026:09:15:02 +0100 [INFO] 10.0.7.3:51234 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr 80 0.001s',
      '2026/11/20 09:15:02 [INFO] 10.0.7.4 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s',
      '<30>Nov 20 09:15:02 ns coredns[9]: 10.0.7.5:51234 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr 80 0.001s',
    ],
    ['10.0.7.1 claude.ai', '10.0.7.2 claude.ai', '10.0.7.3 claude.ai', '10.0.7.4 claude.ai', '10.0.7.5 claude.ai'],
  ],
  'facility and level of BusyBox': [
    [
      'Fri Nov 20 09:15:02 2026 kern.info ROUTEDNS-REQUEST[16]: client=10.0.8.1 listener=doh type=https query=claude.ai.',
      'Fri Nov 20 09:15:02 2026 daemon.info dnsmasq[310]: query[A] claude.ai from 10.0.8.2',
      'Nov 20 09:15:02 OpenWrt daemon.notice unbound: [3121:0] info: 10.0.8.3 claude.ai. A IN',
      '<30>Nov 20 09:15:02 OpenWrt daemon.info nextdns[9]: Query 10.0.8.4 UDP AAAA claude.ai. abc123 (qry=27/res=43) cached ',
      'Fri Nov 20 09:15:02 2026 daemon.info 10.0.8.5 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr 80 0.001s',
      '[a1b2c3] 10.0.8.6:51234 -> listener.0: 0.0.0.0:53: received query: A claude.ai',
      'Nov 20 09:15:02 edge dnsdist[901]: Got query for claude.ai.|A from 10.0.8.7:51234, relayed to 192.0.2.53:53',
    ],
    [1, 2, 3, 4, 5, 6, 7].map((last) => `10.0.8.${last} claude.ai`),
  ],
  'the headers of archives before pairs of a firewall': [
    [1, 2].map(
      (last) =>
        `${last === 1 ? '2026-11-20T11:15:05+03:00 172.16.2.3' : '2026 Nov 20 08:15:05 fgt-1->172.16.2.3'} date=2026-11-20 time=08:15:02 devname="fgt-1" logid="0317013312" type="utm" subtype="webfilter" srcip=10.0.6.${last} dstip=198.51.100.20 hostname="claude.ai" action="passthrough"`,
    ),
    ['10.0.6.1 claude.ai', '10.0.6.2 claude.ai'],
  ],
  'an escaped line end': [
    [
      '<30>Nov 20 09:15:02 ns1 dnsmasq[310]: query[A] claude.ai from 10.0.9.1#012',
      '#Fields: date time c-ip cs-method cs-host',
      'Nov 20 08:15:05 proxysg 2026-11-20 08:15:02 10.0.9.2 CONNECT claude.ai#015#012',
    ],
    ['10.0.9.1 claude.ai', '10.0.9.2 claude.ai'],
  ],
  'words before Cisco messages': [
    [
      '<166>Nov 20 09:15:02 MSK asa-2 : %ASA-5-304001: 10.0.18.21 Accessed URL 198.51.100.20:http://claude.ai/api',
      '<166>Nov 20 09:15:02 CEST asa-2 %ASA-5-304001: jdoe@10.0.18.22 Accessed JAVA URL 198.51.100.20:http://claude.ai/',
      '2026-11-20T09:15:02Z SENSOR-3D Alerts %NGIPS-0-430003: SrcIP: 10.0.17.3, DstIP: 198.51.100.20, URL: https://claude.ai',
    ],
    ['10.0.18.21 claude.ai', '10.0.18.22 claude.ai', '10.0.17.3 claude.ai'],
  ],
  'Cisco after another message of the firewall': [
    [
      `<190>Nov 20 09:15:02 ${CISCO}`,
      '<189>Nov 20 09:15:02 asa-1 %ASA-5-304001: 10.0.18.12 Accessed URL 198.51.100.20:http://claude.ai/api',
    ],
    ['10.0.18.12 claude.ai'],
  ],
  "a name in text of a Cisco message's words is no header": [
    ['say "hi" %ASA-5-304001: 10.0.18.66 Accessed URL 198.51.100.20:http://claude.ai/api'],
    [],
  ],
  'text that a client wrote into a message of another program': [
    [
      'Nov 20 09:15:02 srv app[1]: Invalid user %ASA-5-304001: 10.0.18.66 Accessed URL 198.51.100.20:http://claude.ai/api from 10.0.0.5',
      'Nov 20 09:15:02 srv app[1]: Invalid user nbound[1:0] info: 10.0.0.66 claude.ai. A IN ',
      '[20/Nov/2026:09:15:02 +0100] 1532 203.0.113.7 - - "GET / HTTP/1.1" 200 512 "x TCP_MISS/200 1 GET https://claude.ai/ x HIER_DIRECT/1"',
      'CEF:0|V|Web Gateway|1|1|web|3|src=10.0.81.1 dhost=docs.example rt=1795162502000 requestClientApplication=x sourceip=10.0.81.66 request=https://claude.ai/',
    ],
    [],
  ],
  'one field under two names': [
    [
      'time="2026-11-20 09:15:02" source=PC1 src_ip=10.0.81.3 url=https://claude.ai/ url.original=https://claude.ai/x',
      'CEF:0|V|Web Gateway|1|1|web|3|src=10.0.81.4 dhost=claude.ai rt=1795162502000 suser=bob sourceUserName=CORP\\bob',
    ],
    ['10.0.81.3 claude.ai', '10.0.81.4 claude.ai'],
  ],
  'a user of Cisco ASA after the address': [
    [
      '%ASA-5-304001: 10.0.18.12(LOCAL\\jdoe) Accessed URL 198.51.100.20:http://claude.ai/',
      '%ASA-5-304001: 10.0.18.13 (LOCAL\\jdoe) Accessed URL 198.51.100.20:http://claude.ai/',
    ],
    ['10.0.18.12 claude.ai', '10.0.18.13 claude.ai'],
  ],
  'W3C with an empty column': [
    [
      '#Fields: date time c-ip cs-username cs-method cs-host sc-status',
      '2026-11-20 09:15:02 10.0.28.12  CONNECT claude.ai 200',
    ],
    ['10.0.28.12 claude.ai'],
  ],
  'zone words that are words of the message': [
    ['Nov 20 09:15:02 EST query from 10.0.0.5: #4711 claude.ai. A'],
    ['10.0.0.5 claude.ai'],
  ],
  'Unbound of OPNsense': [
    ['<30>2026-11-20T09:15:02.9-00:00 host1 Unbound Resolver: [94939:0] info: 10.0.39.2 claude.ai. A IN'],
    ['10.0.39.2 claude.ai'],
  ],
  'Squid with a local time, and e2guardian': [
    [
      '[20/Nov/2026:09:15:02 +0100]     10 10.0.26.11 TCP_TUNNEL/200 900 CONNECT claude.ai:443 alice HIER_DIRECT/198.51.100.20 -',
      '1795162502.859   1673 10.0.26.5 TCP_MISS/0 5977 - https://claude.ai 10.0.26.5 DEFAULT_PARENT/ -',
    ],
    ['10.0.26.11 claude.ai', '10.0.26.5 claude.ai'],
  ],
  'W3C with two blanks': [
    [
      '#Fields: date time c-ip cs-username cs-method cs-host sc-status',
      '2026-11-20 09:15:02  10.0.28.11 alice CONNECT   claude.ai 200',
    ],
    ['10.0.28.11 claude.ai'],
  ],
  'FortiClient, whose hostname is the client': [
    [
      'devid="FC1" date="2026-11-20" time="09:15:02" type="traffic" hostname="chatgpt.com" deviceip=10.0.37.1 remotename="claude.ai" utmaction="userbrowsed" tz="+0100"',
    ],
    ['10.0.37.1 claude.ai'],
  ],
  'GELF with a short message only': [
    [
      JSON.stringify({
        version: '1.1',
        host: 'd',
        short_message: 'query[A] claude.ai from 10.0.51.1\r',
        timestamp: 1795162502,
      }),
    ],
    ['10.0.51.1 claude.ai'],
  ],
  'two values of a field': [
    [
      'CEF:0|V|Web Gateway|1|1|web|3|src=10.0.81.1 dhost=docs.example rt=1795162502000 requestClientApplication=x src=10.0.81.66 dhost=claude.ai',
      'CEF:0|V|Web Gateway|1|1|web|3|requestClientApplication=x dhost=claude.ai src=10.0.81.2 dhost=docs.example rt=1795162502000',
      'time="2026-11-20 09:15:02" src=10.0.81.3 agent=x src=10.0.81.66 url=https://claude.ai/',
    ],
    [],
  ],
  'one value twice': [
    ['CEF:0|V|Web Gateway|1|1|web|3|src=10.0.81.1 dhost=claude.ai rt=1795162502000 src=10.0.81.1'],
    ['10.0.81.1 claude.ai'],
  ],
}

for (const [name, [messages, requests]] of Object.entries(VARIANTS)) {
  t.test(name, async (t) => {
    const events = readMessages(messages).filter(({ verdict }) => verdict === 'event')
    t.same(
      events.map(({ client, host }) => `${client} ${host}`),
      requests,
    )
  })
}

t.test('offsets of UTC are read', async (t) => {
  const zones = {
    'UTC+2:00': '07:15:02',
    'UTC-5:30': '14:45:02',
    'GMT+1': '08:15:02',
    '+0100': '08:15:02',
    UTC: '09:15:02',
  }
  for (const [zone, utc] of Object.entries(zones)) {
    const [read] = readMessages([
      `logid="0317013312" tz="${zone}" date=2026-11-20 time=09:15:02 type="utm" subtype="webfilter" srcip=10.0.7.1 dstip=198.51.100.20 hostname="claude.ai"`,
    ])
    t.match(read, { verdict: 'event', time: `2026-11-20T${utc}.000Z` }, zone)
  }
})

/** Of a server that writes queries, answers are no second request. */
const HAS_STATE = new Set([
  'unbound',
  'bind-query',
  'w3c-extended',
  'any-csv',
  'zeek',
  'open-firewall-csv',
  'firewall-csv',
])

t.test('each sample is read alike after each other sample of the same source', async (t) => {
  const samples = Object.values(PRODUCTS).flatMap((products) => products.map(({ line }) => line))
  const alone = new Map(samples.map((sample) => [sample, readMessages([sample])[0]]))
  const stable = samples.filter(
    (sample) => alone.get(sample)?.verdict === 'event' && !HAS_STATE.has(alone.get(sample)?.format ?? ''),
  )
  t.ok(stable.length > 20, `${stable.length} samples`)
  const differing: string[] = []
  for (const before of stable) {
    for (const sample of stable) {
      const [, after] = readMessages([before, sample])
      const expected = alone.get(sample)
      if (
        after?.verdict !== expected?.verdict ||
        after?.host !== expected?.host ||
        after?.client !== expected?.client
      ) {
        differing.push(`${sample} after ${before}: ${after?.verdict}`)
      }
    }
  }
  t.same(differing, [])
})

const REFUSED: readonly (readonly [name: string, reason: RegExp, ...lines: string[]])[] = [
  [
    'W3C records that #012 joins',
    /^message: .* #012 joins/,
    '#Fields: date time c-ip cs-method cs-host',
    '2026-11-20 08:15:02 10.0.9.2 CONNECT chatgpt.com#015#0122026-11-20 08:15:02 10.0.9.3 CONNECT claude.ai',
  ],
  [
    'CEF records that #012 joins',
    /^message: .* #012 joins/,
    `${'CEF:0|V|Web Gateway|1|1|web|3|src=10.0.9.2 request=https://docs.example/ suser=alice'} #012CEF:0|V|Web Gateway|1|1|web|3|src=10.0.9.3 request=https://claude.ai/ suser=bob`,
  ],
  [
    "Zscaler's JSON without escapes",
    /Feed Escape Character/,
    '{ "sourcetype" : "zscalernss-web", "event" :{"eurl":"claude.ai/?x={"a":"b"}","cip":"10.0.9.4","ereferer":"None"}}',
  ],
]
for (const [name, reason, ...lines] of REFUSED) {
  t.test(name, async (t) => {
    const read = readMessages(lines).at(-1)
    t.not(read?.verdict, 'event')
    t.match(read?.reason, reason)
  })
}
