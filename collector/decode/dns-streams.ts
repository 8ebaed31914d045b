import { Counter } from '../batch/counters.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { DNS_GAP_SECONDS, SHORT_BUFFER_BYTES } from '../limits.ts'
import { NO_BUFFER } from './byte-windows.ts'
import { beginsQuery, DNS_HEADER_BYTES } from './dns.ts'
import type { Transport } from './layers.ts'
import type { NameSink } from './name-sink.ts'
import { StreamState, type StreamTable } from './stream-table.ts'

/** RFC 1035 §4.2.2: two bytes of length precede each message. */
const MESSAGE_LENGTH_BYTES = 2
/**
 * Sequence numbers up to this far before the base are retransmissions. Any farther, they belong to
 * another connection between the same ports.
 */
export const REPETITION_BYTES_MAX = 1 << 20

/**
 * TCP segments to a DNS port -> queries. RFC 7766 §8: messages follow each other, and may begin and
 * end anywhere in a segment.
 *
 *     dns           the next message begins at the stream's base; bytes of an incomplete one are
 *                   kept, also after a gap
 *     dnsUnaligned  no beginning is known: the first segment was not seen, or bytes were lost; the
 *                   next plausible length and header are one
 *     other         responses
 */
export class DnsStreams {
  readonly #streams: StreamTable
  readonly #sink: NameSink

  constructor(streams: StreamTable, sink: NameSink) {
    this.#streams = streams
    this.#sink = sink
  }

  /** Reads a segment of a followed stream. Returns the class of its packet. */
  segment(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    const streams = this.#streams
    const { view, end } = transport
    const { seconds } = this.#sink.row
    let first = payload
    if (streams.state[slot] === StreamState.dnsUnaligned) {
      const ahead = (sequence - (streams.base[slot] ?? 0)) | 0
      if (ahead < 0 && ahead >= -REPETITION_BYTES_MAX) return PacketClass.tcpRetransmission
      first = nextQuery(view, payload, end)
      if (first === end) {
        streams.touch(slot, seconds)
        return isAnswer(view, payload, end) ? PacketClass.dnsResponse : PacketClass.dnsPart
      }
      streams.settle(slot, StreamState.dns, (sequence + first - payload) >>> 0, seconds)
    } else if (streams.state[slot] !== StreamState.dns) {
      streams.touch(slot, seconds)
      return PacketClass.dnsResponse
    }
    let from = first
    let offset = (sequence + first - payload - (streams.base[slot] ?? 0)) | 0
    if (offset < 0 && offset >= -REPETITION_BYTES_MAX) {
      from -= offset
      offset = 0
      if (from >= end) return PacketClass.tcpRetransmission
    }
    // Too far ahead to keep: the bytes between are lost, or of a message that is too long.
    if (offset < 0 || offset + end - from > SHORT_BUFFER_BYTES + end - payload) {
      const kept = streams.buffer[slot] ?? 0
      if (kept !== NO_BUFFER) this.#afterGaps(kept)
      if (offset < 0 || kept === NO_BUFFER || offset > streams.windows.contiguous(kept)) streams.count(Counter.dnsGaps)
      const next = nextQuery(view, from, end)
      const state = next === end ? StreamState.dnsUnaligned : StreamState.dns
      streams.settle(slot, state, (sequence + next - payload) >>> 0, seconds)
      if (next === end) return PacketClass.dnsPart
      from = next
      offset = 0
    }
    if (offset === 0 && streams.buffer[slot] === NO_BUFFER) {
      const packetClass = this.#messages(view, from, end)
      const consumed = this.#messagesEnd - from
      streams.base[slot] = ((streams.base[slot] ?? 0) + consumed) >>> 0
      if (this.#isResponse) return this.#responds(slot, sequence)
      if (this.#messagesEnd === end) streams.touch(slot, seconds)
      else if (!this.#keepMessage(slot, 0, view, this.#messagesEnd, end)) return PacketClass.dnsMalformed
      return packetClass
    }
    if (!this.#keepMessage(slot, offset, view, from, end)) return PacketClass.dnsMalformed
    const windows = streams.windows
    const buffer = streams.buffer[slot] ?? 0
    const start = windows.start(buffer)
    const packetClass = this.#messages(windows.view, start, start + windows.contiguous(buffer))
    const consumed = this.#messagesEnd - start
    if (this.#isResponse) return this.#responds(slot, sequence)
    if (consumed === 0) {
      if (windows.farthest(buffer) === windows.contiguous(buffer)) {
        streams.gapSeconds[slot] = 0
        return PacketClass.dnsPart
      }
      const since = streams.gapSeconds[slot] ?? 0
      if (since !== 0 && ((seconds - since) | 0) >= DNS_GAP_SECONDS) return this.#skipGaps(slot, buffer)
      if (since === 0) streams.gapSeconds[slot] = seconds
      return PacketClass.dnsPart
    }
    streams.gapSeconds[slot] = 0
    windows.consume(buffer, consumed)
    streams.base[slot] = ((streams.base[slot] ?? 0) + consumed) >>> 0
    if (windows.farthest(buffer) === 0) streams.settle(slot, StreamState.dns, streams.base[slot] ?? 0, seconds)
    return packetClass
  }

  /** The bytes in the gaps are lost. Reads the messages after them, and goes on after the last one. */
  #skipGaps(slot: number, buffer: number): PacketClass {
    const streams = this.#streams
    const { windows } = streams
    const start = windows.start(buffer)
    const farthest = windows.farthest(buffer)
    const base = streams.base[slot] ?? 0
    const packetClass = this.#afterGaps(buffer)
    const read = this.#messagesEnd - start
    const isAligned = packetClass !== PacketClass.dnsMalformed
    if (!isAligned || read === farthest) {
      const state = isAligned ? StreamState.dns : StreamState.dnsUnaligned
      streams.settle(slot, state, (base + farthest) >>> 0, this.#sink.row.seconds)
      return packetClass
    }
    windows.clear(buffer)
    windows.put(buffer, 0, windows.view, start + read, start + farthest)
    streams.base[slot] = (base + read) >>> 0
    streams.gapSeconds[slot] = 0
    return packetClass
  }

  /**
   * Reads the messages after each gap, from the first byte that begins one. Returns the class of the
   * last one, dnsMalformed if none begins after the last gap.
   */
  #afterGaps(buffer: number): PacketClass {
    const { windows } = this.#streams
    const start = windows.start(buffer)
    const farthest = windows.farthest(buffer)
    let packetClass: PacketClass = PacketClass.dnsMalformed
    let at = windows.present(buffer, windows.contiguous(buffer))
    while (at < farthest) {
      const end = start + windows.runEnd(buffer, at)
      this.#streams.count(Counter.dnsGaps)
      const query = nextQuery(windows.view, start + at, end)
      this.#messagesEnd = query
      packetClass = query === end ? PacketClass.dnsMalformed : this.#messages(windows.view, query, end)
      at = windows.present(buffer, end - start)
    }
    return packetClass
  }

  /** Set by #messages(): start of the incomplete message after those read. */
  #messagesEnd = 0
  /** The stream carries responses and therefore no queries, whatever its ports. */
  #isResponse = false

  /** Reads the complete messages in bytes [start, end). Returns the class of the last one. */
  #messages(view: DataView, start: number, end: number): PacketClass {
    let packetClass: PacketClass = PacketClass.dnsPart
    let at = start
    this.#isResponse = false
    while (at + MESSAGE_LENGTH_BYTES <= end) {
      const message = at + MESSAGE_LENGTH_BYTES
      const messageEnd = message + view.getUint16(at)
      if (messageEnd > end) {
        // A response may be long and need not be complete.
        if (message + 4 <= end && (view.getUint8(message + 2) & 0x80) !== 0) this.#isResponse = true
        break
      }
      packetClass =
        messageEnd - message < DNS_HEADER_BYTES ? PacketClass.dnsMalformed : this.#sink.query(view, message, messageEnd)
      if (packetClass === PacketClass.truncated) packetClass = PacketClass.dnsMalformed
      at = messageEnd
      if (packetClass === PacketClass.dnsResponse) {
        this.#isResponse = true
        break
      }
    }
    this.#messagesEnd = at
    return packetClass
  }

  #responds(slot: number, sequence: number): PacketClass {
    this.#streams.settle(slot, StreamState.other, sequence, this.#sink.row.seconds)
    return PacketClass.dnsResponse
  }

  /** Keeps bytes of messages. Drops the kept bytes if there is no space. */
  #keepMessage(slot: number, offset: number, view: DataView, from: number, to: number): boolean {
    const { seconds, nanoseconds } = this.#sink.row
    if (this.#streams.keep(slot, offset, view, from, to, seconds, nanoseconds)) return true
    const nextSequence = ((this.#streams.base[slot] ?? 0) + offset + to - from) >>> 0
    this.unfinished(slot)
    this.#streams.settle(slot, StreamState.dnsUnaligned, nextSequence, seconds)
    return false
  }

  /** The stream ends: reads what arrived after the bytes that were lost. */
  unfinished(slot: number): void {
    const streams = this.#streams
    const buffer = streams.buffer[slot] ?? 0
    if (buffer === NO_BUFFER) return
    // The rest of the message did not arrive.
    if (streams.windows.farthest(buffer) === streams.windows.contiguous(buffer)) streams.count(Counter.dnsGaps)
    this.#sink.late(streams, slot, () => this.#afterGaps(buffer))
  }
}

/** Offset of the first byte from `at` on at which a query over TCP begins; `end` if none does. */
function nextQuery(view: DataView, at: number, end: number): number {
  let next = at
  while (next < end && !beginsQuery(view, next, end)) next++
  return next
}

/** Whether an answer may begin at `at`. */
function isAnswer(view: DataView, at: number, end: number): boolean {
  return (
    at + MESSAGE_LENGTH_BYTES + DNS_HEADER_BYTES <= end && (view.getUint8(at + MESSAGE_LENGTH_BYTES + 2) & 0x80) !== 0
  )
}
