import { actionOf } from './action.ts'
import {
  EQUALS,
  indexOfByte,
  isTextIgnoreCase,
  NOT_FOUND,
  OPEN_PARENTHESIS,
  QUOTE,
  skipBlanks,
  tokenEnd,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { KeyTable } from './key-table.ts'
import { CUE_BYTES, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'

/*
 * WatchGuard Firebox: words at fixed positions among pairs:
 *
 *   serial (time) process[pid]: msg_id="1AFF-0024" disposition in-interface out-interface [length]
 *     protocol [header-length ttl] source destination source-port destination-port
 *     key="value" ... (policy)
 *
 * Interface names may contain blanks, so the addresses are the first two consecutive words that are
 * addresses.
 * https://www.watchguard.com/help/docs/help-center/en-US/Content/en-US/Fireware/logging/read_log-msg.html
 */
const Field = {
  msg_id: 0,
  dstname: 1,
  host: 2,
  sni: 3,
  question: 4,
  cn: 5,
  src_user: 6,
  sent_bytes: 7,
  rcvd_bytes: 8,
} as const
const FIELDS_END = 9
const TABLE = new KeyTable(Field)

/**
 * The first four digits of msg_id: the proxies for HTTP, HTTPS and DNS name hosts; the proxies for
 * mail and files name other things.
 */
const PROXY_KINDS = ['1aff', '2cff', '1dff'] as const

const NAMES = [Field.dstname, Field.host, Field.sni, Field.question, Field.cn]
const NONE: readonly number[] = []
const USERS = [Field.src_user]
const SENT = [Field.sent_bytes]
const RECEIVED = [Field.rcvd_bytes]

const fields = new PairFields(TABLE, FIELDS_END)

export function readWatchGuard(line: LogLine, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.read(view, start, end, separator)
  const kindStart = fields.start(Field.msg_id)
  const kindEnd = fields.end(Field.msg_id)
  if (takeTime(line, start, kindStart) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  if (!takeFlow(line, kindEnd, end)) return Verdict.skip
  for (let index = 0; index < PROXY_KINDS.length; index++) {
    if (isTextIgnoreCase(view, kindStart, kindStart + 4, PROXY_KINDS[index] ?? '')) {
      return fields.takeHost(line, NAMES, NONE)
    }
  }
  return Verdict.noDomain
}

export function takeWatchGuardUser(line: LogLine): void {
  fields.takeUserAndBytes(line, USERS, SENT, RECEIVED)
}

/** The device's time in parentheses. */
function takeTime(line: LogLine, start: number, end: number): TimeFound {
  const open = indexOfByte(line.view, start, end, OPEN_PARENTHESIS)
  return open === NOT_FOUND ? TimeFound.none : line.takeTime(open + 1, end)
}

/**
 * Takes disposition and client from the words between msg_id and the next pair. Returns false for a
 * message without a client, which is about the device.
 */
function takeFlow(line: LogLine, start: number, end: number): boolean {
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
