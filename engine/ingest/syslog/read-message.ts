import { isDigit, LESS, SPACE, skipBlanks } from '../formats/bytes.ts'
import type { SyslogMessage } from './message.ts'
import { mayBeHeader, readRfc3164 } from './rfc3164.ts'
import { readRfc5424 } from './rfc5424.ts'

/**
 * Finds the parts of a syslog message of any kind in [start, end), which is not empty. Never
 * rejects: bytes that are no header are the message.
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
    const at = message.msgStart
    // A relay may have wrapped a sender's message with its header.
    if (at < end && mayBeHeader(view, at, end, referenceMs)) {
      const { tokenStart, tokenEnd, isExpectedToken, pri } = message
      readRfc3164(view, at, end, message, referenceMs)
      message.pri = pri
      if (tokenStart !== tokenEnd) {
        message.tokenStart = tokenStart
        message.tokenEnd = tokenEnd
        message.isExpectedToken = isExpectedToken
      }
    }
  } else {
    message.reset(start, end)
    readRfc3164(view, start, end, message, referenceMs)
  }
  message.msgStart = withoutMark(view, message.msgStart, end)
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
