import { closeSync, fstatSync, readSync } from 'node:fs'
import { Fault, type FaultCode } from './error-codes.ts'
import { openInput } from './input-file.ts'
import { ownUserText, userText } from './ownership.ts'

/** The largest secret is a private key with its certificates. */
const FILE_BYTES_MAX = 64 * 1024
/**
 * Permissions that let others than the owner and the group of a file do anything, or its group
 * write.
 */
const OTHERS = 0o027
const GROUP_READ = 0o040

export interface PrivateFileOptions {
  /** Users that the file may belong to, in addition to root and this one. */
  readonly owners?: readonly number[]
  readonly code: FaultCode
  /** What the text must be. Advice to change permissions is only given for such a file. */
  readonly expected?: { readonly pattern: RegExp; readonly text: string }
}

/**
 * Returns the trimmed text of a small file with a secret: a token, key or password.
 *
 * @param where names the setting and the file in errors
 * @throws Fault `code` if the file cannot be read, or other users have access to it
 */
export function readPrivateFile(
  where: string,
  path: string,
  { owners = [], code, expected }: PrivateFileOptions,
): string {
  const file = opened(where, path, code)
  try {
    const status = fstatSync(file)
    if (!status.isFile()) throw new Fault(code, `${where}: not a file`)
    const bytes = Buffer.alloc(FILE_BYTES_MAX + 1)
    const length = readSync(file, bytes)
    if (length > FILE_BYTES_MAX) throw new Fault(code, `${where}: larger than ${FILE_BYTES_MAX} bytes`)
    const text = bytes.toString('utf8', 0, length).trim()
    // Without the text, which may be a secret.
    if (expected !== undefined && !expected.pattern.test(text)) {
      throw new Fault(code, `${where}: expected ${expected.text}, found something else`)
    }
    const advice =
      expected === undefined ? 'use a file of its own for the secret, with mode 0600' : `run chmod 600 ${path}`
    const fault = accessFault(status, owners, advice)
    if (fault !== undefined) throw new Fault(code, `${where}: ${fault}`)
    return text
  } finally {
    closeSync(file)
  }
}

/** Without waiting for the other end of a pipe. */
function opened(where: string, path: string, faultCode: FaultCode): number {
  try {
    return openInput(path, { what: 'private file', code: faultCode, isRegular: true })
  } catch (error) {
    if (error instanceof Fault) throw new Fault(error.code, `${where}: ${error.message}`)
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new Fault(faultCode, `${where}: no such file`)
    const why = code === 'EACCES' ? `${ownUserText()} may not read the file` : (code ?? message)
    throw new Fault(faultCode, `${where}: ${why}`, { cause: error })
  }
}

/**
 * Anyone with read access to the file has the secret, and anyone with write access can replace it.
 * The group may read a file of root: that is how systemd, Kubernetes and packages give a secret to
 * one user.
 */
function accessFault(
  { mode, uid }: { readonly mode: number; readonly uid: number },
  owners: readonly number[],
  advice: string,
): string | undefined {
  const self = process.geteuid?.() ?? 0
  if (![0, self, ...owners].includes(uid)) {
    return `belongs to ${userText(uid)}; expected root or ${userText(self)}`
  }
  if ((mode & OTHERS) === 0 && ((mode & GROUP_READ) === 0 || uid === 0)) return undefined
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  return `mode ${octal} gives other users access; ${advice}`
}
