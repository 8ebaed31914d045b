import { anyCsv } from './any-csv.ts'
import { anyKv } from './any-kv.ts'
import { bindQuery } from './bind-query.ts'
import {
  CR,
  EQUALS,
  HASH,
  LF,
  NOT_FOUND,
  OPEN_BRACE,
  OPEN_BRACKET,
  PIPE,
  QUOTE,
  SPACE,
  TextPrefixes,
  TextSearch,
  textAt,
} from './bytes.ts'
import { cef, leef } from './cef-leef.ts'
import { cisco } from './cisco.ts'
import { collectorJson } from './collector-json.ts'
import { w3cExtended, zeek } from './directive-tables.ts'
import { dnsmasq } from './dnsmasq.ts'
import { firewallCsv } from './firewall-csv.ts'
import { firewallKv } from './firewall-pairs.ts'
import { netskope, umbrella, zscaler } from './gateways.ts'
import { jsonLogs } from './json-logs.ts'
import { ANY_MARKS, CUE_BYTES, type LogFormat, type LogLine, Mark, Verdict } from './log-line.ts'
import { openFirewallCsv } from './open-firewall-csv.ts'
import { ownFormat } from './own-format.ts'
import { proxyCommon } from './proxy-common.ts'
import { sentences } from './sentences.ts'
import { proxyNative } from './squid.ts'
import { unbound } from './unbound.ts'
import { windowsDns } from './windows-dns.ts'

/** All formats in the order of detection: the strongest cue first, formats without a cue last. */
export const FORMATS: readonly LogFormat[] = [
  collectorJson,
  jsonLogs,
  // Its directive names the columns, so no other format reads its rows.
  zeek,
  cef,
  leef,
  firewallCsv,
  windowsDns,
  bindQuery,
  unbound,
  dnsmasq,
  sentences,
  cisco,
  openFirewallCsv,
  proxyNative,
  proxyCommon,
  firewallKv,
  zscaler,
  umbrella,
  netskope,
  // Without a `#` directive, the only cue is the number of columns.
  w3cExtended,
  anyKv,
  anyCsv,
  ownFormat,
]

export const NO_FORMAT = -1

/**
 * Recognizes and reads messages of all formats. The last format of the source is tried first, but
 * only with its own cue, so a source may change or mix formats.
 */
export class FormatDetector {
  /** The index in FORMATS of the last message's format, or NO_FORMAT. */
  format = NO_FORMAT

  read(line: LogLine, start: number, end: number): Verdict {
    line.reset()
    start = textStart(line.view, start, end)
    end = textEnd(line.view, start, end)
    const verdict = this.#read(line, start, end)
    const isRefused = verdict === Verdict.unknown || verdict === Verdict.reject || verdict === Verdict.ambiguous
    if (isRefused && ESCAPED_LF.find(line.view, start, end) !== NOT_FOUND) line.reason = JOINED
    return verdict
  }

  #read(line: LogLine, start: number, end: number): Verdict {
    const { memory, view } = line
    line.marks = ANY_MARKS
    const before = FORMATS[memory.format]
    // A format without JSON could find its own line in that of a forwarder.
    if (before !== undefined && (before.isJson === true || start === end || view.getUint8(start) !== OPEN_BRACE)) {
      const verdict = (before.continues ?? before.read)(line, start, end)
      if (verdict !== Verdict.unknown) {
        this.format = memory.format
        return verdict
      }
      line.reset()
    }
    line.marks = marksOf(line.view, start, Math.min(end, start + CUE_BYTES))
    for (let index = 0; index < FORMATS.length; index++) {
      const verdict = FORMATS[index]?.read(line, start, end) ?? Verdict.unknown
      if (verdict === Verdict.unknown) {
        if (line.isTouched) line.reset()
        continue
      }
      memory.format = index
      this.format = index
      return verdict
    }
    this.format = NO_FORMAT
    return Verdict.unknown
  }
}

const ESCAPED_LF = new TextSearch('#012')
/** A client can write the escape, too, so such records are not split. */
const JOINED =
  'message: expected one record, but #012 joins several; send one per message, or turn off the escaping of control characters at the relay'

/** The level before the JSON object that CoreDNS can be told to write. */
const LEVEL = '[INFO] '

/** The offset after a UTF-8 byte order mark, blanks and a level, where cues are searched. */
function textStart(view: DataView, start: number, end: number): number {
  if (end - start >= 3 && view.getUint8(start) === 0xef && view.getUint16(start + 1) === 0xbbbf) start += 3
  while (start < end && view.getUint8(start) === SPACE) start++
  const object = start + LEVEL.length
  return textAt(view, start, end, LEVEL) && textAt(view, object, end, '{') ? object : start
}

/**
 * The end without the line ends and NULs that senders append, whatever their framing, also as rsyslog
 * escapes them.
 */
function textEnd(view: DataView, start: number, end: number): number {
  while (end > start) {
    const byte = view.getUint8(end - 1)
    if (byte === LF || byte === CR || byte === 0) end--
    else if (end - 4 >= start && ESCAPED_ENDS.beginAt(view, end - 4, end)) end -= 4
    else break
  }
  return end
}
const ESCAPED_ENDS = new TextPrefixes(['#012', '#015', '#000'])

/** The bit in Mark of each byte. */
const MARKS = new Uint8Array(256)
MARKS[PIPE] = Mark.pipe
MARKS[HASH] = Mark.hash
MARKS[OPEN_BRACKET] = Mark.bracket
MARKS[QUOTE] = Mark.quote
MARKS[EQUALS] = Mark.equals

/** One pass over the bytes, so that formats whose mark is missing need no search of their own. */
function marksOf(view: DataView, start: number, end: number): number {
  let marks = 0
  for (let at = start; at < end; at++) marks |= MARKS[view.getUint8(at)] ?? 0
  return marks
}

/**
 * By format: what to enable so that a product logs names, from the vendors' documentation (FortiOS
 * profiles, PAN-OS URL filtering, Meraki syslog roles, Zeek logs).
 * https://wiki.squid-cache.org/Features/SslPeekAndSplice
 */
const BY_FORMAT: Readonly<Record<string, string>> = {
  'firewall-csv': 'on PAN-OS, alert on all categories in a URL Filtering profile, and forward the log type url',
  'firewall-kv':
    'on FortiGate, enable log-all-url in the web filter profile and log-all-domain in the DNS filter profile; on Meraki, select the syslog role URLs',
  'open-firewall-csv':
    'filterlog has addresses only; on pfSense and OPNsense, send the log of Unbound with log-queries enabled',
  'proxy-native': 'for connections that Squid intercepts, let ssl_bump peek at step 1',
  zeek: 'send dns.log, ssl.log, quic.log and http.log',
}
const OTHERS = 'let the device log host names (DNS, URL or TLS server name)'

/** What to do if no line of a source in this format, which may be '', names a host. */
export function nameLoggingHint(format: string): string {
  return BY_FORMAT[format] ?? OTHERS
}
