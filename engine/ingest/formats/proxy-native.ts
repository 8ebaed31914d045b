import { actionOf } from './action.ts'
import { DOT, digitsEnd, isDigit, isText, isUpper, SLASH, SPACE, skipBlanks, tokenEnd } from './bytes.ts'
import { type LogFormat, type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'

/*
 * The access log of Squid and of the proxies that write like it (Cisco WSA):
 *
 *   time elapsed client code/status bytes method URL user hierarchy/peer type [more]
 *
 * Sites insert columns, so the anchor is the token `CODE/status`: the client is the first address between the time and it, the method the first
 * word in capitals behind it, the URL what follows. https://wiki.squid-cache.org/Features/LogFormat
 */
export const proxyNative: LogFormat = { id: 'proxy-native', detect, parse }

/** Epoch seconds, a dot, three digits and a blank. */
function detect({ view }: LogLine, start: number, end: number): boolean {
  return (
    end - start > 30 &&
    isDigit(view.getUint8(start)) &&
    view.getUint8(start + 10) === DOT &&
    view.getUint8(start + 14) === SPACE &&
    digitsEnd(view, start, end) === start + 10 &&
    digitsEnd(view, start + 11, end) === start + 14
  )
}

function parse(line: LogLine, start: number, end: number): Verdict {
  const { view } = line
  if (line.takeTime(start, start + 14) !== TimeFound.found) return line.reject('time: expected seconds since 1970')
  let at = start + 14
  let hasCode = false
  while (!hasCode) {
    at = skipBlanks(view, at, end)
    if (at >= end) return line.reject('result: expected a token CODE/status')
    const stop = tokenEnd(view, at, end)
    if (line.clientEnd === line.clientStart) line.takeClient(at, stop)
    const slash = codeEnd(view, at, stop)
    if (slash > 0) {
      line.action = actionOf(view, at, slash)
      hasCode = true
    }
    at = stop
  }
  for (;;) {
    at = skipBlanks(view, at, end)
    if (at >= end) return line.reject('method: expected a word in capitals behind the result')
    const stop = tokenEnd(view, at, end)
    // `-` stands where no method could be read.
    const isMethod = isUpper(view.getUint8(at)) || isText(view, at, stop, '-')
    at = stop
    if (isMethod) break
  }
  at = skipBlanks(view, at, end)
  const stop = tokenEnd(view, at, end)
  if (stop === at) return line.reject('URL: expected one behind the method')
  if (isText(view, at, at + 6, 'error:') || view.getUint8(at) === SLASH) return Verdict.noDomain
  return line.takeHost(at, stop)
}

/** Where the slash of `TCP_MISS/200` stands, or 0 where the token is none such. */
function codeEnd(view: DataView, start: number, end: number): number {
  if (end - start < 6 || !isUpper(view.getUint8(start)) || view.getUint8(end - 4) !== SLASH) return 0
  return digitsEnd(view, end - 3, end) === end ? end - 4 : 0
}
