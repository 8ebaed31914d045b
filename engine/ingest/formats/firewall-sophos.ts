import { actionOf } from './action.ts'
import { isTextIgnoreCase } from './bytes.ts'
import { KeyTable } from './key-table.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'
import { isInbound } from './private-address.ts'

/*
 * Sophos Firewall (SFOS), with date and time apart or as one `timestamp`, and the older UTM 9,
 * whose time precedes the pairs. https://docs.sophos.com/nsg/sophos-firewall/20.0/syslog/index.html
 */
const Field = {
  date: 0,
  time: 1,
  timezone: 2,
  timestamp: 3,
  log_type: 4,
  log_subtype: 5,
  src_ip: 6,
  dst_ip: 7,
  domain: 8,
  url: 9,
  sni: 10,
  sys: 11,
  sub: 12,
  action: 13,
  user: 14,
  sent_bytes: 15,
  recv_bytes: 16,
} as const
const FIELDS_END = 17
const TABLE = new KeyTable({
  ...Field,
  srcip: Field.src_ip,
  dstip: Field.dst_ip,
  user_name: Field.user,
  bytes_sent: Field.sent_bytes,
  bytes_received: Field.recv_bytes,
})

/**
 * The kind of a `log_type`: clients' requests, traffic without a host or with a file name, or
 * messages about the firewall.
 */
const Kind = { requests: 1, traffic: 2 } as const
const KINDS = new KeyTable({
  'content filtering': Kind.requests,
  'web filter': Kind.requests,
  ssl: Kind.requests,
  'ssl/tls filter': Kind.requests,
  'ssl/tls inspection': Kind.requests,
  firewall: Kind.traffic,
  'anti-virus': Kind.traffic,
  'anti virus': Kind.traffic,
  idp: Kind.traffic,
  ips: Kind.traffic,
  atp: Kind.traffic,
})

const NAMES = [Field.domain]
const SERVER_NAMES = [Field.sni]
const URLS = [Field.url]
const NONE: readonly number[] = []
const USERS = [Field.user]
/** UTM 9 has only `size`, whose direction is not documented. */
const SENT = [Field.sent_bytes]
const RECEIVED = [Field.recv_bytes]

const IMPOSSIBLE_TIME = 'time: expected a valid date and time'

const fields = new PairFields(TABLE, FIELDS_END)

export function readSophos(line: LogLine, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.read(view, start, end, separator)
  if (!fields.has(Field.log_type)) return line.reject('log_type: expected a kind of message')
  const kind = KINDS.find(view, fields.start(Field.log_type), fields.end(Field.log_type))
  // Messages about the firewall, and requests to servers of the organization.
  if (kind < 0) return Verdict.skip
  if (takeTime(line) === TimeFound.impossible) return line.reject(IMPOSSIBLE_TIME)
  line.takeClient(fields.start(Field.src_ip), fields.end(Field.src_ip))
  line.action = actionOf(view, fields.start(Field.log_subtype), fields.end(Field.log_subtype))
  if (kind === Kind.traffic) return Verdict.noDomain
  return takeRequest(line)
}

export function readSophosUtm(line: LogLine, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.read(view, start, end, separator)
  if (line.takeTime(start, end) === TimeFound.impossible) return line.reject(IMPOSSIBLE_TIME)
  // A message about the proxy itself has no client.
  if (!line.takeClient(fields.start(Field.src_ip), fields.end(Field.src_ip))) return Verdict.skip
  line.action = actionOf(view, fields.start(Field.action), fields.end(Field.action))
  const isWeb =
    isTextIgnoreCase(view, fields.start(Field.sys), fields.end(Field.sys), 'secureweb') &&
    isTextIgnoreCase(view, fields.start(Field.sub), fields.end(Field.sub), 'http')
  if (!isWeb) return Verdict.noDomain
  return takeRequest(line)
}

export function takeSophosUser(line: LogLine): void {
  fields.takeUserAndBytes(line, USERS, SENT, RECEIVED)
}

function takeRequest(line: LogLine): Verdict {
  const isFromOutside = isInbound(
    line.view,
    fields.start(Field.src_ip),
    fields.end(Field.src_ip),
    fields.start(Field.dst_ip),
    fields.end(Field.dst_ip),
  )
  if (isFromOutside) return Verdict.skip
  const verdict = fields.takeHost(line, NAMES, URLS)
  return verdict === Verdict.noDomain ? fields.takeHost(line, SERVER_NAMES, NONE) : verdict
}

function takeTime(line: LogLine): TimeFound {
  const found = line.takeTime(fields.start(Field.timestamp), fields.end(Field.timestamp))
  if (found !== TimeFound.none || !fields.has(Field.date) || !fields.has(Field.time)) return found
  return line.takeDateAndTime(
    fields.start(Field.date),
    fields.end(Field.date),
    fields.start(Field.time),
    fields.end(Field.time),
    fields.start(Field.timezone),
    fields.end(Field.timezone),
  )
}
