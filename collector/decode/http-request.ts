import { REQUEST_LINE_BYTES_MAX } from '../limits.ts'
import { begins, HOST_BYTES_MAX, MORE_BYTES, NOT_PROXY, type ProxyElement, ProxyPhase, Via } from './proxy-element.ts'

/**
 * Requests of plain HTTP (RFC 9112 §3) -> the name of the server: in an absolute-form target
 * `http://name/`, otherwise in the Host field. Read only with `httpNames`. User information, path,
 * query, all other fields and the body are skipped byte by byte.
 */

const METHODS = ['GET ', 'HEAD ', 'POST ', 'PUT ', 'DELETE ', 'OPTIONS ', 'PATCH '].map((text) => Buffer.from(text))
const FIRST_BYTES = new Set(METHODS.map((method) => method[0]))
const HOST = Buffer.from('host:')
const SCHEMES = ['http://', 'https://', 'ws://'].map((text) => Buffer.from(text))

const AT_SIGN = 0x40
const ASTERISK = 0x2a
const CLOSING_BRACKET = 0x5d
const COLON = 0x3a
const CR = 0x0d
const HASH = 0x23
const LF = 0x0a
const QUESTION_MARK = 0x3f
const SLASH = 0x2f
const SPACE = 0x20
const TAB = 0x09

/** Whether a request may begin with this byte. */
export function mayBeginRequest(byte: number): boolean {
  return FIRST_BYTES.has(byte)
}

/** Whether bytes [at, end) begin with a method and the first byte of a target. */
export function beginsRequest(view: DataView, at: number, end: number): boolean {
  const target = methodEnd(view, at, end)
  return target >= 0 && target < end && isTargetStart(view.getUint8(target))
}

/** Reads the method and the server of an absolute-form target. See readProxyElement(). */
export function readRequest(view: DataView, start: number, end: number, element: ProxyElement): number {
  const target = methodEnd(view, start, end)
  if (target < 0) return target
  if (target === end) return MORE_BYTES
  const first = view.getUint8(target)
  if (!isTargetStart(first)) return NOT_PROXY
  if (first === SLASH || first === ASTERISK) {
    element.set(ProxyPhase.httpLine)
    return target + 1
  }
  const authority = schemeEnd(view, target, end)
  if (authority < 0) return authority
  for (let at = authority; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === SLASH || byte === QUESTION_MARK || byte === HASH || byte === SPACE || byte === LF) {
      // The Host field is that of the target (RFC 9112 §3.2.2), so it is skipped.
      element.set(ProxyPhase.fields)
      setHost(view, authority, at, element)
      return at
    }
    if (at - authority >= REQUEST_LINE_BYTES_MAX) return NOT_PROXY
  }
  return end - authority >= REQUEST_LINE_BYTES_MAX ? NOT_PROXY : MORE_BYTES
}

/** Reads the begin of a field line: all of Host, or the empty line. Other fields are skipped. */
export function readField(view: DataView, start: number, end: number, element: ProxyElement): number {
  const first = view.getUint8(start)
  if (first === LF) {
    element.set(ProxyPhase.afterHeader)
    return start + 1
  }
  if (first === CR) {
    if (start + 1 >= end) return MORE_BYTES
    const isEnd = view.getUint8(start + 1) === LF
    element.set(isEnd ? ProxyPhase.afterHeader : ProxyPhase.httpLine)
    return isEnd ? start + 2 : start + 1
  }
  const begun = beginsAnyCase(view, start, end, HOST)
  if (begun === MORE_BYTES) return MORE_BYTES
  if (begun === NOT_PROXY) {
    element.set(ProxyPhase.httpLine)
    return start
  }
  let at = start + HOST.length
  while (at < end && view.getUint8(at) !== LF) {
    if (at - start >= REQUEST_LINE_BYTES_MAX) {
      element.set(ProxyPhase.httpLine)
      return at
    }
    at++
  }
  if (at === end) return MORE_BYTES
  let from = start + HOST.length
  let to = at
  while (from < to && isBlank(view.getUint8(from))) from++
  while (from < to && isBlank(view.getUint8(to - 1))) to--
  element.set(ProxyPhase.fieldBegin)
  setHost(view, from, to, element)
  return at + 1
}

/** The offset of the target. */
function methodEnd(view: DataView, at: number, end: number): number {
  let result: number = NOT_PROXY
  for (const method of METHODS) {
    const begun = begins(view, at, end, method)
    if (begun === 0) return at + method.length
    if (begun === MORE_BYTES) result = MORE_BYTES
  }
  return result
}

function schemeEnd(view: DataView, at: number, end: number): number {
  let result: number = NOT_PROXY
  for (const scheme of SCHEMES) {
    const begun = beginsAnyCase(view, at, end, scheme)
    if (begun === 0) return at + scheme.length
    if (begun === MORE_BYTES) result = MORE_BYTES
  }
  return result
}

/** The same as begins() for letters of both cases. The text is in lower case. */
function beginsAnyCase(view: DataView, at: number, end: number, text: Buffer): number {
  for (let index = 0; index < text.length; index++) {
    if (at + index >= end) return MORE_BYTES
    const byte = view.getUint8(at + index)
    if ((byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte) !== text[index]) return NOT_PROXY
  }
  return 0
}

/** An origin-form, absolute-form or asterisk-form target. */
function isTargetStart(byte: number): boolean {
  return byte === SLASH || byte === ASTERISK || (byte | 0x20) === 0x68 || (byte | 0x20) === 0x77
}

const isBlank = (byte: number): boolean => byte === SPACE || byte === TAB || byte === CR

/** RFC 3986 §3.2: `userinfo@host:port`, of which only the host is used. */
function setHost(view: DataView, start: number, end: number, element: ProxyElement): void {
  let from = start
  let to = end
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === AT_SIGN) {
      from = at + 1
      to = end
    } else if (byte === COLON && to === end) to = at
    // An IPv6 address is no name.
    else if (byte === CLOSING_BRACKET) return
  }
  if (to - from <= HOST_BYTES_MAX + 1) element.setName(view, from, to, Via.http)
}
