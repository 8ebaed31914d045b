import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader } from '../../support/log-rows.ts'

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

const rows: LogRows = {
  'a URL, with the time of the data plane and its offset': [
    threat(SAMPLE_URL),
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:01.412Z, allowed',
  ],
  'the rest of a header in the first column': [
    `Nov 20 09:15:02 PA-EDGE-1 ${threat(SAMPLE_URL)}`,
    'event api.openai.com from 192.0.2.45',
  ],
  'the first column truncated': [
    threat(SAMPLE_URL).slice(2),
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:01.412Z',
  ],
  'the first column missing after the rest of a header': [
    `Nov 20 09:15:02 PA-EDGE-1 ${threat(SAMPLE_URL).slice(2)}`,
    'event api.openai.com',
  ],
  'a short line of an old version has the time of the firewall': [
    `${HEAD},THREAT,url,${FLOW},block-url,"claude.ai/",(9999),ai`,
    'event claude.ai at 2026-11-20T09:15:01, blocked',
  ],
  'quotes escaped with a backslash move the columns after them': [
    threat('"api.openai.com/?q=\\"a\\",b\\""'),
    'event api.openai.com from 192.0.2.45 at 2026-11-20T09:15:01',
  ],
  'a row of an export, each of its cells in quotes': [
    `${HEAD},THREAT,url,${FLOW},alert,claude.ai/chat,(9999),ai`
      .split(',')
      .map((cell) => `"${cell}"`)
      .join(','),
    'event claude.ai from 192.0.2.45 at 2026-11-20T09:15:01',
  ],
  'type URL has the same columns': [threat('chat.mistral.ai/').replace('THREAT,url', 'URL,'), 'event chat.mistral.ai'],
  'an IPv6 client': [
    threat('gemini.google.com/').replace(',192.0.2.45,', ',2001:db8:10::45,'),
    'event gemini.google.com from 2001:db8:10::45',
  ],
  'upper case, a dot at the end and a port': [threat('API.Cohere.COM.:8443/x'), 'event api.cohere.com'],
  'a rule whose name has a comma': [threat('claude.ai/').replace(',allow-web,', ',"allow, web",'), 'event claude.ai'],
  'a decrypted TLS handshake has its server name': [
    DECRYPTION,
    'event api.anthropic.com from 192.0.2.45 at 2026-11-20T08:17:00.101Z, allowed',
  ],
  'times as a spreadsheet leaves them': [
    threat('claude.ai/')
      .replaceAll('2026/11/20 09:15:02', '11/20/26 9:15')
      .replaceAll('2026/11/20 09:15:01', '11/20/26 9:15')
      .replace('2026-11-20T09:15:01.412+01:00', ''),
    'event claude.ai at 2026-11-20T09:15:00',
  ],
  'traffic names no host': [TRAFFIC, 'noDomain from 2001:db8:10::45, allowed'],
  'traffic of an application that looks like a host': [TRAFFIC.replace('openai-base', 'login.example.com'), 'noDomain'],
  'an address in place of a host': [threat('192.0.2.9/'), 'noDomain from 192.0.2.45'],
  'an IPv6 address in place of a host': [threat('[2001:db8::9]:443/'), 'noDomain'],
  'a single label': [threat('intranet/'), 'noDomain'],
  'a path alone': [threat('/eicar.com'), 'noDomain'],
  'no server name, whatever the certificate says': [DECRYPTION.replace('api.anthropic.com', ''), 'noDomain'],
  'a file that has the name of a host': [threat('"eicar.com"', 'virus'), 'skip'],
  'a file of wildfire': [threat('EXAMPLE.PDF', 'wildfire'), 'skip'],
  'a sinkholed name of spyware': [threat('"evil.example.com"', 'spyware', 'sinkhole'), 'skip'],
  'a file of a vulnerability': [threat('login.esp', 'vulnerability'), 'skip'],
  'an external client sends a request to an internal server': [
    threat('www.example.com/').replace(',198.51.100.20,203.0', ',10.1.2.3,203.0'),
    'skip',
  ],
  'a system event': [
    `${HEAD},SYSTEM,general,2817,2026/11/20 09:15:02,,general,,0,0,general,informational,"Connection to update.example.com failed"`,
    'skip',
  ],
  'a change of the configuration': [
    `${HEAD},CONFIG,0,2817,2026/11/20 09:15:02,192.0.2.2,,set,admin,Web,Succeeded,config.example.com`,
    'skip',
  ],
  'a gateway for remote users': [`${HEAD},GLOBALPROTECT,0,2817,2026/11/20 09:15:02,vsys1,portal.example.com`, 'skip'],
  'a user that was identified': [
    `${HEAD},USERID,login,2817,2026/11/20 09:15:02,vsys1,192.0.2.45,jdoe@example.com`,
    'skip',
  ],
  'the headings of an export': [
    'Domain,Receive Time,Serial #,Type,Threat/Content Type,Config Version,Generate Time,Source address,Destination address,NAT Source IP',
    'skip',
  ],
  'the headings of an export, quoted': ['"Domain","Receive Time","Serial #","Type","Threat/Content Type"', 'skip'],
  'a URL log that ends before the URL': [`${HEAD},THREAT,url,${FLOW}`, 'reject', { reason: /^fields: .*URL/ }],
  'a URL log of twenty columns': [`${HEAD},THREAT,url,${FLOW}`.split(',').slice(0, 20).join(','), 'reject: fields'],
  'a source that is a name': [threat('claude.ai/').replace(',192.0.2.45,', ',pc-7.example.com,'), 'reject: source'],
  'a month that does not exist': [
    `${HEAD},THREAT,url,${FLOW.replace('2026/11/20', '2026/13/20')},alert,claude.ai/,x`,
    'reject: time',
  ],
  'a message that is truncated inside the host': [`${HEAD},THREAT,url,${FLOW},alert,"api.openai.co`, 'reject: host'],
  'a word of a type without serial number and time before it': ['a,b,c,THREAT,url,192.0.2.45,claude.ai,x', 'unknown'],
}

checkFormat(t, 'firewall-csv', rows, {
  commas: (bytes) => `${HEAD},THREAT,url,${','.repeat(bytes)}`,
  quotes: (bytes) => `${HEAD},THREAT,url,${FLOW},alert,${'"'.repeat(bytes)}`,
  'open quotes': (bytes) => `${HEAD},THREAT,url,${FLOW},alert,${'"a ,'.repeat(bytes / 4)}`,
  'a long URL': (bytes) => threat(`"claude.ai/${'a,'.repeat(bytes / 2)}"`),
  'a long host': (bytes) => threat('a.'.repeat(bytes / 2)),
})

t.test('bytes after the message have no effect', async (t) => {
  const reader = new MessageReader()
  for (const end of ['\r\n', '\0', '\n']) t.equal(reader.read(`${TRAFFIC}${end}`).verdict, 'noDomain')
})
