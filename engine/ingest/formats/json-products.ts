import type { Product } from './product-paths.ts'

/*
 * Products whose records are nested JSON, by the paths of their members. Only letters and digits of
 * a path count. `(properties.)Fqdn` is two paths, with and without the words in parentheses,
 * because services of one vendor differ. The objects in WRAPPERS (json-logs.ts) are not part of a
 * path. A path through an array leads to the array's first element.
 *
 * The first product whose marks are all present decides, so a product's requests precede the
 * product without a host, whose records are no client's request.
 */

/** Arrays whose first element is read. */
export const JSON_ARRAYS = ['dnsqueries', 'hostip'] as const

const ZEEK = {
  time: 'ts',
  client: 'id.orig_h',
  server: 'id.resp_h',
  port: 'id.resp_p',
} as const

const SURICATA = {
  client: 'src_ip',
  server: 'dest_ip',
  port: 'dest_port',
  host: 'dns.rrname dns.queries.rrname tls.sni sni quic.sni http.hostname',
  isName: 'dns.rrname dns.queries.rrname',
  action: 'alert.action',
} as const

const DEFENDER = {
  time: '(properties.)Timestamp TimeGenerated',
  client: '(properties.)LocalIP',
  server: '(properties.)RemoteIP',
  host: '(properties.)RemoteUrl',
  user: '(properties.)InitiatingProcessAccountUpn (properties.)InitiatingProcessAccountName',
} as const

const OCSF = {
  time: 'time',
  client: 'src_endpoint.ip',
  server: 'dst_endpoint.ip',
  port: 'dst_endpoint.port',
  action: 'disposition action',
  user: 'actor.user.name',
  sent: 'traffic.bytes_out',
  received: 'traffic.bytes_in',
} as const
const OCSF_HTTP = { ...OCSF, host: 'http_request.url.hostname http_request.url.url_string dst_endpoint.hostname' }
const OCSF_NETWORK = { ...OCSF, host: 'tls.sni dst_endpoint.hostname url.hostname' }

const SYSMON = {
  host: '(winlog.event_data.|EventData.|Event.EventData.)QueryName',
  isName: '(winlog.event_data.|EventData.|Event.EventData.)QueryName',
  // The machine that wrote the event is the client. Few agents add its address.
  client: 'host.ip',
  mayHideClient: true,
  user: '(winlog.event_data.|EventData.|Event.EventData.)User',
} as const

const WINDOWS_DNS = {
  client: '(winlog.event_data.|EventData.|Event.EventData.)Source',
  host: '(winlog.event_data.|EventData.|Event.EventData.)QNAME',
  isName: '(winlog.event_data.|EventData.|Event.EventData.)QNAME',
} as const

const ENVOY = {
  time: 'start_time timestamp time',
  client: 'downstream_remote_address downstream_direct_remote_address',
  server: 'upstream_host',
  host: 'requested_server_name authority',
  outbound: true,
} as const

export const JSON_PRODUCTS: readonly Product[] = [
  {
    name: 'Zeek dns.log',
    marks: 'id.orig_h trans_id/qclass/qtype/qclass_name/qtype_name',
    ...ZEEK,
    host: 'query',
    isName: 'query',
  },
  { name: 'Zeek ssl.log, quic.log', marks: 'id.orig_h server_name', ...ZEEK, host: 'server_name' },
  { name: 'Zeek http.log', marks: 'id.orig_h uri host', ...ZEEK, host: 'host' },
  { name: 'Zeek, other logs', marks: 'id.orig_h', ...ZEEK },

  { name: 'Suricata, DNS answer', marks: 'flow_id event_type=dns dns.type=answer|response', ...SURICATA, skip: true },
  { name: 'Suricata', marks: 'flow_id event_type=dns|tls|http|quic', ...SURICATA },
  { name: 'Suricata, alert', marks: 'flow_id event_type=alert direction=to_server', ...SURICATA },
  {
    name: 'Suricata, alert on an answer',
    marks: 'flow_id event_type=alert direction=to_client',
    ...SURICATA,
    host: '',
  },
  { name: 'Suricata, alert outward', marks: 'flow_id event_type=alert', ...SURICATA, outbound: true },
  { name: 'Suricata, other events', marks: 'flow_id event_type', ...SURICATA, host: '' },
  { name: 'AWS Network Firewall, TLS log', marks: 'firewall_name event_timestamp sni', ...SURICATA },
  {
    name: 'Route 53 Resolver',
    marks: 'query_timestamp srcaddr',
    time: 'query_timestamp',
    client: 'srcaddr',
    host: 'query_name',
    isName: 'query_name',
    action: 'firewall_rule_action',
  },

  {
    name: 'Azure Firewall, application rule',
    marks: '(properties.)Fqdn (properties.)SourceIp',
    client: '(properties.)SourceIp',
    host: '(properties.)Fqdn (properties.)TargetUrl',
    action: '(properties.)Action',
  },
  {
    name: 'Azure Firewall, DNS proxy',
    marks: '(properties.)QueryId (properties.)QueryName (properties.)SourceIp',
    client: '(properties.)SourceIp',
    host: '(properties.)QueryName',
    isName: '(properties.)QueryName',
  },
  {
    name: 'Azure Firewall, legacy',
    marks: 'category=AzureFirewallApplicationRule|AzureFirewallDnsProxy',
    text: 'properties.msg',
  },
  {
    name: 'Azure DNS security policy',
    marks:
      '(properties.)QueryName (properties.)SourceIpAddress (properties.)ResolverPolicyRuleAction/(properties.)ResponseCode',
    client: '(properties.)SourceIpAddress',
    host: '(properties.)QueryName',
    isName: '(properties.)QueryName',
    action: '(properties.)ResolverPolicyRuleAction',
  },
  {
    name: 'Entra Internet Access',
    marks: '(properties.)trafficType=internet|microsoft365|m365 (properties.)destinationFqdn',
    time: '(properties.)createdDateTime TimeGenerated time',
    client: '(properties.)sourceIp',
    host: '(properties.)destinationFqdn',
    action: '(properties.)action',
    user: '(properties.)userPrincipalName',
    sent: '(properties.)sentBytes',
    received: '(properties.)receivedBytes',
  },
  {
    name: 'Defender for Endpoint, network events',
    // An attempt, an acknowledgment or an inspected connection may be inbound.
    marks:
      '(properties.)InitiatingProcessFileName (properties.)ActionType=ConnectionSuccess|ConnectionFailed|ConnectionRequest|ConnectionFound (properties.)RemoteUrl',
    ...DEFENDER,
  },
  {
    name: 'Defender for Endpoint, other events',
    marks: '(properties.)InitiatingProcessFileName',
    ...DEFENDER,
    host: '',
  },

  {
    name: 'Cato, other events',
    marks: 'event_sub_type=RPF|WAN+Firewall|LAN+Firewall|Client+Connectivity+Policy src_ip',
    client: 'src_ip',
  },
  {
    name: 'Cato',
    marks: 'event_sub_type event_type=Security src_ip domain_name/full_path_url/dns_query',
    time: 'time',
    client: 'src_ip',
    server: 'dest_ip',
    host: 'domain_name full_path_url dns_query',
    action: 'action',
    user: 'user_name vpn_user_email',
  },
  {
    name: 'Cloudflare Gateway, DNS',
    marks: 'ResolverDecision QueryName',
    time: 'Datetime',
    client: 'SrcIP',
    host: 'QueryName',
    isName: 'QueryName',
    action: 'ResolverDecision',
    user: 'Email',
  },
  {
    name: 'Cloudflare Gateway, HTTP',
    marks: 'HTTPHost SourceIP SessionID/RequestID',
    time: 'Datetime',
    client: 'SourceInternalIP SourceIP',
    server: 'DestinationIP',
    host: 'HTTPHost URL',
    action: 'Action',
    user: 'Email',
  },
  {
    name: 'Cloudflare Gateway, network',
    marks: 'SNI SourceIP SessionID',
    time: 'Datetime',
    client: 'SourceInternalIP SourceIP',
    server: 'DestinationIP',
    port: 'DestinationPort',
    host: 'SNI',
    action: 'Action',
    user: 'Email',
  },

  // A public zone is asked by resolvers of the Internet.
  { name: 'Google Cloud DNS, public zone', marks: 'jsonPayload.queryName resource.labels.source_type=internet' },
  {
    name: 'Google Cloud DNS',
    marks: 'jsonPayload.queryName jsonPayload.sourceIP',
    time: 'timestamp',
    client: 'jsonPayload.sourceIP',
    host: 'jsonPayload.queryName',
    isName: 'jsonPayload.queryName',
  },
  {
    name: 'Google Cloud Secure Web Proxy',
    marks: 'jsonPayload.enforcedGatewaySecurityPolicy.hostname httpRequest.remoteIp',
    time: 'timestamp',
    client: 'httpRequest.remoteIp',
    host: 'jsonPayload.enforcedGatewaySecurityPolicy.hostname',
    sent: 'httpRequest.requestSize',
    received: 'httpRequest.responseSize',
  },

  { name: 'OCSF, DNS answer', marks: 'class_uid=4003 activity_id=2', ...OCSF, skip: true },
  { name: 'OCSF, inbound', marks: 'class_uid connection_info.direction_id=1', ...OCSF },
  {
    name: 'OCSF, DNS Activity',
    marks: 'class_uid=4003 query.hostname',
    ...OCSF,
    host: 'query.hostname',
    isName: 'query.hostname',
  },
  { name: 'OCSF, HTTP Activity', marks: 'class_uid=4002 connection_info.direction_id=2', ...OCSF_HTTP },
  { name: 'OCSF, HTTP Activity outward', marks: 'class_uid=4002', ...OCSF_HTTP, outbound: true },
  { name: 'OCSF, Network Activity', marks: 'class_uid=4001 connection_info.direction_id=2', ...OCSF_NETWORK },
  { name: 'OCSF, Network Activity outward', marks: 'class_uid=4001', ...OCSF_NETWORK, outbound: true },
  { name: 'OCSF, other classes', marks: 'class_uid', ...OCSF },

  {
    name: 'Sysmon, DNS query',
    marks:
      '(winlog.event_data.|EventData.|Event.EventData.)QueryName (winlog.event_data.|EventData.|Event.EventData.)QueryStatus winlog.event_id=22/event.code=22/EventID=22/Event.System.EventID=22',
    ...SYSMON,
  },
  {
    name: 'Windows DNS analytical log, query',
    marks:
      '(winlog.event_data.|EventData.|Event.EventData.)QNAME (winlog.event_data.|EventData.|Event.EventData.)Source winlog.event_id=256/EventID=256/Event.System.EventID=256',
    ...WINDOWS_DNS,
  },
  {
    name: 'Windows DNS analytical log, other events',
    marks: '(winlog.event_data.|EventData.|Event.EventData.)QNAME winlog.event_id/EventID/Event.System.EventID',
    skip: true,
  },

  {
    name: 'AdGuard Home, file',
    marks: 'QH IP QT',
    time: 'T',
    client: 'IP',
    host: 'QH',
    isName: 'QH',
  },
  {
    name: 'AdGuard Home, API',
    marks: 'question.name elapsedMs client',
    time: 'time',
    client: 'client',
    host: 'question.name',
    isName: 'question.name',
  },
  {
    name: 'Blocky',
    marks: 'question_name client_ip response_type/response_reason',
    time: 'time',
    client: 'client_ip',
    host: 'question_name',
    isName: 'question_name',
    action: 'response_type',
  },
  {
    name: 'CoreDNS, JSON',
    marks: 'class=IN type name rcode remote/client/client_ip/remote_ip',
    client: 'remote client client_ip remote_ip',
    host: 'name',
    isName: 'name',
  },
  {
    name: 'NextDNS',
    marks: 'root domain clientIp protocol',
    time: 'timestamp',
    client: 'device.localIp clientIp',
    host: 'domain',
    isName: 'domain',
    action: 'status',
  },
  {
    name: 'Technitium DNS Server',
    marks: 'question.questionName clientIp',
    time: 'timestamp',
    client: 'clientIp',
    host: 'question.questionName',
    isName: 'question.questionName',
    action: 'responseType',
  },
  {
    name: 'Envoy, TLS',
    marks: 'requested_server_name downstream_remote_address/downstream_direct_remote_address',
    ...ENVOY,
  },
  { name: 'Envoy, HTTP', marks: 'authority downstream_remote_address/downstream_direct_remote_address', ...ENVOY },
]
