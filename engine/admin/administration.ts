import { contains, networkOf } from '../ingest/network.ts'
import { isZone } from '../ingest/zone.ts'
import type { Clock } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import type { ApiKey, Scope } from '../store/api-keys.ts'
import { newUuid } from '../store/keys.ts'
import type { MonitoringToken } from '../store/monitoring-tokens.ts'
import { NAME_BYTES_MAX, type Organization, type Plan } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import type { TokenBinding } from '../store/token-bindings.ts'
import { hashSecret, makeApiKey, makeMonitoringToken, visibleDigits } from './access-key.ts'

/** The specification's limit of active API keys of one organization. */
export const ACTIVE_API_KEYS_MAX = 25
/** Monitoring tokens have no limit in the specification; this one keeps the look-up of a list short. */
export const ACTIVE_TOKENS_MAX = 1000

/** Bindings of all organizations: each message without a token is compared with them. */
export const TOKEN_BINDINGS_MAX = 1000

/** What of a monitoring token can be changed. */
export type TokenChange = Partial<Pick<MonitoringToken, 'label' | 'zone' | 'dayOrder'>>

/** What an administrator can change. Each change is one transaction, and is seen by the next request in every thread. */
export class Administration {
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** @throws Fault CONFLICT where the name is taken, USAGE where a text is empty, too long or not of one line. */
  createOrganization(given: { name: string; domain: string; plan: Plan }): Organization {
    checkText('name', given.name)
    checkText('--domain', given.domain)
    return this.#store.environment.write(() => this.#store.organizations.create(given, this.#clock.nowMs()))
  }

  /** @throws Fault NOT_FOUND */
  organization(nameOrId: string): Organization {
    const organization = this.#store.organizations.find(nameOrId)
    if (organization === undefined) {
      throw new Fault(
        'NOT_FOUND',
        `no organization ${JSON.stringify(nameOrId)}; posture-admin organization list shows all`,
      )
    }
    return organization
  }

  /**
   * @returns the key's record and the raw key, which is nowhere else.
   * @throws Fault CONFLICT where 25 keys are active.
   */
  createApiKey(organization: Organization, label: string, scopes: readonly Scope[]): { record: ApiKey; raw: string } {
    const raw = makeApiKey()
    const record = { ...this.#newSecret(organization, label, raw), scopes }
    this.#store.environment.write(() => {
      if (this.#store.apiKeys.activeCount(organization.id) >= ACTIVE_API_KEYS_MAX) {
        throw new Fault(
          'CONFLICT',
          `${organization.name} has ${ACTIVE_API_KEYS_MAX} active API keys already; revoke one first`,
        )
      }
      this.#store.apiKeys.add(record)
    })
    return { record, raw }
  }

  /** @throws Fault NOT_FOUND, CONFLICT where it was revoked before. */
  revokeApiKey(organization: Organization, idOrVisible: string): ApiKey {
    return this.#store.environment.write(() => {
      const key = chosen(this.#store.apiKeys.ofOrganization(organization.id), idOrVisible, 'API key')
      return this.#store.apiKeys.revoke(key, this.#clock.nowMs())
    })
  }

  createMonitoringToken(organization: Organization, label: string): { record: MonitoringToken; raw: string } {
    const raw = makeMonitoringToken()
    const record = this.#newSecret(organization, label, raw)
    this.#store.environment.write(() => {
      if (this.#store.monitoringTokens.activeCount(organization.id) >= ACTIVE_TOKENS_MAX) {
        throw new Fault(
          'CONFLICT',
          `${organization.name} has ${ACTIVE_TOKENS_MAX} active tokens already; revoke one first`,
        )
      }
      this.#store.monitoringTokens.add(record)
    })
    return { record, raw }
  }

  /** @throws Fault NOT_FOUND, CONFLICT where it was revoked before. */
  revokeMonitoringToken(organization: Organization, idOrVisible: string): MonitoringToken {
    return this.#store.environment.write(() => {
      const tokens = this.#store.monitoringTokens.ofOrganization(organization.id)
      return this.#store.monitoringTokens.revoke(chosen(tokens, idOrVisible, 'monitoring token'), this.#clock.nowMs())
    })
  }

  /** Which of its times' zone and order of days a token's devices have, where their messages do not tell. @throws Fault NOT_FOUND, CONFLICT, USAGE. */
  setToken(organization: Organization, idOrVisible: string, change: TokenChange): MonitoringToken {
    if (change.label !== undefined) checkText('--label', change.label)
    if (change.zone !== undefined && !isZone(change.zone)) {
      throw new Fault(
        'USAGE',
        `--zone: expected UTC, an offset such as +01:00, or a name such as Europe/Berlin, found ${JSON.stringify(change.zone)}`,
      )
    }
    return this.#store.environment.write(() => {
      const changed = { ...this.#activeToken(organization, idOrVisible), ...change }
      this.#store.monitoringTokens.replace(changed)
      return changed
    })
  }

  /**
   * Says that syslog without a token that comes from a network, or to a port, is that of a token's devices.
   *
   * @throws Fault NOT_FOUND, CONFLICT where the same is bound to another token, USAGE.
   */
  bindToken(organization: Organization, idOrVisible: string, to: { network: string; port: number }): TokenBinding {
    if (to.network === '' && to.port === 0) throw new Fault('USAGE', 'name what to bind to: --address, --port or both')
    if (to.network !== '' && networkOf(to.network) === undefined) {
      throw new Fault(
        'USAGE',
        `--address: expected an address or a network such as 192.0.2.0/24, found ${JSON.stringify(to.network)}`,
      )
    }
    return this.#store.environment.write(() => {
      const { id: tokenId, organizationId, hash: tokenHash } = this.#activeToken(organization, idOrVisible)
      const others = this.#store.tokenBindings.all()
      const same = others.find(({ network, port }) => port === to.port && sameNetwork(network, to.network))
      if (
        same !== undefined &&
        same.tokenId !== tokenId &&
        this.#store.monitoringTokens.isActive(Buffer.from(same.tokenHash, 'hex'))
      ) {
        const whose = same.organizationId === organization.id ? 'another token' : 'a token of another organization'
        throw new Fault('CONFLICT', `${describeBinding(to)} is bound to ${whose} already`)
      }
      if (others.length >= TOKEN_BINDINGS_MAX) {
        throw new Fault('CONFLICT', `there are ${TOKEN_BINDINGS_MAX} bindings already; remove some`)
      }
      if (same !== undefined) this.#store.tokenBindings.remove(same)
      const binding = { organizationId, tokenId, tokenHash, ...to }
      this.#store.tokenBindings.put(binding)
      return binding
    })
  }

  /** Removes the bindings of a token, revoked or not. Answers what they were. @throws Fault NOT_FOUND. */
  unbindToken(organization: Organization, idOrVisible: string): TokenBinding[] {
    return this.#store.environment.write(() => {
      const tokens = this.#store.monitoringTokens.ofOrganization(organization.id)
      const named = tokens.filter(({ id, visible }) => id === idOrVisible || visible === idOrVisible)
      if (named.length === 0) throw new Fault('NOT_FOUND', `no monitoring token ${JSON.stringify(idOrVisible)}`)
      const bindings = named.flatMap(({ id }) => this.#store.tokenBindings.ofToken(organization.id, id))
      for (const binding of bindings) this.#store.tokenBindings.remove(binding)
      return bindings
    })
  }

  #activeToken(organization: Organization, idOrVisible: string): MonitoringToken {
    return chosen(this.#store.monitoringTokens.ofOrganization(organization.id), idOrVisible, 'monitoring token')
  }

  #newSecret(organization: Organization, label: string, raw: string): MonitoringToken {
    checkText('label', label)
    return {
      id: newUuid(),
      organizationId: organization.id,
      label,
      hash: hashSecret(raw).toString('hex'),
      visible: visibleDigits(raw),
      createdAtMs: this.#clock.nowMs(),
      revokedAtMs: 0,
    }
  }
}

/** What a binding binds, for people. */
export function describeBinding({ network, port }: { network: string; port: number }): string {
  return [network, port === 0 ? '' : `port ${port}`].filter((part) => part !== '').join(' ')
}

function sameNetwork(one: string, other: string): boolean {
  const a = networkOf(one)
  const b = networkOf(other)
  if (a === undefined || b === undefined) return one === other
  return a.prefixBits === b.prefixBits && contains(a, b.bytes)
}

/** Texts that people give are shown in tables and logs: one line, and no longer than an index takes. */
function checkText(what: string, text: string): void {
  const bytes = Buffer.byteLength(text.toLowerCase())
  if (bytes >= 1 && bytes <= NAME_BYTES_MAX && text.trim() === text && !/\p{Cc}/u.test(text)) return
  throw new Fault(
    'USAGE',
    `${what}: expected one line of 1 to ${NAME_BYTES_MAX} bytes without blanks around it, found ${bytes} bytes`,
  )
}

/** The one active secret that has this id or these visible digits. */
function chosen<T extends MonitoringToken>(secrets: readonly T[], idOrVisible: string, what: string): T {
  const named = secrets.filter(({ id, visible }) => id === idOrVisible || visible === idOrVisible)
  const active = named.filter(({ revokedAtMs }) => revokedAtMs === 0)
  if (active.length === 1 && active[0] !== undefined) return active[0]
  if (active.length > 1)
    throw new Fault('CONFLICT', `${active.length} active ${what}s begin with ${idOrVisible}; name its id`)
  if (named.length > 0) throw new Fault('CONFLICT', `${what} ${idOrVisible} is revoked already, which is final`)
  throw new Fault('NOT_FOUND', `no ${what} ${JSON.stringify(idOrVisible)}`)
}
