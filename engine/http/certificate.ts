import { createPublicKey, randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { makeDirectory } from '../kernel/process/directory.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { systemErrorText } from '../kernel/process/failure.ts'
import { keyPin } from '../kernel/process/key-pin.ts'
import { canonicalAddress } from '../kernel/process/network.ts'
import { notReadable } from '../kernel/process/ownership.ts'
import { readPrivateFile } from '../kernel/process/private-file.ts'

/** PEM files: a private key, and the certificate chain with the leaf certificate first. */
export interface TlsFiles {
  readonly keyFile: string
  readonly certificateFile: string
}

export interface Certificate extends TlsFiles {
  /** SHA-256 of the certificate in DER: upper-case hex pairs with colons, as openssl prints it. */
  readonly fingerprint: string
  /** The pin of its public key, for collectors. */
  readonly pin: string
  /** Newly created, self-signed. */
  readonly made: boolean
}

const VALID_DAYS = 825
/** ub-common-name of RFC 5280 appendix A. */
const COMMON_NAME_MAX = 64
/** Characters of the host name in the common name, before a space and 8 hexadecimal digits. */
const HOST_PART_MAX = COMMON_NAME_MAX - 9
const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '::1']
const PRIVATE_FILE_MODE = 0o600

/** The files of a self-signed certificate. */
export function selfSignedFiles(directory: string): TlsFiles {
  return { keyFile: join(directory, 'key.pem'), certificateFile: join(directory, 'certificate.pem') }
}

/**
 * Returns the operator's certificate, or a self-signed one in `directory`. The self-signed
 * certificate is created if it is missing, and again if it has other names: for the key that
 * exists, which clients may have pinned.
 *
 * @param names host names and IP addresses, in addition to this host's name and loopback. None
 *   keeps the names of a certificate that exists, which `posture-admin setup` may have given
 * @throws Fault CERTIFICATE if the files cannot be read or do not match
 */
export async function provideCertificate(
  directory: string,
  own: { keyFile: string; certificateFile: string } | undefined,
  names: readonly string[] = [],
): Promise<Certificate> {
  const files = own ?? selfSignedFiles(directory)
  const made = own === undefined && (isMissing(files) || (names.length > 0 && hasOtherNames(files, names)))
  if (made) await makeSelfSigned(directory, files, names)
  const certificate = checkedCertificate(files)
  return { ...files, fingerprint: certificate.fingerprint256, pin: keyPin(certificate), made }
}

function isMissing(files: TlsFiles): boolean {
  return !(existsSync(files.keyFile) && existsSync(files.certificateFile))
}

/** Whether a certificate of makeSelfSigned has other additional names. */
function hasOtherNames(files: TlsFiles, names: readonly string[]): boolean {
  const certificate = selfSignedNames(files)
  if (certificate === undefined) return false
  const wanted = names.map(comparable).filter(certificate.isAdditional)
  return !isDeepStrictEqual(new Set(certificate.names.filter(certificate.isAdditional)), new Set(wanted))
}

/** Whether names are still to be given to a self-signed certificate, or to one that is missing. */
export function lacksNames(files: TlsFiles): boolean {
  if (isMissing(files)) return true
  const certificate = selfSignedNames(files)
  return certificate !== undefined && !certificate.names.some(certificate.isAdditional)
}

/**
 * The names of a certificate of makeSelfSigned; undefined for a certificate from elsewhere, which
 * is never replaced. The name of the host is not additional: a container has a new one at each
 * start.
 */
function selfSignedNames(
  files: TlsFiles,
): { readonly names: readonly string[]; readonly isAdditional: (name: string) => boolean } | undefined {
  const {
    subject,
    issuer,
    subjectAltName = '',
  } = usingTlsFiles(files, () => {
    return new X509Certificate(readFileSync(files.certificateFile))
  })
  const host = /^CN=(.+) [0-9a-f]{8}$/.exec(subject)?.[1]?.toLowerCase()
  if (host === undefined || subject !== issuer) return undefined
  return {
    names: subjectAltName.split(', ').map((entry) => comparable(entry.replace(/^(DNS|IP Address):/, ''))),
    isAdditional: (name) => !LOOPBACK_NAMES.includes(name) && name.slice(0, HOST_PART_MAX) !== host,
  }
}

function comparable(name: string): string {
  return canonicalAddress(name.toLowerCase())
}

async function makeSelfSigned(
  directory: string,
  files: { keyFile: string; certificateFile: string },
  names: readonly string[],
): Promise<void> {
  const host = hostname()
  const all = [...new Set(['localhost', host, ...names, '127.0.0.1', '::1'])]
  const notBefore = new Date()
  // A unique subject: of two CA certificates with one subject OpenSSL tries only the first, and a
  // client may trust the old and the new one.
  const commonName = `${host.slice(0, HOST_PART_MAX)} ${randomBytes(4).toString('hex')}`
  // Loaded here, because each thread with a listener imports this file, and the library takes 8 MB.
  const { generate } = await import('selfsigned')
  const pems = await generate([{ name: 'commonName', value: commonName }], {
    ...(existsSync(files.keyFile) ? { keyPair: keyPairIn(files) } : {}),
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
        altNames: all.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
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

/** In the PEM that `selfsigned` writes and reads. */
function keyPairIn({ keyFile }: TlsFiles): { readonly privateKey: string; readonly publicKey: string } {
  const privateKey = readFileSync(keyFile, 'utf8')
  return { privateKey, publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }) as string }
}

/** @throws Fault CERTIFICATE if the files cannot be read or do not match */
export function checkedFingerprint(files: TlsFiles): string {
  return checkedCertificate(files).fingerprint256
}

function checkedCertificate(files: TlsFiles): X509Certificate {
  return usingTlsFiles(files, () => {
    const cert = readFileSync(files.certificateFile)
    if (!cert.includes('-----BEGIN CERTIFICATE-----')) {
      throw new Fault(
        'CERTIFICATE',
        `certificate ${files.certificateFile}: expected certificates in PEM, found something else`,
      )
    }
    const key = readPrivateFile(`private key ${files.keyFile}`, files.keyFile, {
      code: 'CERTIFICATE',
      expected: { pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/, text: 'a private key in PEM' },
    })
    createSecureContext({ key, cert })
    return new X509Certificate(cert)
  })
}

/** The text of OpenSSL names its functions. */
function tlsErrorText(error: unknown): string {
  const { code = '', path } = error as NodeJS.ErrnoException
  if (path !== undefined) return `${path}: ${systemErrorText(error)}`
  if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') return 'the private key does not belong to the certificate'
  return `OpenSSL cannot use them (${code || (error as Error).message}); check them with openssl x509 and openssl pkey`
}

/**
 * Runs work that only reads the files and passes them to OpenSSL. @throws Fault CERTIFICATE for any
 * error.
 */
export function usingTlsFiles<T>({ keyFile, certificateFile }: TlsFiles, work: () => T): T {
  try {
    return work()
  } catch (error) {
    const denied = notReadable((error as Error).cause ?? error)
    if (denied === undefined && error instanceof Fault) throw error
    const why =
      denied === undefined
        ? `${certificateFile}, ${keyFile}: ${tlsErrorText(error)}`
        : `${denied.found}; ${denied.remedy}`
    throw new Fault('CERTIFICATE', why, { cause: error })
  }
}
