import { HYPHEN, isDigit, LESS, OPEN_BRACE, SPACE, skipBlanks, TAB, textAt } from '../../formats/bytes.ts'
import type { SyslogMessage } from './message.ts'
import { isEpoch, mayBeHeader, readRfc3164 } from './rfc3164.ts'
import { readRfc5424 } from './rfc5424.ts'

/** `2026-11-20T09:15:02` with at most nine digits of a second and a zone. */
const TIME_BYTES_MIN = 20
const TIME_BYTES_MAX = 36
const TAG_BYTES_MAX = 256
const LETTER_T = 0x54

/**
 * The offset of the message after the header of a container runtime or of a forwarder's file, or
 * `start` if there is none:
 *
 *   2026-11-20T09:15:02.123456789Z stdout F MSG    Kubernetes, CRI logging format
 *   2026-11-20T09:15:02+00:00<TAB>TAG<TAB>{MSG}    Fluentd, out_file
 *
 * https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
 * https://docs.fluentd.org/formatter/out_file
 */
function containerHeaderEnd(view: DataView, start: number, end: number, message: SyslogMessage): number {
  if (start + TIME_BYTES_MIN >= end || view.getUint8(start + 4) !== HYPHEN || view.getUint8(start + 10) !== LETTER_T)
    return start
  let at = start + 11
  const limit = Math.min(end, start + TIME_BYTES_MAX)
  while (at < limit && view.getUint8(at) > SPACE) at++
  const after = view.getUint8(at) === TAB ? tagEnd(view, at, end) : streamEnd(view, at, end)
  if (after === at) return start
  message.timeStart = start
  message.timeEnd = at
  return after
}

/** After ` stdout F `, or `at`. */
function streamEnd(view: DataView, at: number, end: number): number {
  if (!textAt(view, at, end, ' stdout ') && !textAt(view, at, end, ' stderr ')) return at
  const isWhole = textAt(view, at + 8, end, 'F ')
  return isWhole || textAt(view, at + 8, end, 'P ') ? at + 10 : at
}

/** After a tag between tabs, if an object follows, or `at`. */
function tagEnd(view: DataView, at: number, end: number): number {
  const limit = Math.min(end - 1, at + TAG_BYTES_MAX)
  let tab = at + 1
  while (tab < limit && view.getUint8(tab) > SPACE) tab++
  return tab < limit && view.getUint8(tab) === TAB && view.getUint8(tab + 1) === OPEN_BRACE ? tab + 1 : at
}

/** Headers of relays before the sender's, of which each is RFC 5424. */
const RELAYS_MAX = 2

/**
 * Finds the parts of a syslog message of any kind in [start, end), which is not empty. Never
 * rejects: bytes that are no header are the message. Time, host and tag are those of the innermost
 * header, PRI and token those of the outermost that has them.
 */
export function readSyslog(
  view: DataView,
  start: number,
  end: number,
  message: SyslogMessage,
  referenceMs: number,
): void {
  message.reset(start, end)
  const first = view.getUint8(start)
  if ((first === LESS || isDigit(first)) && readRfc5424(view, start, end, message)) {
    for (let relays = 0; relays < RELAYS_MAX; relays++) {
      if (!readInner(view, message.msgStart, end, message, referenceMs)) break
    }
  } else {
    message.reset(start, end)
    const after = isDigit(first) ? containerHeaderEnd(view, start, end, message) : start
    if (after === start) readRfc3164(view, start, end, message, referenceMs)
    else {
      message.msgStart = after
      if (after < end) readInner(view, after, end, message, referenceMs)
    }
  }
  if (isEpoch(view, message.hostStart, message.hostEnd)) message.hostEnd = message.hostStart
  message.msgStart = withoutMark(view, message.msgStart, end)
}

/**
 * Reads the header of a sender at `at`, which follows that of a relay. Returns whether
 * another may follow.
 */
function readInner(view: DataView, at: number, end: number, message: SyslogMessage, referenceMs: number): boolean {
  if (at >= end || !mayBeHeader(view, at, end, referenceMs)) return false
  const { tokenStart, tokenEnd, isExpectedToken, pri } = message
  const isRfc5424 = view.getUint8(at) === LESS && readRfc5424(view, at, end, message)
  if (!isRfc5424) readRfc3164(view, at, end, message, referenceMs)
  message.pri = pri
  if (tokenStart !== tokenEnd) {
    message.tokenStart = tokenStart
    message.tokenEnd = tokenEnd
    message.isExpectedToken = isExpectedToken
  }
  return isRfc5424
}

/** The offset after a UTF-8 byte order mark (RFC 5424 §6.4) and blanks before it. */
function withoutMark(view: DataView, at: number, end: number): number {
  let start = at
  while (start < end && view.getUint8(start) === SPACE) start++
  const isMark =
    start + 3 <= end &&
    view.getUint8(start) === 0xef &&
    view.getUint8(start + 1) === 0xbb &&
    view.getUint8(start + 2) === 0xbf
  if (isMark) start = skipBlanks(view, start + 3, end)
  return start
}
