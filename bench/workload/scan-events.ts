import { type Event, eventId, METHODS, packEvent } from '../../engine/kernel/event/event.ts'
import { slicesOf } from '../../engine/kernel/lmdb/queue-chunk.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import type { Store } from '../../engine/store/store.ts'
import { type Catalog, loadCatalog } from '../../registry/catalog.ts'
import { isUseOfAi } from '../../registry/contact.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { EventRow } from '../peers/scan-sql.ts'

/** Platforms used by each organization, and number of its clients. */
const PLATFORMS_EACH = 40
const CLIENTS_EACH = 2000
const EVENTS_PER_TRANSACTION = 5000

/**
 * Events of organizations that partly overlap, as real ones do. Each number always gives the same
 * event.
 */
export class ScanEvents {
  readonly catalog: Catalog = loadCatalog()
  readonly #names: readonly (readonly { readonly name: string; readonly platform: number }[])[]
  readonly #nowMs: number

  constructor(nowMs: number) {
    this.#nowMs = nowMs
    const matcher = new NameMatcher(this.catalog)
    const names = this.catalog.platforms.map((platform, index) =>
      platform.domains
        .flatMap(({ domain, match }) => (match === 'suffix' ? [domain, `api.${domain}`] : [domain]))
        // A narrower rule may give a name below to another platform. Scans count AI platforms only.
        .filter((name) => {
          const rule = matcher.match(name)
          return rule?.platform === platform && isUseOfAi(rule)
        })
        .map((name) => ({ name, platform: index })),
    )
    this.#names = names.filter((some) => some.length > 0)
  }

  /** Returns event `number`, from 0, of the organization with this number. */
  event(organization: number, number: number): Event {
    const { name } = this.#nameOf(organization, number)
    const client = (number * 7919) % CLIENTS_EACH
    const firstSeenMs = this.#nowMs - ((number * 977) % 3_600_000)
    return {
      id: eventId('00000000000000aa', number + 1),
      name,
      client: `10.${organization % 200}.${client >>> 8}.${client & 255}`,
      method: METHODS[number % 3] ?? 'dns',
      firstSeenMs,
      lastSeenMs: firstSeenMs + (number % 9000),
      count: 1 + (number % 40),
    }
  }

  row(organization: number, number: number): EventRow {
    const { name, client, method, firstSeenMs, lastSeenMs, count } = this.event(organization, number)
    const { platform } = this.#nameOf(organization, number)
    const place = METHODS.indexOf(method)
    return [organization, dayOf(lastSeenMs), platform, name, client, place, firstSeenMs, lastSeenMs, count]
  }

  /** Writes events [first, end) of each organization to its buffer. */
  fill(store: Store, organizationIds: readonly string[], first: number, end: number): void {
    for (let from = first; from < end; from += EVENTS_PER_TRANSACTION) {
      const to = Math.min(end, from + EVENTS_PER_TRANSACTION)
      for (let begin = 0; begin < organizationIds.length; begin += 100) {
        store.environment.write(() => {
          for (const [index, id] of organizationIds.slice(begin, begin + 100).entries()) {
            const entries = Array.from({ length: to - from }, (_, at) =>
              packEvent(this.event(begin + index, from + at)),
            )
            store.buffer.appendPacked(id, slicesOf(entries), [{ from: 0, to: to - from }])
          }
        })
      }
    }
  }

  #nameOf(organization: number, number: number): { readonly name: string; readonly platform: number } {
    const spread = number * 31
    const platform = (organization * 13 + (spread % PLATFORMS_EACH) * 19) % this.#names.length
    const names = this.#names[platform] ?? []
    return names[Math.floor(spread / PLATFORMS_EACH) % names.length] as { name: string; platform: number }
  }
}
