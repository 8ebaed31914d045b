import assert from 'node:assert'
import {
  AT,
  CLOSE_BRACKET,
  HYPHEN,
  indexOfByte,
  isDigit,
  isUpper,
  lastIndexOfByte,
  NOT_FOUND,
  OPEN_BRACKET,
  OPEN_PARENTHESIS,
  SPACE,
  TextPrefixes,
  TextSearch,
  textAt,
} from './bytes.ts'
import { Fields } from './fields.ts'
import { endBeforePort, isInbound, isPrivateAddress } from './ip-address.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { UserForm } from './user-name.ts'

/**
 * The fields of a pattern:
 *
 *   {client} {server}  an address, with or without a port
 *   {name}             a DNS name
 *   {host}             a host, host and port, or URL
 *   {time}             may have blanks
 *   {action} {user}    a word
 *   {percentUser}      a user with percent-encoding
 *   {}                 a word that is not read
 *   {#}                a number that is not read
 *   {type}             a type of a DNS record that is not read: `AAAA`, `TYPE65`, `-`
 *   {*}                any text, also none
 *   {<client}          any text, which ends with an address
 */
const Field = {
  client: 0,
  server: 1,
  name: 2,
  host: 3,
  time: 4,
  action: 5,
  user: 6,
  percentUser: 7,
  word: 8,
  number: 9,
  any: 10,
  type: 11,
} as const
type Field = (typeof Field)[keyof typeof Field]
const FIELD_COUNT = 8
/** Shorter texts occur again in lines that no one has forged. */
const CONTROLLED_TEXT_MIN = 4
/** With the text that follows. */
const TIME_BYTES_MAX = 80

/** No other format's message begins with so many characters of a pattern. */
const HEAD_CHARS_MIN = 3

interface Step {
  readonly field: Field
  /** Read backward from the text that follows. */
  readonly isBefore: boolean
  /** The text after the field; '' at the pattern's end. */
  readonly after: string
  /** Finds `after`, unless it is short. */
  readonly search: TextSearch | undefined
  /** A client controls the field, and may have written `after` into it. */
  readonly isControlled: boolean
}

/** The fields that the last successful match found. */
class SentenceFields extends Fields {
  /** The text after a field that a client controls occurs twice. */
  isAmbiguous = false
  /**
   * A message has the words of a pattern up to its client, but not those after a name that a client
   * controls, so it is no other format's.
   */
  isBegun = false

  constructor() {
    super(FIELD_COUNT)
  }
}

/**
 * The text of a product's messages: literal text, and fields in braces. Text may follow its end,
 * unless the end is `$`.
 */
class SentencePattern {
  /** The bytes with which a message can begin. */
  readonly firstBytes: readonly number[]
  readonly #head: string
  readonly #steps: readonly Step[]
  readonly #isWhole: boolean

  constructor(pattern: string) {
    this.#isWhole = pattern.endsWith('$')
    const [head = '', ...parts] = (this.#isWhole ? pattern.slice(0, -1) : pattern).split('{')
    this.#head = head
    this.#steps = parts.map((part) => stepOf(part, pattern))
    const first = this.#steps[0]?.field
    if (head !== '') this.firstBytes = [head.charCodeAt(0)]
    else {
      assert(first === Field.client || first === Field.number || first === Field.time, pattern)
      const bytes = first === Field.client ? '0123456789abcdefABCDEF:[' : '0123456789'
      this.firstBytes = Array.from(bytes, (byte) => byte.charCodeAt(0))
    }
  }

  /** Whether the message in [start, end) matches. Each byte is read a few times at most. */
  matches(view: DataView, start: number, end: number, fields: SentenceFields): boolean {
    if (!textAt(view, start, end, this.#head)) return false
    const { starts, ends } = fields
    starts.fill(0)
    ends.fill(0)
    fields.isAmbiguous = false
    let at = start + this.#head.length
    const steps = this.#steps
    for (let index = 0; index < steps.length; index++) {
      const step = steps[index]
      if (step === undefined) return false
      const stop = fieldEnd(view, at, end, step)
      if (stop === NOT_FOUND) {
        fields.isBegun ||= this.#head.length >= HEAD_CHARS_MIN && fields.has(Field.client)
        return false
      }
      const { field, after } = step
      if (field < FIELD_COUNT) {
        starts[field] = step.isBefore ? lastIndexOfByte(view, at, stop, SPACE) + 1 || at : at
        ends[field] = stop
      }
      at = stop + after.length
      if (step.isControlled && step.search?.find(view, at, end) !== NOT_FOUND) fields.isAmbiguous = true
    }
    if (this.#isWhole && at !== end) fields.isAmbiguous = true
    return true
  }
}

function stepOf(part: string, pattern: string): Step {
  const close = part.indexOf('}')
  assert(close >= 0, pattern)
  const name = part.slice(0, close)
  const after = part.slice(close + 1)
  const isBefore = name.startsWith('<')
  const field = fieldOf(isBefore ? name.slice(1) : name)
  assert(field !== undefined && (after !== '' || field !== Field.any), pattern)
  const isControlled =
    !isBefore &&
    after.length >= CONTROLLED_TEXT_MIN &&
    (field === Field.any || field === Field.name || field === Field.host)
  const isSearched = field === Field.any || field === Field.time || isBefore || isControlled
  const search = isSearched && after.length > 1 ? new TextSearch(after) : undefined
  return { field, isBefore, after, search, isControlled }
}

function fieldOf(name: string): Field | undefined {
  if (name === '') return Field.word
  if (name === '#') return Field.number
  if (name === '*') return Field.any
  return Object.entries(Field).find(([word]) => word === name)?.[1]
}

/** The end of the field that begins at `at`, before the text that follows, or NOT_FOUND. */
function fieldEnd(view: DataView, at: number, end: number, step: Step): number {
  const { field, after, search, isBefore } = step
  if (field === Field.time) {
    end = Math.min(end, at + TIME_BYTES_MAX)
    // A time has no bracket, and a name may have one.
    if (after.startsWith(']')) {
      const close = indexOfByte(view, at, end, CLOSE_BRACKET)
      return close !== NOT_FOUND && textAt(view, close, end, after) ? close : NOT_FOUND
    }
  }
  if (field === Field.any || field === Field.time || isBefore) {
    return search === undefined ? indexOfByte(view, at, end, after.charCodeAt(0)) : search.find(view, at, end)
  }
  const first = after === '' ? SPACE : after.charCodeAt(0)
  let stop = at
  for (; stop < end; stop++) {
    const byte = view.getUint8(stop)
    if (field === Field.number && !isDigit(byte)) break
    if (field === Field.type && !isDigit(byte) && !isUpper(byte) && byte !== HYPHEN) break
    // A colon and a digit are inside an address or before its port.
    if (byte === first && textAt(view, stop, end, after) && !(after === ':' && isDigitAt(view, stop + 1, end)))
      return stop
    if (byte <= SPACE) break
  }
  if (after === '') return stop > at && (field !== Field.type || isBlankAt(view, stop, end)) ? stop : NOT_FOUND
  return (field === Field.number || field === Field.type) && stop > at && textAt(view, stop, end, after)
    ? stop
    : NOT_FOUND
}

function isBlankAt(view: DataView, at: number, end: number): boolean {
  return at >= end || view.getUint8(at) <= SPACE
}

function isDigitAt(view: DataView, at: number, end: number): boolean {
  return at < end && isDigit(view.getUint8(at))
}

/*
 * Products that write each request in words of their own, by a table of patterns. All have a requested name and its client.
 */
export const sentences: LogFormat = { id: 'sentences', read }

/**
 * A pattern may be of a server, too. Then only a private client whose server, if the pattern has
 * one, is not private counts.
 */
const OUTBOUND = true

const TABLE: readonly (readonly [pattern: string, outbound?: boolean])[] = [
  // dnsdist.
  ['Packet from {client} for {name} {} with id {#}'],
  ['[{time}] Packet from {client} for {name} {} with id {#}'],
  // dnsdist with verbose messages, for a query that is not in its cache.
  ['Got query for {name}|{type} from {client}, relayed to '],
  ['Got query for {name}|{type} from {client} ({*}), relayed to '],
  // CoreDNS, also after the time of a container runtime or its own, and before 1.2 without the level.
  ['[INFO] {client} - {#} "{type} IN {name} {} {#} {} {#}" {action}'],
  ['{time} [INFO] {client} - {#} "{type} IN {name} {} {#} {} {#}" {action}'],
  ['{time} stdout F [INFO] {client} - {#} "{type} IN {name} {} {#} {} {#}" {action}'],
  ['{client} - {#} "{type} IN {name} {} {#} {} {#}" {action}'],
  ['{client} - [{time}] {#} "{type} IN {name} {} {#} {} {#}" {action}'],
  ['{client} - [{time}] "{type} IN {name} {} {#} {} {#}" {action}'],
  // PowerDNS Recursor and Authoritative Server.
  ["{#} [{}] question for '{name}|{type}' from {client}"],
  ["[{}] question for '{name}|{type}' from {client}"],
  ["{#} [{}] TCP question for '{name}|{type}' from {client}"],
  ["[{}] TCP question for '{name}|{type}' from {client}"],
  ['msg="Question" {*} ts="{time}" {*} qname="{name}" {*} remote="{client}"'],
  ['msg="Question" {*} qname="{name}" {*} remote="{client}"'],
  // The client of a proxy that sent the PROXY protocol.
  ['msg="Question" {*} ts="{time}" {*} qname="{name}" {*} remote="{client} (proxied by '],
  ['msg="Question" {*} qname="{name}" {*} remote="{client} (proxied by '],
  ["Remote {client} wants '{name}|{type}', "],
  ["TCP Remote {client} wants '{name}|{type}', "],
  // dnstap as text, by dnstap-read of BIND and by dnstap. Only a client's query (CQ) is a request.
  ['{time} CQ {client} -> {server} {} {} {name}/IN/{type}'],
  ['{time} CQ {client} {} {} "{name}" IN {}'],
  // The command dnstap writes a time without a date.
  ['{#}:{#}:{} CQ {client} {} {} "{name}" IN {}'],
  // The same after a syslog header with the time, and what dnstap connections give.
  ['CQ {client} -> {server} {} {} {name}/IN/{type}'],
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
  // SmartDNS, in a file and by syslog.
  ['[{time}] {client} query {name}, type {#}, time {#}ms, '],
  ['{client} query {name}, type {#}, time {#}ms, '],
  // ctrld. The name of the client's device is in parentheses.
  ['[{}] QUERY: {client} ({*}) -> listener.{#}: {type} {name}$'],
  ['[{}] {client} -> listener.{#}: {} received query: {type} {name}$'],
  // The NextDNS command, without and with a profile.
  ['Query {client} {} {type} {name} (qry={#}/res='],
  ['Query {client} {} {type} {name} {} (qry={#}/res='],
  // DNS-collector, whose time and identity are a syslog header.
  ['CLIENT_QUERY {} {client} {#} {} {} {} {name} {type}'],
  // MikroTik RouterOS.
  ['query from {client}: #{#} {name} {type}$'],
  ['dns{} query from {client}: #{#} {name} {type}$'],
  ['web-proxy{*} {client} {} {host} {*}action={action} cache='],
  // DrayTek Vigor.
  ['Local User{*}: {client} DNS -> {server} inquire {name}$'],
  // Azure Firewall, in the member `msg` of its older logs.
  ['DNS Request: {client} - {#} {} IN {name} {}'],
  ['HTTPS request from {client} to {host}. {*}Action: {action}.'],
  ['HTTP request from {client} to {host}. {*}Action: {action}.'],
  // squidGuard, a redirector for Squid, which percent-encodes the user.
  ['{time} [{#}] Request({}) {host} {client}/{} {percentUser} {} {action}'],
  // Juniper SRX, without and with RFC 5424 structured data.
  ['WEBFILTER_URL_{action}: {<client}->{server}({#}) {*}URL={host} OBJ={}'],
  [
    'WEBFILTER_URL_{action} [junos@{*} source-address="{client}"{*} destination-address="{server}"{*} url="{host}"{*} username="{user}"',
  ],
  ['WEBFILTER_URL_{action} [junos@{*} source-address="{client}"{*} destination-address="{server}"{*} url="{host}"'],
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
const OTHERS = new TextPrefixes([
  ...['dnstap: START', 'TCP=0; ', 'TCP=1; '],
  ...['[INFO] plugin/', '[WARNING] plugin/', '[ERROR] plugin/', '[FATAL] plugin/'],
])
const CUE_BYTES = 64

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (start >= end) return Verdict.unknown
  const candidates = BY_FIRST[view.getUint8(start)] ?? []
  fields.isBegun = false
  for (let index = 0; index < candidates.length; index++) {
    const pattern = candidates[index] ?? 0
    if (PATTERNS[pattern]?.matches(view, start, end, fields) !== true) continue
    const time = takeTime(line)
    if (time === TimeFound.impossible) return line.rejectTime()
    // A client's text with the words of another product follows more than a time.
    if (time !== TimeFound.none) return readMatched(line, IS_OUTBOUND[pattern] === true)
  }
  if (fields.isBegun) return Verdict.noDomain
  return isOther(view, start, end) ? Verdict.skip : Verdict.unknown
}

function isOther(view: DataView, start: number, end: number): boolean {
  if (OTHERS.beginAt(view, start, end)) return true
  if (!isUpper(view.getUint8(start))) return false
  const limit = Math.min(end, start + CUE_BYTES)
  return JUNOS.find(view, start, limit) > start || WINDOWS_DNS.find(view, start, limit) > start
}

/** Whether the time, if the pattern has one, is nothing but a time. */
function takeTime(line: LogLine): TimeFound {
  return fields.has(Field.time) ? line.takeHeader(fields.start(Field.time), fields.end(Field.time)) : TimeFound.found
}

function readMatched(line: LogLine, isOutbound: boolean): Verdict {
  if (!takeClient(line)) return line.reject('client: expected an address')
  if (fields.has(Field.action)) fields.takeAction(line, Field.action)
  if (isNoRequest(line, isOutbound)) return Verdict.noDomain
  if (fields.isAmbiguous) return line.ambiguous('contradictory')
  line.takeUserAndBytes = takeUser
  return fields.has(Field.name) ? fields.takeName(line, Field.name) : fields.takeHostOf(line, Field.host)
}

function takeUser(line: LogLine): void {
  if (!fields.takeUser(line, Field.user)) fields.takeUser(line, Field.percentUser, UserForm.percent)
}

/** `10.0.0.5:51234`, `10.0.0.5(51234)`, `10.0.0.5(LOCAL\jdoe)`, `jdoe@10.0.0.5`. */
function takeClient(line: LogLine): boolean {
  const { view } = line
  let start = fields.start(Field.client)
  let end = fields.end(Field.client)
  const at = lastIndexOfByte(view, start, end, AT)
  if (at >= 0) start = at + 1
  if (view.getUint8(start) !== OPEN_BRACKET) {
    const parenthesis = lastIndexOfByte(view, start, end, OPEN_PARENTHESIS)
    if (parenthesis >= 0) end = parenthesis
  }
  return line.takeClient(start, endBeforePort(view, start, end))
}

function isNoRequest({ view, clientStart, clientEnd }: LogLine, isOutbound: boolean): boolean {
  const start = fields.start(Field.server)
  const end = fields.endBeforePort(view, Field.server)
  if (!isOutbound) return isInbound(view, clientStart, clientEnd, start, end)
  return !isPrivateAddress(view, clientStart, clientEnd) || isPrivateAddress(view, start, end)
}
