import { KNOWN_TOKENS_MAX } from '../limits.ts'
import type { Clock } from '../process/clock.ts'
import { addressBytes, contains, type Network, networkOf } from '../process/network.ts'
import { hashSecret, isMonitoringToken } from '../store/access-key.ts'
import type { MonitoringToken } from '../store/monitoring-tokens.ts'
import type { Store } from '../store/store.ts'
import { DayOrder } from './formats/day-order.ts'
import type { SourceOwner } from './sources.ts'
import { WallClock } from './zone.ts'

/** How old what is known of bindings, zones and labels may be. That a token was revoked is seen at once. */
const REREAD_MS = 1000

/** A token whose messages are taken. */
export class KnownToken implements SourceOwner {
  readonly organizationId: string
  readonly tokenId: string
  readonly label: string
  readonly hash: Buffer
  /** The token's text; empty where it is known by a binding only. */
  readonly text: DataView
  readonly zone: string
  readonly wallClock: WallClock
  readonly dayOrder: DayOrder
  /** The turn of the event loop in which it was last found active. */
  checkedTurn = -1
  readAtMs: number

  constructor(token: MonitoringToken, text: string, nowMs: number) {
    this.organizationId = token.organizationId
    this.tokenId = token.id
    this.label = token.label
    this.hash = Buffer.from(token.hash, 'hex')
    const bytes = Uint8Array.from(Buffer.from(text, 'latin1'))
    this.text = new DataView(bytes.buffer)
    this.zone = token.zone ?? 'UTC'
    this.wallClock = new WallClock(this.zone)
    this.dayOrder = dayOrderOf(token)
    this.readAtMs = nowMs
  }
}

const DAY_ORDERS = { 'day-first': DayOrder.dayFirst, 'month-first': DayOrder.monthFirst } as const

interface Bound {
  readonly network: Network | undefined
  readonly port: number
  readonly tokenHash: Buffer
}

/** Where messages without a token come from, and what was found of it. */
export interface BoundPlace {
  readonly address: string
  readonly port: number
  boundToken: KnownToken | undefined
  /** Which reading of the bindings it was found in; 0: none. */
  bindingsRead: number
}

/**
 * Whose a message is. A token is looked up when it is first seen, and whether it is still active once in every turn of the event loop in which
 * it comes: so a revoked one is refused from the next turn on, and a busy sender does not pay a look-up for each message.
 */
export class TokenAuthenticator {
  readonly #store: Store
  readonly #clock: Clock
  /** Those whose text was seen. */
  readonly #byText = new Map<string, KnownToken>()
  /** Those that are known by a binding. Apart, so that no sender's text can name one by its hash. */
  readonly #byHash = new Map<string, KnownToken>()
  #bindings: Bound[] = []
  /** Counts how often they were read. */
  #bindingsRead = 0
  #bindingsReadAtMs = 0
  #turn = 0
  #turnEnds = false
  readonly #endTurn = (): void => {
    this.#turn++
    this.#turnEnds = false
  }

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** The active token whose text stands in [start, end), or undefined. Whatever the text, one hash and one look-up at most. */
  find(bytes: Uint8Array, start: number, end: number): KnownToken | undefined {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
    const known = this.#byText.get(text)
    if (known !== undefined) return this.stillActive(known)
    return this.#read(hashSecret(text), isMonitoringToken(text) ? text : '')
  }

  /** The token that messages from this address to this port are bound to: an address before a network, a network before a port alone. */
  bound(address: string, port: number): KnownToken | undefined {
    const nowMs = this.#clock.nowMs()
    if (Math.abs(nowMs - this.#bindingsReadAtMs) >= REREAD_MS) this.#readBindings(nowMs)
    if (this.#bindings.length === 0) return undefined
    const bytes = addressBytes(address)
    let best: Bound | undefined
    for (const binding of this.#bindings) {
      if (binding.port !== 0 && binding.port !== port) continue
      if (binding.network !== undefined && (bytes === undefined || !contains(binding.network, bytes))) continue
      if (best === undefined || rank(binding) > rank(best)) best = binding
    }
    return best && this.#ofBinding(best.tokenHash)
  }

  /** The same, remembered by the place until bindings are read again: a device that sends no token costs no search for each message. */
  boundOf(place: BoundPlace): KnownToken | undefined {
    const nowMs = this.#clock.nowMs()
    const isOld = Math.abs(nowMs - this.#bindingsReadAtMs) >= REREAD_MS
    if (isOld || place.bindingsRead !== this.#bindingsRead) {
      place.boundToken = this.bound(place.address, place.port)
      place.bindingsRead = this.#bindingsRead
    } else if (place.boundToken !== undefined) place.boundToken = this.stillActive(place.boundToken)
    return place.boundToken
  }

  /** The token, or what became of it; undefined where it is no longer active. */
  stillActive(token: KnownToken): KnownToken | undefined {
    if (token.checkedTurn === this.#turn) return token
    if (Math.abs(this.#clock.nowMs() - token.readAtMs) >= REREAD_MS) {
      return this.#read(token.hash, textOf(token), token)
    }
    if (!this.#store.environment.read(() => this.#store.monitoringTokens.isActive(token.hash))) {
      this.#forget(token)
      return undefined
    }
    this.#noteTurn(token)
    return token
  }

  #ofBinding(hash: Buffer): KnownToken | undefined {
    const known = this.#byHash.get(hash.toString('latin1'))
    return known === undefined ? this.#read(hash, '') : this.stillActive(known)
  }

  /** `text` is '' where only the hash is known, or where the text is none of a token: then it is not remembered, but looked up like any other. */
  #read(hash: Buffer, text: string, before?: KnownToken): KnownToken | undefined {
    const found = this.#store.environment.read(() => this.#store.monitoringTokens.byHash(hash))
    if (before !== undefined) {
      if (found !== undefined && found.label === before.label && sameSettings(found, before)) {
        before.readAtMs = this.#clock.nowMs()
        this.#noteTurn(before)
        return before
      }
      this.#forget(before)
    }
    if (found === undefined) return undefined
    const token = new KnownToken(found, text, this.#clock.nowMs())
    // The oldest of many goes; it is looked up again when it comes again.
    const [tokens, key] = this.#placeOf(token)
    if (tokens.size >= KNOWN_TOKENS_MAX) tokens.delete(tokens.keys().next().value ?? '')
    tokens.set(key, token)
    this.#noteTurn(token)
    return token
  }

  #forget(token: KnownToken): void {
    const [tokens, key] = this.#placeOf(token)
    tokens.delete(key)
  }

  #placeOf(token: KnownToken): [Map<string, KnownToken>, string] {
    return token.text.byteLength > 0 ? [this.#byText, textOf(token)] : [this.#byHash, token.hash.toString('latin1')]
  }

  #noteTurn(token: KnownToken): void {
    token.checkedTurn = this.#turn
    if (this.#turnEnds) return
    this.#turnEnds = true
    setImmediate(this.#endTurn)
  }

  #readBindings(nowMs: number): void {
    this.#bindingsReadAtMs = nowMs
    this.#bindingsRead++
    // One of a token that was revoked must not stand before another that is active.
    this.#bindings = this.#store.tokenBindings.all().flatMap(({ network, port, tokenHash: hash }) => {
      const tokenHash = Buffer.from(hash, 'hex')
      const isActive = this.#store.environment.read(() => this.#store.monitoringTokens.isActive(tokenHash))
      return isActive ? [{ network: network === '' ? undefined : networkOf(network), port, tokenHash }] : []
    })
  }
}

function rank({ network, port }: Bound): number {
  return (network === undefined ? 0 : (network.prefixBits + 1) * 2) + (port === 0 ? 0 : 1)
}

function textOf({ text }: KnownToken): string {
  return Buffer.from(text.buffer).toString('latin1')
}

function dayOrderOf({ dayOrder }: MonitoringToken): DayOrder {
  return dayOrder === undefined ? DayOrder.unknown : DAY_ORDERS[dayOrder]
}

function sameSettings(found: MonitoringToken, before: KnownToken): boolean {
  return dayOrderOf(found) === before.dayOrder && (found.zone ?? 'UTC') === before.zone
}
