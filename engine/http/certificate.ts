import { randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { generate } from 'selfsigned'
import { Fault } from '../process/error-codes.ts'
import { makeDirectory } from '../process/make-directory.ts'
import { notReadable } from '../process/ownership.ts'

/** PEM files: a private key, and the certificate chain with the leaf certificate first. */
export interface TlsFiles {
  readonly keyFile: string
  readonly certificateFile: string
}

export interface Certificate extends TlsFiles {
  /** SHA-256 of the certificate in DER: upper-case hex pairs with colons, as openssl prints it. */
  readonly fingerprint: string
  /** Newly created, self-signed. */
  readonly made: boolean
}

const VALID_DAYS = 825
/** ub-common-name of RFC 5280 appendix A. */
const COMMON_NAME_MAX = 64
const PRIVATE_FILE_MODE = 0o600

/**
 * Returns the operator's certificate, or a self-signed one in `directory`, which is created if
 * missing.
 *
 * @throws Fault CERTIFICATE if the files cannot be read or do not match
 */
export async function provideCertificate(
  directory: string,
  own: { keyFile: string; certificateFile: string } | undefined,
  extraHosts: readonly string[] = [],
): Promise<Certificate> {
  const files = own ?? { keyFile: join(directory, 'key.pem'), certificateFile: join(directory, 'certificate.pem') }
  const made = own === undefined && !(existsSync(files.keyFile) && existsSync(files.certificateFile))
  if (made) await makeSelfSigned(directory, files, extraHosts)
  return { ...files, fingerprint: checkedFingerprint(files), made }
}

async function makeSelfSigned(
  directory: string,
  files: { keyFile: string; certificateFile: string },
  extraHosts: readonly string[],
): Promise<void> {
  const names = [...new Set(['localhost', hostname(), ...extraHosts])]
  const notBefore = new Date()
  // A unique subject: of two CA certificates with one subject OpenSSL tries only the first, and a
  // client may trust the old and the new one.
  const commonName = `${(names[1] ?? 'localhost').slice(0, COMMON_NAME_MAX - 9)} ${randomBytes(4).toString('hex')}`
  const pems = await generate([{ name: 'commonName', value: commonName }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: notBefore,
    notAfterDate: new Date(notBefore.getTime() + VALID_DAYS * 86_400_000),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          ...names.map((value) => ({ type: 2 as const, value })),
          { type: 7 as const, ip: '127.0.0.1' },
          { type: 7 as const, ip: '::1' },
        ],
      },
    ],
  })
  makeDirectory(directory)
  // Each file is created atomically, the certificate last, so that an incomplete pair is created
  // again.
  for (const [file, text] of [
    [files.keyFile, pems.private],
    [files.certificateFile, pems.cert],
  ] as const) {
    writeFileSync(`${file}.new`, text, { mode: PRIVATE_FILE_MODE })
    renameSync(`${file}.new`, file)
  }
}

/** @throws Fault CERTIFICATE if the files cannot be read or do not match */
export function checkedFingerprint(files: TlsFiles): string {
  return usingTlsFiles(files, () => {
    const cert = readFileSync(files.certificateFile)
    createSecureContext({ key: readFileSync(files.keyFile), cert })
    return new X509Certificate(cert).fingerprint256
  })
}

/**
 * Runs work that only reads the files and passes them to OpenSSL. @throws Fault CERTIFICATE for any
 * error.
 */
export function usingTlsFiles<T>({ keyFile, certificateFile }: TlsFiles, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const denied = notReadable(error)
    const why =
      denied === undefined
        ? `${certificateFile}, ${keyFile}: ${(error as Error).message}`
        : `${denied.found}; ${denied.remedy}`
    throw new Fault('CERTIFICATE', why, { cause: error })
  }
}
