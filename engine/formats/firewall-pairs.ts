import { Action, actionOf } from './action.ts'
import {
  CLOSE_BRACKET,
  COLON,
  EQUALS,
  HYPHEN,
  hexDigit,
  indexOfByte,
  isLetter,
  isText,
  KeyTable,
  NO_KEY,
  NOT_FOUND,
  OPEN_PARENTHESIS,
  QUOTE,
  SEMICOLON,
  skipBlanks,
  textAtIgnoreCase,
  tokenEnd,
  wordsOf,
} from './bytes.ts'
import { isMeraki, readMeraki } from './firewall-meraki.ts'
import { AddressKind, addressKind, isInbound, isPrivateAddress } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isInText, PairFields, PairScanner, quoteEnd } from './pair-fields.ts'

/*
 * Firewalls and gateways that write `key=value` pairs: for each vendor, a table of its keys by their
 * role, and what distinguishes its messages. One pass over the first keys of a message identifies
 * the vendor, because many vendors share some keys (`date=`, `src=`) and others belong to one vendor
 * (`logid=`, `log_component=`, `msg_id=`).
 */
export const firewallKv: LogFormat = { id: 'firewall-kv', read }

/**
 * FortiGate and FortiProxy, and FortiAnalyzer's CSV of both. `type` and `subtype` name the kind of
 * message; before FortiOS 5.0, `type` had the present subtype. FortiClient logs on the client
 * itself: `hostname` is the client's, `remotename` the requested. `unauthuser` was learned from
 * other traffic of the client, not authenticated.
 * https://docs.fortinet.com/document/fortigate/7.0.0/fortios-log-message-reference
 */
const FORTIGATE = new PairFields({
  time: 'eventtime',
  date: 'date',
  clock: 'time',
  zone: 'tz',
  laterTime: 'timestamp itime',
  client: 'srcip/src',
  forwarded: 'trueclntip forwardedfor',
  server: 'dstip/dst',
  kind: 'type',
  subkind: 'subtype',
  name: 'hostname sni',
  // A certificate's name is the server's own claim.
  certificateName: 'scertcname',
  question: 'qname',
  trafficName: 'hostname dstname',
  threatName: 'hostname',
  url: 'url',
  action: 'action',
  user: 'user unauthuser',
  sent: 'sentbyte',
  received: 'rcvdbyte',
  sentDelta: 'sentdelta',
  receivedDelta: 'rcvddelta',
  direction: 'direction',
  sourceRole: 'srcintfrole',
  targetRole: 'dstintfrole',
  logId: 'logid',
  device: 'deviceip',
  remoteName: 'remotename',
  deviceAction: 'utmaction',
})
const FortiKind = { other: 0, event: 1, traffic: 2, web: 3, dns: 4, threat: 5 } as const
const FORTI_KINDS = new KeyTable({
  event: FortiKind.event,
  traffic: FortiKind.traffic,
  ...wordsOf(FortiKind.web, 'webfilter app-ctrl ssl casb videofilter'),
  ...wordsOf(FortiKind.dns, 'dns dns-query dns-response'),
  ...wordsOf(FortiKind.threat, 'ips virus dlp waf file-filter'),
})
/** The end of logid for the state of a session that continues. */
const INTERIM = '000020'

/**
 * SonicWall, Stormshield and other devices with the WebTrends format (WELF): `m` numbers the
 * message, `src` and `dst` are `address:port:interface:name` with optional parts. That name comes
 * from a reverse lookup, so only `dstname` names the requested host. (SonicOS Log Events Reference
 * Guide)
 */
const SONICWALL = new PairFields({
  time: 'time',
  zoneApart: 'tz',
  message: 'm',
  client: 'src',
  client6: 'srcv6',
  server: 'dst',
  name: 'dstname',
  firewallAction: 'fw_action',
  action: 'action',
  user: 'user/usr',
  // Of the connection: from the client to the server, and back.
  sent: 'sent',
  received: 'rcvd',
})
/** Message numbers that imply an action: a web site was hit or allowed, and blocked. */
const SONICWALL_ACTIONS = new KeyTable({ 97: Action.allowed, 16: Action.allowed, 14: Action.blocked })

/**
 * Sophos Firewall (SFOS), with date and time apart or as one `timestamp`, and the older UTM 9,
 * whose time precedes the pairs, and whose `size` has no documented direction.
 * https://docs.sophos.com/nsg/sophos-firewall/20.0/syslog/index.html
 */
const SOPHOS = new PairFields({
  time: 'timestamp',
  date: 'date',
  clock: 'time',
  zone: 'timezone',
  kind: 'log_type',
  utmKind: 'sys',
  utmSubkind: 'sub',
  client: 'src_ip/srcip',
  server: 'dst_ip/dstip',
  name: 'domain',
  url: 'url',
  serverName: 'sni',
  action: 'log_subtype',
  utmAction: 'action',
  user: 'user/user_name',
  sent: 'sent_bytes/bytes_sent',
  received: 'recv_bytes/bytes_received',
})
/** The kind of a `log_type`: clients' requests, or traffic without a host or with a file name. */
const SophosKind = { requests: 1, traffic: 2 } as const
const SOPHOS_KINDS = new KeyTable({
  'content filtering': SophosKind.requests,
  'web filter': SophosKind.requests,
  'ssl/tls filter': SophosKind.requests,
  'ssl/tls inspection': SophosKind.requests,
  ssl: SophosKind.requests,
  'anti virus': SophosKind.traffic,
  ...wordsOf(SophosKind.traffic, 'firewall anti-virus idp ips atp'),
})

/**
 * WatchGuard Firebox: words at fixed positions among pairs:
 *
 *   serial (time) process[pid]: msg_id="1AFF-0024" disposition in-interface out-interface [length]
 *     protocol [header-length ttl] source destination source-port destination-port
 *     key="value" ... (policy)
 *
 * https://www.watchguard.com/help/docs/help-center/en-US/Content/en-US/Fireware/logging/read_log-msg.html
 */
const WATCHGUARD = new PairFields({
  message: 'msg_id',
  name: 'dstname host sni question cn',
  user: 'src_user',
  sent: 'sent_bytes',
  received: 'rcvd_bytes',
})
/**
 * The first four digits of msg_id: the proxies for HTTP, HTTPS and DNS name hosts; the proxies for
 * mail and files name other things.
 */
const WATCHGUARD_PROXIES = new KeyTable({ '1aff': 0, '2cff': 0, '1dff': 0 })

/**
 * Check Point's Log Exporter: `[action:"Accept"; flags:"411908"; ifname:"eth2"; ...]` in place of
 * RFC 5424 structured data, or `time=...|loguid=...|product=...` for other collectors.
 * https://support.checkpoint.com/results/sk/sk122323, sk144192
 */
const CHECKPOINT_KEYS = {
  time: 'time',
  client: 'src',
  forwarded: 'proxy_src_ip',
  server: 'dst',
  name: 'tls_server_host_name dns_query domain_name',
  url: 'resource',
  product: 'product',
  action: 'action',
  user: 'src_user_name user',
  sent: 'sent_bytes client_outbound_bytes',
  received: 'received_bytes client_inbound_bytes',
}
const CHECKPOINT = new PairFields(CHECKPOINT_KEYS, COLON)
const CHECKPOINT_PAIRS = new PairFields(CHECKPOINT_KEYS)
/** The keys that a list may begin with. */
const CHECKPOINT_FIRST = new KeyTable(
  wordsOf(0, 'action flags ifdir ifname logid loguid origin originsicname sequencenum time version product'),
)
const KEY_BYTES_MAX = 16

/**
 * Broadcom's ProxySG and Edge SWG (formerly Blue Coat), in a log format that writes each W3C field
 * with its name: `c-ip=192.0.2.45 cs-host=claude.ai cs-uri-scheme=https`. Times are in UTC
 * (https://www.w3.org/TR/WD-logfile). The verdict of the policy precedes the action of the proxy.
 */
const BLUECOAT = new PairFields({
  time: 'x-timestamp/x-timestamp-unix/timestamp',
  date: 'date',
  clock: 'time',
  laterTime: 'gmttime',
  client: 'c-ip',
  name: 'cs-host',
  url: 'cs-uri',
  action: 'sc-filter-result s-action',
  user: 'cs-username cs-userdn',
  sent: 'cs-bytes',
  received: 'sc-bytes',
})

/**
 * Keys by their evidence: of the vendor alone, with another key, or with a value (see readByCues).
 */
const Cue = {
  time: 0,
  type: 1,
  serial: 2,
  firewall: 3,
  fortiGate: 4,
  sophos: 5,
  checkPoint: 6,
  blueCoatClient: 7,
  blueCoat: 8,
  id: 9,
  sophosDevice: 10,
  sophosUtm: 11,
  watchGuard: 12,
} as const
const CUES = new KeyTable({
  ...wordsOf(Cue.time, 'date time eventtime timestamp itime'),
  type: Cue.type,
  sn: Cue.serial,
  fw: Cue.firewall,
  ...wordsOf(Cue.fortiGate, 'logid devid'),
  ...wordsOf(Cue.sophos, 'log_component log_type device_serial_id'),
  loguid: Cue.checkPoint,
  'c-ip': Cue.blueCoatClient,
  ...wordsOf(Cue.blueCoat, 'cs-host cs-method cs-uri cs-uri-scheme sc-filter-result sc-status'),
  id: Cue.id,
  device: Cue.sophosDevice,
  sys: Cue.sophosUtm,
  msg_id: Cue.watchGuard,
})

const cues = new PairScanner()
/** Of the message that was read last. */
let firstKey = NOT_FOUND

function read(line: LogLine, start: number, end: number): Verdict {
  const { view, marks } = line
  const limit = Math.min(end, start + CUE_BYTES)
  const first = (marks & (Mark.equals | Mark.quote)) === 0 ? NOT_FOUND : firstAssign(view, start, limit)
  if (first !== NOT_FOUND && view.getUint8(first) === COLON) {
    return isCheckPoint(view, start, first, limit) ? readCheckPoint(line, CHECKPOINT, start, end) : Verdict.unknown
  }
  if (isMeraki(view, start, first === NOT_FOUND ? limit : first, limit)) return readMeraki(line, start, end)
  if (first === NOT_FOUND) return Verdict.unknown
  const verdict = readByCues(line, start, end, limit)
  return verdict === Verdict.event && isInText(line, start, firstKey, true) ? line.ambiguous('text') : verdict
}

function readByCues(line: LogLine, start: number, end: number, limit: number): Verdict {
  const { view } = line
  let seen = 0
  firstKey = NOT_FOUND
  cues.reset(view, start, limit)
  while (cues.next()) {
    if (firstKey === NOT_FOUND) firstKey = cues.keyStart
    const cue = CUES.find(view, cues.keyStart, cues.keyEnd)
    if (cue < 0) continue
    seen |= 1 << cue
    const { valueStart, valueEnd } = cues
    switch (cue) {
      case Cue.fortiGate:
        return readFortiGate(line, start, end)
      case Cue.sophos:
        return readSophos(line, start, end)
      case Cue.checkPoint:
        return readCheckPoint(line, CHECKPOINT_PAIRS, start, end)
      case Cue.id:
        if (isText(view, valueStart, valueEnd, 'firewall')) return readSonicWall(line, start, end)
        break
      case Cue.sophosDevice:
        if (isText(view, valueStart, valueEnd, 'SFW')) return readSophos(line, start, end)
        break
      case Cue.sophosUtm:
        if (hasBoth(seen, Cue.id, cue) && textAtIgnoreCase(view, valueStart, valueEnd, 'secure')) {
          return readSophosUtm(line, start, end)
        }
        break
      case Cue.watchGuard:
        if (isMessageId(view, valueStart, valueEnd)) return readWatchGuard(line, start, end)
        break
      default:
        break
    }
    if (hasBoth(seen, Cue.serial, Cue.firewall)) return readSonicWall(line, start, end)
    if (hasBoth(seen, Cue.blueCoatClient, Cue.blueCoat)) return readBlueCoat(line, start, end)
  }
  // FortiMail and old FortiGates have no more specific keys.
  return hasBoth(seen, Cue.time, Cue.type) ? readFortiGate(line, start, end) : Verdict.unknown
}

function readFortiGate(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const pairs = FORTIGATE
  const { id, ids } = pairs
  pairs.read(view, start, end, cues.separator)
  if (!pairs.has(id.kind)) return line.reject('type: expected a kind of message')
  const kind = pairs.find(view, pairs.is(view, id.kind, 'utm') ? id.subkind : id.kind, FORTI_KINDS)
  // Its `hostname` is the client's own machine (DHCP).
  if (kind === FortiKind.event) return Verdict.skip
  if (pairs.takeTimes(line) === TimeFound.impossible) return line.rejectTime()
  if (pairs.has(id.device) && pairs.has(id.remoteName) && !pairs.has(id.client)) {
    if (!pairs.takeClient(line, id.device)) return line.reject('deviceip: expected an address')
    pairs.takeActions(line, ids.deviceAction)
    return pairs.takeRest(line, pairs.takeHosts(line, ids.remoteName))
  }
  if (!takeFortiClient(line, kind)) return Verdict.skip
  pairs.takeActions(line)
  const verdict = takeFortiHost(line, kind)
  if (verdict !== Verdict.event) return verdict
  if (line.clientStart === line.clientEnd) return line.ambiguous('client')
  // User and bytes are of the source, which need not be the client.
  if (line.clientStart < pairs.start(id.client) || line.clientEnd > pairs.end(id.client)) return verdict
  // A session of many minutes writes several messages, each with its totals. The deltas add up.
  if (pairs.has(id.sentDelta) || pairs.has(id.receivedDelta)) {
    return pairs.takeRest(line, verdict, ids.sentDelta, ids.receivedDelta)
  }
  const idEnd = pairs.end(id.logId)
  return isText(view, idEnd - INTERIM.length, idEnd, INTERIM)
    ? pairs.takeRest(line, verdict, [], [])
    : pairs.takeRest(line, verdict)
}

function takeFortiHost(line: LogLine, kind: number): Verdict {
  const { id, ids } = FORTIGATE
  switch (kind) {
    case FortiKind.dns:
      return FORTIGATE.takeHosts(line, ids.question)
    case FortiKind.web: {
      const verdict = FORTIGATE.takeHosts(line, ids.name, ids.url)
      return verdict === Verdict.noDomain ? FORTIGATE.takeHosts(line, ids.certificateName) : verdict
    }
    case FortiKind.traffic:
      return FORTIGATE.takeHosts(line, ids.trafficName)
    case FortiKind.threat:
      return FORTIGATE.takeHosts(line, ids.threatName)
    default:
      // Mail, statistics, and other messages about the device.
      return FORTIGATE.has(id.client) ? Verdict.noDomain : Verdict.skip
  }
}

/**
 * Takes the address that opened the connection. Returns false if the address is outside the
 * organization. `direction` is the direction of the content, and a virus that a client downloads is
 * incoming, so it counts only together with the addresses. If one interface has no role, both may
 * be outside.
 */
function takeFortiClient(line: LogLine, kind: number): boolean {
  const { view } = line
  const pairs = FORTIGATE
  const { id } = pairs
  // Some versions write the sender of the malicious content as the source.
  const isReversed =
    kind === FortiKind.threat &&
    pairs.is(view, id.direction, 'incoming') &&
    isPrivateAddress(view, pairs.start(id.server), pairs.end(id.server)) &&
    !isPrivateAddress(view, pairs.start(id.client), pairs.end(id.client))
  if (isReversed) return pairs.takeClient(line, id.server)
  pairs.takeClient(line, id.client)
  if (kind === FortiKind.dns || kind === FortiKind.traffic) return true
  const isInside = pairs.is(view, id.targetRole, 'lan') || pairs.is(view, id.targetRole, 'dmz')
  if (isInside && pairs.is(view, id.sourceRole, 'wan')) return false
  return !pairs.isInbound(view, id.client, id.server)
}

function readSonicWall(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const pairs = SONICWALL
  const { id } = pairs
  pairs.read(view, start, end, cues.separator)
  if (pairs.takeTimes(line) === TimeFound.impossible) return line.rejectTime()
  line.applyZone(pairs.start(id.zoneApart), pairs.end(id.zoneApart))
  const hasName = pairs.has(id.name)
  // A message about the device.
  if (!hasName && (!pairs.has(id.client) || !pairs.has(id.server))) return Verdict.skip
  if (!pairs.takeClientBeforePort(line, id.client)) pairs.takeClient(line, id.client6)
  line.action = sonicWallAction(view)
  if (!hasName) return Verdict.noDomain
  const sourceEnd = pairs.endBeforePort(view, id.client)
  const targetEnd = pairs.endBeforePort(view, id.server)
  const isFromOutside = isInbound(view, pairs.start(id.client), sourceEnd, pairs.start(id.server), targetEnd)
  return isFromOutside ? Verdict.skip : pairs.takeRequest(line)
}

function sonicWallAction(view: DataView): Action {
  const { id } = SONICWALL
  const implied = SONICWALL.find(view, id.message, SONICWALL_ACTIONS)
  if (implied !== NO_KEY) return implied as Action
  const word = SONICWALL.has(id.firewallAction) ? id.firewallAction : id.action
  return SONICWALL.is(view, word, 'forward')
    ? Action.allowed
    : actionOf(view, SONICWALL.start(word), SONICWALL.end(word))
}

function readSophos(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const pairs = SOPHOS
  pairs.read(view, start, end, cues.separator)
  if (!pairs.has(pairs.id.kind)) return line.reject('log_type: expected a kind of message')
  const kind = pairs.find(view, pairs.id.kind, SOPHOS_KINDS)
  // Messages about the firewall, and requests to servers of the organization.
  if (kind < 0) return Verdict.skip
  if (pairs.takeTimes(line) === TimeFound.impossible) return line.rejectTime()
  pairs.takeClient(line, pairs.id.client)
  pairs.takeActions(line)
  return kind === SophosKind.traffic ? Verdict.noDomain : takeSophosRequest(line)
}

function readSophosUtm(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const pairs = SOPHOS
  const { id, ids } = pairs
  pairs.read(view, start, end, cues.separator)
  if (line.takeTime(start, end) === TimeFound.impossible) return line.rejectTime()
  // A message about the proxy itself has no client.
  if (!pairs.takeClient(line, id.client)) return Verdict.skip
  pairs.takeActions(line, ids.utmAction)
  const isWeb = pairs.is(view, id.utmKind, 'secureweb') && pairs.is(view, id.utmSubkind, 'http')
  return isWeb ? takeSophosRequest(line) : Verdict.noDomain
}

function takeSophosRequest(line: LogLine): Verdict {
  const { id, ids } = SOPHOS
  if (SOPHOS.isInbound(line.view, id.client, id.server)) return Verdict.skip
  const verdict = SOPHOS.takeRequest(line)
  return verdict === Verdict.noDomain ? SOPHOS.takeRest(line, SOPHOS.takeHosts(line, ids.serverName)) : verdict
}

function readWatchGuard(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  const pairs = WATCHGUARD
  pairs.read(view, start, end, cues.separator)
  const kind = pairs.start(pairs.id.message)
  // The device's time is in parentheses.
  const open = indexOfByte(view, start, kind, OPEN_PARENTHESIS)
  if (open !== NOT_FOUND && line.takeTime(open + 1, kind) === TimeFound.impossible) return line.rejectTime()
  if (!takeWatchGuardFlow(line, pairs.end(pairs.id.message), end)) return Verdict.skip
  return WATCHGUARD_PROXIES.find(view, kind, kind + 4) === NO_KEY ? Verdict.noDomain : pairs.takeRequest(line)
}

/**
 * Takes disposition and client from the words between msg_id and the next pair. Interface names may
 * contain blanks, so the addresses are the first two consecutive words that are addresses. Returns
 * false for a message without a client, which is about the device.
 */
function takeWatchGuardFlow(line: LogLine, start: number, end: number): boolean {
  const { view } = line
  if (start >= end) return false
  let at = skipBlanks(view, view.getUint8(start) === QUOTE ? start + 1 : start, end)
  let stop = tokenEnd(view, at, end)
  line.action = actionOf(view, at, stop)
  const limit = Math.min(end, at + CUE_BYTES)
  while (stop < limit) {
    at = skipBlanks(view, stop, limit)
    stop = tokenEnd(view, at, limit)
    if (addressKind(view, at, stop) !== AddressKind.none) {
      const next = skipBlanks(view, stop, limit)
      const isFlow = addressKind(view, next, tokenEnd(view, next, limit)) !== AddressKind.none
      return isFlow && line.takeClient(at, stop)
    }
    if (indexOfByte(view, at, stop, EQUALS) !== NOT_FOUND) return false
  }
  return false
}

/**
 * Whether the `key:"value"` with its colon at `colon` is Check Point's: a semicolon or bracket
 * follows.
 */
function isCheckPoint(view: DataView, start: number, colon: number, limit: number): boolean {
  let key = colon
  while (key > start && colon - key < KEY_BYTES_MAX && isLetter(view.getUint8(key - 1))) key--
  if (CHECKPOINT_FIRST.find(view, key, colon) === NO_KEY) return false
  const close = quoteEnd(view, colon + 2, limit)
  if (close === NOT_FOUND || close + 1 >= limit) return false
  const next = view.getUint8(close + 1)
  return next === SEMICOLON || next === CLOSE_BRACKET
}

function readCheckPoint(line: LogLine, pairs: typeof CHECKPOINT, start: number, end: number): Verdict {
  const { view } = line
  const { id } = pairs
  pairs.read(view, start, end, pairs === CHECKPOINT ? SEMICOLON : cues.separator)
  if (pairs.takeTimes(line) === TimeFound.impossible) return line.rejectTime()
  // A message about the gateway or the management.
  if (!pairs.takeClient(line, id.client)) return Verdict.skip
  pairs.takeActions(line)
  // In records of mail and files, the resource is an attachment.
  if (pairs.is(view, id.product, 'threat emulation')) return Verdict.noDomain
  return pairs.isInbound(view, id.client, id.server) ? Verdict.skip : pairs.takeRequest(line)
}

function readBlueCoat(line: LogLine, start: number, end: number): Verdict {
  BLUECOAT.read(line.view, start, end, cues.separator)
  if (BLUECOAT.takeTimes(line) === TimeFound.impossible) return line.rejectTime()
  line.timeIsLocal = false
  BLUECOAT.takeClient(line, BLUECOAT.id.client)
  BLUECOAT.takeActions(line)
  return BLUECOAT.takeRequest(line)
}

/** The offset of the first `=` or `:"`, or NOT_FOUND. */
function firstAssign(view: DataView, start: number, limit: number): number {
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === EQUALS) return at
    if (byte === COLON && at + 1 < limit && view.getUint8(at + 1) === QUOTE) return at
  }
  return NOT_FOUND
}

function hasBoth(seen: number, first: number, second: number): boolean {
  return (seen & (1 << first)) !== 0 && (seen & (1 << second)) !== 0
}

/** `1AFF-0024`: four hex digits for the kind, and four for the message. */
function isMessageId(view: DataView, start: number, end: number): boolean {
  if (end - start !== 9 || view.getUint8(start + 4) !== HYPHEN) return false
  for (let at = start; at < end; at++) {
    if (at !== start + 4 && hexDigit(view.getUint8(at)) < 0) return false
  }
  return true
}
