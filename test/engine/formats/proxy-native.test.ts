import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { checkRows, type LogRows, type NamedRow } from '../../support/log-rows.ts'

const TIME = '2026-11-20T08:15:02.119Z'

const rows: LogRows = {
  'a tunnel names its host and port': [
    '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT api.anthropic.com:443 jdoe HIER_DIRECT/198.51.100.20 -',
    `event api.anthropic.com from 192.0.2.45 at ${TIME}, unknown`,
  ],
  'a request of an IPv6 client that was denied': [
    '1795162503.001      0 2001:db8:10::45 TCP_DENIED/403 4001 GET http://chat.mistral.ai/chat - HIER_NONE/- text/html',
    'event chat.mistral.ai from 2001:db8:10::45 at 2026-11-20T08:15:03.001Z, blocked',
  ],
  'a denied request that was answered is also blocked': [
    '1795162503.001      0 192.0.2.45 TCP_DENIED_REPLY/403 4001 GET http://chat.mistral.ai/chat - HIER_NONE/- text/html',
    'event chat.mistral.ai, blocked',
  ],
  'after the tag of syslog': [
    '(squid-1)[7711]: 1795162502.119    318 192.0.2.45 TCP_MISS/200 9 GET http://claude.ai/ - HIER_DIRECT/198.51.100.20 -',
    `event claude.ai from 192.0.2.45 at ${TIME}`,
  ],
  'after a complete header that no relay removed': [
    '<166>Nov 20 09:15:02 proxy (squid-1)[7711]: 1795162502.119      0 2001:db8:10::45 TCP_DENIED/403 4001 GET http://chat.mistral.ai/chat - HIER_NONE/- text/html',
    `event chat.mistral.ai from 2001:db8:10::45 at ${TIME}`,
  ],
  'with interception the URL is whole, with a port and userinfo': [
    '1795162502.119     99 192.0.2.45 TCP_MISS/200 6120 GET https://user:pw@API.OpenAI.com:8443/v1?x=a@b.example - ORIGINAL_DST/198.51.100.20 application/json',
    'event api.openai.com',
  ],
  'a Web Security Appliance appends its policy and categories': [
    '1795162502.119 97 192.0.2.45 TCP_MISS_SSL/200 39 CONNECT tunnel://api.openai.com:443/ "corp\\jdoe@realm" DIRECT/api.openai.com - DEFAULT_CASE_11-Default-Id-NONE-NONE-NONE-Default-NONE <IW_comp,6.9,"-",-,-,-,-,"-","-",-,-,"-","mail.example.com"> -',
    'event api.openai.com from 192.0.2.45',
  ],
  'its own method for what it intercepts': [
    '1795162502.119 97 192.0.2.45 TCP_MISS/200 0 TCP_CONNECT claude.ai:443 - DIRECT/198.51.100.20 - PASSTHRU_CUSTOMCAT_7-Default <-,-,-> -',
    'event claude.ai',
  ],
  'the port of the client, inserted': [
    '1795162502.119    318 192.0.2.45 51234 TCP_MISS/200 6120 GET http://claude.ai/ - HIER_DIRECT/198.51.100.20 -',
    'event claude.ai from 192.0.2.45',
  ],
  'sizes and a dash inserted before the method': [
    '1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 533 - GET http://claude.ai/ - HIER_DIRECT/198.51.100.20 -',
    'event claude.ai',
  ],
  'a user inserted before the method': [
    '1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 JDoe GET http://claude.ai/ - HIER_DIRECT/198.51.100.20 -',
    'event claude.ai',
  ],
  'a referer and an agent at the end': [
    '1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 GET http://intranet/x - HIER_DIRECT/198.51.100.20 - "https://chatgpt.com/" "Mozilla/5.0 (claude.ai)"',
    'noDomain',
  ],
  'a client given by name has no address': [
    '1795162502.119    318 pc-7.example.com TCP_MISS/200 6120 GET http://claude.ai/ - HIER_DIRECT/claude.ai -',
    'event claude.ai from -',
  ],
  'the resolved address after the hierarchy is no host': [
    '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT 198.51.100.20:443 - HIER_DIRECT/api.openai.com -',
    'noDomain from 192.0.2.45',
  ],
  'a tunnel to an IPv6 address': [
    '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT [2001:db8::8]:443 - HIER_DIRECT/2001:db8::8 -',
    'noDomain',
  ],
  ...Object.fromEntries(
    [
      ['an error in the place of the URL', '- error:transaction-end-before-headers'],
      ['a request that could not be read', 'NONE error:invalid-request'],
      ['the cache manager', 'GET cache_object://localhost/counters'],
      ['the cache manager of a proxy with a name', 'GET cache_object://proxy.example.com/counters'],
      ['a page of the proxy itself', 'GET internal://proxy.example.com/squid-internal-static/icons/x.png'],
      ['a path', 'GET /squid-internal-mgr/menu'],
      ['no URL', 'GET -'],
      ['a name of another kind', 'GET urn:example.com'],
      ['a file is no URL', 'GET setup.zip'],
      ['a broken tunnel', 'CONNECT https:443'],
      ['a tunnel to a single label', 'CONNECT intranet:443'],
    ].map(
      ([name, request]): NamedRow => [
        name ?? '',
        [`1795162502.119      0 192.0.2.45 NONE_NONE/000 0 ${request} - HIER_NONE/- -`, 'noDomain from 192.0.2.45'],
      ],
    ),
  ),
  'a line of cache.log': ['2026/11/20 09:15:02 kid1| Starting Squid Cache version 5.7', 'skip'],
  'an old line of cache.log': ['2026/11/20 09:15:02| storeDirWriteCleanLogs: claude.ai', 'skip'],
  'a line that matched no rule': ['Unmatched access from claude.ai', 'skip'],
  'a line without result': ['1795162502.119    318 192.0.2.45 api.anthropic.com:443 jdoe', 'reject: result'],
  'a line that ends after its result': ['1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 ', 'reject: method'],
  'a line that ends after its method': ['1795162502.119    318 192.0.2.45 TCP_MISS/200 6120 GET', 'reject: URL'],
  'another sender that begins with a time': [
    '1795162502.119 mx84 urls src=192.0.2.45:51234 dst=198.51.100.20:443 request: GET https://claude.ai/',
    'event claude.ai',
    { format: 'firewall-kv' },
  ],
  'a day that is a date': ['2026/11/20 09:15:02 claude.ai', 'unknown'],
}

const STANDARD = '10 192.0.2.45 TCP_DENIED/403 900 CONNECT claude.ai:443 jdoe HIER_NONE/- -'
const OWN: readonly (readonly [line: string, action?: 'allowed' | 'blocked'])[] = [
  [`[20/Nov/2026:09:15:02 +0100]     ${STANDARD}`, 'blocked'],
  [`20/Nov/2026:09:15:02 +0100 ${STANDARD}`, 'blocked'],
  [`2026-11-20T09:15:02+01:00 ${STANDARD}`, 'blocked'],
  [`1795162502 ${STANDARD}`, 'blocked'],
  [
    '1795162502.965 [20/Nov/2026:09:15:02 +0100] 245 192.0.2.45 - - CONNECT claude.ai:443 HTTP/1.1 - 200 5809 TCP_TUNNEL ROUNDROBIN_PARENT/dmz -',
  ],
  [
    '1795162502.123|2026/11/20 09:15:02|+0100|18|0|192.0.2.45|pc3.lan.example|alice|TCP_DENIED|HIER_NONE|403|-|500|3900|0|CONNECT|claude.ai:443|-|claude.ai:443|-',
    'blocked',
  ],
  [
    '1795162502.690\t-\t10.0.0.45\t10.0.0.45\thttps://claude.ai\tCONNECT\t200\t213\t-\t-\t-\t272\t-\t0\t-\t0\t-\tPTA6\t1',
  ],
  ['1795162502.119 318 192.0.2.45:51234 "GET http://x.example/" TCP_TUNNEL:200 6120 CONNECT claude.ai:443 alice'],
]
const own: LogRows = {
  ...Object.fromEntries(
    OWN.map(([line, action]): NamedRow => {
      const client = line.includes('10.0.0.45') ? '10.0.0.45' : '192.0.2.45'
      return [line.slice(0, 60), [line, `event claude.ai from ${client}${action ? `, ${action}` : ''}`]]
    }),
  ),
  'the log of a web server with full URLs': ['1795162502.119 10 192.0.2.45 GET https://claude.ai/ 200', 'noDomain'],
  'words before the client': ['1795162502.119 10 user x 192.0.2.45 CONNECT claude.ai:443', 'reject'],
}

checkFormat(t, 'proxy-native', rows)
checkRows(t, 'proxy-native', own)
