import { Action, actionOf } from './action.ts'
import { isText } from './bytes.ts'
import { applyZone } from './found-fields.ts'
import { endBeforePort } from './ip-address.ts'
import { KeyTable } from './key-table.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'
import { isInbound } from './private-address.ts'

/*
 * SonicWall and other devices with the WebTrends format (WELF): `m` numbers the message, `src` and
 * `dst` are `address:port:interface:name` with optional parts. That name comes from a reverse
 * lookup, so only `dstname` names the requested host. (SonicOS Log Events Reference Guide)
 */
const Field = {
  time: 0,
  m: 1,
  src: 2,
  dst: 3,
  srcv6: 4,
  dstv6: 5,
  dstname: 6,
  fw_action: 7,
  action: 8,
  user: 9,
  sent: 10,
  rcvd: 11,
  tz: 12,
} as const
const FIELDS_END = 13
const TABLE = new KeyTable({ ...Field, usr: Field.user })

/** Message numbers that imply an action. */
const WEB_SITE_HIT = '97'
const WEB_SITE_BLOCKED = '14'
const WEB_SITE_ALLOWED = '16'

const NAMES = [Field.dstname]
const NONE: readonly number[] = []
const USERS = [Field.user]
/** Of the connection: from the client to the server, and back. */
const SENT = [Field.sent]
const RECEIVED = [Field.rcvd]

const fields = new PairFields(TABLE, FIELDS_END)

export function readSonicWall(line: LogLine, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.read(view, start, end, separator)
  if (line.takeTime(fields.start(Field.time), fields.end(Field.time)) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  // Stormshield writes its zone apart.
  applyZone(line, fields.start(Field.tz), fields.end(Field.tz))
  const hasName = fields.has(Field.dstname)
  // A message about the device.
  if (!hasName && (!fields.has(Field.src) || !fields.has(Field.dst))) return Verdict.skip
  const sourceEnd = endBeforePort(view, fields.start(Field.src), fields.end(Field.src))
  const targetEnd = endBeforePort(view, fields.start(Field.dst), fields.end(Field.dst))
  if (!line.takeClient(fields.start(Field.src), sourceEnd)) {
    line.takeClient(fields.start(Field.srcv6), fields.end(Field.srcv6))
  }
  line.action = action(view)
  if (!hasName) return Verdict.noDomain
  if (isInbound(view, fields.start(Field.src), sourceEnd, fields.start(Field.dst), targetEnd)) return Verdict.skip
  return fields.takeHost(line, NAMES, NONE)
}

export function takeSonicWallUser(line: LogLine): void {
  fields.takeUserAndBytes(line, USERS, SENT, RECEIVED)
}

function action(view: DataView): Action {
  const start = fields.start(Field.m)
  const end = fields.end(Field.m)
  if (isText(view, start, end, WEB_SITE_HIT) || isText(view, start, end, WEB_SITE_ALLOWED)) return Action.allowed
  if (isText(view, start, end, WEB_SITE_BLOCKED)) return Action.blocked
  const word = fields.has(Field.fw_action) ? Field.fw_action : Field.action
  if (!fields.has(word)) return Action.unknown
  if (isText(view, fields.start(word), fields.end(word), 'forward')) return Action.allowed
  return actionOf(view, fields.start(word), fields.end(word))
}
