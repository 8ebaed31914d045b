import t from 'tap'
import { MessageReader } from '../../support/log-rows.ts'
import { readMessage } from '../../support/read-messages.ts'

/*
 * Records of the products in deploy/products/ that are no client's request: inbound connections,
 * answers, events of processes, and the logs of servers in the same shape. None may be an event.
 */
const json = (value: object): string => JSON.stringify(value)
const ISO = '2026-11-20T08:15:02.119Z'
const INBOUND = { src: '203.0.113.9', dst: '10.20.30.5' }

const OCSF = {
  class_uid: 4002,
  time: 1795162502119,
  src_endpoint: { ip: INBOUND.src },
  dst_endpoint: { ip: INBOUND.dst },
}
const DEFENDER = {
  Timestamp: ISO,
  InitiatingProcessFileName: 'svchost.exe',
  InitiatingProcessCommandLine: 'curl https://claude.ai',
  LocalIP: '10.20.30.45',
  RemoteIP: '198.51.100.20',
  RemoteUrl: 'claude.ai',
}
const SYSMON = { channel: 'Microsoft-Windows-Sysmon/Operational', provider_name: 'Microsoft-Windows-Sysmon' }
const ENVOY = { start_time: ISO, authority: 'claude.ai', requested_server_name: 'claude.ai' }
const EVE = { timestamp: ISO, flow_id: 7, src_ip: INBOUND.src, dest_ip: INBOUND.dst }

const RECORDS: Readonly<Record<string, readonly object[]>> = {
  'Defender for Endpoint': [
    ...['InboundConnectionAccepted', 'ListeningConnectionCreated', 'ConnectionAttempt', 'SslConnectionInspected'].map(
      (ActionType) => ({
        time: ISO,
        category: 'AdvancedHunting-DeviceNetworkEvents',
        properties: { ...DEFENDER, ActionType },
      }),
    ),
    {
      time: ISO,
      category: 'AdvancedHunting-DeviceProcessEvents',
      properties: { ...DEFENDER, ActionType: 'ProcessCreated' },
    },
    {
      TimeGenerated: ISO,
      Type: 'DeviceFileEvents',
      ...DEFENDER,
      ActionType: 'FileCreated',
      FileOriginUrl: 'https://claude.ai/x',
    },
    {
      time: ISO,
      properties: { ...DEFENDER, ActionType: 'ConnectionSuccess', LocalIP: INBOUND.src, RemoteIP: INBOUND.dst },
    },
  ],
  OCSF: [
    { ...OCSF, http_request: { url: { hostname: 'claude.ai' } } },
    {
      ...OCSF,
      dst_endpoint: undefined,
      http_request: { url: { hostname: 'claude.ai' } },
      metadata: { product: { name: 'AWS WAF' } },
    },
    { ...OCSF, class_uid: 4001, tls: { sni: 'claude.ai' } },
    { ...OCSF, class_uid: 4001, connection_info: { direction_id: 1 }, tls: { sni: 'claude.ai' } },
    { ...OCSF, class_uid: 3002, dst_endpoint: { hostname: 'claude.ai' }, connection_info: { direction_id: 2 } },
    { ...OCSF, class_uid: 1007, process: { cmd_line: 'curl https://claude.ai' }, src_endpoint: { ip: '10.20.30.45' } },
    { ...OCSF, class_uid: 4009, email: { from: 'a@claude.ai' }, url: { hostname: 'claude.ai' } },
    { ...OCSF, class_uid: 4003, activity_id: 2, query: { hostname: 'claude.ai' } },
    { ...OCSF, class_uid: 2004, evidences: [{ url: { hostname: 'claude.ai' } }] },
  ],
  Suricata: [
    ...['tls', 'http', 'quic', 'alert', 'fileinfo', 'smtp', 'ssh', 'rdp', 'flow', 'netflow', 'stats', 'dhcp'].map(
      (event_type) => ({
        ...EVE,
        event_type,
        tls: { sni: 'claude.ai' },
        http: { hostname: 'claude.ai', url: '/x' },
      }),
    ),
    { ...EVE, event_type: 'dns', dns: { version: 3, type: 'response', queries: [{ rrname: 'claude.ai' }] } },
    {
      ...EVE,
      src_ip: '10.20.30.45',
      dest_ip: '198.51.100.25',
      dest_port: 465,
      event_type: 'tls',
      tls: { sni: 'mx.claude.ai' },
    },
  ],
  'Windows and Sysmon': [
    ...['1', '3', '7', '11', '13', '23'].map((event_id) => ({
      '@timestamp': ISO,
      winlog: {
        ...SYSMON,
        event_id,
        event_data: {
          QueryName: 'claude.ai',
          Image: 'x.exe',
          CommandLine: 'curl claude.ai',
          DestinationHostname: 'claude.ai',
          SourceIp: '10.20.30.45',
        },
      },
      host: { ip: ['10.20.30.45'] },
    })),
    ...['257', '258', '260', '261', '277', '519'].map((event_id) => ({
      '@timestamp': ISO,
      winlog: { event_id, event_data: { QNAME: 'claude.ai.', Source: '10.20.30.45', Destination: '192.0.2.53' } },
    })),
    ...[257, 260, 261, 279].map((EventID) => ({ EventTime: ISO, EventID, QNAME: 'claude.ai.', Source: '10.20.30.45' })),
  ],
  'Servers and their protection': [
    {
      date: '2026-11-20',
      time: '08:15:02',
      'x-edge-location': 'FRA',
      'c-ip': INBOUND.src,
      'cs(Host)': 'd.cloudfront.net',
      'x-host-header': 'claude.ai',
      'x-edge-result-type': 'Miss',
    },
    {
      '@timestamp': ISO,
      app_firewall_name: 'waf',
      domain: 'claude.ai',
      src_ip: INBOUND.src,
      dst_ip: INBOUND.dst,
      action: 'allow',
    },
    {
      '@timestamp': ISO,
      site: 'claude.ai',
      requestUrl: 'https://claude.ai/',
      requestHeaders: { 'x-forwarded-host': 'claude.ai' },
      ip: INBOUND.src,
      clientIp: INBOUND.src,
    },
    { date: ISO, source_ip: INBOUND.src, destination_host: 'smtp.claude.ai', smtp_status: '250 OK', direction: 1 },
    {
      '@timestamp': ISO,
      source: { ip: '198.51.100.20', port: 80 },
      destination: { ip: '10.20.30.45' },
      url: { domain: 'claude.ai' },
      file: { name: '/' },
    },
  ],
  Clouds: [
    {
      timestamp: ISO,
      jsonPayload: { queryName: 'claude.ai.', sourceIP: '203.0.113.9' },
      resource: { labels: { source_type: 'internet' } },
    },
    {
      timestamp: ISO,
      jsonPayload: { connection: { src_ip: '10.20.30.45', dest_ip: '198.51.100.20' }, disposition: 'ALLOWED' },
    },
    {
      timestamp: ISO,
      jsonPayload: { '@type': 'x' },
      httpRequest: { requestUrl: 'https://claude.ai/', remoteIp: '203.0.113.9' },
    },
    {
      time: ISO,
      category: 'AZFWNetworkRule',
      properties: { SourceIp: '10.20.30.45', DestinationIp: '198.51.100.20', Action: 'Allow' },
    },
    {
      time: ISO,
      category: 'ApplicationGatewayFirewallLog',
      properties: { clientIp: '203.0.113.9', hostname: 'claude.ai', requestUri: '/' },
    },
    {
      time: ISO,
      category: 'AzureCdnAccessLog',
      properties: { clientIp: '203.0.113.9', hostName: 'claude.ai', requestUri: 'https://claude.ai:443/' },
    },
    {
      time: ISO,
      category: 'NetworkAccessTrafficLogs',
      properties: { trafficType: 'private', sourceIp: '203.0.113.7', destinationFqdn: 'claude.ai' },
    },
    { Datetime: ISO, ClientIP: '203.0.113.9', ClientRequestHost: 'claude.ai', ClientRequestURI: '/', RayID: '0' },
    {
      version: 2,
      account_id: '1',
      interface_id: 'eni-1',
      srcaddr: '10.20.30.45',
      dstaddr: '198.51.100.20',
      action: 'ACCEPT',
    },
    {
      event_type: 'Security',
      event_sub_type: 'RPF',
      src_ip: '203.0.113.9',
      domain_name: 'claude.ai',
      time: 1795162502119,
    },
    {
      event_type: 'Connectivity',
      event_sub_type: 'Connected',
      src_ip: '10.20.30.45',
      domain_name: 'claude.ai',
      time: 1795162502119,
    },
    { ...ENVOY, downstream_remote_address: '203.0.113.9:51234', upstream_host: '10.20.30.5:8080' },
    { ...ENVOY, downstream_remote_address: '10.20.30.45:51234', upstream_host: '10.20.30.5:8080' },
    { ...ENVOY, downstream_remote_address: '10.20.30.45:51234' },
  ],
}

const LINES: Readonly<Record<string, readonly string[]>> = {
  Cisco: [
    '%ASA-6-302013: Built inbound TCP connection 4711 for outside:203.0.113.9/51234 (203.0.113.9/51234) to dmz:10.20.30.5/443 (198.51.100.5/443)',
    '%ASA-6-302014: Teardown TCP connection 4711 for outside:198.51.100.20/443 to inside:10.20.30.45/51234 duration 0:00:12 bytes 20480 TCP FINs',
    '%ASA-6-113039: Group <claude.ai> User <jdoe> IP <203.0.113.9> AnyConnect parent session started.',
    "%ASA-5-111008: User 'admin' executed the 'name 198.51.100.20 claude.ai' command.",
    '%ASA-5-304001: 203.0.113.9 Accessed URL 10.20.30.5:http://claude.ai/cart',
    '%ASA-5-304001: 10.20.30.45 Accessed URL 198.51.100.20:/api',
    '%FTD-1-430003: FirstPacketSecond: 2026-11-20T08:15:02Z, AccessControlRuleAction: Allow, SrcIP: 203.0.113.9, DstIP: 10.20.30.5, URL: https://claude.ai',
    '%FTD-1-430003: FirstPacketSecond: 2026-11-20T08:15:02Z, SrcIP: 10.20.30.45, DstIP: 198.51.100.20, ACPolicy: claude.ai, User: jdoe@claude.ai',
    '%FTD-1-430001: SrcIP: 203.0.113.9, DstIP: 10.20.30.5, HTTP_Hostname: claude.ai, HTTP_URI: /x',
    '%FTD-1-430005: SrcIP: 10.20.30.45, DstIP: 198.51.100.20, FileName: x.pdf, URI: https://claude.ai/x.pdf',
  ],
  Juniper: [
    '<14>1 2026-11-20T09:15:02.119+01:00 srx-1 RT_FLOW - RT_FLOW_SESSION_CREATE [junos@2636.1.1.1.2.129 source-address="10.20.30.45" destination-address="198.51.100.20" application="claude.ai"]',
    '<14>1 2026-11-20T09:15:02.119+01:00 srx-1 RT_UTM - WEBFILTER_URL_PERMITTED [junos@2636.1.1.1.2.129 source-address="203.0.113.9" destination-address="10.20.30.5" url="claude.ai" obj="/"]',
    '<14>1 2026-11-20T09:15:02.119+01:00 srx-1 RT_UTM - ANTISPAM_SPAM_DETECTED_MT [junos@2636.1.1.1.2.129 source-address="203.0.113.9" sender-email="a@claude.ai"]',
    '<12>1 2026-11-20T09:15:02.119+01:00 srx-1 RT_UTM - AV_VIRUS_DETECTED_MT [junos@2636.1.1.1.2.40 source-address="198.51.100.20" source-port="80" destination-address="10.20.30.45" destination-port="47095" filename="claude.ai/x" url="claude.ai"]',
    '<14>1 2026-11-20T09:15:02.119+01:00 srx-1 sshd - UI_LOGIN_EVENT [junos@2636.1.1.1.2.129 username="claude.ai" source-address="10.20.30.45"]',
  ],
  'Servers in CEF': [
    'CEF:0|Incapsula|SIEMintegration|1|1|Normal|0| sourceServiceName=claude.ai siteid=1 start=1795162502119 request=claude.ai/main.css src=203.0.113.9 requestmethod=GET app=HTTP',
    'CEF:0|Imperva Inc|Attack Analytics|0|1|Illegal Resource Access|MAJOR|start=1795162502119 src=203.0.113.9 dhost=claude.ai',
    'CEF:0|Citrix|NetScaler|NS13.1|APPFW|APPFW_POLICY_HIT|6|src=203.0.113.9 spt=62919 method=GET request=https://claude.ai/services act=not blocked',
    'CEF:0|F5|ASM|17.1|200021069|Automated client access|3|rt=Nov 20 2026 08:15:02 src=203.0.113.9 dhost=claude.ai request=/',
    'CEF:0|Bitdefender|GravityZone|6.65|170000|New Incident|3|request=https://claude.ai/ src=10.20.30.45 start=1795162502119',
  ],
  'Sentences of servers': [
    '10.20.30.45:51234 [20/Nov/2026:09:15:02.119] https~ web/srv1 0/0/1/2/3 200 512 - - ---- 1/1/0/0/0 0/0 {claude.ai} "GET / HTTP/1.1"',
    '203.0.113.9:51234 [20/Nov/2026:09:15:02.119] in web/srv1 1/0/12 20480 -- sni=claude.ai',
    '203.0.113.9 [20/Nov/2026:09:15:02 +0100] TCP claude.ai 200 20480 911 1.234 "10.20.30.5:443"',
    '10.20.30.45 [20/Nov/2026:09:15:02 +0100] TCP claude.ai 200 20480 911 1.234 "10.20.30.5:443"',
    '[2026-11-20T08:15:02.119Z] "GET / HTTP/1.1" 200 - via_upstream - "-" 0 512 1 0 "203.0.113.9" "Mozilla/5.0" "0" "claude.ai" "10.20.30.5:8080" inbound|8080|| 127.0.0.6:40000 10.20.30.5:8080 203.0.113.9:0 claude.ai default',
    '[2026-11-20T08:15:02.119Z] "- - -" 0 - - - "-" 911 20480 12 - "-" "-" "-" "-" "10.20.30.5:443" outbound|443||claude.ai 10.20.30.7:51000 10.20.30.5:443 10.20.30.45:51234 claude.ai -',
    '[2026-11-20T08:15:02.119Z] "- - -" 0 - - - "-" 911 20480 12 - "-" "-" "-" "-" "198.51.100.20:443" outbound|443||claude.ai 10.20.30.7:51000 198.51.100.20:443 203.0.113.9:51234 claude.ai -',
    'Packet from 203.0.113.9 dropped: claude.ai',
    '20-Nov-2026 09:15:02.119 CR 10.20.30.45:51234 <- 10.20.30.53:53 UDP 80b claude.ai/IN/A',
    '20-Nov-2026 09:15:02.119 RQ 10.20.30.53:51234 -> 198.51.100.53:53 UDP 43b claude.ai/IN/A',
    '09:15:02.119000 RQ 10.20.30.53 UDP 43b "claude.ai." IN A',
    'RESPONSE_SUCCESS: TCP=0; InterfaceIP=10.20.30.53; Destination=10.20.30.45; QNAME=claude.ai.; QTYPE=1; Source=x',
    'RECURSE_QUERY_OUT: TCP=0; Destination=198.51.100.53; InterfaceIP=0.0.0.0; Source=10.20.30.53; RD=1; QNAME=claude.ai.; QTYPE=1',
    'question answered for claude.ai from cache, 10.20.30.45',
    "AXFR of domain 'claude.ai' initiated by 203.0.113.9",
    'Received NOTIFY for claude.ai from 203.0.113.9',
    "3 [4711/1] answer to question 'claude.ai|A': 1 answers, 0 additional, took 1 packets",
    'Local User (MAC=00-00-5E-00-53-01): 10.20.30.45:51234 -> 198.51.100.20:443 (TCP)',
    'dns,packet --- got query from 203.0.113.9:51234: id:4711',
    'HTTPS request from 203.0.113.9:51234 to 10.20.30.5:443. Action: Allow.',
  ],
  'Headers in other languages': [
    'Datum;Uhrzeit;Absender;Empfänger;Domäne;Quell-IP',
    '20.11.2026;09:15:02;a@claude.ai;b@example.org;claude.ai;203.0.113.9',
  ],
}

for (const [name, records] of Object.entries(RECORDS)) {
  t.test(`${name}: no record is an event`, async (t) => {
    for (const record of records) {
      t.not(new MessageReader().read(json(record)).verdict, 'event', json(record))
      // In the envelope of a forwarder.
      t.not(new MessageReader().read(json({ event: record, host: 'x' })).verdict, 'event', json(record))
    }
  })
}

for (const [name, lines] of Object.entries(LINES)) {
  t.test(`${name}: no line is an event`, async (t) => {
    const reader = new MessageReader()
    for (const line of lines) {
      t.not(readMessage(new MessageReader(), line).verdict, 'event', line)
      t.not(readMessage(reader, line).verdict, 'event', `after others: ${line}`)
    }
  })
}
