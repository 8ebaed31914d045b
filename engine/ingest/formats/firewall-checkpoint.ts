import { actionOf } from './action.ts'
import { CLOSE_BRACKET, COLON, EQUALS, isTextIgnoreCase, NOT_FOUND, SEMICOLON } from './bytes.ts'
import { KeyTable, NO_KEY } from './key-table.ts'
import { quoteEnd } from './key-value.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { PairFields } from './pair-fields.ts'
import { isInbound } from './private-address.ts'

/*
 * Check Point's Log Exporter: `[action:"Accept"; flags:"411908"; ifname:"eth2"; ...]` in place of
 * RFC 5424 structured data, or `time=...|loguid=...|product=...` for other collectors.
 * https://support.checkpoint.com/results/sk/sk122323
 */
const Field = {
  time: 0,
  action: 1,
  src: 2,
  dst: 3,
  resource: 4,
  dns_query: 5,
  domain_name: 6,
  tls_server_host_name: 7,
  product: 8,
  src_user_name: 9,
  user: 10,
  sent_bytes: 11,
  received_bytes: 12,
  client_outbound_bytes: 13,
  client_inbound_bytes: 14,
} as const
const FIELDS_END = 15
const TABLE = new KeyTable(Field)

/** The keys that a message may begin with. */
const FIRST_KEYS = new KeyTable(
  Object.fromEntries(
    'action flags ifdir ifname logid loguid origin originsicname sequencenum time version product'
      .split(' ')
      .map((word, index) => [word, index]),
  ),
)
const KEY_BYTES_MAX = 16

const NAMES = [Field.tls_server_host_name, Field.dns_query, Field.domain_name]
const URLS = [Field.resource]
/** https://support.checkpoint.com/results/sk/sk144192 */
const USERS = [Field.src_user_name, Field.user]
const SENT = [Field.sent_bytes, Field.client_outbound_bytes]
const RECEIVED = [Field.received_bytes, Field.client_inbound_bytes]

const listFields = new PairFields(TABLE, FIELDS_END, COLON)
const pairFields = new PairFields(TABLE, FIELDS_END, EQUALS)

/**
 * Whether the `key:"value"` with its colon at `colon` is Check Point's: a semicolon or bracket
 * follows.
 */
export function isCheckPoint(view: DataView, start: number, colon: number, limit: number): boolean {
  let key = colon
  while (key > start && colon - key < KEY_BYTES_MAX && isKeyByte(view.getUint8(key - 1))) key--
  if (key === colon || FIRST_KEYS.find(view, key, colon) === NO_KEY) return false
  const close = quoteEnd(view, colon + 2, limit)
  if (close === NOT_FOUND || close + 1 >= limit) return false
  const next = view.getUint8(close + 1)
  return next === SEMICOLON || next === CLOSE_BRACKET
}

export function readCheckPoint(line: LogLine, start: number, end: number): Verdict {
  return read(line, listFields, start, end, SEMICOLON)
}

export function readCheckPointPairs(line: LogLine, start: number, end: number, separator: number): Verdict {
  return read(line, pairFields, start, end, separator)
}

function read(line: LogLine, fields: PairFields, start: number, end: number, separator: number): Verdict {
  const { view } = line
  fields.read(view, start, end, separator)
  if (line.takeTime(fields.start(Field.time), fields.end(Field.time)) === TimeFound.impossible) {
    return line.reject('time: expected a valid date and time')
  }
  // A message about the gateway or the management.
  if (!line.takeClient(fields.start(Field.src), fields.end(Field.src))) return Verdict.skip
  line.action = actionOf(view, fields.start(Field.action), fields.end(Field.action))
  // In records of mail and files, the resource is an attachment.
  if (isTextIgnoreCase(view, fields.start(Field.product), fields.end(Field.product), 'threat emulation')) {
    return Verdict.noDomain
  }
  const isFromOutside = isInbound(
    view,
    fields.start(Field.src),
    fields.end(Field.src),
    fields.start(Field.dst),
    fields.end(Field.dst),
  )
  return isFromOutside ? Verdict.skip : fields.takeHost(line, NAMES, URLS)
}

/** @param isList the message was read by readCheckPoint, not by readCheckPointPairs */
export function takeCheckPointUser(line: LogLine, isList: boolean): void {
  const fields = isList ? listFields : pairFields
  fields.takeUserAndBytes(line, USERS, SENT, RECEIVED)
}

function isKeyByte(byte: number): boolean {
  return (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
}
