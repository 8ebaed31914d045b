import { isDeepStrictEqual } from 'node:util'
import { DayOrder } from '../formats/log-time.ts'
import { OwnFormat } from '../formats/own-format.ts'
import { BoundedMap } from '../kernel/process/bounded-map.ts'
import type { Clock } from '../kernel/process/clock.ts'
import { addressBytes, contains, type Network, networkOf } from '../kernel/process/network.ts'
import { KNOWN_TOKENS_MAX } from '../limits.ts'
import { hashSecret, isMonitoringToken } from '../store/access-key.ts'
import type { MonitoringToken } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import type { SourceOwner } from './sources.ts'
import { WallClock } from './zone.ts'

/** Maximum age of cached bindings, zones and labels. Revocation takes effect at once. */
const REREAD_MS = 1000

/** An active token. */
export class KnownToken implements SourceOwner {
  readonly organizationId: string
  readonly tokenId: string
  readonly label: string
  readonly hash: Buffer
  /** The token's text. Empty if the token is known only by a binding. */
  readonly text: DataView
  readonly zone: string
  readonly wallClock: WallClock
  readonly dayOrder: DayOrder
  readonly isForwarded: boolean
  readonly ownFormat: OwnFormat | undefined
  /** The last turn of the event loop in which the token was found active. */
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
    this.isForwarded = token.forwardedClients === true
    this.ownFormat = token.formatRule && new OwnFormat(token.formatRule)
    this.readAtMs = nowMs
  }
}

const DAY_ORDERS = { 'day-first': DayOrder.dayFirst, 'month-first': DayOrder.monthFirst } as const

interface Bound {
  readonly network: Network | undefined
  readonly port: number
  readonly tokenHash: Buffer
}

/** A sender without a token in its messages, and the cached token of its binding. */
export interface BoundPlace {
  readonly address: string
  readonly port: number
  boundToken: KnownToken | undefined
  /** The version of the bindings that `boundToken` comes from. 0: none. */
  bindingsRead: number
}

/**
 * Finds the token of a message. A token is looked up when first seen, and its revocation is checked
 * once per turn of the event loop. So a revoked token is refused from the next turn on, and a busy
 * sender does not cost a lookup per message.
 */
export class TokenAuthenticator {
  readonly #store: Store
  readonly #clock: Clock
  /** Tokens by text. The messages of an evicted token need another lookup. */
  readonly #byText = new BoundedMap<string, KnownToken>(KNOWN_TOKENS_MAX)
  /**
   * Tokens known only by a binding, by hash. Separate, so that the text of a message can never
   * match a hash.
   */
  readonly #byHash = new BoundedMap<string, KnownToken>(KNOWN_TOKENS_MAX)
  #bindings: Bound[] = []
  /** Version of `#bindings`, incremented at each read. */
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

  /**
   * Returns the active token with the text in [start, end), or undefined. Costs at most one hash
   * and one lookup for any text.
   */
  find(bytes: Uint8Array, start: number, end: number): KnownToken | undefined {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1')
    const known = this.#byText.get(text)
    if (known !== undefined) return this.stillActive(known)
    return this.#read(hashSecret(text), isMonitoringToken(text) ? text : '')
  }

  /**
   * Returns the token bound to this address and port. An address takes precedence over a network, a
   * network over a port alone.
   */
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

  /**
   * Same, cached in `place` until the bindings are read again, so that messages without a token do
   * not cost a search.
   */
  boundOf(place: BoundPlace): KnownToken | undefined {
    const nowMs = this.#clock.nowMs()
    const isOld = Math.abs(nowMs - this.#bindingsReadAtMs) >= REREAD_MS
    if (isOld || place.bindingsRead !== this.#bindingsRead) {
      place.boundToken = this.bound(place.address, place.port)
      place.bindingsRead = this.#bindingsRead
    } else if (place.boundToken !== undefined) place.boundToken = this.stillActive(place.boundToken)
    return place.boundToken
  }

  /** Returns the token in its current version, or undefined if it is revoked. */
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

  /**
   * `text` is '' if only the hash is known, or if the text does not have the form of a token. The
   * latter is not cached by text.
   */
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
    const [tokens, key] = this.#placeOf(token)
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
    // The binding of a revoked token must not take precedence over that of an active one.
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
  const hasSameRule = isDeepStrictEqual(found.formatRule, before.ownFormat?.rule)
  const hasSameClients = (found.forwardedClients ?? false) === before.isForwarded
  return dayOrderOf(found) === before.dayOrder && (found.zone ?? 'UTC') === before.zone && hasSameClients && hasSameRule
}
