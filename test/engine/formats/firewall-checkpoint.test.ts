import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const LIST =
  '[action:"Accept"; flags:"411908"; ifdir:"inbound"; ifname:"eth2"; logid:"0"; loguid:"{0x0,0x0,0x0,0x0}"; origin:"192.0.2.1"; originsicname:"CN=gw.example.com,O=mgmt.example.com.abc"; sequencenum:"1"; time:"1795162502"; version:"5"; product:"URL Filtering"; src:"192.0.2.45"; dst:"198.51.100.20"; resource:"https://chatgpt.com/a;b"; service:"443"]'
const DROP =
  '[action:"Drop"; ifname:"eth2"; origin:"192.0.2.1"; time:"1795162502"; product:"VPN-1 & FireWall-1"; src:"192.0.2.45"; dst:"198.51.100.20"; service:"443"]'

const rows: LogRows = {
  'a URL that was filtered': [LIST, 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed'],
  'the rest of a header before it': [`CheckPoint 1234 - ${LIST}`, 'event chatgpt.com from 192.0.2.45'],
  'no bracket': [LIST.slice(1, -1), 'event chatgpt.com'],
  'a server name': [
    LIST.replace('resource:"https://chatgpt.com/a;b"', 'tls_server_host_name:"claude.ai"').replace('Accept', 'Block'),
    'event claude.ai, blocked',
  ],
  'quotes in a value': [
    LIST.replace('service:', 'x:"a\\"; resource:\\"https://evil.example/\\"; "; service:'),
    'event chatgpt.com',
  ],
  'pairs between bars': [
    'time=1795162502|hostname=gw.example.com|product=URL Filtering|action=Block|loguid={0x0,0x0}|src=2001:db8:10::45|dst=2001:db8::1|resource=https://claude.ai/x=1|origin=192.0.2.1',
    'event claude.ai from 2001:db8:10::45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'a packet that was dropped': [DROP, 'noDomain from 192.0.2.45, blocked'],
  'an address in the URL': [LIST.replace('chatgpt.com', '198.51.100.20'), 'noDomain'],
  'a file as the resource': [LIST.replace('https://chatgpt.com/a;b', 'setup.zip'), 'noDomain'],
  'a sandbox reports an attachment': [LIST.replace('URL Filtering', 'Threat Emulation'), 'noDomain'],
  'a system event of the management': [
    '[action:"Log In"; ifname:"daemon"; origin:"192.0.2.1"; time:"1795162502"; product:"SmartConsole"; administrator:"admin"; machine:"pc-7.example.com"]',
    'skip',
  ],
  'an external client sends a request to an internal server': [LIST.replace('198.51.100.20', '10.0.0.9'), 'skip'],
  'a nonexistent day': [LIST.replace('1795162502', '2026-11-31T08:15:02Z'), 'reject: time'],
  'a message that is truncated inside the host': [
    LIST.slice(0, LIST.indexOf('chatgpt.com') + 'chatgpt.co'.length),
    'reject: host',
  ],
  JSON: ['"action":"Accept","src":"192.0.2.45","resource":"https://chatgpt.com/"', 'unknown'],
  'another list of this kind': ['colour:"red"; src:"192.0.2.45"; resource:"https://chatgpt.com/"', 'unknown'],
}

checkFormat(t, 'firewall-kv', rows, {
  pairs: (bytes) => `${DROP.slice(0, -1)}${' a:"b";'.repeat(bytes / 7)}`,
  colons: (bytes) => `${DROP.slice(0, -1)}${':'.repeat(bytes)}`,
  quotes: (bytes) => `${DROP.slice(0, -1)}${'"'.repeat(bytes)}`,
})
