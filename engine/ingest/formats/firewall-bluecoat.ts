import { Action, actionOf } from './action.ts'
import { KeyTable } from './key-table.ts'
import type { LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'

/*
 * Broadcom's ProxySG and Edge SWG (formerly Blue Coat), in a log format that writes each W3C field
 * with its name: `c-ip=192.0.2.45 cs-host=claude.ai cs-uri-scheme=https`. Times are in UTC
 * (https://www.w3.org/TR/WD-logfile).
 */
const Field = {
  date: 0,
  time: 1,
  gmttime: 2,
  'x-timestamp': 3,
  'c-ip': 4,
  'cs-host': 5,
  'cs-uri': 6,
  'sc-filter-result': 7,
  's-action': 8,
  'cs-username': 9,
  'cs-userdn': 10,
  'cs-bytes': 11,
  'sc-bytes': 12,
} as const
const FIELDS_END = 13
const TABLE = new KeyTable({ ...Field, 'x-timestamp-unix': Field['x-timestamp'], timestamp: Field['x-timestamp'] })

const NAMES = [Field['cs-host']]
const URLS = [Field['cs-uri']]
const USERS = [Field['cs-username'], Field['cs-userdn']]
const SENT = [Field['cs-bytes']]
const RECEIVED = [Field['sc-bytes']]

const fields = new PairFields(TABLE, FIELDS_END)

export function readBlueCoat(line: LogLine, start: number, end: number, separator: number): Verdict {
  fields.read(line.view, start, end, separator)
  const found = takeTime(line)
  if (found === TimeFound.impossible) return line.reject('time: expected a valid date and time')
  line.timeIsLocal = false
  line.takeClient(fields.start(Field['c-ip']), fields.end(Field['c-ip']))
  line.action = action(line.view)
  return fields.takeHost(line, NAMES, URLS)
}

export function takeBlueCoatUser(line: LogLine): void {
  fields.takeUserAndBytes(line, USERS, SENT, RECEIVED)
}

function takeTime(line: LogLine): TimeFound {
  let found = line.takeTime(fields.start(Field['x-timestamp']), fields.end(Field['x-timestamp']))
  if (found === TimeFound.none && fields.has(Field.date) && fields.has(Field.time)) {
    found = line.takeDateAndTime(
      fields.start(Field.date),
      fields.end(Field.date),
      fields.start(Field.time),
      fields.end(Field.time),
      0,
      0,
    )
  }
  return found === TimeFound.none ? line.takeTime(fields.start(Field.gmttime), fields.end(Field.gmttime)) : found
}

/** The verdict of the policy, else the action of the proxy. */
function action(view: DataView): Action {
  const found = actionOf(view, fields.start(Field['sc-filter-result']), fields.end(Field['sc-filter-result']))
  return found === Action.unknown
    ? actionOf(view, fields.start(Field['s-action']), fields.end(Field['s-action']))
    : found
}
