import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TlsFiles } from '../../engine/http/certificate.ts'

/** Key types that people use, as arguments of `openssl genpkey`. */
export const KEY_KINDS = {
  rsa: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  'ECDSA P-256': ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  'RSA-PSS': ['-algorithm', 'RSA-PSS', '-pkeyopt', 'rsa_keygen_bits:2048'],
  secp256k1: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:secp256k1'],
} as const

/**
 * Creates the directory and, in it, a self-signed certificate for localhost and these addresses,
 * with a key of this type.
 */
export function opensslCertificate(
  directory: string,
  kind: keyof typeof KEY_KINDS,
  addresses: readonly string[] = ['127.0.0.1'],
): TlsFiles {
  mkdirSync(directory, { recursive: true })
  const files = { keyFile: join(directory, 'key.pem'), certificateFile: join(directory, 'certificate.pem') }
  execFileSync('openssl', ['genpkey', ...KEY_KINDS[kind], '-out', files.keyFile], { stdio: 'ignore' })
  const names = ['DNS:localhost', ...addresses.map((address) => `IP:${address}`)].join(',')
  const subject = ['-subj', '/CN=localhost', '-days', '30', '-addext', `subjectAltName=${names}`]
  const request = ['req', '-new', '-x509', '-key', files.keyFile, '-out', files.certificateFile, ...subject]
  execFileSync('openssl', request, { stdio: 'ignore' })
  return files
}

/** Replaces a certificate, the key first. */
export function replaceCertificate(old: TlsFiles, by: TlsFiles): void {
  copyFileSync(by.keyFile, old.keyFile)
  copyFileSync(by.certificateFile, old.certificateFile)
}
