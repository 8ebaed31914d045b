import type { DnstapMessage } from './dnstap-message.ts'

/** Bytes of the longest line. */
export const DNSTAP_LINE_BYTES_MAX = 1024
/** Bytes of the server's name in a line, like HOSTNAME of RFC 5424 §6. */
const IDENTITY_BYTES_MAX = 255

/** RFC 1035 §4.1.1, §3.2.4. */
const HEADER_BYTES = 12
const QUESTIONS = 4
const CLASS_IN = 1
const LABEL_BYTES_MAX = 63
const NAME_BYTES_MAX = 255

/** Last second of the year 9999. */
const SECONDS_MAX = 253_402_300_799

const SPACE = 0x20
const DOT = 0x2e
const DASH = 0x2d
const COLON = 0x3a
const UNDERSCORE = 0x5f
const QUESTION_MARK = 0x3f
const PREFIX = Buffer.from('<134>1 ')
const BEFORE_CLIENT = Buffer.from(' dnstap - - - CQ ')
const STARTED = Buffer.from('<134>1 - - dnstap - - - dnstap: START\n')
const ARROW = Buffer.from(' -> ')
const BEFORE_NAME = Buffer.from(' - - ')
const AFTER_NAME = Buffer.from('/IN/-\n')
const BEFORE_QUOTED_NAME = Buffer.from(' - - "')
const AFTER_QUOTED_NAME = Buffer.from('" IN -\n')

/**
 * Writes client queries in RFC 5424, like the lines of dnstap-read, or without a server's address
 * like those of dnstap, so that they are read like the same queries as text: `<134>1
 * 2026-11-23T09:15:02.123Z ns1 dnstap - - - CQ 10.0.0.7:53211 -> 10.0.0.53:53 - - claude.ai/IN/-`.
 * The sentence of a start is known as one without a request.
 */
export class DnstapLine {
  readonly #out: Buffer
  #at = 0
  #second = -1
  readonly #secondText = Buffer.alloc('2026-11-23T09:15:02.'.length)

  constructor(out: Buffer) {
    this.#out = out
  }

  /** Writes at `at`, where DNSTAP_LINE_BYTES_MAX bytes are free. Returns the end. */
  writeStart(at: number): number {
    return at + STARTED.copy(this.#out, at)
  }

  /**
   * Writes the line at `at`, where DNSTAP_LINE_BYTES_MAX bytes are free. Returns the end, or -1 if
   * the message has no question of class IN with a name, or an impossible time.
   */
  write(view: DataView, message: DnstapMessage, at: number, nowSeconds: number): number {
    this.#at = at
    this.#text(PREFIX)
    const isTimed = message.seconds > 0
    const seconds = isTimed ? message.seconds : nowSeconds
    if (seconds > SECONDS_MAX) return -1
    this.#time(seconds, isTimed ? message.nanoseconds : 0)
    this.#byte(SPACE)
    const identityBytes = Math.min(message.identityEnd - message.identityStart, IDENTITY_BYTES_MAX)
    if (identityBytes === 0) this.#byte(DASH)
    for (let byte = 0; byte < identityBytes; byte++) this.#byte(hostByte(view.getUint8(message.identityStart + byte)))
    this.#text(BEFORE_CLIENT)
    this.#address(view, message.clientStart, message.clientEnd, message.clientPort)
    const hasServer = message.serverEnd > message.serverStart
    if (hasServer) {
      this.#text(ARROW)
      this.#address(view, message.serverStart, message.serverEnd, message.serverPort)
    }
    this.#text(hasServer ? BEFORE_NAME : BEFORE_QUOTED_NAME)
    if (!this.#question(view, message.queryStart, message.queryEnd)) return -1
    this.#text(hasServer ? AFTER_NAME : AFTER_QUOTED_NAME)
    return this.#at
  }

  #time(seconds: number, nanoseconds: number): void {
    if (seconds !== this.#second) {
      this.#secondText.write(new Date(seconds * 1000).toISOString(), 'latin1')
      this.#second = seconds
    }
    this.#text(this.#secondText)
    const milliseconds = Math.min(999, Math.floor(nanoseconds / 1_000_000))
    this.#byte(0x30 + Math.floor(milliseconds / 100))
    this.#byte(0x30 + (Math.floor(milliseconds / 10) % 10))
    this.#byte(0x30 + (milliseconds % 10))
    this.#byte(0x5a)
  }

  #address(view: DataView, start: number, end: number, port: number): void {
    if (end - start === 4) {
      for (let at = start; at < end; at++) {
        if (at > start) this.#byte(DOT)
        this.#number(view.getUint8(at))
      }
    } else {
      this.#byte(0x5b)
      for (let at = start; at < end; at += 2) {
        if (at > start) this.#byte(COLON)
        this.#hex(view.getUint16(at))
      }
      this.#byte(0x5d)
    }
    this.#byte(COLON)
    this.#number(port)
  }

  /** Writes the first question's name. Bytes that no host name has become `?`. */
  #question(view: DataView, start: number, end: number): boolean {
    if (end - start < HEADER_BYTES || view.getUint16(start + QUESTIONS) === 0) return false
    let at = start + HEADER_BYTES
    let nameBytes = 0
    for (;;) {
      if (at >= end) return false
      const labelBytes = view.getUint8(at++)
      if (labelBytes === 0) break
      // RFC 1035 §4.1.4: there is no earlier name to which the first could point.
      if (labelBytes > LABEL_BYTES_MAX || at + labelBytes > end) return false
      if (nameBytes > 0) this.#byte(DOT)
      nameBytes += labelBytes + 1
      if (nameBytes >= NAME_BYTES_MAX) return false
      for (const labelEnd = at + labelBytes; at < labelEnd; at++) this.#byte(nameByte(view.getUint8(at)))
    }
    return nameBytes > 0 && at + 4 <= end && view.getUint16(at + 2) === CLASS_IN
  }

  #text(text: Buffer): void {
    for (let byte = 0; byte < text.length; byte++) this.#out[this.#at++] = text[byte] ?? 0
  }

  #byte(byte: number): void {
    this.#out[this.#at++] = byte
  }

  #number(value: number): void {
    if (value >= 10) this.#number(Math.floor(value / 10))
    this.#byte(0x30 + (value % 10))
  }

  #hex(value: number): void {
    if (value >= 16) this.#hex(value >>> 4)
    const digit = value & 15
    this.#byte(digit < 10 ? 0x30 + digit : 0x57 + digit)
  }
}

function isNameByte(byte: number): boolean {
  const letter = byte | 0x20
  return (letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === DASH || byte === UNDERSCORE
}

function nameByte(byte: number): number {
  return isNameByte(byte) ? byte : QUESTION_MARK
}

/** A host name, or the version text that some servers send. */
function hostByte(byte: number): number {
  return isNameByte(byte) || byte === DOT || byte === COLON ? byte : UNDERSCORE
}
