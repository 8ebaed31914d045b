import { type DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { Counter, countUp } from '../batch/counters.ts'
import { ANSWER_RECORDS_MAX, ANSWER_SECONDS_MAX, ANSWER_SECONDS_MIN, ANSWERS_MAX, NAME_BYTES_MAX } from '../limits.ts'
import { copyBytes } from './byte-windows.ts'
import { DNS_HEADER_BYTES, nameEnd, readName, readQuestion } from './dns.ts'
import type { Transport } from './layers.ts'
import { FoundName, NameForm, nameHash } from './name.ts'
import type { RowSource } from './name-rows.ts'
import { NO_SLOT, SlotList, SlotTable } from './slot-table.ts'

/**
 * SVCB and HTTPS records (RFC 9460 §2.2): priority, target, then parameters of key, length and
 * value. Read are the port, the addresses and whether there is a configuration for Encrypted Client
 * Hello. The protocols (alpn) say nothing that a connection does not show.
 */
const PARAMETER_HEADER_BYTES = 4
/** RFC 9460 §14.3.2, RFC 9848. */
const Parameter = { port: 3, ipv4Hint: 4, ech: 5, ipv6Hint: 6 } as const

/** The parameters of a record. One per worker, overwritten by each record. */
class Service {
  hasEch = false
  /** 0 if the record gives none. */
  port = 0
  /** Addresses in bytes [ipv4Hints, ipv4HintsEnd), and the same for IPv6. */
  ipv4Hints = 0
  ipv4HintsEnd = 0
  ipv6Hints = 0
  ipv6HintsEnd = 0
}

/** Reads the record whose data is in bytes [start, end). Returns false if it is malformed. */
function readService(view: DataView, start: number, end: number, service: Service): boolean {
  service.hasEch = false
  service.port = 0
  service.ipv4Hints = 0
  service.ipv4HintsEnd = 0
  service.ipv6Hints = 0
  service.ipv6HintsEnd = 0
  if (start + 2 > end) return false
  let at = nameEnd(view, start + 2, end)
  if (at < 0) return false
  while (at < end) {
    if (at + PARAMETER_HEADER_BYTES > end) return false
    const value = at + PARAMETER_HEADER_BYTES
    const valueEnd = value + view.getUint16(at + 2)
    if (valueEnd > end) return false
    switch (view.getUint16(at)) {
      case Parameter.port:
        if (value + 2 === valueEnd) service.port = view.getUint16(value)
        break
      case Parameter.ech:
        service.hasEch = true
        break
      case Parameter.ipv4Hint:
        service.ipv4Hints = value
        service.ipv4HintsEnd = valueEnd
        break
      case Parameter.ipv6Hint:
        service.ipv6Hints = value
        service.ipv6HintsEnd = valueEnd
        break
      default:
    }
    at = valueEnd
  }
  return true
}

/**
 * DNS answers -> the name that a client asked for an address. A connection to the address that
 * hides its name is attributed to that name only if the client asked no other name for the address
 * within the time to live: addresses of content delivery networks are shared.
 *
 * Each answer of any name is recorded, because any other name makes the address ambiguous. The name
 * itself is kept only if it matches. Not read: answers over TCP in several segments, and addresses
 * of the other IP version, because the client's own address of that version is unknown.
 *
 * An answer also says whether the server blocked the name: with an address that no platform has,
 * with the SOA record of a response policy zone in its additional section, as BIND writes it
 * (https://bind9.readthedocs.io/en/latest/reference.html, add-soa), or with an extended error.
 * NXDOMAIN alone may be a typing error.
 */

/** RFC 1035 §4.1.1, §3.2.2; RFC 3596 §2.1; RFC 9460 §14.1. */
const FLAGS = 2
const QUESTIONS = 4
const ANSWERS = 6
const AUTHORITIES = 8
const ADDITIONALS = 10
const RESPONSE = 0x8000
const OPCODE = 0x7800
const RCODE = 0x000f
const TYPE_A = 1
const TYPE_CNAME = 5
const TYPE_SOA = 6
const TYPE_AAAA = 28
/** RFC 6891 §6.1.2: the pseudo-record with the options of EDNS. */
const TYPE_OPT = 41
const TYPE_SVCB = 64
const TYPE_HTTPS = 65
const CLASS_IN = 1
/** RFC 1035 §3.2.1: type, class, time to live, length. */
const RECORD_BYTES = 10
/** RFC 8914 §2, §4.16 to §4.18: an extended error of a server that refuses by policy. */
const OPTION_EXTENDED_ERROR = 15
const ERROR_BLOCKED = 15
const ERROR_FILTERED = 17

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
  /**
   * Set by learn(): the asked name if it is blocked, otherwise the target of the CNAME that matches
   * while the question does not.
   */
  readonly found: FoundName
  isBlocked = false
  readonly #table: SlotTable
  readonly #counters: Uint32Array
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

  constructor(counters: Uint32Array) {
    this.#counters = counters
    this.#table = new SlotTable(ANSWERS_MAX)
    this.#name = new FoundName(this.#asked)
    this.found = new FoundName(this.#asked)
  }

  /**
   * Records the answers of the message in bytes [message, end), which was sent to a client. Returns
   * the rule that `found` matches, or NO_MATCH.
   */
  learn(transport: Transport, view: DataView, message: number, end: number, seconds: number, trie: DomainTrie): number {
    if (message + DNS_HEADER_BYTES > end) return NO_MATCH
    const flags = view.getUint16(message + FLAGS)
    if ((flags & RESPONSE) === 0 || (flags & OPCODE) !== 0) return NO_MATCH
    if (view.getUint16(message + QUESTIONS) !== 1) return NO_MATCH
    const answers = view.getUint16(message + ANSWERS)
    const additionals = view.getUint16(message + ADDITIONALS)
    const isAnswer = answers > 0 && (flags & RCODE) === 0
    if (!isAnswer && additionals === 0) return NO_MATCH
    const name = this.#name
    let at = readQuestion(view, message, message + DNS_HEADER_BYTES, end, name)
    if (at < 0) return NO_MATCH
    const rule = trie.matchWire(name.view, name.start, name.end)
    if (!isAnswer && rule === NO_MATCH) return NO_MATCH
    this.#setAsked(name, rule !== NO_MATCH)
    this.#setClient(transport)

    this.isBlocked = false
    const firstAdditional = answers + view.getUint16(message + AUTHORITIES)
    const records = rule === NO_MATCH || additionals === 0 ? answers : firstAdditional + additionals
    let alias = NO_MATCH
    let leastTtl = ANSWER_SECONDS_MAX
    for (let record = 0; record < Math.min(records, ANSWER_RECORDS_MAX); record++) {
      const fields = nameEnd(view, at, end)
      if (fields < 0 || fields + RECORD_BYTES > end) break
      const data = fields + RECORD_BYTES
      const bytes = view.getUint16(fields + 8)
      at = data + bytes
      if (at > end) break
      if (record >= answers) {
        if (record >= firstAdditional) this.isBlocked ||= isOfPolicy(view, fields, data, at)
        continue
      }
      if (!isAnswer || view.getUint16(fields + 2) !== CLASS_IN) continue
      // RFC 2181 §8: a time to live with the highest bit is 0.
      const ttl = view.getUint32(fields + 4)
      leastTtl = Math.min(leastTtl, ttl > 0x7fff_ffff ? 0 : ttl)
      const type = view.getUint16(fields)
      switch (type) {
        case TYPE_A:
        case TYPE_AAAA:
          if (rule !== NO_MATCH || alias !== NO_MATCH) this.isBlocked ||= isOfNoPlatform(view, data, bytes)
          if (bytes === this.#addressBytes) this.#recordAddress(view, data, seconds, leastTtl)
          break
        case TYPE_CNAME:
          if (rule !== NO_MATCH || alias !== NO_MATCH) break
          // A name that was compressed is in memory that the next name overwrites, so it is used at
          // once.
          if (nameEnd(view, data, end) === at && readName(view, message, data, end, this.found) === at) {
            const target = this.found
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
    if (!this.isBlocked) return alias
    if (rule === NO_MATCH) return NO_MATCH
    this.found.set(this.#asked, 0, this.#askedBytes, NameForm.wire)
    return rule
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
    this.#askedHash = nameHash(view, start, end)
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
    const slot = this.#table.victim
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

/** Whether the record of the additional section says that the answer is of a policy. */
function isOfPolicy(view: DataView, fields: number, data: number, end: number): boolean {
  const type = view.getUint16(fields)
  if (type === TYPE_SOA) return true
  if (type !== TYPE_OPT) return false
  for (let at = data; at + 4 <= end; at += 4 + view.getUint16(at + 2)) {
    if (view.getUint16(at) !== OPTION_EXTENDED_ERROR || at + 6 > end) continue
    const error = view.getUint16(at + 4)
    if (error >= ERROR_BLOCKED && error <= ERROR_FILTERED) return true
  }
  return false
}

/**
 * First and last address, as IPv4 numbers, of the hosts that servers answer for a blocked name: no
 * address, the host itself, and the block pages of Cisco Umbrella (hit-block.opendns.com), FortiGuard
 * (community.fortinet.com, 260790) and PAN-OS (docs.paloaltonetworks.com, enable-dns-security).
 */
const BLOCK_PAGES = [
  [0, 0],
  [0x7f00_0000, 0x7fff_ffff],
  [0x9270_3d68, 0x9270_3d6f],
  [0xd05b_7037, 0xd05b_7037],
  [0xc687_b816, 0xc687_b816],
] as const
/** The FortiGuard page's 2001:cdba::3257:9652, in words. */
const BLOCK_PAGE_IPV6 = [0x2001_cdba, 0, 0, 0x3257_9652] as const

/** Whether the address in `bytes` bytes at `at` is one that a server answers for a blocked name. */
function isOfNoPlatform(view: DataView, at: number, bytes: number): boolean {
  if (bytes === 4) {
    const address = view.getUint32(at)
    for (const [first, last] of BLOCK_PAGES) if (address >= first && address <= last) return true
    return false
  }
  if (bytes !== 16) return false
  const isZero = view.getUint32(at) === 0 && view.getUint32(at + 4) === 0 && view.getUint32(at + 8) === 0
  if (isZero) return view.getUint32(at + 12) <= 1
  return BLOCK_PAGE_IPV6.every((word, index) => view.getUint32(at + index * 4) === word)
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
