import type { Platform } from '../../registry/platform.ts'
import { isPseudonym } from '../kernel/event/client.ts'
import { Pseudonyms } from '../kernel/process/client-key.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Organization } from '../store/organizations.ts'
import { AuditedChanges } from './audited-changes.ts'
import { type ClientFilter, type ClientList, clientList } from './client-list.ts'
import { type PlatformOfClient, type PlatformUse, platformUse, storedClient, useOfClient } from './client-use.ts'

/** The subject of the audit entry of a reading of clients that are not kept. */
const NOT_KEPT = 'a client'

/** Who uses a platform, by its name; what a client uses, as it is stored; or the list of clients. */
export type ClientReading =
  | { readonly platform: string }
  | { readonly client: string }
  | { readonly list: 'clients' | 'groups' }

/** A pseudonym, decrypted. */
export interface Revealed {
  readonly kind: 'client' | 'user'
  readonly text: string
}

/** Reads who uses which platform. Each reading is in the audit log. */
export class ClientReads extends AuditedChanges {
  /** Records a reading, before another thread reads. @throws Fault NOT_ALLOWED. */
  note(organization: Organization, reading: ClientReading): void {
    if ('platform' in reading) return this.auditedRead('client.read', organization.id, () => reading.platform)
    if ('list' in reading) return this.auditedRead('client.read', organization.id, () => `list of ${reading.list}`)
    // Read again in the transaction: the setting may have changed since the request began, and no
    // entry may name a client that it erased.
    const subject = (): string => {
      const { mode } = this.store.organizations.clientSettings(organization.id)
      const mayName = mode === 'full' || (mode === 'pseudonym' && isPseudonym(reading.client))
      return mayName ? reading.client : NOT_KEPT
    }
    // Marked, because the setting can erase clients (scan/erase-clients.ts), but not platforms.
    this.auditedRead('client.read', organization.id, subject, { kind: 'client' })
  }

  /**
   * Reads who uses a platform. `platform` is its name, for the audit log.
   *
   * @throws Fault NOT_ALLOWED
   */
  ofPlatform(organization: Organization, platformId: string, platform: string): PlatformUse {
    const { store, clock } = this
    this.note(organization, { platform })
    return store.environment.read(() => platformUse(store, organization, platformId, clock.nowMs()))
  }

  /**
   * Reads which platforms a client uses: an address, a pseudonym or a user name. Returns the client
   * as it is stored.
   *
   * @throws Fault NOT_ALLOWED, SECRETS_KEY
   */
  ofClient(
    organization: Organization,
    text: string,
  ): { readonly client: string; readonly platforms: readonly PlatformOfClient[] } {
    const { store, clock } = this
    const client = storedClient(store, organization, text)
    this.note(organization, { client })
    const { platforms } = store.environment.read(() => useOfClient(store, organization, client, clock.nowMs()))
    return { client, platforms }
  }

  /** Reads the list of clients. @throws Fault NOT_ALLOWED, SECRETS_KEY. */
  list(organization: Organization, platforms: readonly Platform[], filter: ClientFilter): ClientList {
    const { store, clock } = this
    const { search = '' } = filter
    this.note(organization, search === '' ? { list: 'clients' } : { client: storedClient(store, organization, search) })
    return store.environment.read(() => clientList(store, organization, platforms, filter, clock.nowMs()))
  }

  /** Records that the clients of all platforms are exported. @throws Fault NOT_ALLOWED. */
  noteExport({ id }: Organization): void {
    this.auditedRead('client.read', id, () => 'export of clients')
  }

  /** Decrypts a pseudonym. @throws Fault USAGE, SECRETS_KEY, NOT_ALLOWED. */
  reveal({ id }: Organization, pseudonym: string): Revealed {
    const { store } = this
    return this.audited('client.reveal', id, () => {
      const { keyId } = store.organizations.clientSettings(id)
      if (keyId === '') throw new Fault('CONFLICT', 'the organization has no pseudonyms')
      const result = new Pseudonyms(store.dataDirectory, id, keyId).reveal(pseudonym)
      return { organizationId: id, subject: pseudonym, result }
    })
  }
}
