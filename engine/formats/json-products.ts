import assert from 'node:assert'
import { Action, isNullAddress } from './action.ts'
import { NOT_FOUND } from './bytes.ts'
import { isMailPort } from './directive-tables.ts'
import { Fields } from './fields.ts'
import { isInbound, isPrivateAddress } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { UserForm } from './user-name.ts'

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
export const JSON_ARRAYS = ['dnsqueries', 'hostip', 'answers'] as const

const ZEEK = {
  time: 'ts',
  client: 'id.orig_h',
  server: 'id.resp_h',
  port: 'id.resp_p',
} as const

const SURICATA_FLOW = { client: 'src_ip', server: 'dest_ip', port: 'dest_port', action: 'alert.action' } as const
const SURICATA = {
  ...SURICATA_FLOW,
  dnsName: 'dns.rrname dns.queries.rrname',
  host: 'tls.sni sni quic.sni http.hostname',
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
  dnsName: '(winlog.event_data.|EventData.|Event.EventData.)QueryName',
  // The machine that wrote the event is the client. Few agents add its address.
  client: 'host.ip',
  mayHideClient: true,
  user: '(winlog.event_data.|EventData.|Event.EventData.)User',
} as const

const WINDOWS_DNS = {
  client: '(winlog.event_data.|EventData.|Event.EventData.)Source',
  dnsName: '(winlog.event_data.|EventData.|Event.EventData.)QNAME',
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
    dnsName: 'query',
    answer: 'answers',
  },
  { name: 'Zeek ssl.log, quic.log', marks: 'id.orig_h server_name', ...ZEEK, host: 'server_name' },
  { name: 'Zeek http.log', marks: 'id.orig_h uri host', ...ZEEK, host: 'host' },
  { name: 'Zeek, other logs', marks: 'id.orig_h', ...ZEEK },

  { name: 'Suricata, DNS answer', marks: 'flow_id event_type=dns dns.type=answer|response', ...SURICATA, skip: true },
  { name: 'Suricata', marks: 'flow_id event_type=dns|tls|http|quic', ...SURICATA },
  { name: 'Suricata, alert', marks: 'flow_id event_type=alert direction=to_server', ...SURICATA },
  { name: 'Suricata, alert on an answer', marks: 'flow_id event_type=alert direction=to_client', ...SURICATA_FLOW },
  { name: 'Suricata, alert outward', marks: 'flow_id event_type=alert', ...SURICATA, outbound: true },
  { name: 'Suricata, other events', marks: 'flow_id event_type', ...SURICATA_FLOW },
  { name: 'AWS Network Firewall, TLS log', marks: 'firewall_name event_timestamp sni', ...SURICATA },
  {
    name: 'Route 53 Resolver',
    marks: 'query_timestamp srcaddr',
    time: 'query_timestamp',
    client: 'srcaddr',
    dnsName: 'query_name',
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
    dnsName: '(properties.)QueryName',
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
    dnsName: '(properties.)QueryName',
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
    dnsName: 'QueryName',
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
    dnsName: 'jsonPayload.queryName',
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
  { name: 'OCSF, DNS Activity', marks: 'class_uid=4003 query.hostname', ...OCSF, dnsName: 'query.hostname' },
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

  { name: 'AdGuard Home, file', marks: 'QH IP QT', time: 'T', client: 'IP', dnsName: 'QH' },
  {
    name: 'AdGuard Home, API',
    marks: 'question.name elapsedMs client',
    time: 'time',
    client: 'client',
    dnsName: 'question.name',
  },
  {
    name: 'Blocky',
    marks: 'question_name client_ip response_type/response_reason',
    time: 'time',
    client: 'client_ip',
    dnsName: 'question_name',
    action: 'response_type',
  },
  {
    name: 'CoreDNS, JSON',
    marks: 'class=IN type name rcode remote/client/client_ip/remote_ip',
    client: 'remote client client_ip remote_ip',
    dnsName: 'name',
  },
  {
    name: 'NextDNS',
    marks: 'root domain clientIp protocol',
    time: 'timestamp',
    client: 'device.localIp clientIp',
    dnsName: 'domain',
    action: 'status',
  },
  {
    name: 'Technitium DNS Server',
    marks: 'question.questionName clientIp',
    time: 'timestamp',
    client: 'clientIp',
    dnsName: 'question.questionName',
    action: 'responseType',
  },
  {
    name: 'Envoy, TLS',
    marks: 'requested_server_name downstream_remote_address/downstream_direct_remote_address',
    ...ENVOY,
  },
  { name: 'Envoy, HTTP', marks: 'authority downstream_remote_address/downstream_direct_remote_address', ...ENVOY },
]

/**
 * The roles of paths. `answer` is the first address of a DNS answer, which shows whether the name is
 * blocked; `text` a line of text that has the request. `server` is the other end of the connection,
 * and `port` its port: an inbound connection and mail are no requests. `dnsName` is never a URL.
 */
const ROLES = [
  ...(['time', 'client', 'server', 'port', 'dnsName', 'host'] as const),
  ...(['action', 'answer', 'user', 'sent', 'received', 'text'] as const),
]
type Role = (typeof ROLES)[number]

/** The paths of a product's records by role, of each role in order of preference. */
interface Product extends Readonly<Partial<Record<Role, string>>> {
  readonly name: string
  /**
   * What only this product's records have, all of it: a path, a path and its values
   * (`type=dns|tls`), or alternatives (`qclass/qtype`).
   */
  readonly marks: string
  /**
   * The record may be of a server. Only a private client and a server that is not private count.
   */
  readonly outbound?: true
  readonly mayHideClient?: true
  /** The record repeats another one. */
  readonly skip?: true
}

interface Mark {
  readonly slots: readonly number[]
  /** For each slot the values of which one is needed; none: any value. */
  readonly values: readonly (readonly string[])[]
}

interface Paths extends Readonly<Record<Role, readonly number[]>> {
  readonly product: Product
  readonly marks: readonly Mark[]
}

const NO_PRODUCT = -1
const WORD_BITS = 32

/** Finds the product of a record from the members that are noted, and reads it. */
export class ProductPaths {
  /** The slot of each path: lower case, letters and digits only. */
  readonly slots: Record<string, number> = {}
  readonly #products: readonly Paths[]
  readonly #fields: Fields
  /** For each slot the products of which it is the first mark: one bit per product in two words. */
  readonly #lowKeys: Int32Array
  readonly #highKeys: Int32Array
  #low = 0
  #high = 0
  #product = NO_PRODUCT

  constructor(products: readonly Product[]) {
    this.#products = products.map((product) => this.#compile(product))
    const count = Object.keys(this.slots).length
    this.#fields = new Fields(count)
    this.#lowKeys = new Int32Array(count)
    this.#highKeys = new Int32Array(count)
    assert(products.length <= 2 * WORD_BITS)
    for (const [index, { marks }] of this.#products.entries()) {
      const keys = index < WORD_BITS ? this.#lowKeys : this.#highKeys
      for (const slot of marks[0]?.slots ?? []) keys[slot] = (keys[slot] ?? 0) | (1 << (index % WORD_BITS))
    }
  }

  clear(): void {
    this.#fields.ends.fill(0)
    this.#low = 0
    this.#high = 0
    this.#product = NO_PRODUCT
  }

  /** Of members with one path, the first non-empty member counts. */
  note(slot: number, start: number, end: number): void {
    if (end <= start || this.#fields.has(slot)) return
    this.#fields.note(slot, start, end)
    this.#low |= this.#lowKeys[slot] ?? 0
    this.#high |= this.#highKeys[slot] ?? 0
  }

  /** Whether the noted members are those of a product. */
  find(view: DataView): boolean {
    return this.#findOf(view, this.#low, 0) || this.#findOf(view, this.#high, WORD_BITS)
  }

  #findOf(view: DataView, candidates: number, base: number): boolean {
    while (candidates !== 0) {
      const index = base + 31 - Math.clz32(candidates & -candidates)
      if (this.#hasMarks(view, this.#products[index]?.marks ?? [])) {
        this.#product = index
        return true
      }
      candidates &= candidates - 1
    }
    return false
  }

  /** The verdict on a record whose product was found. */
  read(line: LogLine): Verdict {
    const paths = this.#products[this.#product]
    if (paths === undefined) return Verdict.unknown
    const fields = this.#fields
    if (fields.takeTimes(line, paths.time) === TimeFound.impossible) return line.rejectTime()
    fields.takeActions(line, paths.action)
    const answer = this.#first(paths.answer)
    if (isNullAddress(line.view, fields.start(answer), fields.end(answer))) line.action = Action.blocked
    const hasClient = fields.takeClients(line, paths.client)
    const text = this.#first(paths.text)
    if (text !== NOT_FOUND) {
      line.wrappedStart = fields.start(text)
      line.wrappedEnd = fields.end(text)
      return Verdict.noDomain
    }
    if (paths.product.skip === true) return Verdict.skip
    if (!hasClient && paths.product.mayHideClient !== true) return Verdict.noDomain
    return this.#isNoRequest(line, paths) ? Verdict.noDomain : this.#takeHost(line, paths)
  }

  /** The user and the byte counts of the record that was read last. */
  takeUserAndBytes(line: LogLine): void {
    const paths = this.#products[this.#product]
    if (paths === undefined) return
    this.#fields.takeUserAndBytes(line, paths.user, paths.sent, paths.received, UserForm.json)
  }

  /** Mail, a request of an external client to one of the organization's own servers. */
  #isNoRequest({ view, clientStart, clientEnd }: LogLine, paths: Paths): boolean {
    const fields = this.#fields
    const port = this.#first(paths.port)
    if (isMailPort(view, fields.start(port), fields.end(port))) return true
    const server = this.#first(paths.server)
    const isOutbound = paths.product.outbound === true
    if (server === NOT_FOUND) return isOutbound
    const start = fields.start(server)
    const end = fields.endBeforePort(view, server)
    if (!isOutbound) return isInbound(view, clientStart, clientEnd, start, end)
    return !isPrivateAddress(view, clientStart, clientEnd) || isPrivateAddress(view, start, end)
  }

  #takeHost(line: LogLine, { dnsName, host }: Paths): Verdict {
    const fields = this.#fields
    let verdict: Verdict = Verdict.noDomain
    for (let index = 0; index < dnsName.length + host.length; index++) {
      const slot = dnsName[index] ?? host[index - dnsName.length] ?? 0
      if (!fields.has(slot)) continue
      const found = index < dnsName.length ? fields.takeName(line, slot) : fields.takeHostOf(line, slot)
      if (found === Verdict.event) return found
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }

  #hasMarks(view: DataView, marks: readonly Mark[]): boolean {
    for (let index = 0; index < marks.length; index++) {
      const mark = marks[index]
      if (mark === undefined || !this.#hasMark(view, mark)) return false
    }
    return true
  }

  #hasMark(view: DataView, { slots, values }: Mark): boolean {
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index] ?? 0
      if (!this.#fields.has(slot)) continue
      const words = values[index] ?? []
      if (words.length === 0) return true
      for (let word = 0; word < words.length; word++) if (this.#fields.is(view, slot, words[word] ?? '')) return true
    }
    return false
  }

  #first(slots: readonly number[]): number {
    for (let index = 0; index < slots.length; index++) if (this.#fields.has(slots[index] ?? 0)) return slots[index] ?? 0
    return NOT_FOUND
  }

  #compile(product: Product): Paths {
    const paths = Object.fromEntries(ROLES.map((role) => [role, this.#slotsOf(product[role])]))
    return {
      ...(paths as Record<Role, number[]>),
      product,
      marks: marksOf(product.marks).map((alternatives) => {
        const each = alternatives.flatMap(({ path, values }) => this.#slotsOf(path).map((slot) => ({ slot, values })))
        return { slots: each.map(({ slot }) => slot), values: each.map(({ values }) => values) }
      }),
    }
  }

  #slotsOf(paths = ''): number[] {
    return paths
      .split(' ')
      .filter((path) => path !== '')
      .flatMap(variantsOf)
      .map((path) => {
        const word = path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
        assert(word !== '', paths)
        const slot = this.slots[word] ?? Object.keys(this.slots).length
        this.slots[word] = slot
        return slot
      })
  }
}

/**
 * `(properties.)Fqdn` with and without the words in parentheses, of which a bar separates several.
 */
function variantsOf(path: string): string[] {
  const [, prefixes, rest = path] = /^\((.+)\)(.+)$/.exec(path) ?? []
  return prefixes === undefined ? [path] : [...prefixes.split('|').map((prefix) => `${prefix}${rest}`), rest]
}

/** In a value, `+` is a blank. */
function marksOf(text: string): { path: string; values: string[] }[][] {
  return text.split(' ').map((mark) =>
    mark.split('/').map((alternative) => {
      const [path = '', values] = alternative.split('=')
      return { path, values: values?.toLowerCase().replaceAll('+', ' ').split('|') ?? [] }
    }),
  )
}
