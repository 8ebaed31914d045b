import { type Action, actionOf } from './action.ts'
import { AT, isUpper, lastIndexOfByte, textAt } from './bytes.ts'
import { takeHostOf } from './found-fields.ts'
import { endBeforePort } from './ip-address.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isInbound, isPrivateAddress } from './private-address.ts'
import { Field, SentenceFields, SentencePattern } from './sentence-pattern.ts'
import { TextSearch } from './text-search.ts'
import { takeUser } from './user-name.ts'

/*
 * Products that write each request in words of their own, by a table of patterns
 * (sentence-pattern.ts). All have a requested name and its client.
 */
export const sentences: LogFormat = { id: 'sentences', detect, parse, takeUserAndBytes }

/**
 * A pattern may be of a server, too. Then only a private client whose server, if the pattern has
 * one, is not private counts.
 */
const OUTBOUND = true

const TABLE: readonly (readonly [pattern: string, outbound?: boolean])[] = [
  // dnsdist.
  ['Packet from {client} for {name} {} with id {#}'],
  ['[{time}] Packet from {client} for {name} {} with id {#}'],
  // PowerDNS Recursor and Authoritative Server.
  ["{#} [{}] question for '{name}|{}' from {client}"],
  ["[{}] question for '{name}|{}' from {client}"],
  ['msg="Question" {*} ts="{time}" {*} qname="{name}" {*} remote="{client}"'],
  ['msg="Question" {*} qname="{name}" {*} remote="{client}"'],
  ["Remote {client} wants '{name}|{}'"],
  ["TCP Remote {client} wants '{name}|{}'"],
  // dnstap as text, by dnstap-read of BIND and by dnstap. Only a client's query (CQ) is a request.
  ['{time} CQ {client} -> {server} {} {} {name}/IN/{}'],
  ['{time} CQ {client} {} {} "{name}" IN {}'],
  // The same after a syslog header with the time, and what dnstap connections give.
  ['CQ {client} -> {server} {} {} {name}/IN/{}'],
  ['CQ {client} {} {} "{name}" IN {}'],
  // The message of event 256 in the analytical log of Windows DNS.
  ['QUERY_RECEIVED: TCP={}; InterfaceIP={}; Source={client}; RD={}; QNAME={name}; QTYPE={}'],
  // The same, whose first word was the tag of a syslog header.
  ['TCP={#}; InterfaceIP={}; Source={client}; RD={}; QNAME={name}; QTYPE={}'],
  // Technitium DNS Server.
  ['[{time}] [{client}] [{}] QNAME: {name}; QTYPE: {}; QCLASS: IN; RCODE: {action};'],
  // dnscrypt-proxy.
  ['[{time}]\t{client}\t{name}\t{}\t{action}\t'],
  ['time:{time}\thost:{client}\tmessage:{name}\ttype:{}\treturn:{action}\t'],
  // MikroTik RouterOS.
  ['query from {client}: #{#} {name} {}'],
  ['dns{*}query from {client}: #{#} {name} {}'],
  ['web-proxy{*} {client} {} {host} {*}action={action} cache='],
  // DrayTek Vigor.
  ['Local User{*}: {client} DNS -> {server} inquire {name}'],
  // Azure Firewall, in the member `msg` of its older logs.
  ['DNS Request: {client} - {#} {} IN {name} {}'],
  ['HTTPS request from {client} to {host}. {*}Action: {action}.'],
  ['HTTP request from {client} to {host}. {*}Action: {action}.'],
  // Juniper SRX, without and with RFC 5424 structured data.
  ['WEBFILTER_URL_{action}: {<client}->{server}({#}) {*}URL={host} OBJ={}'],
  [
    'WEBFILTER_URL_{action} [junos@{*} source-address="{client}"{*} destination-address="{server}"{*} url="{host}"{*} username="{user}"',
  ],
  ['WEBFILTER_URL_{action} [junos@{*} source-address="{client}"{*} destination-address="{server}"{*} url="{host}"'],
  // Cisco ASA.
  ['%ASA-{}-304001: {client} Accessed URL {server}:{host}'],
  ['%ASA-{}-304001: {client} Accessed JAVA URL {server}:{host}'],
  ['%FTD-{}-304001: {client} Accessed URL {server}:{host}'],
  // Envoy in the text form of Istio, whose server is the address that the client connected to.
  ['[{time}] "{*}" outbound|{} {} {server} {client} {host} ', OUTBOUND],
  ['[{time}] "{*}" PassthroughCluster {} {server} {client} {host} ', OUTBOUND],
  // HAProxy and nginx with formats that docs/reference/log-formats.md shows.
  ['{client} [{time}] {} {}/{} {*} sni={host}', OUTBOUND],
  ['{client} [{time}] TCP {host} {#} {#} {#} {} "{server}"', OUTBOUND],
]
const PATTERNS = TABLE.map(([pattern]) => new SentencePattern(pattern))
const IS_OUTBOUND = TABLE.map(([, outbound]) => outbound === OUTBOUND)
/** For each first byte of a message, the patterns that may match. */
const BY_FIRST: readonly (readonly number[])[] = Array.from({ length: 256 }, (_, byte) =>
  [...PATTERNS.keys()].filter((index) => PATTERNS[index]?.firstBytes.includes(byte)),
)

const fields = new SentenceFields()
/**
 * Other messages of these products name no request of a client: of Juniper, the source may be the
 * server; of Windows DNS, the server itself (RECURSE_QUERY_OUT).
 */
const JUNOS = new TextSearch(' [junos@')
const WINDOWS_DNS = new TextSearch(': TCP=')
const CUE_BYTES = 64
const NO_PATTERN = -1
/** The pattern of the message that detect read last. Parse is called for the same message. */
let matched = 0

function detect({ view }: LogLine, start: number, end: number): boolean {
  if (start >= end) return false
  const candidates = BY_FIRST[view.getUint8(start)] ?? []
  for (let index = 0; index < candidates.length; index++) {
    matched = candidates[index] ?? 0
    if (PATTERNS[matched]?.matches(view, start, end, fields) === true) return true
  }
  matched = NO_PATTERN
  if (textAt(view, start, end, 'dnstap: START')) return true
  if (!isUpper(view.getUint8(start))) return false
  const limit = Math.min(end, start + CUE_BYTES)
  if (textAt(view, start, end, 'TCP=0; ') || textAt(view, start, end, 'TCP=1; ')) return true
  return JUNOS.find(view, start, limit) > start || WINDOWS_DNS.find(view, start, limit) > start
}

function parse(line: LogLine): Verdict {
  if (matched === NO_PATTERN) return Verdict.noDomain
  if (fields.has(Field.time)) {
    const found = line.takeTime(fields.start(Field.time), fields.end(Field.time))
    if (found === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  }
  if (!takeClient(line)) return line.reject('client: expected an address')
  if (fields.has(Field.action)) line.action = sentenceAction(line.view)
  if (isNoRequest(line)) return Verdict.noDomain
  return fields.has(Field.name)
    ? line.takeName(fields.start(Field.name), fields.end(Field.name))
    : takeHostOf(line, fields.start(Field.host), fields.end(Field.host))
}

/** `10.0.0.5:51234`, `10.0.0.5(51234)`, `10.0.0.5(LOCAL\jdoe)`, `jdoe@10.0.0.5`. */
function takeClient(line: LogLine): boolean {
  const { view } = line
  let start = fields.start(Field.client)
  let end = fields.end(Field.client)
  const at = lastIndexOfByte(view, start, end, AT)
  if (at >= 0) start = at + 1
  const parenthesis = lastIndexOfByte(view, start, end, PARENTHESIS)
  if (parenthesis >= 0) end = parenthesis
  return line.takeClient(start, endBeforePort(view, start, end))
}
const PARENTHESIS = 0x28

function isNoRequest({ view, clientStart, clientEnd }: LogLine): boolean {
  const start = fields.start(Field.server)
  const end = endBeforePort(view, start, fields.end(Field.server))
  if (IS_OUTBOUND[matched] !== true) return isInbound(view, clientStart, clientEnd, start, end)
  return !isPrivateAddress(view, clientStart, clientEnd) || isPrivateAddress(view, start, end)
}

function sentenceAction(view: DataView): Action {
  return actionOf(view, fields.start(Field.action), fields.end(Field.action))
}

function takeUserAndBytes(line: LogLine): void {
  if (fields.has(Field.user)) takeUser(line, fields.start(Field.user), fields.end(Field.user))
}
