import { COLON, HYPHEN, isDigit, isLetter, isText, textAt } from './bytes.ts'
import { type LogLine, Verdict } from './log-line.ts'

const CONNECT = 'CONNECT'
const UNDERSCORE = 0x5f
const PLUS = 0x2b
const SCHEME_BYTES_MAX = 24

/**
 * Takes the host from the target of a request (RFC 9112 §3.2): the authority of CONNECT, or the
 * absolute form. The origin form of web servers' logs names no host, and neither do the pseudo-URLs
 * of proxies: `error:invalid-request`, `cache_object://`, `internal://`, `urn:`.
 */
export function takeTarget(line: LogLine, methodStart: number, methodEnd: number, start: number, end: number): Verdict {
  const { view } = line
  // Cisco WSA has the method TCP_CONNECT for intercepted connections.
  if (textAt(view, methodEnd - CONNECT.length, methodEnd, CONNECT) && methodEnd - CONNECT.length >= methodStart) {
    return line.takeHost(start, end)
  }
  const colon = schemeEnd(view, start, end)
  if (colon === start || !textAt(view, colon, end, '://')) return Verdict.noDomain
  if (isText(view, start, colon, 'internal') || isText(view, start, colon, 'cache_object')) return Verdict.noDomain
  return line.takeHost(start, end)
}

/** The offset of the colon after a scheme, or `start` without a scheme. */
function schemeEnd(view: DataView, start: number, end: number): number {
  const limit = Math.min(end, start + SCHEME_BYTES_MAX)
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === COLON) return at
    if (!isLetter(byte) && !isDigit(byte) && byte !== HYPHEN && byte !== PLUS && byte !== UNDERSCORE) return start
  }
  return start
}
