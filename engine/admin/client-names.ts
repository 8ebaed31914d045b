import { Fault } from '../kernel/process/error-codes.ts'
import { networkOf, networkText } from '../kernel/process/network.ts'
import { CLIENT_NAMES_MAX, CLIENT_NETWORKS_MAX } from '../limits.ts'
import { isSingleAddress, type NamedNetwork } from '../store/client-names.ts'
import { endedAt, type NameSpan, withSpan } from '../store/name-spans.ts'
import type { Organization } from '../store/organizations.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'

/** Names of addresses and networks. */
export class ClientNameChanges extends AuditedChanges {
  /** Names a network, or renames it. @throws Fault USAGE, CONFLICT at the limit, NOT_ALLOWED. */
  addNetwork({ id }: Organization, text: string, name: string): NamedNetwork {
    checkText('name', name)
    const network = { network: canonicalNetwork(text), name }
    const { store } = this
    return this.audited('client.name', id, () => {
      if (isSingleAddress(network.network)) this.#assertFull(id)
      store.clientNames.putNetwork(id, network)
      if (store.clientNames.networks(id).length > CLIENT_NETWORKS_MAX) {
        throw new Fault('CONFLICT', `an organization has at most ${CLIENT_NETWORKS_MAX} named networks; remove one`)
      }
      return { organizationId: id, subject: network.network, details: { name }, result: network }
    })
  }

  /** @throws Fault NOT_FOUND, USAGE, NOT_ALLOWED. */
  removeNetwork({ id }: Organization, text: string): string {
    const network = canonicalNetwork(text)
    const { store } = this
    return this.audited('client.name', id, () => {
      if (!store.clientNames.removeNetwork(id, network)) {
        throw new Fault('NOT_FOUND', `no named network ${network}; posture-admin network list shows all`)
      }
      return { organizationId: id, subject: network, details: { removed: true }, result: network }
    })
  }

  /**
   * Imports all names of addresses. Names before the import keep their time until now. A name without
   * a beginning begins now, or at any time if the organization has no names yet.
   *
   * @throws Fault NOT_ALLOWED, CONFLICT unless mode is full
   */
  importHosts({ id }: Organization, names: SpansByAddress): void {
    const { store } = this
    this.audited('client.name', id, () => {
      if (names.size > 0) this.#assertFull(id)
      const nowMs = this.clock.nowMs()
      const spans = new Map<string, readonly NameSpan[]>()
      for (const [address, stored] of store.clientNames.hosts(id)) spans.set(address, endedAt(stored, nowMs))
      const isFirst = spans.size === 0
      for (const [address, given] of names) {
        const dated = given.map((span) =>
          span.fromMs === 0 && span.toMs > nowMs && !isFirst ? { ...span, fromMs: nowMs } : span,
        )
        spans.set(address, dated.reduce(withSpan, [...(spans.get(address) ?? [])]))
      }
      const isTooOld = oldestIn(spans)
      for (const [address, all] of spans) {
        const kept = all.filter((span) => !isTooOld(span))
        store.clientNames.putHost(id, address, kept)
      }
      return { organizationId: id, subject: 'names of clients', details: { names: names.size }, result: undefined }
    })
  }

  /** The name of an address is about one client. Requires the transaction that stores it. */
  #assertFull(organizationId: string): void {
    const { mode } = this.store.organizations.clientSettings(organizationId)
    if (mode === 'full') return
    throw new Fault('CONFLICT', `names of addresses are kept only with clients "full", not with "${mode}"`)
  }
}

/** The names of addresses. Later spans of an address replace earlier ones in their time. */
export type SpansByAddress = ReadonlyMap<string, readonly NameSpan[]>

/** Returns a function that finds the spans that ended first and are too many. Call it once for each span. */
function oldestIn(spans: SpansByAddress): (span: NameSpan) => boolean {
  const ends = Float64Array.from([...spans.values()].flatMap((all) => all.map(({ toMs }) => toMs))).sort()
  const tooMany = ends.length - CLIENT_NAMES_MAX
  const lastMs = ends[tooMany - 1] ?? Number.NEGATIVE_INFINITY
  // An import ends many names at the same time, and only some of them may be too many.
  let atLast = tooMany - ends.indexOf(lastMs)
  return ({ toMs }) => toMs < lastMs || (toMs === lastMs && atLast-- > 0)
}

/** `10.2.7.1/16` is stored as `10.2.0.0/16`. @throws Fault USAGE. */
function canonicalNetwork(text: string): string {
  const network = networkOf(text)
  if (network === undefined) {
    throw new Fault(
      'USAGE',
      `network: expected an address with a prefix such as 10.2.0.0/16, found ${JSON.stringify(text)}`,
    )
  }
  return networkText(network)
}
