import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRows, MessageReader } from '../../support/log-rows.ts'

const json = (value: unknown): string => JSON.stringify(value)
const b64url = (text: string): string => Buffer.from(text).toString('base64url')

const ZSCALER = {
  sourcetype: 'zscalernss-web',
  event: {
    datetime: '2026-11-20 08:15:02',
    reason: 'Allowed',
    protocol: 'HTTPS',
    action: 'Allowed',
    hostname: 'chatgpt.com',
    url: 'chatgpt.com/backend-api/conversation?x="a\\b"',
    refererURL: 'https://www.example.net/',
    ClientIP: '192.0.2.45',
    serverip: '198.51.100.20',
    clientpublicIP: '203.0.113.7',
    user: 'jdoe@example.com',
    devicehostname: 'pc-7.example.org',
    useragent: 'Mozilla/5.0 (https://bot.example.com)',
  },
}
const NETSKOPE = {
  timestamp: 1795162502,
  type: 'application',
  domain: 'claude.ai',
  url: 'claude.ai/api/append_message',
  site: 'Claude',
  app: 'Claude',
  hostname: 'pc-7.example.org',
  userip: '192.0.2.45',
  srcip: '203.0.113.7',
  dstip: '198.51.100.20',
  user: 'jdoe@example.com',
  action: 'block',
  referer: 'https://www.example.net/x',
}
const STRATA = {
  TimeReceived: '2026-11-20T08:15:03.000000Z',
  TimeGenerated: '2026-11-20T08:15:02.000000Z',
  LogType: 'THREAT',
  Subtype: 'url',
  SourceAddress: '192.0.2.45',
  DestinationAddress: '198.51.100.20',
  URL: 'api.openai.com/v1/chat',
  Action: 'alert',
}
const ECS = {
  '@timestamp': '2026-11-20T09:15:02.119+0100',
  host: { name: 'fw.example.org', ip: '198.51.100.1' },
  event: { action: 'TCP_TUNNEL', kind: 'event' },
  service: { type: 'squid' },
  source: { ip: '192.0.2.45' },
  url: { original: 'api.anthropic.com:443' },
  labels: { request_status: 'TCP_DENIED', hierarchy_status: 'HIER_DIRECT' },
}
const FORTIGATE = {
  date: '2026-11-20',
  time: '09:15:02',
  eventtime: '1795162502123456789',
  tz: '+0100',
  logid: '0317013312',
  type: 'utm',
  subtype: 'webfilter',
  srcip: '192.0.2.45',
  hostname: 'chat.openai.com',
  url: '/backend-api',
  action: 'passthrough',
}
const ADGUARD = {
  T: '2026-11-20T09:15:02.123456789+01:00',
  QH: 'api.deepseek.com',
  QT: 'A',
  QC: 'IN',
  CP: '',
  Answer: 'AAAA',
  IP: '192.0.2.45',
  Result: { IsFiltered: true, Reason: 3, Rules: [{ Text: '||deepseek.com^', FilterListID: 1 }] },
  Elapsed: 123,
}

const rows: LogRows = {
  'Zscaler, fields in an event': [json(ZSCALER), 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02, allowed'],
  'Zscaler with the URL in base64, asctime and a separate zone': [
    json({
      sourcetype: 'zscalernss-web',
      event: {
        time: 'Fri Nov 20 08:15:02 2026',
        tz: 'GMT',
        cip: '192.0.2.45',
        b64url: b64url('claude.ai/new?q=1'),
        action: 'Blocked',
      },
    }),
    'event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'Zscaler DNS': [
    json({
      sourcetype: 'zscalernss-dns',
      event: {
        datetime: 'Fri Nov 20 08:15:02 2026',
        epochtime: '1795162502',
        clt_sip: '192.0.2.45',
        srv_dip: '198.51.100.53',
        dns_req: 'api.openai.com',
        dns_resp: 'cdn.example.net',
        reqaction: 'Allow',
      },
    }),
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed',
  ],
  'Zscaler whose envelope has its own host': [
    json({
      time: 1795162502,
      host: 'nss.example.org',
      ...ZSCALER,
      event: { cip: '192.0.2.45', host: 'claude.ai' },
    }),
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'Zscaler whose users are hidden': [
    json({
      sourcetype: 'zscalernss-web',
      event: { time: 'Fri Nov 20 08:15:02 2026', ocip: '4294967295', cip: '4294967295', host: 'claude.ai' },
    }),
    'event claude.ai from -',
  ],
  "Zscaler's firewall feed": [
    json({
      sourcetype: 'zscalernss-fw',
      event: { datetime: 'Fri Nov 20 08:15:02 2026', csip: '192.0.2.45', host: 'claude.ai' },
    }),
    'noDomain from 192.0.2.45',
  ],
  "Zscaler's tunnel feed": [
    json({
      sourcetype: 'zscalernss-tunnel',
      event: { datetime: 'Fri Nov 20 08:15:02 2026', host: 'vpn.example.org' },
    }),
    'skip',
  ],
  'Netskope: the client is the address inside, the device and the referer are no host': [
    json(NETSKOPE),
    'event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'Netskope transaction without host but with SNI': [
    json({
      'x-cs-timestamp': 1795162502,
      'c-ip': '203.0.113.7',
      'x-cs-userip': '192.0.2.45',
      'cs-host': '-',
      'x-cs-sni': 'API.Cohere.com',
      'cs-referer': 'https://x.example.net/',
    }),
    'event api.cohere.com from 192.0.2.45 at 2026-11-20T08:15:02Z',
  ],
  'Netskope audit': [json({ ...NETSKOPE, type: 'audit' }), 'skip'],
  'Strata URL log': [json(STRATA), 'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed'],
  'Strata: a file is no host': [json({ ...STRATA, Subtype: 'virus', URL: 'invoice.zip' }), 'skip'],
  'Strata traffic': [json({ ...STRATA, LogType: 'TRAFFIC', Subtype: 'end', URL: '' }), 'noDomain'],
  'Strata system': [
    json({ LogType: 'SYSTEM', TimeGenerated: '2026-11-20T08:15:02Z', hostname: 'fw.example.org' }),
    'skip',
  ],
  "Squid in the Elastic Common Schema: the host's own name and address are not the request's": [
    json(ECS),
    'event api.anthropic.com from 192.0.2.45 at 2026-11-20T08:15:02.119Z, blocked',
  ],
  'the same with dotted keys': [
    json({
      '@timestamp': '2026-11-20T08:15:02Z',
      'host.name': 'fw.example.org',
      'host.ip': '198.51.100.1',
      'service.type': 'squid',
      'source.ip': '2001:db8::45',
      'url.original': 'https://claude.ai/x',
    }),
    'event claude.ai from 2001:db8::45',
  ],
  'Squid without a request': [
    json({ ...ECS, url: { original: 'error:transaction-end-before-headers' } }),
    'noDomain from 192.0.2.45',
  ],
  'FortiGate: nanoseconds, and a URL that is a path only': [
    json(FORTIGATE),
    'event chat.openai.com from 192.0.2.45 at 2026-11-20T08:15:02.123Z, allowed',
  ],
  'FortiGate with day and time of day apart, and its zone': [
    json({ ...FORTIGATE, eventtime: undefined, tz: '-0930' }),
    'event chat.openai.com at 2026-11-20T18:45:02Z',
  ],
  "FortiGate's own messages: the name is the machine's that took an address": [
    json({ ...FORTIGATE, type: 'event', subtype: 'system', hostname: 'pc-7.example.org' }),
    'skip',
  ],
  'AdGuard Home, filtered': [
    json(ADGUARD),
    'event api.deepseek.com from 192.0.2.45 at 2026-11-20T08:15:02.123Z, blocked',
  ],
  'AdGuard Home, reverse lookup': [json({ ...ADGUARD, QH: '45.2.0.192.in-addr.arpa' }), 'skip'],
  'Suricata query': [
    json({
      timestamp: '2026-11-20T09:15:02.119123+0100',
      event_type: 'dns',
      src_ip: '192.0.2.45',
      dest_ip: '192.0.2.53',
      dns: { type: 'query', rrname: 'gemini.google.com' },
    }),
    'event gemini.google.com from 192.0.2.45',
  ],
  'Suricata answer': [
    json({
      timestamp: '2026-11-20T09:15:02.119123+0100',
      event_type: 'dns',
      src_ip: '192.0.2.45',
      dns: { type: 'answer', rrname: 'gemini.google.com' },
    }),
    'skip',
  ],
  'any vendor by the names of its fields, slashes escaped': [
    '{"Event Time":"2026-11-20T08:15:02Z","Source IP":"192.0.2.45","Full URL":"https:\\/\\/claude.ai\\/new","Verdict":"deny"}',
    'event claude.ai from 192.0.2.45, blocked',
  ],
  'an escape inside a name': [
    json({ ts: 1795162502, src: '192.0.2.45', host: 'abc.de_' }).replace('_', '\\u00fc.example.com'),
    'noDomain',
  ],
  'a mail address': [json({ ts: 1795162502, src: '192.0.2.45', domain: 'jdoe@example.com' }), 'noDomain'],
  'a file by name': [json({ ts: 1795162502, src: '192.0.2.45', name: 'setup.zip', filename: 'x.mov' }), 'noDomain'],
  'a program that names no client': [
    json({
      time: '2026-11-20T08:15:02Z',
      level: 'info',
      host: 'web.example.com',
      url: 'https://api.openai.com/',
    }),
    'noDomain',
  ],
  'a program that names no time': [json({ src: '192.0.2.45', domain: 'api.openai.com' }), 'noDomain'],
  'a name under a key that does not mean a host': [
    json({ ts: 1795162502, src: '192.0.2.45', certificate: { issuer: { domain: 'ca.example.com' } } }),
    'noDomain',
  ],
  'the IPv6 literal of a URL': [
    json({ ts: 1795162502, src: '192.0.2.45', url: 'https://[2001:db8::1]:8443/' }),
    'noDomain',
  ],
  'a nonexistent day': [
    json({ timestamp: '2026-13-20T08:15:02Z', src: '192.0.2.45', url: 'claude.ai/' }),
    'reject: time',
  ],
  'a text that ends in the middle': [json(ZSCALER).slice(0, -40), 'reject: JSON'],
  'no object': ['{}', 'noDomain'],
  'a brace and text': ['{host} said 192.0.2.45 claude.ai', 'reject: JSON'],
}
checkRows(t, 'json-logs', rows)

t.test('bytes around the object have no effect', async (t) => {
  for (const end of ['\n', '\r\n', '\0', ',', ' ]']) {
    t.equal(new MessageReader().read(json(NETSKOPE) + end).host, 'claude.ai', JSON.stringify(end))
  }
})

t.test('nesting is limited, and nested text takes linear time', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(`${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}`).verdict, 'reject')
  t.equal(reader.read(`{"a":${'['.repeat(200_000)}`).verdict, 'reject')
  t.equal(
    reader.read(`{"a":[${'{"b":[1,2]},'.repeat(10_000)}3],"ts":1795162502,"src":"192.0.2.45","url":"claude.ai"}`).host,
    'claude.ai',
  )
  t.equal(reader.read(json({ ...NETSKOPE, url: `claude.ai/${'x'.repeat(65_536)}` })).host, 'claude.ai')
})

t.test('Suricata: only in requests, the client is the source', async (t) => {
  const eve = (type: string, more: object): string =>
    json({
      timestamp: '2026-11-20T09:15:02.123456+0000',
      flow_id: 7,
      event_type: type,
      src_ip: '10.0.0.5',
      dest_ip: '198.51.100.9',
      ...more,
    })
  const inbound = { src_ip: '198.51.100.9', dest_ip: '10.0.0.5' }
  for (const [type, more, verdict] of [
    ['tls', { tls: { sni: 'claude.ai' } }, 'event'],
    ['http', { http: { hostname: 'claude.ai', url: '/x' } }, 'event'],
    ['quic', { quic: { sni: 'claude.ai' } }, 'event'],
    ['dns', { dns: { type: 'query', rrname: 'claude.ai' } }, 'event'],
    ['dns', { dns: { type: 'answer', rrname: 'claude.ai' } }, 'skip'],
    ['fileinfo', { http: { hostname: 'claude.ai', url: '/x' } }, 'noDomain'],
    ['anomaly', { tls: { sni: 'claude.ai' } }, 'noDomain'],
    ['flow', { tls: { sni: 'claude.ai' } }, 'noDomain'],
    ['dns', { dns: { version: 3, type: 'request', queries: [{ rrname: 'claude.ai', rrtype: 'A' }] } }, 'event'],
    ['dns', { dns: { version: 3, type: 'response', queries: [{ rrname: 'claude.ai', rrtype: 'A' }] } }, 'skip'],
    ['dns', { dns: { version: 3, type: 'request', queries: [] } }, 'noDomain'],
    ['tls', { ...inbound, tls: { sni: 'claude.ai' } }, 'noDomain'],
    ['http', { ...inbound, http: { hostname: 'claude.ai', url: '/x' } }, 'noDomain'],
    ['tls', { dest_port: 993, tls: { sni: 'claude.ai' } }, 'noDomain'],
    ['alert', { alert: { action: 'blocked' }, tls: { sni: 'claude.ai' } }, 'event'],
    ['alert', { ...inbound, alert: { action: 'blocked' }, tls: { sni: 'claude.ai' } }, 'noDomain'],
    ['alert', { direction: 'to_client', tls: { sni: 'claude.ai' } }, 'noDomain'],
    ['alert', { direction: 'to_server', alert: { action: 'blocked' }, tls: { sni: 'claude.ai' } }, 'event'],
  ] as const) {
    const read = new MessageReader().read(eve(type, more))
    t.equal(read.verdict, verdict, `${type} ${JSON.stringify(more)}`)
    if ('alert' in more) t.equal(read.action, 'blocked')
  }
})

t.test('mail, internal machines and Windows names give no event', async (t) => {
  const at = { timestamp: '2026-11-20 09:15:02' }
  t.equal(new MessageReader().read(json({ ...NETSKOPE, type: 'email' })).verdict, 'noDomain')
  for (const more of [
    { hostname: 'pc7.corp.example.com', client_ip: '10.0.0.5', query: 'claude.ai' },
    { host: 'dns1.corp.example.com', client_ip: '10.0.0.5', destination_host: 'claude.ai' },
    { computer: 'pc7.corp.example.com', site: 'hq.example.com', client_ip: '10.0.0.5', sni: 'claude.ai' },
    { EventID: 256, QNAME: 'claude.ai.', Source: '10.0.0.5' },
    { Source: '10.0.0.5', Destination: 'claude.ai' },
  ]) {
    t.match(new MessageReader().read(json({ ...at, ...more })), {
      verdict: 'event',
      host: 'claude.ai',
      client: '10.0.0.5',
    })
  }
  const wrapped = json({ host: 'hf.example.com', source: '192.0.2.9', event: { ...at, domain: 'claude.ai' } })
  t.equal(new MessageReader().read(wrapped).client, '', 'where a forwarder has it from is no client')
})

// A host in base64 is not in the line literally.
checkMutations(
  t,
  Object.values(rows).flatMap(([line]) => (line.includes('b64url') ? [] : [line])),
)
