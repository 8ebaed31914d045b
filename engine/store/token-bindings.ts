import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

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

export class TokenBindings {
  readonly #bindings: Family<TokenBinding>

  constructor(environment: Environment) {
    this.#bindings = new Family(environment.table('token-bindings'), 'token binding')
  }

  /**
   * The bindings of all organizations: a message without a token does not name its organization.
   */
  all(): TokenBinding[] {
    return Array.from(this.#bindings.range(Buffer.alloc(0)), ({ value }) => value)
  }

  ofToken(organizationId: string, tokenId: string): TokenBinding[] {
    const prefix = Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId)])
    return Array.from(this.#bindings.range(prefix), ({ value }) => value)
  }

  /** Requires a write transaction. */
  put(binding: TokenBinding): void {
    this.#bindings.put(keyOf(binding), binding)
  }

  /** Requires a write transaction. */
  remove(binding: TokenBinding): void {
    this.#bindings.remove(keyOf(binding))
  }
}

function keyOf({ organizationId, tokenId, network, port }: TokenBinding): Buffer {
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId), Buffer.from(`${network} ${port}`)])
}
