import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { dayOfVersion } from './data-version.ts'
import { dataVersion } from './data-version-schema.ts'
import { type ReleasedData, releasedData } from './released-data.ts'
import { isoDay } from './schema-parts.ts'

/*
 * An update file: a release of the registry's data that service and collectors verify and use
 * (docs/reference/registry.md).
 *
 *   one line of JSON    { posture_registry: 1, key, key_signature, manifest, manifest_signature }
 *   gzip                registry.json of the data package
 *
 * `key` and `manifest` are texts of JSON, because signatures cover bytes. A root key signs `key`,
 * which names the release key; the release key signs `manifest`, which has the SHA-256 of the rest.
 * Signatures are Ed25519 (RFC 8032), in base64.
 */
export const UPDATE_FORM = 1
/** The built-in registry has 0.1 MB as an update file, and 1 MB unpacked. */
export const UPDATE_BYTES_MAX = 4 * 1024 * 1024
const UNPACKED_BYTES_MAX = 64 * 1024 * 1024
const HEADER_BYTES_MAX = 8192

/** What a signature covers begins with its purpose, so that no signature fits another text. */
export const KEY_PURPOSE = 'posture-registry release key\n'
export const MANIFEST_PURPOSE = 'posture-registry manifest\n'

/** The update file is not one, or its signatures do not verify. */
export class UpdateFileError extends Error {
  override readonly name = 'UpdateFileError'
}

const base64 = z.base64().max(200)
const header = z.object({
  posture_registry: z.literal(UPDATE_FORM, 'is of a later form; update the program first'),
  key: z.string().max(2000),
  key_signature: base64,
  manifest: z.string().max(2000),
  manifest_signature: base64,
})

/** A release key, as the root key signs it. A key with a higher number replaces those before. */
export const releaseKey = z.object({
  number: z.int().min(1).max(1_000_000),
  /** PEM. */
  public_key: z.string().max(500),
  /** The last day of versions that the key may sign. */
  until: isoDay,
})
export type ReleaseKey = z.infer<typeof releaseKey>

const manifest = z.object({
  version: dataVersion,
  bytes: z.int().min(1).max(UPDATE_BYTES_MAX),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /**
   * The last day on which nobody need worry that a later release is withheld. Releases before
   * 2026-12 have none.
   */
  valid_until: isoDay.optional(),
})
export type Manifest = z.infer<typeof manifest>

/** A release whose signatures were verified. */
export interface SignedRelease {
  readonly version: string
  readonly keyNumber: number
  /** The update file. */
  readonly bytes: Uint8Array
  readonly sha256: string
  /** '': without an end. */
  readonly validUntil: string
}

/** Why a release should be replaced; '' while it is valid. Days end in UTC. */
export function expiryProblem(
  { version, validUntil }: Pick<SignedRelease, 'version' | 'validUntil'>,
  nowMs: number,
): string {
  const today = new Date(nowMs).toISOString().slice(0, 10)
  if (validUntil === '' || today <= validUntil) return ''
  return `the registry ${version} was valid until ${validUntil}; install a newer release`
}

/**
 * Verifies the signatures of an update file.
 *
 * @throws UpdateFileError
 */
export function verifiedRelease(bytes: Uint8Array, roots: readonly KeyObject[]): SignedRelease {
  const { head, body } = partsOf(bytes)
  const isByRoot = roots.some((root) => isSigned(KEY_PURPOSE, head.key, head.key_signature, root))
  if (!isByRoot) throw new UpdateFileError('no pinned root key has signed its release key')
  const key = parsed('release key', head.key, releaseKey)
  const [publicKey] = publicKeysOf(key.public_key)
  if (publicKey === undefined || !isSigned(MANIFEST_PURPOSE, head.manifest, head.manifest_signature, publicKey)) {
    throw new UpdateFileError('its signature does not fit')
  }
  const { version, bytes: bodyBytes, sha256, valid_until } = parsed('manifest', head.manifest, manifest)
  if (body.length !== bodyBytes || sha256Of(body) !== sha256) {
    throw new UpdateFileError('its content is not what was signed: the file is damaged')
  }
  if (dayOfVersion(version) > key.until) {
    throw new UpdateFileError(`its release key may sign versions until ${key.until}, and not ${version}`)
  }
  return { version, keyNumber: key.number, bytes, sha256: sha256Of(bytes), validUntil: valid_until ?? '' }
}

/** The data of a release that was verified. @throws UpdateFileError if it breaks the schema. */
export function dataOf({ bytes, version }: Pick<SignedRelease, 'bytes' | 'version'>): ReleasedData {
  const { body } = partsOf(bytes)
  let text: string
  try {
    text = gunzipSync(body, { maxOutputLength: UNPACKED_BYTES_MAX }).toString('utf8')
  } catch (cause) {
    throw new UpdateFileError('its content cannot be decompressed', { cause })
  }
  const data = parsed('content', text, releasedData)
  if (data.version === version) return data
  throw new UpdateFileError(`its content is of version ${data.version}, and its manifest of ${version}`)
}

/** Public Ed25519 keys in a text of PEM blocks. Other keys and other text are ignored. */
export function publicKeysOf(pem: string): KeyObject[] {
  const blocks = pem.match(/-----BEGIN PUBLIC KEY-----[\s\S]+?-----END PUBLIC KEY-----/g) ?? []
  return blocks.flatMap((block) => {
    try {
      const key = createPublicKey(block)
      return key.asymmetricKeyType === 'ed25519' ? [key] : []
    } catch {
      return []
    }
  })
}

function partsOf(bytes: Uint8Array): { readonly head: z.infer<typeof header>; readonly body: Uint8Array } {
  if (bytes.length > UPDATE_BYTES_MAX) throw new UpdateFileError(`it is larger than ${UPDATE_BYTES_MAX} bytes`)
  const end = bytes.subarray(0, HEADER_BYTES_MAX).indexOf(0x0a)
  if (end < 0) throw new UpdateFileError('it is not an update file of the registry')
  const text = Buffer.from(bytes.subarray(0, end)).toString('utf8')
  return { head: parsed('header', text, header), body: bytes.subarray(end + 1) }
}

function isSigned(purpose: string, text: string, signature: string, key: KeyObject): boolean {
  return verify(null, Buffer.from(purpose + text), key, Buffer.from(signature, 'base64'))
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function parsed<T>(part: string, text: string, schema: z.ZodType<T>): T {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new UpdateFileError(part === 'header' ? 'it is not an update file of the registry' : `its ${part} is no JSON`)
  }
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new UpdateFileError([`its ${part}`, issue?.path.join('.'), issue?.message].filter(Boolean).join(': '))
}

/**
 * The project's root keys (PEM), which sign release keys. Each release of the program pins the ones
 * that it has here. While a root key is replaced, both are here
 * (CONTRIBUTING.md).
 *
 * The project has published none yet: operators pin their own with REGISTRY_ROOT.
 */
const PINNED = ''

/** The pinned root keys: those of the operator's text if there is one, else the project's. */
export function rootKeys(operatorsPem: string): KeyObject[] {
  return publicKeysOf(operatorsPem === '' ? PINNED : operatorsPem)
}
