import t from 'tap'
import { SourceMemory } from '../../../engine/formats/log-line.ts'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const TIME = '2026-11-20T08:15:02Z'
const HEAD = '192.0.2.45 - - [20/Nov/2026:09:15:02 +0100]'

const rows: LogRow[] = [
  {
    name: 'a tunnel in the combined log of a proxy',
    line: '192.0.2.45 - corp\\jdoe [20/Nov/2026:09:15:02 +0100] "CONNECT huggingface.co:443 HTTP/1.1" 200 39 "-" "curl/8.5.0" TCP_TUNNEL:HIER_DIRECT',
    verdict: 'event',
    host: 'huggingface.co',
    client: '192.0.2.45',
    time: TIME,
    action: 'unknown',
  },
  {
    name: 'a request that the proxy denied',
    line: `${HEAD} "GET http://claude.ai/x HTTP/1.1" 403 3900 "-" "curl/8.5.0" TCP_DENIED:HIER_NONE`,
    verdict: 'event',
    host: 'claude.ai',
    action: 'blocked',
  },
  {
    name: 'the common log of a proxy, which has no referer',
    line: `${HEAD} "GET https://claude.ai:8443/x HTTP/1.1" 403 - TCP_DENIED_REPLY:HIER_NONE`,
    verdict: 'event',
    host: 'claude.ai',
    action: 'blocked',
  },
  {
    name: 'a user with blanks and a bracket',
    line: '192.0.2.45 - john [x] doe [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/ HTTP/1.1" 200 2',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: TIME,
  },
  {
    name: 'an IPv6 client behind the virtual host of the proxy',
    line: 'proxy.example.com:3128 2001:db8:10::45 - - [20/Nov/2026:09:15:02 -0930] "CONNECT api.openai.com:443 HTTP/1.1" 200 2326',
    verdict: 'event',
    host: 'api.openai.com',
    client: '2001:db8:10::45',
    time: '2026-11-20T18:45:02Z',
  },
  {
    name: 'the virtual host of a web server',
    line: 'api.openai.com:443 2001:db8:10::45 - - [20/Nov/2026:09:15:02 -0930] "GET /v1 HTTP/2.0" 200 2326 "https://chatgpt.com/" "Mozilla/5.0"',
    verdict: 'noDomain',
    client: '2001:db8:10::45',
    time: '2026-11-20T18:45:02Z',
  },
  {
    name: 'the virtual host of a web server, without port',
    line: 'claude.ai 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET /v1 HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'the virtual host of a web server, and a client by its name',
    line: 'claude.ai:443 pc-7.example.com - - [20/Nov/2026:09:15:02 +0100] "GET /v1 HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '',
  },
  {
    name: 'the target takes precedence over the virtual host',
    line: 'proxy.example.com:3128 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/v1 HTTP/1.1" 200 2326',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a dash before the client',
    line: '- 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/v1 HTTP/1.1" 200 2326',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'a dash in parentheses after the client',
    line: '192.0.2.45 (-) - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/v1 HTTP/1.1" 200 2326',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'a quote in the target',
    line: `${HEAD} "GET http://claude.ai/\\"https://chatgpt.com HTTP/1.1" 200 2326`,
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'the time first, then user, client and status',
    line: '[20/Nov/2026:09:15:02 +0100] "corp\\jdoe" 192.0.2.45 200 "GET https://claude.ai/chat HTTP/1.1" "Generative AI" "Minimal Risk"',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: TIME,
  },
  {
    name: 'the time first, and a user with quotes',
    line: '[20/Nov/2026:09:15:02 +0100] "x\\"GET http://evil.example/ \\"" 192.0.2.45 200 "GET https://claude.ai/chat HTTP/1.1"',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'a time in numbers and without offset',
    line: '192.0.2.45 - - [20/11/2026 11:30:29] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T11:30:29',
  },
  {
    name: 'invalid status and bytes',
    line: `${HEAD} "CONNECT claude.ai:443 HTTP/1.1" - -`,
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'the referer is no host',
    line: `${HEAD} "GET /index.html HTTP/1.1" 200 2326 "https://chatgpt.com/" "Mozilla/5.0"`,
    verdict: 'noDomain',
    client: '192.0.2.45',
    time: TIME,
  },
  {
    name: 'an agent and a user with a mail address are not hosts',
    line: '192.0.2.45 - jdoe@claude.ai [20/Nov/2026:09:15:02 +0100] "POST /login.php HTTP/1.1" 200 2326 "-" "https://chatgpt.com/bot"',
    verdict: 'noDomain',
  },
  {
    name: 'a client by its name is not a host',
    line: 'claude.ai - - [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '',
  },
  {
    name: 'the syslog tag is not a host',
    line: 'access.log: 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a client by its name, with an identity, is not a host',
    line: 'claude.ai ident jdoe [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '',
  },
  {
    name: 'a client by its name and port is not a host',
    line: 'claude.ai:51234 - - [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '',
  },
  {
    name: 'a client with a user of two words is not a host',
    line: 'claude.ai - john doe [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    verdict: 'noDomain',
    client: '',
  },
  ...[
    ['a request that never came', '-'],
    ['nothing at all', ''],
    ['the first bytes of TLS', '\\x16\\x03\\x01\\x02'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0'],
    ['all of a server', 'OPTIONS * HTTP/1.1'],
    ['a file with the ending of a domain', 'GET setup.zip HTTP/1.1'],
    ['a URL in a path', 'GET /https://claude.ai/ HTTP/1.1'],
    ['a tunnel to an address', 'CONNECT 198.51.100.20:443 HTTP/1.1'],
    ['a broken tunnel', 'CONNECT https:443 HTTP/1.1'],
    ['an error of the proxy', 'NONE error:invalid-request HTTP/1.1'],
    ['small letters', 'get http://claude.ai/ HTTP/1.1'],
  ].map(
    ([name, request]): LogRow => ({
      name: name ?? '',
      line: `${HEAD} "${request}" 400 0 "https://chatgpt.com/" "-"`,
      verdict: 'noDomain',
      client: '192.0.2.45',
    }),
  ),
  {
    name: 'a path is no host, whatever the request of a virtual host',
    line: 'claude.ai:443 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "-" 408 0',
    verdict: 'noDomain',
  },
  {
    name: 'a nonexistent day',
    line: '192.0.2.45 - - [31/Feb/2026:09:15:02 +0100] "GET http://claude.ai/ HTTP/1.1" 200 2326',
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'brackets without a day',
    line: '192.0.2.45 - - [info] "GET http://claude.ai/ HTTP/1.1" 200 2326',
    verdict: 'unknown',
  },
  { name: 'a day without a request', line: `${HEAD} GET http://claude.ai/`, verdict: 'unknown' },
]

const HEADS: readonly (readonly [head: string, client: string, user: string])[] = [
  ['192.0.2.45 - alice smith', '192.0.2.45', 'alice smith'],
  ['192.0.2.45 - corp\\alice', '192.0.2.45', 'corp\\alice'],
  ['192.0.2.45 - ""', '192.0.2.45', ''],
  ['192.0.2.45 - "alice smith"', '192.0.2.45', 'alice smith'],
  ['192.0.2.45 - CN=Alice,OU=x', '192.0.2.45', 'CN=Alice,OU=x'],
  ['192.0.2.45 ident alice', '192.0.2.45', 'alice'],
  ['192.0.2.45 - ', '192.0.2.45', ''],
  ['192.0.2.45:51234 - alice', '192.0.2.45', 'alice'],
  ['[2001:db8::45]:51234 - -', '2001:db8::45', ''],
  ['[2001:db8::45] - alice', '2001:db8::45', 'alice'],
  ['fe80::45%eth0 - alice', 'fe80::45', 'alice'],
  ['proxy:3128 192.0.2.45 - ""', '192.0.2.45', ''],
  ['pc7.corp.example - alice', '', ''],
  ['192.0.2.7, 192.0.2.45 - alice', '192.0.2.45', 'alice'],
  ['192.0.2.7,192.0.2.8, 192.0.2.45 - -', '192.0.2.45', ''],
  ['unknown, 192.0.2.45 - -', '192.0.2.45', ''],
  ['proxy:3128 192.0.2.7, 192.0.2.45 - alice', '192.0.2.45', 'alice'],
]
const heads = HEADS.map(
  ([head, client, user]): LogRow => ({
    name: `the client and user of ${head}`,
    line: `${head} [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39`,
    verdict: 'event',
    host: 'claude.ai',
    client,
    user,
  }),
)
heads.push({
  name: 'the rest of a forwarded list after what a client may have written',
  line: '192.0.2.7 - x, 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
  verdict: 'ambiguous',
})
heads.push({
  name: 'an ISO 8601 time',
  line: '192.0.2.45 - alice [2026-11-20T09:15:02+01:00] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
  verdict: 'event',
  host: 'claude.ai',
  time: TIME,
})

checkRows(t, 'proxy-common', [...rows, ...heads])
t.test('the first of forwarded clients, if the token says so', async (t) => {
  const memory = new SourceMemory()
  memory.isForwarded = true
  const line = `unknown, 192.0.2.7, 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39`
  t.match(new MessageReader(memory).read(line), { verdict: 'event', client: '192.0.2.7' })
})
checkMutations(
  t,
  rows.map(({ line }) => line),
)
