import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import { DAY_MS } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { dayOfVersion } from '../../registry/data-version.ts'
import {
  KEY_PURPOSE,
  MANIFEST_PURPOSE,
  type Manifest,
  publicKeysOf,
  type ReleaseKey,
  releaseKey,
  UPDATE_FORM,
} from '../../registry/signed-release.ts'

/** A release key with the signature of a root key, as registry:key writes it. */
export const signedKey = z.strictObject({ key: z.string().max(2000), key_signature: z.base64() })
export type SignedKey = z.infer<typeof signedKey>

/** Signs a release key with a root key. */
export function signReleaseKey(root: KeyObject, publicKey: KeyObject, number: number, until: string): SignedKey {
  const key = JSON.stringify({ number, public_key: publicKeyText(publicKey), until } satisfies ReleaseKey)
  return { key, key_signature: signatureOf(KEY_PURPOSE, key, root) }
}

/**
 * The update file of a package (registry/signed-release.ts).
 *
 * @param json registry.json of the package
 * @param validDays days from the version's day on which the release is valid
 * @throws Fault USAGE if the private key is not that of the signed key.
 */
export function updateFile(
  json: string,
  version: string,
  key: KeyObject,
  signed: SignedKey,
  validDays: number,
): Buffer {
  const { public_key } = releaseKey.parse(JSON.parse(signed.key))
  if (public_key !== publicKeyText(key)) throw new Fault('USAGE', '--signed-key names another key than --key')
  const body = gzipSync(json, { level: 9 })
  const sha256 = createHash('sha256').update(body).digest('hex')
  const valid_until = new Date(Date.parse(dayOfVersion(version)) + validDays * DAY_MS).toISOString().slice(0, 10)
  const manifest = JSON.stringify({ version, bytes: body.length, sha256, valid_until } satisfies Manifest)
  const head = { posture_registry: UPDATE_FORM, ...signed, manifest }
  const line = JSON.stringify({ ...head, manifest_signature: signatureOf(MANIFEST_PURPOSE, manifest, key) })
  return Buffer.concat([Buffer.from(`${line}\n`), body])
}

/** @throws Fault USAGE */
export function privateKeyIn(option: string, file: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(readFileSync(file))
  } catch (error) {
    throw new Fault('USAGE', `${option} ${file}: cannot be read as a private key (PEM)`, { cause: error })
  }
  if (key.asymmetricKeyType === 'ed25519') return key
  throw new Fault('USAGE', `${option} ${file}: expected an Ed25519 key, found ${key.asymmetricKeyType}`)
}

/** @throws Fault USAGE */
export function publicKeyIn(option: string, file: string): KeyObject {
  const [key] = publicKeysOf(readFileSync(file, 'utf8'))
  if (key !== undefined) return key
  throw new Fault('USAGE', `${option} ${file}: expected a public Ed25519 key (PEM)`)
}

export function publicKeyText(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

function signatureOf(purpose: string, text: string, key: KeyObject): string {
  return sign(null, Buffer.from(purpose + text), key).toString('base64')
}
