import t from 'tap'
import { checkRows, type LogRows, MessageReader } from '../../support/log-rows.ts'

/*
 * Envelopes of forwarders and container platforms around a line. Shapes after the vendors'
 * documentation: https://docs.fluentbit.io/manual/pipeline/filters/kubernetes,
 * https://vector.dev/docs/reference/configuration/sources/file/#output-data,
 * https://www.elastic.co/guide/en/beats/filebeat/current/exported-fields-log.html,
 * https://docs.docker.com/engine/logging/drivers/json-file/,
 * https://docs.splunk.com/Documentation/Splunk/latest/Data/FormateventsforHTTPEventCollector,
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html,
 * https://go2docs.graylog.org/current/getting_in_log_data/gelf.html
 */

const SQUID = '1795166102.250     88 192.0.2.7 TCP_TUNNEL/200 5120 CONNECT claude.ai:443 - HIER_DIRECT/203.0.113.9 -'
const DNSMASQ = 'dnsmasq[811]: query[A] claude.ai from 192.0.2.7'
const CEF =
  'CEF:0|Vendor|Proxy|1|url|URL|3|src=192.0.2.7 dhost=claude.ai request=https://claude.ai/ act=allowed rt=1795166102000'
const EVENT = { verdict: 'event', host: 'claude.ai', client: '192.0.2.7' } as const
const SQUID_EVENT = { ...EVENT, format: 'proxy-native', time: '2026-11-20T09:15:02.250Z' } as const

const ROWS: LogRows = {
  'Fluent Bit with the Kubernetes filter': [
    JSON.stringify({
      date: 1795166103.5,
      stream: 'stdout',
      _p: 'F',
      log: SQUID,
      kubernetes: { pod_name: 'squid-0', host: 'node-1', labels: { app: 'squid' }, pod_ip: '10.1.2.3' },
    }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  'Docker, json-file': [
    JSON.stringify({ log: `${SQUID}\n`, stream: 'stdout', time: '2026-11-20T09:15:03.123456789Z' }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  Vector: [
    JSON.stringify({
      file: '/var/log/squid/access.log',
      host: 'fw-1.example.net',
      message: SQUID,
      source_type: 'file',
      timestamp: '2026-11-20T09:15:04Z',
    }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  Filebeat: [
    JSON.stringify({
      '@timestamp': '2026-11-20T09:15:05.000Z',
      '@metadata': { beat: 'filebeat', type: '_doc', version: '8.15.0' },
      message: SQUID,
      input: { type: 'log' },
      ecs: { version: '8.0.0' },
      host: { name: 'proxy-1', ip: ['10.0.0.5'] },
      agent: { type: 'filebeat', hostname: 'proxy-1' },
      log: { offset: 4711, file: { path: '/var/log/squid/access.log' } },
    }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  'Logstash, event.original': [
    JSON.stringify({ '@version': '1', event: { original: CEF }, host: { ip: '10.0.0.5' } }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02Z',
    { format: 'cef' },
  ],
  'Elasticsearch, a hit of a search': [
    JSON.stringify({
      _index: 'logs',
      _id: 'a',
      _source: { '@timestamp': '2026-11-20T09:15:05Z', message: SQUID },
    }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  'Splunk, exported results': [
    JSON.stringify({ preview: false, offset: 0, result: { _raw: SQUID, _time: '2026-11-20 09:15:02.250 UTC' } }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  'Splunk, HTTP Event Collector': [
    JSON.stringify({ time: 1795166103, host: 'proxy-1', source: '/var/log/access.log', event: SQUID }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  GELF: [
    JSON.stringify({ version: '1.1', host: 'proxy-1', short_message: 'access', full_message: SQUID, level: 6 }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  'systemd journal': [
    JSON.stringify({
      __REALTIME_TIMESTAMP: '1795166102000000',
      _HOSTNAME: 'resolver',
      SYSLOG_IDENTIFIER: 'dnsmasq',
      MESSAGE: DNSMASQ,
      PRIORITY: '6',
    }),
    'event claude.ai from 192.0.2.7',
    { format: 'dnsmasq' },
  ],
  'an event of CloudWatch Logs, whose line has no time': [
    JSON.stringify({ id: '3712', timestamp: 1795166102000, message: DNSMASQ }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02Z',
    { format: 'dnsmasq' },
  ],
  'a line with a syslog header of RFC 3164': [
    JSON.stringify({ message: `<134>Nov 20 09:15:02 resolver ${DNSMASQ}`, '@timestamp': '2026-11-20T09:20:00Z' }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02',
    { format: 'dnsmasq' },
  ],
  'a line with a syslog header of RFC 5424': [
    JSON.stringify({ message: `<134>1 2026-11-20T09:15:02Z resolver dnsmasq 811 - - ${DNSMASQ}` }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02Z',
    { format: 'dnsmasq' },
  ],
  'two envelopes: a container of which Fluent Bit read the line': [
    JSON.stringify({ log: JSON.stringify({ message: SQUID, stream: 'stdout' }), stream: 'stdout' }),
    'event claude.ai from 192.0.2.7 at 2026-11-20T09:15:02.250Z',
    { format: 'proxy-native' },
  ],
  'a line with JSON of its own': [
    JSON.stringify({
      log: JSON.stringify({
        timestamp: '2026-11-20T09:15:02.250000+0000',
        flow_id: 1,
        event_type: 'tls',
        src_ip: '192.0.2.7',
        dest_ip: '203.0.113.9',
        tls: { sni: 'claude.ai' },
      }),
    }),
    'event claude.ai from 192.0.2.7',
    { format: 'json-logs' },
  ],
  'three envelopes': [
    JSON.stringify({ log: JSON.stringify({ log: JSON.stringify({ log: SQUID }) }) }),
    'noDomain',
    { format: 'json-logs' },
  ],
  'escapes of JSON in the line': [
    `{"log":"date=2026-11-20 time=09:15:02 logid=\\"0317013312\\" type=\\"utm\\" subtype=\\"webfilter\\" srcip=192.0.2.7 hostname=\\"claude\\u002eai\\" url=\\"https:\\/\\/claude.ai\\/\\" action=\\"passthrough\\" user=\\"J\\u00f6rg \\ud83d\\ude00\\""}`,
    'event claude.ai from 192.0.2.7',
    { user: 'Jörg 😀', format: 'firewall-kv' },
  ],
  'text of the program itself': [
    JSON.stringify({
      level: 'info',
      message: 'connected to claude.ai from 192.0.2.7',
      time: '2026-11-20T09:15:02Z',
    }),
    'noDomain',
    { format: 'json-logs' },
  ],
  'a line of a known format without a request': [
    JSON.stringify({ log: 'dnsmasq[811]: reply claude.ai is 203.0.113.9' }),
    'skip',
    { format: 'dnsmasq' },
  ],
  'an address of the envelope is no client': [
    JSON.stringify({ source_ip: '192.0.2.99', pod_ip: '192.0.2.98', log: DNSMASQ }),
    'event claude.ai from 192.0.2.7',
    { format: 'dnsmasq' },
  ],
  'a check of a subscription': [
    JSON.stringify({
      id: '',
      timestamp: 1795166102000,
      message: 'CWL CONTROL MESSAGE: Checking health of destination.',
    }),
    'noDomain',
    { format: 'json-logs' },
  ],
  'an empty line': ['{"log":"\\n","stream":"stdout"}', 'noDomain', { format: 'json-logs' }],
}
checkRows(t, 'json-logs', ROWS)

t.test('the format of the lines before is not searched in an envelope', async (t) => {
  const reader = new MessageReader()
  const envelopes = [
    (line: string) => line,
    (line: string) => JSON.stringify({ log: `${line}\n`, stream: 'stdout' }),
    (line: string) => JSON.stringify({ message: JSON.stringify({ log: `${line}\n` }) }),
  ]
  const line = '<30>Nov 20 09:15:02 dns1 dnsmasq[811]: query[A] claude.ai from 192.0.2.7'
  for (const wrap of [...envelopes, ...envelopes]) {
    t.match(reader.read(wrap(line)), { verdict: 'event', host: 'claude.ai', client: '192.0.2.7', format: 'dnsmasq' })
  }
  const three = JSON.stringify({ event: { original: JSON.stringify({ log: JSON.stringify({ log: DNSMASQ }) }) } })
  t.match(reader.read(three), { verdict: 'noDomain' })
})

t.test('the fields of an envelope are not those of the next line', async (t) => {
  const reader = new MessageReader()
  t.match(reader.read(JSON.stringify({ log: SQUID })), SQUID_EVENT)
  t.match(reader.read(DNSMASQ), { ...EVENT, format: 'dnsmasq', time: '' })
  t.match(reader.read(JSON.stringify({ log: 'nothing that is known' })), { verdict: 'noDomain', host: '' })
  t.match(reader.read(JSON.stringify({ log: SQUID })), SQUID_EVENT)
})
