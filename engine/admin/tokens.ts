import { isZone } from '../ingest/zone.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { contains, networkOf } from '../kernel/process/network.ts'
import { makeMonitoringToken, redactedSecret } from '../store/access-key.ts'
import type { Organization } from '../store/organizations.ts'
import type { FormatRule, MonitoringToken, TokenBinding } from '../store/secrets.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'
import { chosen, namedBy, newSecret } from './secrets.ts'

/** The specification has no limit for monitoring tokens. This one bounds lists. */
const ACTIVE_TOKENS_MAX = 1000

/** Limit over all organizations: each message without a token is compared with all bindings. */
const TOKEN_BINDINGS_MAX = 1000

/** The properties of a monitoring token that can be changed. */
export type TokenChange = Partial<Pick<MonitoringToken, 'label' | 'zone' | 'dayOrder' | 'forwardedClients'>> & {
  /** null: none. */
  readonly formatRule?: FormatRule | null
}

/** What a token can be bound to. */
export type BindingTarget = Pick<TokenBinding, 'network' | 'port'>

export class TokenChanges extends AuditedChanges {
  /**
   * @returns the token's record, and the raw token, which is stored nowhere
   * @throws Fault CONFLICT at the limit, USAGE, NOT_ALLOWED
   */
  generate(organization: Organization, label: string): { record: MonitoringToken; raw: string } {
    checkText('label', label)
    const { store, clock } = this
    const raw = makeMonitoringToken()
    const record: MonitoringToken = newSecret(organization, label, raw, clock.nowMs())
    return this.audited('token.generate', organization.id, () => {
      if (store.monitoringTokens.activeCount(organization.id, clock.nowMs()) >= ACTIVE_TOKENS_MAX) {
        throw new Fault(
          'CONFLICT',
          `${organization.name} has ${ACTIVE_TOKENS_MAX} active tokens already; revoke one first`,
        )
      }
      store.monitoringTokens.add(record)
      return { ...about(record), result: { record, raw } }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if it was already revoked, NOT_ALLOWED */
  revoke(organization: Organization, idOrVisible: string): MonitoringToken {
    const { store, clock } = this
    return this.audited('token.revoke', organization.id, () => {
      const token = this.#active(organization, idOrVisible)
      return { ...about(token), result: store.monitoringTokens.revoke(token, clock.nowMs()) }
    })
  }

  /**
   * Changes a token's label, its custom format, whether its devices name original clients, and the time
   * zone and day order of devices whose messages lack them.
   *
   * @throws Fault NOT_FOUND, CONFLICT, USAGE, NOT_ALLOWED
   */
  set(organization: Organization, idOrVisible: string, change: TokenChange): MonitoringToken {
    if (change.label !== undefined) checkText('--label', change.label)
    if (change.zone !== undefined && !isZone(change.zone)) {
      throw new Fault(
        'USAGE',
        `--zone: expected UTC, an offset such as +01:00, or a name such as Europe/Berlin, found ${JSON.stringify(change.zone)}`,
      )
    }
    return this.audited('token.set', organization.id, () => {
      const { formatRule, ...settings } = change
      const { formatRule: before, ...token } = this.#active(organization, idOrVisible)
      const rule = formatRule === undefined ? before : (formatRule ?? undefined)
      const changed = { ...token, ...settings, ...(rule === undefined ? {} : { formatRule: rule }) }
      this.store.monitoringTokens.replace(changed)
      const own = formatRule === undefined ? {} : { custom_format: formatRule?.name ?? 'none' }
      const { forwardedClients: forwarded, ...texts } = settings
      const clients = forwarded === undefined ? {} : { forwarded_clients: String(forwarded) }
      return { ...about(changed, { ...texts, ...clients, ...own }), result: changed }
    })
  }

  /**
   * Binds networks and ports to a token: syslog without a token that comes from a network, or to a
   * port, is that of the token's devices. One transaction: all of them are bound, or none.
   *
   * @throws Fault NOT_FOUND, CONFLICT if the same is bound to another token, USAGE, NOT_ALLOWED
   */
  bind(organization: Organization, idOrVisible: string, targets: readonly BindingTarget[]): TokenBinding[] {
    if (targets.length === 0) throw new Fault('USAGE', 'name what to bind to: --address, --port or both')
    for (const { network } of targets) assertNetwork(network)
    const { tokenBindings } = this.store
    return this.audited('token.bind', organization.id, () => {
      const token = this.#active(organization, idOrVisible)
      const bindings = targets.map((to) => {
        this.#replaceSame(token, to)
        const binding = { organizationId: token.organizationId, tokenId: token.id, tokenHash: token.hash, ...to }
        tokenBindings.put(binding)
        return binding
      })
      return { ...about(token, { to: targets.map(describeBinding) }), result: bindings }
    })
  }

  /**
   * Removes the binding to the same, unless it is another active token's. Inside the transaction.
   */
  #replaceSame(token: MonitoringToken, to: BindingTarget): void {
    const { tokenBindings, monitoringTokens } = this.store
    const others = tokenBindings.all()
    const same = others.find(({ network, port }) => port === to.port && sameNetwork(network, to.network))
    if (
      same !== undefined &&
      same.tokenId !== token.id &&
      monitoringTokens.isActive(Buffer.from(same.tokenHash, 'hex'))
    ) {
      const whose = same.organizationId === token.organizationId ? 'another token' : 'a token of another organization'
      throw new Fault('CONFLICT', `${describeBinding(to)} is bound to ${whose} already`)
    }
    if (others.length >= TOKEN_BINDINGS_MAX) {
      throw new Fault('CONFLICT', `there are ${TOKEN_BINDINGS_MAX} bindings already; remove some`)
    }
    if (same !== undefined) tokenBindings.remove(same)
  }

  /**
   * Removes and returns the bindings of a token, which may be revoked. @throws Fault NOT_FOUND,
   * NOT_ALLOWED.
   */
  unbind(organization: Organization, idOrVisible: string): TokenBinding[] {
    const { monitoringTokens, tokenBindings } = this.store
    return this.audited('token.unbind', organization.id, () => {
      const tokens = monitoringTokens.ofOrganization(organization.id)
      const [first, ...rest] = namedBy(tokens, idOrVisible)
      if (first === undefined) {
        const shown = JSON.stringify(redactedSecret(idOrVisible))
        throw new Fault('NOT_FOUND', `no monitoring token ${shown}; posture-admin token list shows all`)
      }
      const bindings = [first, ...rest].flatMap(({ id }) => tokenBindings.ofToken(organization.id, id))
      for (const binding of bindings) tokenBindings.remove(binding)
      return { ...about(first, { were: bindings.map(describeBinding) }), result: bindings }
    })
  }

  #active(organization: Organization, idOrVisible: string): MonitoringToken {
    const { store, clock } = this
    const tokens = store.monitoringTokens.ofOrganization(organization.id)
    return chosen(tokens, idOrVisible, 'monitoring token', clock.nowMs())
  }
}

function assertNetwork(network: string): void {
  if (network === '' || networkOf(network) !== undefined) return
  throw new Fault(
    'USAGE',
    `--address: expected an address or a network such as 192.0.2.0/24, found ${JSON.stringify(network)}`,
  )
}

/** What a binding binds, for people. */
export function describeBinding({ network, port }: BindingTarget): string {
  return [network, port === 0 ? '' : `port ${port}`].filter((part) => part !== '').join(' ')
}

function about(
  { organizationId, id, label, visible }: MonitoringToken,
  more: Readonly<Record<string, string | readonly string[]>> = {},
) {
  return { organizationId, subject: label, details: { id, prefix: visible, ...more } }
}

function sameNetwork(one: string, other: string): boolean {
  const a = networkOf(one)
  const b = networkOf(other)
  if (a === undefined || b === undefined) return one === other
  return a.prefixBits === b.prefixBits && contains(a, b.bytes)
}
