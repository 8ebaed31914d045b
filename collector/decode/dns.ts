import { PacketClass } from '../batch/packet-class.ts'
import { DNS_QUESTIONS_MAX, NAME_BYTES_MAX, NAME_POINTERS_MAX } from '../limits.ts'
import { type FoundName, NameForm } from './name.ts'

/**
 * DNS message -> QNAMEs. Read: queries, all their questions, compression pointers, names of any
 * bytes. Not read: other OPCODEs, the records after the questions. answers.ts reads responses.
 */

/** RFC 1035 §4.1.1: ID, flags, QDCOUNT, ANCOUNT, NSCOUNT, ARCOUNT. */
export const DNS_HEADER_BYTES = 12
const DNS_FLAGS = 2
const DNS_QDCOUNT = 4
const QR = 0x8000
const OPCODE = 0x7800

/** RFC 1035 §4.1.2: QTYPE and QCLASS follow the QNAME. */
const QTYPE_QCLASS_BYTES = 4

/**
 * RFC 1035 §4.1.4: the two high bits of a length byte distinguish a label (00) from a pointer (11).
 * 01 and 10 are reserved.
 */
const LABEL_BYTES_MAX = 63
const POINTER = 0xc0
const POINTER_OFFSET = 0x3fff

export const DNS_PORT = 53

/**
 * Buffer for decompressed names. Shared memory like the batches, so that readers see a single shape
 * of view.
 */
const scratch = new DataView(new SharedArrayBuffer(NAME_BYTES_MAX + 1))

/**
 * Returns the number of questions of the query in bytes [message, end), or the complement of a
 * class if the message is not a query.
 */
export function dnsQuestions(view: DataView, message: number, end: number): number {
  if (message + DNS_HEADER_BYTES > end) return ~PacketClass.truncated
  const flags = view.getUint16(message + DNS_FLAGS)
  if ((flags & QR) !== 0) return ~PacketClass.dnsResponse
  if ((flags & OPCODE) !== 0) return ~PacketClass.dnsOther
  const questions = view.getUint16(message + DNS_QDCOUNT)
  if (questions === 0) return ~PacketClass.dnsNoQuestion
  return questions
}

/** Returns the class of a query after its questions were read, up to DNS_QUESTIONS_MAX. */
export function queryClass(questions: number): PacketClass {
  return questions > DNS_QUESTIONS_MAX ? PacketClass.dnsQuestionsOverLimit : PacketClass.dnsQuery
}

/**
 * RFC 1035 §4.1.2: reads the question at `offset` into `name`. Returns the offset after the
 * question. `isCut` 1: the capture ends before the message, perhaps within the question's type.
 */
export function readQuestion(
  view: DataView,
  message: number,
  offset: number,
  end: number,
  name: FoundName,
  isCut = 0,
): number {
  const afterName = readName(view, message, offset, end, name)
  if (afterName < 0) return afterName
  if (afterName + QTYPE_QCLASS_BYTES <= end) return afterName + QTYPE_QCLASS_BYTES
  return isCut === 1 ? end : ~PacketClass.truncated
}

/**
 * Whether a query over TCP can begin at `at`, with its length (RFC 7766 §8): a header with one to
 * four questions and without answers, and space for a question. Other bytes are such by chance once
 * in 2^50.
 */
export function beginsQuery(view: DataView, at: number, end: number): boolean {
  const message = at + 2
  if (message + DNS_HEADER_BYTES > end) return false
  const questions = view.getUint16(message + DNS_QDCOUNT)
  return (
    view.getUint16(at) >= DNS_HEADER_BYTES + 1 + QTYPE_QCLASS_BYTES &&
    (view.getUint16(message + DNS_FLAGS) & (QR | OPCODE)) === 0 &&
    questions >= 1 &&
    questions <= 4 &&
    view.getUint32(message + DNS_QDCOUNT + 2) === 0
  )
}

/** Returns the offset after the name at `offset`, without following a pointer; -1 if malformed. */
export function nameEnd(view: DataView, offset: number, end: number): number {
  let at = offset
  while (at < end) {
    const length = view.getUint8(at)
    if (length >= POINTER) return at + 2 <= end ? at + 2 : -1
    if (length > LABEL_BYTES_MAX) return -1
    at += 1 + length
    if (length === 0) return at
  }
  return -1
}

/**
 * Reads the name at `offset` into `name` and returns the offset after it. A name without a pointer,
 * the common case, is read in place.
 */
export function readName(view: DataView, message: number, offset: number, end: number, name: FoundName): number {
  let at = offset
  while (at < end) {
    const length = view.getUint8(at)
    if (length > LABEL_BYTES_MAX) return gatherName(view, message, offset, end, name)
    at += 1 + length
    if (at - offset > NAME_BYTES_MAX) return ~PacketClass.dnsMalformed
    if (length === 0) {
      name.set(view, offset, at, NameForm.wire)
      return at
    }
  }
  return ~PacketClass.truncated
}

/**
 * RFC 1035 §4.1.4 speaks of "a prior occurrence", but resolvers, such as 8.8.8.8, also follow a
 * pointer to a later position, so a name could hide from a reader that does not. The limits on
 * pointers and on the length of the name end a loop.
 */
function gatherName(view: DataView, message: number, offset: number, end: number, name: FoundName): number {
  let at = offset
  let after = 0
  let pointers = 0
  let used = 0
  while (at < end) {
    const length = view.getUint8(at)
    if (length <= LABEL_BYTES_MAX) {
      if (used + 1 + length > NAME_BYTES_MAX) return ~PacketClass.dnsMalformed
      if (at + 1 + length > end) return ~PacketClass.truncated
      for (let byte = 0; byte <= length; byte++) scratch.setUint8(used + byte, view.getUint8(at + byte))
      used += 1 + length
      at += 1 + length
      if (length === 0) {
        name.set(scratch, 0, used, NameForm.wire)
        return after
      }
    } else if (length >= POINTER) {
      if (at + 2 > end) return ~PacketClass.truncated
      const target = message + (view.getUint16(at) & POINTER_OFFSET)
      if (target >= end || target < message + DNS_HEADER_BYTES) return ~PacketClass.dnsMalformed
      if (++pointers > NAME_POINTERS_MAX) return ~PacketClass.dnsMalformed
      if (after === 0) after = at + 2
      at = target
    } else {
      return ~PacketClass.dnsMalformed
    }
  }
  return ~PacketClass.truncated
}
