import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { Fault, isFault } from './error-codes.ts'
import { KeyFile, keyIdOf, keyPath } from './key-file.ts'
import { setting } from './settings.ts'

/*
 * The key that encrypts the few secrets that the service must be able to read again. It is in a
 * file outside of the store, so that neither the store nor a backup reveals these secrets. The
 * service creates it with the store.
 */

/** AES-256-GCM (NIST SP 800-38D) with a random nonce for each secret. */
const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const REMEDY = 'Restore it, or enter the secret again'

/** An encrypted secret. */
export interface SealedSecret {
  /** The first 16 hex digits of the SHA-256 of the key. */
  readonly keyId: string
  /** In base64: nonce (12 bytes), authentication tag (16), ciphertext. */
  readonly sealed: string
}

export const secretsKeySetting = setting(z.string().default(''), {
  flag: '--secrets-key-file <file>',
  env: 'SECRETS_KEY_FILE',
  advanced: 'The key must not be in the backup of the data directory',
  about:
    'Encrypt the client secrets of identity providers and the settings of alert channels with the key in this file; created if it is missing',
  defaultAbout: 'secrets.key in the data directory',
})

/** The path of the key file. */
export function secretsKeyFile(setting: string, dataDirectory: string): string {
  return setting === '' ? keyPath(dataDirectory, 'secrets.key') : setting
}

/** Encrypts and decrypts secrets. Reads the key file for each, which is rare. */
export class SecretsKey {
  readonly #file: KeyFile

  constructor(file: string) {
    this.#file = new KeyFile(file, KEY_BYTES)
  }

  get file(): string {
    return this.#file.file
  }

  /** Creates the key file, and returns whether it was missing. @throws Fault SECRETS_KEY */
  create(): boolean {
    return this.#file.createIfMissing()
  }

  /** Why secrets that were encrypted with a key cannot be opened; '' if they can. */
  problem(keyId: string): string {
    try {
      this.#read(keyId)
      return ''
    } catch (error) {
      if (isFault(error, 'SECRETS_KEY')) return error.message
      throw error
    }
  }

  /**
   * Encrypts a secret. Creates the key file if it is missing.
   *
   * @param context the place of the secret; another context cannot open it
   * @throws Fault SECRETS_KEY
   */
  seal(secret: string, context: string): SealedSecret {
    this.#file.createIfMissing()
    const key = this.#file.read(REMEDY)
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context))
    const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
    return { keyId: keyIdOf(key), sealed: Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]).toString('base64') }
  }

  /** @throws Fault SECRETS_KEY if the key file is missing, or has a different key. */
  open({ keyId, sealed }: SealedSecret, context: string): string {
    const key = this.#read(keyId)
    const bytes = Buffer.from(sealed, 'base64')
    const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
    try {
      const nonce = bytes.subarray(0, NONCE_BYTES)
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(context)).setAuthTag(tag)
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString()
    } catch {
      throw new Fault('SECRETS_KEY', 'the stored secret was changed. Enter the secret again')
    }
  }

  #read(keyId: string): Buffer {
    const key = this.#file.read(REMEDY)
    if (keyIdOf(key) === keyId) return key
    throw new Fault(
      'SECRETS_KEY',
      `${this.file}: is not the key that encrypted the secret. Restore the file, or enter the secret again`,
    )
  }
}
