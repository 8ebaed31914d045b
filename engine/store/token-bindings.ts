import type { Environment } from '../kernel/lmdb/environment.ts'
import { Collection } from './family.ts'
import { ownKey } from './keys.ts'

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
