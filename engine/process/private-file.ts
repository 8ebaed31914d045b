import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { Fault, type FaultCode } from './error-codes.ts'
import { ownUserText, userText } from './ownership.ts'

/** A secret with its line end, and space for a mistake that is worth an error of its own. */
const FILE_BYTES_MAX = 1024
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
}

/**
 * Returns the trimmed text of a small file with a secret.
 *
 * @param where names the setting and the file in errors
 * @throws Fault `code` if the file cannot be read, or other users have access to it
 */
export function readPrivateFile(where: string, path: string, { owners = [], code }: PrivateFileOptions): string {
  const file = opened(where, path, code)
  try {
    const status = fstatSync(file)
    if (!status.isFile()) throw new Fault(code, `${where}: not a file`)
    const fault = accessFault(path, status, owners)
    if (fault !== undefined) throw new Fault(code, `${where}: ${fault}`)
    const bytes = Buffer.alloc(FILE_BYTES_MAX)
    return bytes.toString('utf8', 0, readSync(file, bytes)).trim()
  } finally {
    closeSync(file)
  }
}

/** Without waiting for the other end of a pipe. */
function opened(where: string, path: string, faultCode: FaultCode): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new Fault(faultCode, `${where}: no such file`)
    if (code === 'EACCES') throw new Fault(faultCode, `${where}: ${ownUserText()} may not read the file`)
    throw new Fault(faultCode, `${where}: ${code ?? message}`)
  }
}

/**
 * Anyone with read access to the file has the secret, and anyone with write access can replace it.
 * The group may read a file of root: that is how systemd, Kubernetes and packages give a secret to
 * one user.
 */
function accessFault(
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
  owners: readonly number[],
): string | undefined {
  const self = process.geteuid?.() ?? 0
  if (![0, self, ...owners].includes(uid)) {
    return `belongs to ${userText(uid)}; expected root or ${userText(self)}`
  }
  if ((mode & OTHERS) === 0 && ((mode & GROUP_READ) === 0 || uid === 0)) return undefined
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  return `mode ${octal} gives other users access; run chmod 600 ${path}`
}
