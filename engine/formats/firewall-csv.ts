import {
  ALPHANUMERIC,
  ByteSet,
  COLON,
  COMMA,
  HYPHEN,
  indexOfByte,
  isDigit,
  KeyTable,
  NOT_FOUND,
  SLASH,
  textAtIgnoreCase,
  wordsOf,
} from './bytes.ts'
import { Fields } from './fields.ts'
import { AddressKind, addressKind } from './ip-address.ts'
import { CUE_BYTES, type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The syslog and the CSV exports of PAN-OS. Columns have fixed positions, and new versions append
 * columns. Exports begin with a header line.
 * https://docs.paloaltonetworks.com/pan-os/10-1/pan-os-admin/monitoring/use-syslog-for-monitoring/syslog-field-descriptions/url-filtering-log-fields
 *
 * The first column has no meaning, and some relays remove it, so all columns are counted from the
 * word of the type, normally the fourth column.
 */
export const firewallCsv: LogFormat = { id: 'firewall-csv', read }

/** The indexes of the columns when the type is the fourth column, from 0. */
const TYPE = 3
const SUBTYPE = 4
const GENERATED_TIME = 6
const SOURCE = 7
const DESTINATION = 8
const SOURCE_USER = 12
const ACTION = 30
/** THREAT and URL. With subtypes other than `url`, a file name. */
const URL = 31
const THREAT_PRECISE_TIME = 107
/**
 * DECRYPTION: the name that the client requested, unlike the certificate's name (60) and the
 * issuer's (61).
 */
const SERVER_NAME = 63
const DECRYPTION_PRECISE_TIME = 72

const TYPE_INDEX_MIN = 2
const TYPE_INDEX_MAX = 4
/** The columns that a cue may be in. */
const CUE_COLUMNS = TYPE_INDEX_MAX + 1
/** Includes remnants of a relay's header. */
const FIRST_COLUMN_BYTES_MAX = 96
const SERIAL_BYTES_MAX = 32

const Kind = { other: 0, traffic: 1, threat: 2, url: 3, decryption: 4 } as const
const TYPES = new KeyTable({
  traffic: Kind.traffic,
  threat: Kind.threat,
  url: Kind.url,
  decryption: Kind.decryption,
  ...wordsOf(
    Kind.other,
    'system config globalprotect userid hipmatch hip-match auth authentication tunnel sctp gtp correlation iptag wildfire data',
  ),
})

const fields = new Fields()
/** The number of columns before the type, of the message that was read last, less TYPE. */
let shift = 0

function read(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (indexOfByte(view, start, Math.min(end, start + FIRST_COLUMN_BYTES_MAX), COMMA) === NOT_FOUND) {
    return Verdict.unknown
  }
  const cueCount = fields.split(view, start, Math.min(end, start + CUE_BYTES), COMMA, CUE_COLUMNS)
  const type = typeIndex(view, cueCount)
  if (type === 0) return isHeadings(view, cueCount) ? Verdict.skip : Verdict.unknown
  shift = type - TYPE
  const kind = fields.find(view, type, TYPES)
  if (kind === Kind.other) return Verdict.skip
  let last = ACTION
  if (kind === Kind.decryption) last = DECRYPTION_PRECISE_TIME
  else if (kind !== Kind.traffic) last = THREAT_PRECISE_TIME
  const count = fields.split(view, start, end, COMMA, last + shift + 1) - shift
  if (kind === Kind.threat && !fields.is(view, SUBTYPE + shift, 'url')) return Verdict.skip
  if (count <= DESTINATION) return line.reject('fields: expected source and destination')
  const source = SOURCE + shift
  if (addressKind(view, fields.start(source), fields.end(source)) === AddressKind.none) {
    return line.reject('source: expected an address')
  }
  fields.takeClient(line, source)
  if (!takeTime(line, kind !== Kind.traffic && count > last ? last + shift : 0)) return line.rejectTime()
  if (count > ACTION) fields.takeAction(line, ACTION + shift)
  if (kind === Kind.traffic) return Verdict.noDomain

  const isDecryption = kind === Kind.decryption
  const host = isDecryption ? SERVER_NAME : URL
  if (count <= host) {
    return line.reject(`fields: expected ${isDecryption ? 'a server name as the 64th' : 'a URL as the 32nd'}`)
  }
  if (fields.isInbound(view, source, DESTINATION + shift)) return Verdict.skip
  line.takeUserAndBytes = takeUser
  // No byte after the name shows that the name is complete.
  return line.whole(fields.takeHost(line, host + shift), end)
}

/** Messages that name a host have no byte counts. */
function takeUser(line: LogLine): void {
  fields.takeUser(line, SOURCE_USER + shift)
}

/**
 * Takes the data plane's time with its offset, else the time in the firewall's zone. Returns false
 * for an impossible time.
 */
function takeTime(line: LogLine, preciseIndex: number): boolean {
  if (preciseIndex > 0) {
    const start = fields.start(preciseIndex)
    const end = fields.end(preciseIndex)
    // If quotes were escaped by a backslash, this column is another.
    if (end - start > 19 && isDigit(line.view.getUint8(start)) && line.view.getUint8(start + 4) === HYPHEN) {
      const found = line.takeTime(start, end)
      if (found === TimeFound.impossible) return false
      if (found === TimeFound.found && !line.timeIsLocal) return true
    }
  }
  return fields.takeTime(line, GENERATED_TIME + shift) !== TimeFound.impossible
}

/** The column of the type: a known word after a serial number and a time. 0 if there is none. */
function typeIndex(view: DataView, count: number): number {
  for (let index = TYPE_INDEX_MIN; index < count; index++) {
    const isType =
      fields.find(view, index, TYPES) >= 0 &&
      isSerial(view, fields.start(index - 1), fields.end(index - 1)) &&
      endsWithTime(view, fields.start(index - 2), fields.end(index - 2))
    if (isType) return index
  }
  return 0
}

/** Letters, digits and hyphens; empty for a virtual firewall without a serial number. */
function isSerial(view: DataView, start: number, end: number): boolean {
  return end - start <= SERIAL_BYTES_MAX && SERIAL.hasAll(view, start, end)
}
const SERIAL = new ByteSet(`${ALPHANUMERIC}-`)

/**
 * `2026/11/20 09:15:02`, or `11/20/26 9:15` from Excel, with remnants of a header before it if the
 * first column was removed.
 */
function endsWithTime(view: DataView, start: number, end: number): boolean {
  let at = end - 1
  let colons = 0
  while (at > start) {
    const byte = view.getUint8(at)
    if (byte === COLON) colons++
    else if (!isDigit(byte)) break
    at--
  }
  if (colons === 0 || at <= start || !isDigit(view.getUint8(at - 1))) return false
  let slashes = 0
  for (
    at--;
    at >= start && (isDigit(view.getUint8(at)) || view.getUint8(at) === SLASH || view.getUint8(at) === HYPHEN);
    at--
  ) {
    if (!isDigit(view.getUint8(at))) slashes++
  }
  return slashes === 2
}

/** `Domain,Receive Time,Serial #,Type,...`, sometimes without the first column. */
function isHeadings(view: DataView, count: number): boolean {
  for (let index = 0; index < 2 && index + 1 < count; index++) {
    const isSerialNext = textAtIgnoreCase(view, fields.start(index + 1), fields.end(index + 1), 'serial')
    if (isSerialNext && fields.is(view, index, 'receive time')) return true
  }
  return false
}
