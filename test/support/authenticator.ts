import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** Flags of authenticator data (WebAuthn §6.1). */
const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const BACKUP_ELIGIBLE = 0x08
const BACKED_UP = 0x10
const CREDENTIAL_INCLUDED = 0x40

export interface CreationOptions {
  readonly rp: { readonly id: string }
  readonly user: { readonly id: string; readonly name: string }
  readonly challenge: string
  readonly excludeCredentials: readonly { readonly id: string }[]
}

export interface RequestOptions {
  readonly rpId: string
  readonly challenge: string
  readonly allowCredentials: readonly { readonly id: string }[]
}

/** The format of an attestation, and its statement. */
export type Attestation = readonly [format: string, statement: ReadonlyMap<string, unknown>]

/** What a correct browser and authenticator would not do. */
export interface Deviation {
  readonly origin?: string
  readonly rpId?: string
  readonly challenge?: string
  readonly type?: string
  readonly isUserVerified?: boolean
  readonly isUserPresent?: boolean
  readonly userHandle?: string | null
  readonly counter?: number
  readonly credentialId?: string
  /** An attestation that was not asked for, of these bytes (WebAuthn §6.5). */
  readonly attestation?: (signed: Buffer, passkey: KeyObject) => Attestation
}

/**
 * An authenticator in software with one discoverable ES256 credential, and the browser around it.
 */
export class Authenticator {
  readonly credentialId = randomBytes(32).toString('base64url')
  readonly #origin: string
  readonly #isSynced: boolean
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  #userHandle = randomBytes(16).toString('base64url')
  /** A synchronized passkey does not count. */
  #counter = 0

  constructor(origin: string, options: { readonly isSynced?: boolean } = {}) {
    this.#origin = origin
    this.#isSynced = options.isSynced ?? false
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#privateKey = privateKey
    this.#publicKey = publicKey
  }

  /** The response to navigator.credentials.create, as JSON text. */
  create(options: CreationOptions, deviation: Deviation = {}): string {
    this.#userHandle = options.user.id
    const clientDataJSON = this.#clientData('webauthn.create', options.challenge, deviation)
    const id = Buffer.from(this.credentialId, 'base64url')
    const credential = [Buffer.alloc(16), u16(id.length), id, this.#coseKey()]
    const authData = this.#authenticatorData(options.rp.id, CREDENTIAL_INCLUDED, credential, deviation)
    const signed = Buffer.concat([authData, sha256(Buffer.from(clientDataJSON, 'base64url'))])
    const [format, statement] = deviation.attestation?.(signed, this.#privateKey) ?? ['none', new Map()]
    const attestationObject = cbor(
      new Map<string, unknown>([
        ['fmt', format],
        ['attStmt', statement],
        ['authData', authData],
      ]),
    )
    return this.#response({ clientDataJSON, attestationObject: base64url(attestationObject), transports: ['internal'] })
  }

  /** The response to navigator.credentials.get, as JSON text. */
  get(options: RequestOptions, deviation: Deviation = {}): string {
    if (!this.#isSynced) this.#counter++
    const clientDataJSON = this.#clientData('webauthn.get', options.challenge, deviation)
    const authData = this.#authenticatorData(options.rpId, 0, [], deviation)
    const signed = Buffer.concat([authData, sha256(Buffer.from(clientDataJSON, 'base64url'))])
    const signature = sign('sha256', signed, this.#privateKey)
    const userHandle = deviation.userHandle === undefined ? this.#userHandle : deviation.userHandle
    return this.#response(
      { clientDataJSON, authenticatorData: base64url(authData), signature: base64url(signature), userHandle },
      deviation.credentialId,
    )
  }

  #clientData(type: string, challenge: string, deviation: Deviation): string {
    const data = {
      type: deviation.type ?? type,
      challenge: deviation.challenge ?? challenge,
      origin: deviation.origin ?? this.#origin,
      crossOrigin: false,
    }
    return base64url(Buffer.from(JSON.stringify(data)))
  }

  #authenticatorData(rpId: string, flag: number, credential: readonly Buffer[], deviation: Deviation): Buffer {
    const { isUserPresent = true, isUserVerified = true, counter = this.#counter } = deviation
    const flags =
      flag |
      (isUserPresent ? USER_PRESENT : 0) |
      (isUserVerified ? USER_VERIFIED : 0) |
      (this.#isSynced ? BACKUP_ELIGIBLE | BACKED_UP : 0)
    const counterBytes = Buffer.alloc(4)
    counterBytes.writeUInt32BE(counter)
    const rpIdHash = sha256(deviation.rpId ?? rpId)
    return Buffer.concat([rpIdHash, Buffer.of(flags), counterBytes, ...credential])
  }

  /** RFC 9053 §7.1.1: kty EC2, alg ES256, crv P-256. */
  #coseKey(): Buffer {
    const { x = '', y = '' } = this.#publicKey.export({ format: 'jwk' })
    return cbor(
      new Map<number, unknown>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x, 'base64url')],
        [-3, Buffer.from(y, 'base64url')],
      ]),
    )
  }

  #response(response: object, id = this.credentialId): string {
    return JSON.stringify({ id, rawId: id, type: 'public-key', response, clientExtensionResults: {} })
  }
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url')
}

function u16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 255)
}

/** Encodes integers, bytes, text, lists and maps (RFC 8949). */
export function cbor(value: unknown): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)])
  if (value instanceof Map) return Buffer.concat([head(5, value.size), ...[...value].flat().map(cbor)])
  throw new TypeError(`no CBOR for ${typeof value}`)
}

function head(majorType: number, argument: number): Buffer {
  const type = majorType << 5
  if (argument < 24) return Buffer.of(type | argument)
  return argument < 256 ? Buffer.of(type | 24, argument) : Buffer.concat([Buffer.of(type | 25), u16(argument)])
}
