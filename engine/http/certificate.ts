import { randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { Fault } from '../process/error-codes.ts'
import { makeDirectory } from '../process/make-directory.ts'
import { canonicalAddress } from '../process/network.ts'
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
/** Characters of the host name in the common name, before a space and 8 hexadecimal digits. */
const HOST_PART_MAX = COMMON_NAME_MAX - 9
const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '::1']
const PRIVATE_FILE_MODE = 0o600

/**
 * Returns the operator's certificate, or a self-signed one in `directory`. The self-signed
 * certificate is created if it is missing, and again if `names` has changed.
 *
 * @param names host names and IP addresses, in addition to this host's name and loopback
 * @throws Fault CERTIFICATE if the files cannot be read or do not match
 */
export async function provideCertificate(
  directory: string,
  own: { keyFile: string; certificateFile: string } | undefined,
  names: readonly string[] = [],
): Promise<Certificate> {
  const files = own ?? { keyFile: join(directory, 'key.pem'), certificateFile: join(directory, 'certificate.pem') }
  const made = own === undefined && (isMissing(files) || hasOtherNames(files, names))
  if (made) await makeSelfSigned(directory, files, names)
  return { ...files, fingerprint: checkedFingerprint(files), made }
}

function isMissing(files: TlsFiles): boolean {
  return !(existsSync(files.keyFile) && existsSync(files.certificateFile))
}

/**
 * Whether a certificate of makeSelfSigned has other additional names. The name of the host does not
 * count: a container has a new one at each start, and clients have pinned the certificate. A
 * certificate from elsewhere is never replaced.
 */
function hasOtherNames(files: TlsFiles, names: readonly string[]): boolean {
  const {
    subject,
    issuer,
    subjectAltName = '',
  } = usingTlsFiles(files, () => new X509Certificate(readFileSync(files.certificateFile)))
  const host = /^CN=(.+) [0-9a-f]{8}$/.exec(subject)?.[1]?.toLowerCase()
  if (host === undefined || subject !== issuer) return false
  const isAdditional = (name: string): boolean =>
    !LOOPBACK_NAMES.includes(name) && name.slice(0, HOST_PART_MAX) !== host
  const present = subjectAltName.split(', ').map((entry) => comparable(entry.replace(/^(DNS|IP Address):/, '')))
  const wanted = names.map(comparable)
  return !isDeepStrictEqual(new Set(present.filter(isAdditional)), new Set(wanted.filter(isAdditional)))
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
