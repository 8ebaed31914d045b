import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/**
 * Says that syslog messages without a token that come from an address, or to a port, are those of a token's devices. For devices that cannot
 * write STRUCTURED-DATA.
 */
export interface TokenBinding {
  readonly organizationId: string
  readonly tokenId: string
  /** SHA-256 of the raw token in hex: whether it is still active is asked by it. */
  readonly tokenHash: string
  /** An address, or a network as `192.0.2.0/24`; '' for every address. */
  readonly network: string
  /** The local port that messages come to; 0 for every port. */
  readonly port: number
}

export class TokenBindings {
  readonly #bindings: Family<TokenBinding>

  constructor(environment: Environment) {
    this.#bindings = new Family(environment.table('token-bindings'), 'token binding')
  }

  /** Those of all organizations: a message without a token does not say whose it is. */
  all(): TokenBinding[] {
    return Array.from(this.#bindings.range(Buffer.alloc(0)), ({ value }) => value)
  }

  ofToken(organizationId: string, tokenId: string): TokenBinding[] {
    const prefix = Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId)])
    return Array.from(this.#bindings.range(prefix), ({ value }) => value)
  }

  /** Inside a transaction of the caller. */
  put(binding: TokenBinding): void {
    this.#bindings.put(keyOf(binding), binding)
  }

  /** Inside a transaction of the caller. */
  remove(binding: TokenBinding): void {
    this.#bindings.remove(keyOf(binding))
  }
}

function keyOf({ organizationId, tokenId, network, port }: TokenBinding): Buffer {
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(tokenId), Buffer.from(`${network} ${port}`)])
}
