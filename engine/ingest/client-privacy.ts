import { NO_CLIENT } from '../kernel/event/client.ts'
import type { Slices } from '../kernel/lmdb/queue-chunk.ts'
import { BoundedMap } from '../kernel/process/bounded-map.ts'
import { Pseudonyms } from '../kernel/process/client-key.ts'
import { type Clock, MINUTE_MS } from '../kernel/process/clock.ts'
import { logFailure } from '../kernel/process/failure.ts'
import type { Logger } from '../kernel/process/log.ts'
import type { ClientSettings } from '../store/organizations.ts'
import { type Replacement, replaceClients } from '../store/replace-clients.ts'

/** Organizations with pseudonyms whose key is in memory. The oldest are read again. */
const ORGANIZATIONS_MAX = 100

const NO_ONE: Replacement = { ofClient: () => NO_CLIENT, ofUser: () => '' }

interface Known {
  readonly keyId: string
  readonly replacement: Replacement
  readonly readAtMs: number
  readonly isUsable: boolean
}

/**
 * Replaces clients and users in events as their organization has decided, before they are stored.
 */
export class ClientPrivacy {
  readonly #dataDirectory: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #known = new BoundedMap<string, Known>(ORGANIZATIONS_MAX)

  constructor(dataDirectory: string, clock: Clock, log: Logger) {
    this.#dataDirectory = dataDirectory
    this.#clock = clock
    this.#log = log
  }

  applyTo(events: Slices, organizationId: string, { mode, keyId }: ClientSettings): Slices {
    if (mode === 'full' || events.count === 0) return events
    return replaceClients(events, mode === 'off' ? NO_ONE : this.#pseudonymsOf(organizationId, keyId))
  }

  /** Without the key, the clients of events are not kept. The key is read again after a minute. */
  #pseudonymsOf(id: string, keyId: string): Replacement {
    const nowMs = this.#clock.nowMs()
    const known = this.#known.get(id)
    const isFresh = known?.isUsable || Math.abs(nowMs - (known?.readAtMs ?? 0)) < MINUTE_MS
    if (known?.keyId === keyId && isFresh) return known.replacement
    const read = this.#read(id, keyId)
    this.#known.set(id, {
      keyId,
      replacement: read ?? NO_ONE,
      readAtMs: nowMs,
      isUsable: read !== undefined,
    })
    return read ?? NO_ONE
  }

  #read(organizationId: string, keyId: string): Replacement | undefined {
    try {
      const pseudonyms = new Pseudonyms(this.#dataDirectory, organizationId, keyId)
      return {
        ofClient: (address) => (address === NO_CLIENT ? address : pseudonyms.ofClient(address)),
        ofUser: (name) => pseudonyms.ofUser(name),
      }
    } catch (error) {
      logFailure(this.#log, error, 'no key for pseudonyms; events are stored without their clients', {
        fields: { organization: organizationId },
      })
      return undefined
    }
  }
}
