import t from 'tap'
import { checkGrowth, checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const LIST =
  '[action:"Accept"; flags:"411908"; ifdir:"inbound"; ifname:"eth2"; logid:"0"; loguid:"{0x0,0x0,0x0,0x0}"; origin:"192.0.2.1"; originsicname:"CN=gw.example.com,O=mgmt.example.com.abc"; sequencenum:"1"; time:"1795162502"; version:"5"; product:"URL Filtering"; src:"192.0.2.45"; dst:"198.51.100.20"; resource:"https://chatgpt.com/a;b"; service:"443"]'
const DROP =
  '[action:"Drop"; ifname:"eth2"; origin:"192.0.2.1"; time:"1795162502"; product:"VPN-1 & FireWall-1"; src:"192.0.2.45"; dst:"198.51.100.20"; service:"443"]'

const rows: LogRow[] = [
  {
    name: 'a URL that was filtered',
    line: LIST,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'the rest of a header before it',
    line: `CheckPoint 1234 - ${LIST}`,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
  },
  { name: 'no bracket', line: LIST.slice(1, -1), verdict: 'event', host: 'chatgpt.com' },
  {
    name: 'a server name',
    line: LIST.replace('resource:"https://chatgpt.com/a;b"', 'tls_server_host_name:"claude.ai"').replace(
      'Accept',
      'Block',
    ),
    verdict: 'event',
    host: 'claude.ai',
    action: 'blocked',
  },
  {
    name: 'quotes in a value',
    line: LIST.replace('service:', 'x:"a\\"; resource:\\"https://evil.example/\\"; "; service:'),
    verdict: 'event',
    host: 'chatgpt.com',
  },
  {
    name: 'pairs between bars',
    line: 'time=1795162502|hostname=gw.example.com|product=URL Filtering|action=Block|loguid={0x0,0x0}|src=2001:db8:10::45|dst=2001:db8::1|resource=https://claude.ai/x=1|origin=192.0.2.1',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    time: '2026-11-20T08:15:02Z',
    action: 'blocked',
  },
  { name: 'a packet that was dropped', line: DROP, verdict: 'noDomain', client: '192.0.2.45', action: 'blocked' },
  { name: 'an address in the URL', line: LIST.replace('chatgpt.com', '198.51.100.20'), verdict: 'noDomain' },
  { name: 'a file as the resource', line: LIST.replace('https://chatgpt.com/a;b', 'setup.zip'), verdict: 'noDomain' },
  {
    name: 'a sandbox reports an attachment',
    line: LIST.replace('URL Filtering', 'Threat Emulation'),
    verdict: 'noDomain',
  },
  {
    name: 'a system event of the management',
    line: '[action:"Log In"; ifname:"daemon"; origin:"192.0.2.1"; time:"1795162502"; product:"SmartConsole"; administrator:"admin"; machine:"pc-7.example.com"]',
    verdict: 'skip',
  },
  {
    name: 'an external client sends a request to an internal server',
    line: LIST.replace('198.51.100.20', '10.0.0.9'),
    verdict: 'skip',
  },
  {
    name: 'a nonexistent day',
    line: LIST.replace('1795162502', '2026-11-31T08:15:02Z'),
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'a message that is truncated inside the host',
    line: LIST.slice(0, LIST.indexOf('chatgpt.com') + 'chatgpt.co'.length),
    verdict: 'reject',
    reason: /^host/,
  },
  {
    name: 'JSON',
    line: '"action":"Accept","src":"192.0.2.45","resource":"https://chatgpt.com/"',
    verdict: 'unknown',
  },
  {
    name: 'another list of this kind',
    line: 'colour:"red"; src:"192.0.2.45"; resource:"https://chatgpt.com/"',
    verdict: 'unknown',
  },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
checkGrowth(t, {
  pairs: (bytes) => `${DROP.slice(0, -1)}${' a:"b";'.repeat(bytes / 7)}`,
  colons: (bytes) => `${DROP.slice(0, -1)}${':'.repeat(bytes)}`,
  quotes: (bytes) => `${DROP.slice(0, -1)}${'"'.repeat(bytes)}`,
})
