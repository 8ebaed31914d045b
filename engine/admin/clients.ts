import { Pseudonyms } from '../process/client-key.ts'
import { Fault } from '../process/error-codes.ts'
import { canonicalAddress } from '../process/network.ts'
import { DistinctClients } from '../scan/distinct-clients.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import { ClientSum, type ClientUse } from '../store/client-sum.ts'
import { clientModeOf, type Organization } from '../store/organizations.ts'
import type { Changes } from './changes.ts'

/** The use of one platform on one day. */
export interface PlatformDay {
  readonly day: number
  readonly matches: number
  readonly blocked: number
  /** Distinct clients, an estimate above 256. */
  readonly clients: number
}

/** Who uses a platform, over the evidence window. */
export interface PlatformUse {
  /** When a scan first found the platform. 0: none has found it. */
  readonly detectedAtMs: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly matches: number
  readonly days: readonly PlatformDay[]
  /** Matches by name, most first. */
  readonly names: readonly (readonly [name: string, matches: number])[]
  readonly clients: readonly ClientUse[]
  /** Distinct clients over all days, an estimate above 256. */
  readonly clientsTotal: number
  /** Matches of clients that are not among `clients`. */
  readonly otherMatches: number
}

/** The platforms that one client uses: the sum over its users, by platform. */
export interface PlatformOfClient extends ClientUse {
  readonly platformId: string
}

/** Reads who uses which platform. Each reading is in the audit log. */
export class ClientReads {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * Reads who uses a platform. `platform` is its name, for the audit log.
   *
   * @throws Fault NOT_ALLOWED
   */
  ofPlatform(organization: Organization, platformId: string, platform: string): PlatformUse {
    const { store, clock } = this.#changes
    const { id } = organization
    this.#changes.read('client.read', id, platform)
    const firstDay = firstDayOfWindow(organization, clock.nowMs())
    return store.environment.read(() => platformUse(store, id, platformId, firstDay))
  }

  /**
   * Reads which platforms a client uses: an address, a pseudonym or a user name. Returns the client
   * as it is stored.
   *
   * @throws Fault NOT_ALLOWED, SECRETS_KEY
   */
  ofClient(organization: Organization, text: string): { client: string; platforms: PlatformOfClient[] } {
    const { store, clock } = this.#changes
    const { id } = organization
    const client = this.#stored(organization, text)
    this.#changes.read('client.read', id, client)
    const firstDay = firstDayOfWindow(organization, clock.nowMs())
    const sums = new Map<string, ClientSum>()
    store.environment.read(() => {
      for (const record of store.clientDays.since(id, firstDay)) {
        const sum = sums.get(record.platformId) ?? new ClientSum()
        sum.add(record, (reader) => reader.client === client || reader.user === client)
        sums.set(record.platformId, sum)
      }
    })
    const platforms = [...sums].flatMap(([platformId, sum]) => sum.clients().map((use) => ({ ...use, platformId })))
    return { client, platforms: platforms.sort((a, b) => b.matches - a.matches) }
  }

  /** Decrypts a pseudonym. @throws Fault USAGE, SECRETS_KEY, NOT_ALLOWED. */
  reveal({ id }: Organization, pseudonym: string): { readonly kind: 'client' | 'user'; readonly text: string } {
    const { store } = this.#changes
    return this.#changes.make('client.reveal', id, () => {
      const { keyId } = store.organizations.clientSettings(id)
      if (keyId === '') throw new Fault('CONFLICT', 'the organization has no pseudonyms')
      const result = new Pseudonyms(store.dataDirectory, id, keyId).reveal(pseudonym)
      return { organizationId: id, subject: pseudonym, result }
    })
  }

  /** An address is stored in its canonical form, or as its pseudonym. */
  #stored(organization: Organization, text: string): string {
    const canonical = canonicalAddress(text)
    if (clientModeOf(organization) !== 'pseudonym' || !/[.:]/.test(canonical)) return canonical
    const { dataDirectory } = this.#changes.store
    return new Pseudonyms(dataDirectory, organization.id, organization.clientKeyId ?? '').ofClient(canonical)
  }
}

function platformUse(
  { evidence, clientDays }: Changes['store'],
  organizationId: string,
  platformId: string,
  firstDay: number,
): PlatformUse {
  const distinct = new DistinctClients()
  const names = new Map<string, number>()
  const sum = new ClientSum()
  const days: PlatformDay[] = []
  let [firstSeenMs, lastSeenMs, matches] = [0, 0, 0]
  for (const { day, platformId: found, evidence: use } of evidence.since(organizationId, firstDay)) {
    if (found !== platformId) continue
    distinct.mergeBytes(use.clients)
    for (const [name, count] of Object.entries(use.byName)) names.set(name, (names.get(name) ?? 0) + count)
    firstSeenMs = firstSeenMs === 0 ? use.firstSeenMs : Math.min(firstSeenMs, use.firstSeenMs)
    lastSeenMs = Math.max(lastSeenMs, use.lastSeenMs)
    matches += use.matches
    const { estimate } = DistinctClients.fromBytes(use.clients)
    days.push({ day, matches: use.matches, blocked: use.blocked, clients: estimate })
    const bytes = clientDays.get(organizationId, day, platformId)
    if (bytes !== undefined) sum.add({ day, platformId, bytes })
  }
  return {
    detectedAtMs: evidence.detection(organizationId, platformId)?.createdAtMs ?? 0,
    firstSeenMs,
    lastSeenMs,
    matches,
    days,
    names: [...names].sort((a, b) => b[1] - a[1]),
    clients: sum.clients(),
    clientsTotal: distinct.estimate,
    otherMatches: sum.otherMatches,
  }
}
