import { aessiv } from '@noble/ciphers/aes.js'
import { Fault } from './error-codes.ts'
import { KeyFile, keyIdOf, keyPath } from './key-file.ts'
import { addressBytes, addressOfBytes, isIpv4InIpv6 } from './network.ts'

/*
 * Pseudonyms of clients and users: the address or name, encrypted with the key of the organization.
 * The encryption is deterministic, so that the same client always has the same pseudonym. The key
 * is in a file outside of the store, so that neither the store nor a backup reveals a client.
 *
 *   p-   and in base64url the AES-SIV ciphertext of a client: its 4 or 16 bytes
 *   u-   the same of a user: the name in UTF-8
 */

/** AES-SIV with two keys of 256 bits (RFC 5297). Adds 16 bytes to the text. */
const KEY_BYTES = 64
const PREFIXES = { client: 'p-', user: 'u-' } as const
type Kind = keyof typeof PREFIXES
const PSEUDONYM = /^([pu])-([A-Za-z0-9_-]{22,220})$/
/** Pseudonyms remembered of each organization, since encryption takes 80 times as long (35 us). */
const REMEMBERED_MAX = 50_000
const REMEDY = 'Restore it; without it, no pseudonym can be revealed'

/** The key file of an organization's pseudonyms. */
export function clientKeyFile(dataDirectory: string, organizationId: string): KeyFile {
  return new KeyFile(keyPath(dataDirectory, `clients-${organizationId}.key`), KEY_BYTES)
}

/** Returns the id of the organization's key. Creates the key if it is missing. @throws Fault. */
export function createClientKey(dataDirectory: string, organizationId: string): string {
  const file = clientKeyFile(dataDirectory, organizationId)
  file.createIfMissing()
  return keyIdOf(file.read(REMEDY))
}

/** Encrypts clients and users of one organization. */
export class Pseudonyms {
  readonly #key: Uint8Array
  readonly #known = { client: new Map<string, string>(), user: new Map<string, string>() }

  /** @throws Fault SECRETS_KEY if the key file is missing, or is not the key `keyId`. */
  constructor(dataDirectory: string, organizationId: string, keyId: string) {
    const { file } = clientKeyFile(dataDirectory, organizationId)
    this.#key = clientKeyFile(dataDirectory, organizationId).read(REMEDY)
    if (keyIdOf(this.#key) !== keyId) {
      throw new Fault('SECRETS_KEY', `${file}: is not the key of the organization. Restore the file`)
    }
  }

  /** The pseudonym of an address. Other text is returned unchanged. */
  ofClient(address: string): string {
    return this.#known.client.get(address) ?? this.#seal('client', address, bytesOf(address))
  }

  ofUser(name: string): string {
    return this.#known.user.get(name) ?? this.#seal('user', name, Buffer.from(name))
  }

  /** The address or name of a pseudonym. @throws Fault USAGE if it is not one of this key. */
  reveal(pseudonym: string): { readonly kind: Kind; readonly text: string } {
    const [, letter, sealed = ''] = PSEUDONYM.exec(pseudonym) ?? []
    const kind = letter === 'u' ? 'user' : 'client'
    let bytes: Uint8Array
    try {
      bytes = aessiv(this.#key, Buffer.from(kind)).decrypt(Buffer.from(sealed, 'base64url'))
    } catch {
      throw new Fault('USAGE', 'expected a pseudonym of this organization: p- or u- and the text after it, unchanged')
    }
    return { kind, text: kind === 'user' ? Buffer.from(bytes).toString() : addressOfBytes(bytes) }
  }

  #seal(kind: Kind, text: string, bytes: Uint8Array | undefined): string {
    if (bytes === undefined) return text
    const sealed = aessiv(this.#key, Buffer.from(kind)).encrypt(bytes)
    const pseudonym = PREFIXES[kind] + Buffer.from(sealed).toString('base64url')
    const known = this.#known[kind]
    if (known.size >= REMEMBERED_MAX) known.clear()
    known.set(text, pseudonym)
    return pseudonym
  }
}

/** The 4 bytes of an IPv4 address, also of an IPv4-mapped one, or the 16 of an IPv6 address. */
function bytesOf(address: string): Uint8Array | undefined {
  const bytes = addressBytes(address)
  return bytes !== undefined && isIpv4InIpv6(bytes) ? bytes.subarray(-4) : bytes
}
