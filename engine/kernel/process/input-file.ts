import { closeSync, constants, openSync, readlinkSync, readSync } from 'node:fs'
import { asUser, idsOf } from './become-user.ts'
import { Fault, type FaultCode } from './error-codes.ts'
import { systemErrorText } from './failure.ts'
import { userText } from './ownership.ts'
import { controlOf } from './path-owner.ts'

const FIRST_READ_BYTES = 64 * 1024

/** PEM of CA certificates. All that Mozilla trusts have 0.25 MB. */
export const CA_BYTES_MAX = 4 * 1024 * 1024

/** How an input is opened. */
export interface InputOptions {
  /** Names the input in errors: an option, the kind of the file, or '' for its path alone. */
  readonly what: string
  readonly code: FaultCode
  /**
   * Do not wait for the other end of a pipe. The caller checks that the input is a regular file.
   */
  readonly isRegular?: boolean
}

/**
 * Opens a file for reading. Root opens it with the rights of the user who controls its path, so
 * that a link of this user leads to no file of root. Not for worker threads, where a process cannot
 * change its user.
 *
 * @throws Fault `code` if that user may not read the file; Error of the system
 */
export function openInput(path: string, { what, code, isRegular = false }: InputOptions): number {
  const { owner, place, isShared } = controlOf(what, path, { isRead: true })
  const open = (): number => openSync(path, constants.O_RDONLY | (isRegular ? constants.O_NONBLOCK : 0))
  if (owner !== undefined) {
    try {
      return asUser(idsOf(owner), open)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
      const why = `${userText(owner.uid)} controls this path and may not read it; copy it to a directory of root`
      throw new Fault(code, `${nameOf(what, path)}: ${why}`, { cause: error })
    }
  }
  const file = open()
  // Another user has put a link in the place of a file since its path was checked.
  if (isShared && readlinkSync(`/proc/self/fd/${file}`) !== place) {
    closeSync(file)
    throw new Fault(code, `${nameOf(what, path)}: was replaced while it was opened; name a file in a directory of root`)
  }
  return file
}

/**
 * Reads a whole input.
 *
 * @throws Fault `code`, with the error of the system as its cause if there is one
 */
export function readInput(path: string, bytesMax: number, options: InputOptions): Buffer {
  try {
    return readAll(path, bytesMax, options)
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault(options.code, `${nameOf(options.what, path)}: ${systemErrorText(error)}`, { cause: error })
  }
}

function readAll(path: string, bytesMax: number, options: InputOptions): Buffer {
  const file = openInput(path, options)
  try {
    let bytes = Buffer.alloc(FIRST_READ_BYTES)
    let used = 0
    for (let read = -1; read !== 0; used += read) {
      if (used > bytesMax) {
        throw new Fault(options.code, `${nameOf(options.what, path)}: larger than ${bytesMax} bytes`)
      }
      if (used === bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(bytes.length)])
      read = readSync(file, bytes, used, bytes.length - used, null)
    }
    return bytes.subarray(0, used)
  } finally {
    closeSync(file)
  }
}

function nameOf(what: string, path: string): string {
  return what === '' ? path : `${what} ${path}`
}
