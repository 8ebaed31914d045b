import t from 'tap'
import { checkGrowth, checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const HEAD = '1,2026/11/20 09:15:02,007951000012345'
const FLOW =
  '2817,2026/11/20 09:15:01,192.0.2.45,198.51.100.20,203.0.113.7,198.51.100.20,allow-web,corp\\jdoe,,ssl,vsys1,trust,untrust,ethernet1/2.30,ethernet1/1,to-siem,2026/11/20 09:15:02,81234,1,51514,443,32011,443,0x40b000,tcp'
const BEHIND =
  '(9999),artificial-intelligence,informational,client-to-server,7311,0x8000000000000000,192.0.2.0-192.0.2.255,United States,,,0,,,1,"Mozilla/5.0 (X11, Linux) evil.example",,"192.0.2.201",https://referer.example/,,,,,0,0,0,0,,PA-EDGE-1,,,,post,0,,0,,N/A,N/A,AppThreat-0-0,0x0,0,4294967295,,"artificial-intelligence,low-risk",7d0c5b1e-0d7f-4a3e-9f57-0a4f2f6f1c11,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,0,2026-11-20T09:15:01.412+01:00,,,,general-business,saas,browser-based,2,,,ssl,no,no'

function threat(url: string, subtype = 'url', action = 'alert'): string {
  return `${HEAD},THREAT,${subtype},${FLOW},${action},${url},${BEHIND}`
}

const SAMPLE_URL = '"api.openai.com:443/v1/chat?q=""a"",b"'
const DECRYPTION =
  '1,2026/11/20 09:17:00,007951000012345,DECRYPTION,0,2817,2026/11/20 09:17:00,192.0.2.45,198.51.100.20,203.0.113.7,198.51.100.20,allow-web,,,ssl,vsys1,,,,,,,,,51600,443,,,,tcp,allow,N/A,,,,,,Client_Hello,,TLS1.3,,,,,,,,,,,,,,,,,,,,,*.anthropic.com,,,api.anthropic.com,,,,,,,,,2026-11-20T09:17:00.101+01:00'
const TRAFFIC =
  '1,2026/11/20 09:16:40,007951000012345,TRAFFIC,end,2817,2026/11/20 09:16:40,2001:db8:10::45,2001:db8:ffff::8,::,::,allow-web,corp\\jdoe,,openai-base,vsys1,trust,untrust,ethernet1/2.30,ethernet1/1,to-siem,2026/11/20 09:16:40,81234,1,51514,443,0,0,0x1c,tcp,allow,48213,6021,42192,77,2026/11/20 09:15:01,97,artificial-intelligence,,90211,0x0,2001:db8::-2001:db8::ffff,United States,,31,46,tcp-fin'

const rows: LogRow[] = [
  {
    name: 'a URL, with the time of the data plane and its offset',
    line: threat(SAMPLE_URL),
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:01.412Z',
    action: 'allowed',
  },
  {
    name: 'the rest of a header in the first column',
    line: `Nov 20 09:15:02 PA-EDGE-1 ${threat(SAMPLE_URL)}`,
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
  },
  {
    name: 'the first column truncated',
    line: threat(SAMPLE_URL).slice(2),
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:01.412Z',
  },
  {
    name: 'the first column missing after the rest of a header',
    line: `Nov 20 09:15:02 PA-EDGE-1 ${threat(SAMPLE_URL).slice(2)}`,
    verdict: 'event',
    host: 'api.openai.com',
  },
  {
    name: 'a short line of an old version has the time of the firewall',
    line: `${HEAD},THREAT,url,${FLOW},block-url,"claude.ai/",(9999),ai`,
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T09:15:01',
    action: 'blocked',
  },
  {
    name: 'quotes escaped with a backslash move the columns after them',
    line: threat('"api.openai.com/?q=\\"a\\",b\\""'),
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:01',
  },
  {
    name: 'a row of an export, each of its cells in quotes',
    line: `${HEAD},THREAT,url,${FLOW},alert,claude.ai/chat,(9999),ai`
      .split(',')
      .map((cell) => `"${cell}"`)
      .join(','),
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:01',
  },
  {
    name: 'type URL has the same columns',
    line: threat('chat.mistral.ai/').replace('THREAT,url', 'URL,'),
    verdict: 'event',
    host: 'chat.mistral.ai',
  },
  {
    name: 'an IPv6 client',
    line: threat('gemini.google.com/').replace(',192.0.2.45,', ',2001:db8:10::45,'),
    verdict: 'event',
    host: 'gemini.google.com',
    client: '2001:db8:10::45',
  },
  {
    name: 'upper case, a dot at the end and a port',
    line: threat('API.Cohere.COM.:8443/x'),
    verdict: 'event',
    host: 'api.cohere.com',
  },
  {
    name: 'a rule whose name has a comma',
    line: threat('claude.ai/').replace(',allow-web,', ',"allow, web",'),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a decrypted TLS handshake has its server name',
    line: DECRYPTION,
    verdict: 'event',
    host: 'api.anthropic.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:17:00.101Z',
    action: 'allowed',
  },
  {
    name: 'times as a spreadsheet leaves them',
    line: threat('claude.ai/')
      .replaceAll('2026/11/20 09:15:02', '11/20/26 9:15')
      .replaceAll('2026/11/20 09:15:01', '11/20/26 9:15')
      .replace('2026-11-20T09:15:01.412+01:00', ''),
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T09:15:00',
  },
  { name: 'traffic names no host', line: TRAFFIC, verdict: 'noDomain', client: '2001:db8:10::45', action: 'allowed' },
  {
    name: 'traffic of an application that looks like a host',
    line: TRAFFIC.replace('openai-base', 'login.example.com'),
    verdict: 'noDomain',
  },
  { name: 'an address in place of a host', line: threat('192.0.2.9/'), verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'an IPv6 address in place of a host', line: threat('[2001:db8::9]:443/'), verdict: 'noDomain' },
  { name: 'a single label', line: threat('intranet/'), verdict: 'noDomain' },
  { name: 'a path alone', line: threat('/eicar.com'), verdict: 'noDomain' },
  {
    name: 'no server name, whatever the certificate says',
    line: DECRYPTION.replace('api.anthropic.com', ''),
    verdict: 'noDomain',
  },
  { name: 'a file that has the name of a host', line: threat('"eicar.com"', 'virus'), verdict: 'skip' },
  { name: 'a file of wildfire', line: threat('EXAMPLE.PDF', 'wildfire'), verdict: 'skip' },
  { name: 'a sinkholed name of spyware', line: threat('"evil.example.com"', 'spyware', 'sinkhole'), verdict: 'skip' },
  { name: 'a file of a vulnerability', line: threat('login.esp', 'vulnerability'), verdict: 'skip' },
  {
    name: 'an external client sends a request to an internal server',
    line: threat('www.example.com/').replace(',198.51.100.20,203.0', ',10.1.2.3,203.0'),
    verdict: 'skip',
  },
  {
    name: 'a system event',
    line: `${HEAD},SYSTEM,general,2817,2026/11/20 09:15:02,,general,,0,0,general,informational,"Connection to update.example.com failed"`,
    verdict: 'skip',
  },
  {
    name: 'a change of the configuration',
    line: `${HEAD},CONFIG,0,2817,2026/11/20 09:15:02,192.0.2.2,,set,admin,Web,Succeeded,config.example.com`,
    verdict: 'skip',
  },
  {
    name: 'a gateway for remote users',
    line: `${HEAD},GLOBALPROTECT,0,2817,2026/11/20 09:15:02,vsys1,portal.example.com`,
    verdict: 'skip',
  },
  {
    name: 'a user that was identified',
    line: `${HEAD},USERID,login,2817,2026/11/20 09:15:02,vsys1,192.0.2.45,jdoe@example.com`,
    verdict: 'skip',
  },
  {
    name: 'the headings of an export',
    line: 'Domain,Receive Time,Serial #,Type,Threat/Content Type,Config Version,Generate Time,Source address,Destination address,NAT Source IP',
    verdict: 'skip',
  },
  {
    name: 'the headings of an export, quoted',
    line: '"Domain","Receive Time","Serial #","Type","Threat/Content Type"',
    verdict: 'skip',
  },
  {
    name: 'a URL log that ends before the URL',
    line: `${HEAD},THREAT,url,${FLOW}`,
    verdict: 'reject',
    reason: /^fields: .*URL/,
  },
  {
    name: 'a URL log of twenty columns',
    line: `${HEAD},THREAT,url,${FLOW}`.split(',').slice(0, 20).join(','),
    verdict: 'reject',
    reason: /^fields/,
  },
  {
    name: 'a source that is a name',
    line: threat('claude.ai/').replace(',192.0.2.45,', ',pc-7.example.com,'),
    verdict: 'reject',
    reason: /^source/,
  },
  {
    name: 'a month that does not exist',
    line: `${HEAD},THREAT,url,${FLOW.replace('2026/11/20', '2026/13/20')},alert,claude.ai/,x`,
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'a message that is truncated inside the host',
    line: `${HEAD},THREAT,url,${FLOW},alert,"api.openai.co`,
    verdict: 'reject',
    reason: /^host/,
  },
  {
    name: 'a word of a type without serial number and time before it',
    line: 'a,b,c,THREAT,url,192.0.2.45,claude.ai,x',
    verdict: 'unknown',
  },
]

checkRows(t, 'firewall-csv', rows)

t.test('bytes after the message have no effect', async (t) => {
  const reader = new MessageReader()
  for (const end of ['\r\n', '\0', '\n']) t.equal(reader.read(`${TRAFFIC}${end}`).verdict, 'noDomain')
})

checkMutations(
  t,
  rows.map(({ line }) => line),
)
checkGrowth(t, {
  commas: (bytes) => `${HEAD},THREAT,url,${','.repeat(bytes)}`,
  quotes: (bytes) => `${HEAD},THREAT,url,${FLOW},alert,${'"'.repeat(bytes)}`,
  'open quotes': (bytes) => `${HEAD},THREAT,url,${FLOW},alert,${'"a ,'.repeat(bytes / 4)}`,
  'a long URL': (bytes) => threat(`"claude.ai/${'a,'.repeat(bytes / 2)}"`),
  'a long host': (bytes) => threat('a.'.repeat(bytes / 2)),
})
