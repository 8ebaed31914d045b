import { createHash, type X509Certificate } from 'node:crypto'

/**
 * The pin of a certificate's public key, which stays when the certificate is renewed: `sha256-key:`
 * and the 64 hex digits of the SHA-256 of its SPKI in DER (RFC 7469 §2.4).
 */
export function keyPin({ publicKey }: X509Certificate): string {
  const digits = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
  return `sha256-key:${digits}`
}
