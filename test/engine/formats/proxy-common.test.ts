import t from 'tap'
import { SourceMemory } from '../../../engine/formats/log-line.ts'
import { checkFormat } from '../../support/log-mutations.ts'
import { checkRows, type LogRows, MessageReader, type NamedRow } from '../../support/log-rows.ts'

const TIME = '2026-11-20T08:15:02Z'
const HEAD = '192.0.2.45 - - [20/Nov/2026:09:15:02 +0100]'

const rows: LogRows = {
  'a tunnel in the combined log of a proxy': [
    '192.0.2.45 - corp\\jdoe [20/Nov/2026:09:15:02 +0100] "CONNECT huggingface.co:443 HTTP/1.1" 200 39 "-" "curl/8.5.0" TCP_TUNNEL:HIER_DIRECT',
    `event huggingface.co from 192.0.2.45 at ${TIME}, unknown`,
  ],
  'a request that the proxy denied': [
    `${HEAD} "GET http://claude.ai/x HTTP/1.1" 403 3900 "-" "curl/8.5.0" TCP_DENIED:HIER_NONE`,
    'event claude.ai, blocked',
  ],
  'the common log of a proxy, which has no referer': [
    `${HEAD} "GET https://claude.ai:8443/x HTTP/1.1" 403 - TCP_DENIED_REPLY:HIER_NONE`,
    'event claude.ai, blocked',
  ],
  'a user with blanks and a bracket': [
    '192.0.2.45 - john [x] doe [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/ HTTP/1.1" 200 2',
    `event claude.ai from 192.0.2.45 at ${TIME}`,
  ],
  'an IPv6 client behind the virtual host of the proxy': [
    'proxy.example.com:3128 2001:db8:10::45 - - [20/Nov/2026:09:15:02 -0930] "CONNECT api.openai.com:443 HTTP/1.1" 200 2326',
    'event api.openai.com from 2001:db8:10::45 at 2026-11-20T18:45:02Z',
  ],
  'the virtual host of a web server': [
    'api.openai.com:443 2001:db8:10::45 - - [20/Nov/2026:09:15:02 -0930] "GET /v1 HTTP/2.0" 200 2326 "https://chatgpt.com/" "Mozilla/5.0"',
    'noDomain from 2001:db8:10::45 at 2026-11-20T18:45:02Z',
  ],
  'the virtual host of a web server, without port': [
    'claude.ai 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET /v1 HTTP/1.1" 200 2326',
    'noDomain from 192.0.2.45',
  ],
  'the virtual host of a web server, and a client by its name': [
    'claude.ai:443 pc-7.example.com - - [20/Nov/2026:09:15:02 +0100] "GET /v1 HTTP/1.1" 200 2326',
    'noDomain from -',
  ],
  'the target takes precedence over the virtual host': [
    'proxy.example.com:3128 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/v1 HTTP/1.1" 200 2326',
    'event claude.ai',
  ],
  'a dash before the client': [
    '- 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/v1 HTTP/1.1" 200 2326',
    'event claude.ai from 192.0.2.45',
  ],
  'a dash in parentheses after the client': [
    '192.0.2.45 (-) - - [20/Nov/2026:09:15:02 +0100] "GET http://claude.ai/v1 HTTP/1.1" 200 2326',
    'event claude.ai from 192.0.2.45',
  ],
  'a quote in the target': [
    `${HEAD} "GET http://claude.ai/\\"https://chatgpt.com HTTP/1.1" 200 2326`,
    'event claude.ai',
  ],
  'the time first, then user, client and status': [
    '[20/Nov/2026:09:15:02 +0100] "corp\\jdoe" 192.0.2.45 200 "GET https://claude.ai/chat HTTP/1.1" "Generative AI" "Minimal Risk"',
    `event claude.ai from 192.0.2.45 at ${TIME}`,
  ],
  'the time first, and a user with quotes': [
    '[20/Nov/2026:09:15:02 +0100] "x\\"GET http://evil.example/ \\"" 192.0.2.45 200 "GET https://claude.ai/chat HTTP/1.1"',
    'event claude.ai from 192.0.2.45',
  ],
  'a time in numbers and without offset': [
    '192.0.2.45 - - [20/11/2026 11:30:29] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
    'event claude.ai at 2026-11-20T11:30:29',
  ],
  'invalid status and bytes': [`${HEAD} "CONNECT claude.ai:443 HTTP/1.1" - -`, 'event claude.ai'],
  'the referer is no host': [
    `${HEAD} "GET /index.html HTTP/1.1" 200 2326 "https://chatgpt.com/" "Mozilla/5.0"`,
    `noDomain from 192.0.2.45 at ${TIME}`,
  ],
  'an agent and a user with a mail address are not hosts': [
    '192.0.2.45 - jdoe@claude.ai [20/Nov/2026:09:15:02 +0100] "POST /login.php HTTP/1.1" 200 2326 "-" "https://chatgpt.com/bot"',
    'noDomain',
  ],
  'a client by its name is not a host': [
    'claude.ai - - [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    'noDomain from -',
  ],
  'the syslog tag is not a host': [
    'access.log: 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    'noDomain from 192.0.2.45',
  ],
  'a client by its name, with an identity, is not a host': [
    'claude.ai ident jdoe [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    'noDomain from -',
  ],
  'a client by its name and port is not a host': [
    'claude.ai:51234 - - [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    'noDomain from -',
  ],
  'a client with a user of two words is not a host': [
    'claude.ai - john doe [20/Nov/2026:09:15:02 +0100] "GET /index.html HTTP/1.1" 200 2326',
    'noDomain from -',
  ],
  ...Object.fromEntries(
    [
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
      ([name, request]): NamedRow => [
        name ?? '',
        [`${HEAD} "${request}" 400 0 "https://chatgpt.com/" "-"`, 'noDomain from 192.0.2.45'],
      ],
    ),
  ),
  'a path is no host, whatever the request of a virtual host': [
    'claude.ai:443 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "-" 408 0',
    'noDomain',
  ],
  'a nonexistent day': [
    '192.0.2.45 - - [31/Feb/2026:09:15:02 +0100] "GET http://claude.ai/ HTTP/1.1" 200 2326',
    'reject: time',
  ],
  'brackets without a day': ['192.0.2.45 - - [info] "GET http://claude.ai/ HTTP/1.1" 200 2326', 'unknown'],
  'a day without a request': [`${HEAD} GET http://claude.ai/`, 'unknown'],
}

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
const heads: LogRows = {
  ...Object.fromEntries(
    HEADS.map(
      ([head, client, user]): NamedRow => [
        `the client and user of ${head}`,
        [
          `${head} [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39`,
          `event claude.ai from ${client || '-'}`,
          { user },
        ],
      ],
    ),
  ),
  'the rest of a forwarded list after what a client may have written': [
    '192.0.2.7 - x, 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
    'ambiguous',
  ],
  'an ISO 8601 time': [
    '192.0.2.45 - alice [2026-11-20T09:15:02+01:00] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
    `event claude.ai at ${TIME}`,
  ],
}

checkFormat(t, 'proxy-common', rows)
checkRows(t, 'proxy-common', heads)

t.test('the first of forwarded clients, if the token says so', async (t) => {
  const memory = new SourceMemory()
  memory.isForwarded = true
  const line = `unknown, 192.0.2.7, 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39`
  t.match(new MessageReader(memory).read(line), { verdict: 'event', client: '192.0.2.7' })
})
