import assert from 'node:assert'
import { actionOf } from './action.ts'
import { isTextIgnoreCase, NOT_FOUND } from './bytes.ts'
import { takeHostOf } from './found-fields.ts'
import { endBeforePort } from './ip-address.ts'
import { type LogLine, Verdict } from './log-line.ts'
import { TimeFound } from './log-time.ts'
import { isInbound, isPrivateAddress } from './private-address.ts'
import { takeUser, UserForm } from './user-name.ts'
import { isMailPort } from './zeek.ts'

/**
 * The paths of a product's records (json-products.ts). Paths of one role are in order of
 * preference.
 */
export interface Product {
  readonly name: string
  /**
   * What only this product's records have, all of it: a path, a path and its values
   * (`type=dns|tls`), or alternatives (`qclass/qtype`).
   */
  readonly marks: string
  readonly time?: string
  readonly client?: string
  /**
   * The other end of the connection, and its port: an inbound connection and mail are no requests.
   */
  readonly server?: string
  readonly port?: string
  readonly host?: string
  /** The paths in `host` that have a DNS name, never a URL. */
  readonly isName?: string
  readonly action?: string
  readonly user?: string
  readonly sent?: string
  readonly received?: string
  /**
   * The record may be of a server. Only a private client and a server that is not private count.
   */
  readonly outbound?: true
  readonly mayHideClient?: true
  /** The record repeats another one. */
  readonly skip?: true
  /** A line of text that has the request. */
  readonly text?: string
}

interface Mark {
  readonly slots: readonly number[]
  /** For each slot the values of which one is needed; none: any value. */
  readonly values: readonly (readonly string[])[]
}

interface Paths {
  readonly marks: readonly Mark[]
  readonly time: readonly number[]
  readonly client: readonly number[]
  readonly server: readonly number[]
  readonly port: readonly number[]
  readonly host: readonly number[]
  readonly isName: readonly boolean[]
  readonly action: readonly number[]
  readonly user: readonly number[]
  readonly sent: readonly number[]
  readonly received: readonly number[]
  readonly text: readonly number[]
  readonly outbound: boolean
  readonly mayHideClient: boolean
  readonly skip: boolean
}

const NO_PRODUCT = -1
const WORD_BITS = 32

/** Finds the product of a record from the members that are noted, and reads it. */
export class ProductPaths {
  /** The slot of each path: lower case, letters and digits only. */
  readonly slots: Record<string, number> = {}
  readonly #products: readonly Paths[]
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  /** For each slot the record in which it was noted last. */
  readonly #noted: Int32Array
  /** For each slot the products of which it is the first mark: one bit per product in two words. */
  readonly #lowKeys: Int32Array
  readonly #highKeys: Int32Array
  #record = 0
  #low = 0
  #high = 0
  #product = NO_PRODUCT

  constructor(products: readonly Product[]) {
    this.#products = products.map((product) => this.#compile(product))
    const count = Object.keys(this.slots).length
    this.#starts = new Int32Array(count)
    this.#ends = new Int32Array(count)
    this.#noted = new Int32Array(count).fill(-1)
    this.#lowKeys = new Int32Array(count)
    this.#highKeys = new Int32Array(count)
    assert(products.length <= 2 * WORD_BITS)
    for (const [index, { marks }] of this.#products.entries()) {
      const keys = index < WORD_BITS ? this.#lowKeys : this.#highKeys
      for (const slot of marks[0]?.slots ?? []) keys[slot] = (keys[slot] ?? 0) | (1 << (index % WORD_BITS))
    }
  }

  clear(): void {
    this.#record = (this.#record + 1) & 0x7fffffff
    this.#low = 0
    this.#high = 0
    this.#product = NO_PRODUCT
  }

  /** Of members with one path, the first non-empty member counts. */
  note(slot: number, start: number, end: number): void {
    if (end <= start || this.#noted[slot] === this.#record) return
    this.#noted[slot] = this.#record
    this.#starts[slot] = start
    this.#ends[slot] = end
    this.#low |= this.#lowKeys[slot] ?? 0
    this.#high |= this.#highKeys[slot] ?? 0
  }

  /** Whether the noted members are those of a product. */
  find(view: DataView): boolean {
    return this.#findOf(view, this.#low, 0) || this.#findOf(view, this.#high, WORD_BITS)
  }

  #findOf(view: DataView, candidates: number, base: number): boolean {
    while (candidates !== 0) {
      const index = base + 31 - Math.clz32(candidates & -candidates)
      if (this.#hasMarks(view, this.#products[index]?.marks ?? [])) {
        this.#product = index
        return true
      }
      candidates &= candidates - 1
    }
    return false
  }

  /** Whether the record has a product: find() was true. */
  get isFound(): boolean {
    return this.#product !== NO_PRODUCT
  }

  /** The verdict on a record whose product was found. */
  read(line: LogLine): Verdict {
    const paths = this.#products[this.#product]
    if (paths === undefined) return Verdict.unknown
    if (this.#takeTime(line, paths.time) === TimeFound.impossible) {
      return line.reject('time: expected a valid date and time')
    }
    const action = this.#first(paths.action)
    if (action !== NOT_FOUND) line.action = actionOf(line.view, this.#start(action), this.#end(action))
    const hasClient = this.#takeClient(line, paths.client)
    const text = this.#first(paths.text)
    if (text !== NOT_FOUND) {
      line.wrappedStart = this.#start(text)
      line.wrappedEnd = this.#end(text)
      return Verdict.noDomain
    }
    if (paths.skip) return Verdict.skip
    if (!hasClient && !paths.mayHideClient) return Verdict.noDomain
    return this.#isNoRequest(line, paths) ? Verdict.noDomain : this.#takeHost(line, paths)
  }

  /** The user and the byte counts of the record that was read last. */
  takeUserAndBytes(line: LogLine): void {
    const paths = this.#products[this.#product]
    if (paths === undefined) return
    for (const slot of paths.user) {
      if (this.#has(slot) && takeUser(line, this.#start(slot), this.#end(slot), UserForm.json)) break
    }
    const sent = this.#first(paths.sent)
    if (sent !== NOT_FOUND) line.takeSent(this.#start(sent), this.#end(sent))
    const received = this.#first(paths.received)
    if (received !== NOT_FOUND) line.takeReceived(this.#start(received), this.#end(received))
  }

  #takeTime(line: LogLine, slots: readonly number[]): TimeFound {
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index] ?? 0
      if (!this.#has(slot)) continue
      const found = line.takeTime(this.#start(slot), this.#end(slot))
      if (found !== TimeFound.none) return found
    }
    return TimeFound.none
  }

  #takeClient(line: LogLine, slots: readonly number[]): boolean {
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index] ?? 0
      if (!this.#has(slot)) continue
      const start = this.#start(slot)
      if (line.takeClient(start, endBeforePort(line.view, start, this.#end(slot)))) return true
    }
    return false
  }

  /** Mail, a request of an external client to one of the organization's own servers. */
  #isNoRequest({ view, clientStart, clientEnd }: LogLine, paths: Paths): boolean {
    const port = this.#first(paths.port)
    if (port !== NOT_FOUND && isMailPort(view, this.#start(port), this.#end(port))) return true
    const server = this.#first(paths.server)
    if (server === NOT_FOUND) return paths.outbound
    const start = this.#start(server)
    const end = endBeforePort(view, start, this.#end(server))
    if (!paths.outbound) return isInbound(view, clientStart, clientEnd, start, end)
    return !isPrivateAddress(view, clientStart, clientEnd) || isPrivateAddress(view, start, end)
  }

  #takeHost(line: LogLine, { host, isName }: Paths): Verdict {
    let verdict: Verdict = Verdict.noDomain
    for (let index = 0; index < host.length; index++) {
      const slot = host[index] ?? 0
      if (!this.#has(slot)) continue
      const start = this.#start(slot)
      const end = this.#end(slot)
      const found = isName[index] === true ? line.takeName(start, end) : takeHostOf(line, start, end)
      if (found === Verdict.event) return found
      if (found === Verdict.skip) verdict = found
    }
    return verdict
  }

  #hasMarks(view: DataView, marks: readonly Mark[]): boolean {
    for (let index = 0; index < marks.length; index++) {
      const mark = marks[index]
      if (mark === undefined || !this.#hasMark(view, mark)) return false
    }
    return true
  }

  #hasMark(view: DataView, { slots, values }: Mark): boolean {
    for (let index = 0; index < slots.length; index++) {
      const slot = slots[index] ?? 0
      if (!this.#has(slot)) continue
      const words = values[index] ?? []
      if (words.length === 0) return true
      const start = this.#start(slot)
      const end = this.#end(slot)
      for (let word = 0; word < words.length; word++)
        if (isTextIgnoreCase(view, start, end, words[word] ?? '')) return true
    }
    return false
  }

  #first(slots: readonly number[]): number {
    for (let index = 0; index < slots.length; index++) if (this.#has(slots[index] ?? 0)) return slots[index] ?? 0
    return NOT_FOUND
  }

  #has(slot: number): boolean {
    return this.#noted[slot] === this.#record
  }

  #start(slot: number): number {
    return this.#starts[slot] ?? 0
  }

  #end(slot: number): number {
    return this.#ends[slot] ?? 0
  }

  #compile(product: Product): Paths {
    const { host = '', isName = '' } = product
    const names = new Set(this.#slotsOf(isName))
    return {
      marks: marksOf(product.marks).map((alternatives) => {
        const each = alternatives.flatMap(({ path, values }) => this.#slotsOf(path).map((slot) => ({ slot, values })))
        return { slots: each.map(({ slot }) => slot), values: each.map(({ values }) => values) }
      }),
      time: this.#slotsOf(product.time),
      client: this.#slotsOf(product.client),
      server: this.#slotsOf(product.server),
      port: this.#slotsOf(product.port),
      host: this.#slotsOf(host),
      isName: this.#slotsOf(host).map((slot) => names.has(slot)),
      action: this.#slotsOf(product.action),
      user: this.#slotsOf(product.user),
      sent: this.#slotsOf(product.sent),
      received: this.#slotsOf(product.received),
      text: this.#slotsOf(product.text),
      outbound: product.outbound === true,
      mayHideClient: product.mayHideClient === true,
      skip: product.skip === true,
    }
  }

  #slotsOf(paths = ''): number[] {
    return paths
      .split(' ')
      .filter((path) => path !== '')
      .flatMap(variantsOf)
      .map((path) => {
        const word = path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
        assert(word !== '', paths)
        const slot = this.slots[word] ?? Object.keys(this.slots).length
        this.slots[word] = slot
        return slot
      })
  }
}

/**
 * `(properties.)Fqdn` with and without the words in parentheses, of which a bar separates several.
 */
function variantsOf(path: string): string[] {
  const [, prefixes, rest = path] = /^\((.+)\)(.+)$/.exec(path) ?? []
  return prefixes === undefined ? [path] : [...prefixes.split('|').map((prefix) => `${prefix}${rest}`), rest]
}

/** In a value, `+` is a blank. */
function marksOf(text: string): { path: string; values: string[] }[][] {
  return text.split(' ').map((mark) =>
    mark.split('/').map((alternative) => {
      const [path = '', values] = alternative.split('=')
      return { path, values: values?.toLowerCase().replaceAll('+', ' ').split('|') ?? [] }
    }),
  )
}
