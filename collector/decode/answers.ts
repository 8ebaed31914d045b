import { type DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { Counter, countUp } from '../batch/counters.ts'
import { ANSWER_RECORDS_MAX, ANSWER_SECONDS_MAX, ANSWER_SECONDS_MIN, ANSWERS_MAX, NAME_BYTES_MAX } from '../limits.ts'
import { copyBytes } from './byte-windows.ts'
import { DNS_HEADER_BYTES, nameEnd, readName, readQuestion } from './dns.ts'
import type { Transport } from './layers.ts'
import { FoundName, NameForm } from './name.ts'
import type { RowSource } from './name-rows.ts'
import { NO_SLOT, SlotList, SlotTable } from './slot-table.ts'
import { readService, Service } from './svcb.ts'

/**
 * DNS answers -> the name that a client asked for an address. A connection to the address that
 * hides its name is attributed to that name only if the client asked no other name for the address
 * within the time to live: addresses of content delivery networks are shared.
 *
 * Each answer of any name is recorded, because any other name makes the address ambiguous. The name
 * itself is kept only if it matches. Not read: answers over TCP in several segments, and addresses
 * of the other IP version, because the client's own address of that version is unknown.
 */

/** RFC 1035 §4.1.1, §3.2.2; RFC 3596 §2.1; RFC 9460 §14.1. */
const FLAGS = 2
const QUESTIONS = 4
const ANSWERS = 6
const RESPONSE = 0x8000
const OPCODE_AND_RCODE = 0x780f
const TYPE_A = 1
const TYPE_CNAME = 5
const TYPE_AAAA = 28
const TYPE_SVCB = 64
const TYPE_HTTPS = 65
const CLASS_IN = 1
/** RFC 1035 §3.2.1: type, class, time to live, length. */
const RECORD_BYTES = 10

/** What a key of the table consists of, in place of a protocol. */
const Key = { address: 1, name: 2 } as const
const NAME_SLOT_BYTES = 256
const ADDRESS_BYTES_MAX = 16

/** State of an entry. */
const AMBIGUOUS = 1
/** An HTTPS record of the name has a configuration for Encrypted Client Hello. */
const HAS_ECH = 2

/** RFC 9460 §2.1: the port if a record gives none. */
const HTTPS_PORT = 443

export class Answers {
  /** Target of the CNAME that matches if the question does not, set by learn(). */
  readonly alias: FoundName
  readonly #table: SlotTable
  readonly #counters: Uint32Array
  readonly #seed: number
  readonly #expires = new Uint32Array(ANSWERS_MAX)
  readonly #nameHash = new Uint32Array(ANSWERS_MAX)
  readonly #state = new Uint8Array(ANSWERS_MAX)
  readonly #port = new Uint16Array(ANSWERS_MAX)
  /** Length of the kept name; 0 if no rule matched it. */
  readonly #nameBytes = new Uint8Array(ANSWERS_MAX)
  /** Names in wire form. Only the parts that are written to take memory. */
  readonly #names = new DataView(new SharedArrayBuffer(ANSWERS_MAX * NAME_SLOT_BYTES))
  readonly #forgotten = new Forgotten()
  /** A client's address, then that of a server or the hash of a name. */
  readonly #key = new DataView(new SharedArrayBuffer(2 * ADDRESS_BYTES_MAX))
  /** The asked name, in wire form. */
  readonly #asked = new DataView(new SharedArrayBuffer(NAME_SLOT_BYTES))
  #askedBytes = 0
  #askedHash = 0
  #addressBytes = 4
  readonly #name: FoundName
  readonly #service = new Service()

  constructor(counters: Uint32Array, seed: number) {
    this.#counters = counters
    this.#seed = seed
    this.#table = new SlotTable(ANSWERS_MAX, seed)
    this.#name = new FoundName(this.#asked)
    this.alias = new FoundName(this.#asked)
  }

  /**
   * Records the answers of the message in bytes [message, end), which was sent to a client. Returns
   * the rule that the target of a CNAME matches if the question matches none, otherwise NO_MATCH.
   */
  learn(transport: Transport, view: DataView, message: number, end: number, seconds: number, trie: DomainTrie): number {
    if (message + DNS_HEADER_BYTES > end) return NO_MATCH
    const flags = view.getUint16(message + FLAGS)
    if ((flags & RESPONSE) === 0 || (flags & OPCODE_AND_RCODE) !== 0) return NO_MATCH
    const answers = Math.min(view.getUint16(message + ANSWERS), ANSWER_RECORDS_MAX)
    if (answers === 0 || view.getUint16(message + QUESTIONS) !== 1) return NO_MATCH
    const name = this.#name
    let at = readQuestion(view, message, message + DNS_HEADER_BYTES, end, name)
    if (at < 0) return NO_MATCH
    const rule = trie.matchWire(name.view, name.start, name.end)
    this.#setAsked(name, rule !== NO_MATCH)
    this.#setClient(transport)

    let alias = NO_MATCH
    let leastTtl = ANSWER_SECONDS_MAX
    for (let record = 0; record < answers; record++) {
      const fields = nameEnd(view, at, end)
      if (fields < 0 || fields + RECORD_BYTES > end) break
      const data = fields + RECORD_BYTES
      const bytes = view.getUint16(fields + 8)
      at = data + bytes
      if (at > end) break
      if (view.getUint16(fields + 2) !== CLASS_IN) continue
      // RFC 2181 §8: a time to live with the highest bit is 0.
      const ttl = view.getUint32(fields + 4)
      leastTtl = Math.min(leastTtl, ttl > 0x7fff_ffff ? 0 : ttl)
      const type = view.getUint16(fields)
      switch (type) {
        case TYPE_A:
        case TYPE_AAAA:
          if (bytes === this.#addressBytes) this.#recordAddress(view, data, seconds, leastTtl)
          break
        case TYPE_CNAME:
          if (rule !== NO_MATCH || alias !== NO_MATCH) break
          // A name that was compressed is in memory that the next name overwrites, so it is used at
          // once.
          if (nameEnd(view, data, end) === at && readName(view, message, data, end, this.alias) === at) {
            const target = this.alias
            alias = trie.matchWire(target.view, target.start, target.end)
          }
          break
        case TYPE_SVCB:
        case TYPE_HTTPS:
          this.#recordService(view, data, at, seconds, leastTtl)
          break
        default:
      }
    }
    return alias
  }

  /**
   * Finds the name to which a connection of the row's client to its server can be attributed.
   * Returns true if there is one, which is then in `name`.
   */
  attribute(row: RowSource, seconds: number, isEch: boolean, name: FoundName): boolean {
    const { addresses, client, addressBytes, serverPort } = row
    this.#table.prepare(addresses, client, addressBytes, 0, Key.address)
    const slot = this.#table.find()
    if (slot === NO_SLOT || !this.#isValid(slot, seconds) || this.#nameBytes[slot] === 0) return false
    if (((this.#state[slot] ?? 0) & AMBIGUOUS) !== 0) return false
    const hash = this.#nameHash[slot] ?? 0
    copyBytes(addresses, client, client + addressBytes, this.#key, 0)
    this.#prepareName(hash, addressBytes)
    const service = this.#table.find()
    const isKnown = service !== NO_SLOT && this.#isValid(service, seconds)
    // Without a configuration, the extension is GREASE, and the name in the hello is the real one.
    if (isEch && (!isKnown || ((this.#state[service] ?? 0) & HAS_ECH) === 0)) return false
    if (isKnown && serverPort !== HTTPS_PORT && serverPort !== this.#port[service]) return false
    const start = slot * NAME_SLOT_BYTES
    name.set(this.#names, start, start + (this.#nameBytes[slot] ?? 0), NameForm.wire)
    return true
  }

  /** Removes all answers. */
  clear(): void {
    while (this.#table.size > 0) this.#table.remove(this.#table.first)
    this.#forgotten.clear()
  }

  /** Removes what has expired. Called once per second of capture time. */
  expire(seconds: number): void {
    this.#forgotten.advance(seconds)
    for (;;) {
      const slot = this.#table.oldest(SlotList.idle)
      if (slot === NO_SLOT || this.#isValid(slot, seconds)) return
      this.#table.remove(slot)
    }
  }

  #setAsked({ view, start, end }: FoundName, isKept: boolean): void {
    let hash = this.#seed ^ (end - start)
    for (let at = start; at < end; at++) {
      const byte = view.getUint8(at)
      // RFC 4343: names are compared without regard to case. No length of a label is a letter.
      hash = Math.imul(hash ^ (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte), 0x9e37_79b1)
      hash ^= hash >>> 15
    }
    this.#askedHash = hash >>> 0
    this.#askedBytes = isKept ? Math.min(end - start, NAME_BYTES_MAX) : 0
    if (isKept) copyBytes(view, start, start + this.#askedBytes, this.#asked, 0)
  }

  /** The client is the receiver of the answer. */
  #setClient({ addressView, source, addressBytes }: Transport): void {
    this.#addressBytes = addressBytes
    const client = source + addressBytes
    copyBytes(addressView, client, client + addressBytes, this.#key, 0)
  }

  #recordAddress(view: DataView, at: number, seconds: number, ttl: number): void {
    const addressBytes = this.#addressBytes
    copyBytes(view, at, at + addressBytes, this.#key, addressBytes)
    this.#table.prepare(this.#key, 0, addressBytes, 0, Key.address)
    const slot = this.#entry(seconds, ttl)
    const start = slot * NAME_SLOT_BYTES
    if (((this.#state[slot] ?? 0) & AMBIGUOUS) !== 0) return
    this.#nameBytes[slot] = this.#askedBytes
    copyBytes(this.#asked, 0, this.#askedBytes, this.#names, start)
  }

  #recordService(view: DataView, at: number, end: number, seconds: number, ttl: number): void {
    const service = this.#service
    if (!readService(view, at, end, service)) return
    this.#prepareName(this.#askedHash, this.#addressBytes)
    const slot = this.#entry(seconds, ttl)
    this.#state[slot] = (this.#state[slot] ?? 0) | (service.hasEch ? HAS_ECH : 0)
    if (service.port !== 0) this.#port[slot] = service.port
    const hints = this.#addressBytes === 4 ? service.ipv4Hints : service.ipv6Hints
    const hintsEnd = this.#addressBytes === 4 ? service.ipv4HintsEnd : service.ipv6HintsEnd
    for (let hint = hints; hint + this.#addressBytes <= hintsEnd; hint += this.#addressBytes)
      this.#recordAddress(view, hint, seconds, ttl)
  }

  #prepareName(hash: number, addressBytes: number): void {
    for (let at = addressBytes; at < 2 * addressBytes; at += 4) this.#key.setUint32(at, at === addressBytes ? hash : 0)
    this.#table.prepare(this.#key, 0, addressBytes, 0, Key.name)
  }

  /** The slot of the prepared key, valid for another `ttl` seconds for the asked name. */
  #entry(seconds: number, ttl: number): number {
    const table = this.#table
    const until = seconds + Math.max(ANSWER_SECONDS_MIN, Math.min(ttl, ANSWER_SECONDS_MAX))
    let slot = table.find()
    if (slot !== NO_SLOT && this.#isValid(slot, seconds)) {
      if (this.#nameHash[slot] !== this.#askedHash) this.#state[slot] = (this.#state[slot] ?? 0) | AMBIGUOUS
      this.#expires[slot] = Math.max(this.#expires[slot] ?? 0, until)
      table.touch(slot, SlotList.idle, seconds)
      return slot
    }
    if (slot === NO_SLOT) {
      if (table.full) this.#evict(seconds)
      slot = table.add(seconds)
    } else table.touch(slot, SlotList.idle, seconds)
    this.#expires[slot] = until
    this.#nameHash[slot] = this.#askedHash
    this.#state[slot] = this.#forgotten.has(table.hash(slot)) ? AMBIGUOUS : 0
    this.#port[slot] = 0
    this.#nameBytes[slot] = 0
    return slot
  }

  #evict(seconds: number): void {
    const slot = this.#table.oldest(SlotList.idle)
    if (this.#isValid(slot, seconds)) {
      countUp(this.#counters, Counter.answersEvicted)
      this.#forgotten.add(this.#table.hash(slot))
    }
    this.#table.remove(slot)
  }

  #isValid(slot: number, seconds: number): boolean {
    return ((seconds - (this.#expires[slot] ?? 0)) | 0) <= 0
  }
}

/**
 * The keys of entries that were evicted before they expired, as a Bloom filter: such an address may
 * have had another name, so it counts as ambiguous. A false positive leaves a connection
 * unexplained. Two filters, so that each key is known for at least ANSWER_SECONDS_MAX.
 */
const FILTER_WORDS = 2 ** 15

class Forgotten {
  #now = new Uint32Array(FILTER_WORDS)
  #before = new Uint32Array(FILTER_WORDS)
  #since = 0
  #isEmpty = true

  add(hash: number): void {
    const word = (hash >>> 5) % FILTER_WORDS
    this.#now[word] = (this.#now[word] ?? 0) | (1 << (hash & 31))
    this.#isEmpty = false
  }

  has(hash: number): boolean {
    if (this.#isEmpty) return false
    const word = (hash >>> 5) % FILTER_WORDS
    return (((this.#now[word] ?? 0) | (this.#before[word] ?? 0)) & (1 << (hash & 31))) !== 0
  }

  clear(): void {
    if (this.#isEmpty) return
    this.#now.fill(0)
    this.#before.fill(0)
    this.#isEmpty = true
  }

  advance(seconds: number): void {
    if (((seconds - this.#since) | 0) < ANSWER_SECONDS_MAX) return
    const emptied = this.#before
    this.#before = this.#now
    this.#now = emptied.fill(0)
    this.#since = seconds
  }
}
