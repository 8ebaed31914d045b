import type { Removal } from '../store/removals.ts'

/** When an API key or a monitoring token was revoked or expires, as a store says. */
export interface Revocation {
  readonly kind: 'api-key' | 'token'
  readonly organizationId: string
  readonly id: string
  /** 0: it was not revoked, but expires. */
  readonly revokedAtMs: number
  readonly expiresAtMs?: number
}

/** What the process that reads a store reports. */
export interface ReadRevocations {
  readonly revocations: readonly Revocation[]
  readonly removals: readonly Removal[]
  /** Keys, tokens and removals whose records cannot be read. */
  readonly damaged: number
}

/** Why a store's revocations are not known. */
export interface Unreadable {
  readonly unreadable: string
}
