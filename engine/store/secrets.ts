import { createRequire } from 'node:module'
import type { RE2JS } from 're2js'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import type { ApiVersions } from './api-versions.ts'
import { Collection, Family } from './family.ts'
import { ORGANIZATION_KEY_BYTES, ownKey, UUID_BYTES, uuidBytes } from './keys.ts'

const require = createRequire(import.meta.url)

/** What a rule finds in a line. The client and the host make a line a request. */
export const RULE_FIELDS = ['time', 'client', 'host', 'user', 'action', 'bytes_sent', 'bytes_received'] as const
export type RuleField = (typeof RULE_FIELDS)[number]

/** Where each field is. A time may have several parts: a date and a time of day. */
export interface RulePlaces<Place> {
  readonly time?: Place | readonly Place[] | undefined
  readonly client: Place
  readonly host: Place
  readonly user?: Place | undefined
  readonly action?: Place | undefined
  readonly bytes_sent?: Place | undefined
  readonly bytes_received?: Place | undefined
}

interface NamedRule {
  readonly name: string
  /** Values of `action` that mean that the request was blocked, in addition to the known words. */
  readonly blocked?: readonly string[] | undefined
}

/** How the lines of a format without a parser are read: by columns, paths or named groups. */
export type FormatRule = NamedRule &
  (
    | { readonly delimiter: string; readonly fields: RulePlaces<number> }
    | { readonly json: true; readonly fields: RulePlaces<string> }
    | { readonly pattern: string }
  )

/**
 * Compiles a regular expression that matches in linear time (RE2), so that no line can stop ingest.
 * Throws if it is invalid.
 */
export function compilePattern(expression: string): RE2JS {
  // 100 kB of code, which only such rules need.
  const { RE2JS: engine } = require('re2js') as typeof import('re2js')
  return engine.compile(expression)
}

/**
 * The common properties of API keys and monitoring tokens: they belong to an organization, are
 * found by their hash, and end by revocation.
 */
export interface Secret {
  readonly id: string
  readonly organizationId: string
  readonly label: string
  /** SHA-256 of the raw secret in hex. The raw secret is never stored. */
  readonly hash: string
  /** The characters that lists show. */
  readonly visible: string
  readonly createdAtMs: number
  /** 0 until it is revoked. */
  readonly revokedAtMs: number
  /**
   * From this time on, the secret is expired and is rejected like a revoked one. Absent: it does
   * not expire.
   */
  readonly expiresAtMs?: number
}

export type SecretStatus = 'active' | 'expired' | 'revoked'

export function statusOf({ revokedAtMs, expiresAtMs }: Secret, nowMs: number): SecretStatus {
  if (revokedAtMs !== 0) return 'revoked'
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'active'
}

/** A family of secrets with an index by hash, which contains active secrets only. */
export class Secrets<T extends Secret> {
  readonly #records: Family<T>
  readonly #hashes: Table
  readonly #onChange: (organizationId: string) => void

  /** @param onChange called in the transaction of each change */
  constructor(records: Family<T>, hashes: Table, onChange: (organizationId: string) => void = () => {}) {
    this.#records = records
    this.#hashes = hashes
    this.#onChange = onChange
  }

  /** The secret with this SHA-256, unless it was revoked. The secret may be expired. */
  byHash(hash: Uint8Array): T | undefined {
    const key = this.#hashes.get(Buffer.from(hash))
    return key === undefined ? undefined : this.#records.get(key)
  }

  get(organizationId: string, id: string): T | undefined {
    return this.#records.get(ownKey(organizationId, id))
  }

  /**
   * Whether a secret with this SHA-256 exists and was not revoked. Unlike byHash, it does not read
   * the record.
   */
  isActive(hash: Buffer): boolean {
    return this.#hashes.get(hash) !== undefined
  }

  ofOrganization(organizationId: string): T[] {
    return [...this.#records.range(uuidBytes(organizationId))].map(({ value }) => value)
  }

  activeCount(organizationId: string, nowMs: number): number {
    return this.ofOrganization(organizationId).filter((secret) => statusOf(secret, nowMs) === 'active').length
  }

  add(secret: T): void {
    const key = secretKey(secret)
    this.#records.put(key, secret)
    this.#hashes.putSync(Buffer.from(secret.hash, 'hex'), key)
    this.#onChange(secret.organizationId)
  }

  /** Updates an active secret, except for its hash. */
  replace(secret: T): void {
    this.#records.put(secretKey(secret), secret)
    this.#onChange(secret.organizationId)
  }

  /**
   * Removes all secrets of an organization from the index by hash, and keeps their records.
   * Requires the transaction that removes the organization.
   */
  removeHashes(organizationId: string): void {
    for (const { hash, revokedAtMs } of this.ofOrganization(organizationId)) {
      if (revokedAtMs === 0) this.#hashes.removeSync(Buffer.from(hash, 'hex'))
    }
  }

  /** Revokes a secret permanently by removing its hash from the index. */
  revoke(secret: T, nowMs: number): T {
    const revoked = { ...secret, revokedAtMs: nowMs }
    this.#records.put(secretKey(secret), revoked)
    this.#hashes.removeSync(Buffer.from(secret.hash, 'hex'))
    this.#onChange(secret.organizationId)
    return revoked
  }
}

function secretKey(secret: Secret): Buffer {
  const key = ownKey(secret.organizationId, secret.id)
  if (key.length !== ORGANIZATION_KEY_BYTES + UUID_BYTES)
    throw new Error(`not a UUID: ${secret.organizationId} ${secret.id}`)
  return key
}

export const SCOPES = ['scores:read', 'recommendations:read', 'discovery:read', 'assessments:read'] as const
export type Scope = (typeof SCOPES)[number]

/** `visible` is the first 8 hex digits after the prefix. */
export interface ApiKey extends Secret {
  readonly scopes: readonly Scope[]
}

export function apiKeysOf(environment: Environment, versions: ApiVersions): Secrets<ApiKey> {
  const records = new Family<ApiKey>(environment.table('api-keys'), 'API key')
  return new Secrets(records, environment.table('api-key-hashes'), (organizationId) => versions.change(organizationId))
}

/** A use of an API key. */
export interface KeyUse {
  readonly organizationId: string
  readonly keyId: string
  /** Milliseconds since 1970. */
  readonly timeMs: number
}

/**
 * When each API key was last used. A separate table, so that a use does not rewrite the key's own
 * record.
 */
export class KeyUses {
  readonly #uses: Family<number>

  constructor(environment: Environment) {
    this.#uses = new Family(environment.table('key-uses'), 'use of an API key')
  }

  /** Milliseconds since 1970. 0: never used. */
  lastUseMs(organizationId: string, keyId: string): number {
    return this.#uses.get(ownKey(organizationId, keyId)) ?? 0
  }

  /** Ignores a use earlier than the stored one. */
  put({ organizationId, keyId, timeMs }: KeyUse): void {
    if (timeMs > this.lastUseMs(organizationId, keyId)) this.#uses.put(ownKey(organizationId, keyId), timeMs)
  }
}

/** Whether `05/06/2026` is 5 June or May 6. */
export const DAY_ORDERS = ['day-first', 'month-first'] as const

/** `visible` is the first 8 hex digits after the prefix. */
export interface MonitoringToken extends Secret {
  /** The time zone of the devices' clocks, for messages without one. Default: UTC. */
  readonly zone?: string
  /** The day order in the devices' messages, if it is ambiguous. */
  readonly dayOrder?: (typeof DAY_ORDERS)[number]
  /** Whether the devices' messages name the original clients behind proxies, reliably. */
  readonly forwardedClients?: boolean
  /** How messages are read that no other format reads. */
  readonly formatRule?: FormatRule
}

export function monitoringTokensOf(environment: Environment): Secrets<MonitoringToken> {
  return new Secrets(
    new Family<MonitoringToken>(environment.table('monitoring-tokens'), 'monitoring token'),
    environment.table('token-hashes'),
  )
}

/**
 * Assigns syslog messages without a token to a token, by their source address or local port. For
 * devices that cannot write STRUCTURED-DATA.
 */
export interface TokenBinding {
  readonly organizationId: string
  readonly tokenId: string
  /** SHA-256 of the raw token in hex. Used to check that the token is active. */
  readonly tokenHash: string
  /** An address, or a network such as `192.0.2.0/24`. '': any address. */
  readonly network: string
  /** The local port. 0: any port. */
  readonly port: number
}

/** A message without a token names no organization, so ingest reads the bindings of all. */
export class TokenBindings extends Collection<TokenBinding, TokenBinding> {
  constructor(environment: Environment) {
    super(environment.table('token-bindings'), 'token binding', ({ organizationId, tokenId, network, port }) =>
      Buffer.concat([ownKey(organizationId, tokenId), Buffer.from(`${network} ${port}`)]),
    )
  }

  ofToken(organizationId: string, tokenId: string): TokenBinding[] {
    return this.startingWith(ownKey(organizationId, tokenId))
  }
}

export const BLOCKED_DECISIONS = ['not-approved', 'rejected'] as const
export type BlockedDecision = (typeof BLOCKED_DECISIONS)[number]

/** Which platforms a block list blocks, of those with at least this risk in the registry. */
export interface BlockListSelection {
  readonly blocks: BlockedDecision
  /** 0 to 100. */
  readonly riskMin: number
}

/** A block list that a device downloads with a secret. */
export interface BlockListLink extends Secret, BlockListSelection {}

export function blockListLinksOf(environment: Environment): Secrets<BlockListLink> {
  return new Secrets(
    new Family<BlockListLink>(environment.table('block-list-links'), 'block list link'),
    environment.table('block-list-link-hashes'),
  )
}
