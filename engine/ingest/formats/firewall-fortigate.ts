import { actionOf } from './action.ts'
import { isText, isTextIgnoreCase } from './bytes.ts'
import { ambiguous } from './generic-request.ts'
import { KeyTable } from './key-table.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'
import { isInbound, isPrivateAddress } from './private-address.ts'

/*
 * FortiGate and FortiProxy, and FortiAnalyzer's CSV of both. `type` and `subtype` name the kind of
 * message; before FortiOS 5.0, `type` had the present subtype.
 * https://docs.fortinet.com/document/fortigate/7.0.0/fortios-log-message-reference
 */
const Field = {
  date: 0,
  time: 1,
  tz: 2,
  eventtime: 3,
  timestamp: 4,
  itime: 5,
  type: 6,
  subtype: 7,
  srcip: 8,
  dstip: 9,
  hostname: 10,
  url: 11,
  qname: 12,
  dstname: 13,
  sni: 14,
  scertcname: 15,
  action: 16,
  direction: 17,
  srcintfrole: 18,
  dstintfrole: 19,
  user: 20,
  unauthuser: 21,
  sentbyte: 22,
  rcvdbyte: 23,
  sentdelta: 24,
  rcvddelta: 25,
  logid: 26,
} as const
const FIELDS_END = 27
const TABLE = new KeyTable({ ...Field, src: Field.srcip, dst: Field.dstip })

/** The kind of message, which determines the fields that name the host. */
const Kind = { other: 0, event: 1, traffic: 2, web: 3, dns: 4, threat: 5 } as const
const KINDS = new KeyTable({
  event: Kind.event,
  traffic: Kind.traffic,
  webfilter: Kind.web,
  'app-ctrl': Kind.web,
  ssl: Kind.web,
  casb: Kind.web,
  videofilter: Kind.web,
  dns: Kind.dns,
  'dns-query': Kind.dns,
  'dns-response': Kind.dns,
  ips: Kind.threat,
  virus: Kind.threat,
  dlp: Kind.threat,
  waf: Kind.threat,
  'file-filter': Kind.threat,
})
/** The subtype names the kind. */
const UTM = 'utm'

/** In this order. A certificate's name is the server's own claim, so it comes last. */
const WEB_NAMES = [Field.hostname, Field.sni]
const CERTIFICATE_NAMES = [Field.scertcname]
const DNS_NAMES = [Field.qname]
const TRAFFIC_NAMES = [Field.hostname, Field.dstname]
const THREAT_NAMES = [Field.hostname]
const URLS = [Field.url]
const NONE: readonly number[] = []
/** unauthuser: learned from other traffic of the client, not authenticated. */
const USERS = [Field.user, Field.unauthuser]
const SENT = [Field.sentbyte]
const RECEIVED = [Field.rcvdbyte]
const SENT_DELTA = [Field.sentdelta]
const RECEIVED_DELTA = [Field.rcvddelta]
/** The end of logid for the state of a session that continues. */
const INTERIM = '000020'

const fields = new PairFields(TABLE, FIELDS_END)

export function readFortiGate(line: LogLine, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.read(view, start, end, separator)
  if (!fields.has(Field.type)) return line.reject('type: expected a kind of message')
  const kind = kindOf(view)
  // Its `hostname` is the client's own machine (DHCP).
  if (kind === Kind.event) return Verdict.skip
  if (takeTime(line) === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  if (!takeClient(line, kind)) return Verdict.skip
  if (fields.has(Field.action)) line.action = actionOf(view, fields.start(Field.action), fields.end(Field.action))
  const verdict = takeHost(line, kind)
  return verdict === Verdict.event && line.clientStart === line.clientEnd ? ambiguous(line, 'client') : verdict
}

/** Takes user and bytes of the source, if the source is the client. */
export function takeFortiGateUser(line: LogLine): void {
  if (line.clientStart < fields.start(Field.srcip) || line.clientEnd > fields.end(Field.srcip)) return
  // A session of many minutes writes several messages, each with its totals. The deltas add up.
  if (fields.has(Field.sentdelta) || fields.has(Field.rcvddelta)) {
    fields.takeUserAndBytes(line, USERS, SENT_DELTA, RECEIVED_DELTA)
    return
  }
  const end = fields.end(Field.logid)
  const isInterim = isText(line.view, end - INTERIM.length, end, INTERIM)
  fields.takeUserAndBytes(line, USERS, isInterim ? NONE : SENT, isInterim ? NONE : RECEIVED)
}

function takeHost(line: LogLine, kind: number): Verdict {
  switch (kind) {
    case Kind.dns:
      return fields.takeHost(line, DNS_NAMES, NONE)
    case Kind.web: {
      const verdict = fields.takeHost(line, WEB_NAMES, URLS)
      return verdict === Verdict.noDomain ? fields.takeHost(line, CERTIFICATE_NAMES, NONE) : verdict
    }
    case Kind.traffic:
      return fields.takeHost(line, TRAFFIC_NAMES, NONE)
    case Kind.threat:
      return fields.takeHost(line, THREAT_NAMES, NONE)
    default:
      // Mail, statistics, and other messages about the device.
      return fields.has(Field.srcip) ? Verdict.noDomain : Verdict.skip
  }
}

function kindOf(view: DataView): number {
  const start = fields.start(Field.type)
  const end = fields.end(Field.type)
  if (isTextIgnoreCase(view, start, end, UTM)) {
    return KINDS.find(view, fields.start(Field.subtype), fields.end(Field.subtype))
  }
  return KINDS.find(view, start, end)
}

/** Takes an epoch, else date and time with their zone, else the time that FortiAnalyzer adds. */
function takeTime(line: LogLine): TimeFound {
  let found: TimeFound = TimeFound.none
  if (fields.has(Field.eventtime)) found = line.takeTime(fields.start(Field.eventtime), fields.end(Field.eventtime))
  if (found === TimeFound.none && fields.has(Field.date) && fields.has(Field.time)) {
    found = line.takeDateAndTime(
      fields.start(Field.date),
      fields.end(Field.date),
      fields.start(Field.time),
      fields.end(Field.time),
      fields.start(Field.tz),
      fields.end(Field.tz),
    )
  }
  if (found === TimeFound.none) found = line.takeTime(fields.start(Field.timestamp), fields.end(Field.timestamp))
  if (found === TimeFound.none) found = line.takeTime(fields.start(Field.itime), fields.end(Field.itime))
  return found
}

/**
 * Takes the address that opened the connection. Returns false if the address is outside the
 * organization. `direction` is the direction of the content, and a virus that a client downloads is
 * incoming, so it counts only together with the addresses.
 */
function takeClient(line: LogLine, kind: number): boolean {
  const { view } = line
  const start = fields.start(Field.srcip)
  const end = fields.end(Field.srcip)
  const targetStart = fields.start(Field.dstip)
  const targetEnd = fields.end(Field.dstip)
  // Some versions write the sender of the malicious content as the source.
  const isReversed =
    kind === Kind.threat &&
    isTextIgnoreCase(view, fields.start(Field.direction), fields.end(Field.direction), 'incoming') &&
    isPrivateAddress(view, targetStart, targetEnd) &&
    !isPrivateAddress(view, start, end)
  if (isReversed) return line.takeClient(targetStart, targetEnd)
  line.takeClient(start, end)
  if (kind === Kind.dns || kind === Kind.traffic) return true
  if (
    isRole(view, Field.srcintfrole, 'wan') &&
    (isRole(view, Field.dstintfrole, 'lan') || isRole(view, Field.dstintfrole, 'dmz'))
  )
    return false
  return !isInbound(view, start, end, targetStart, targetEnd)
}

/**
 * The role that an administrator gave an interface. If one interface has no role, both may be
 * outside.
 */
function isRole(view: DataView, id: number, role: string): boolean {
  return isTextIgnoreCase(view, fields.start(id), fields.end(id), role)
}
