import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import { Fault } from './error-codes.ts'
import { ownUserText, userText } from './ownership.ts'
import { setting } from './settings.ts'

const TOKEN = /^svc_mt_[0-9a-f]{48}$/
const EXPECTED = 'expected svc_mt_ and 48 hex digits'
/** A token with its line end, and space for a mistake that is worth an error of its own. */
const FILE_BYTES_MAX = 1024
/**
 * Permissions that let others than the owner and the group of a file do anything, or its group
 * write.
 */
const OTHERS = 0o027
const GROUP_READ = 0o040

/** The two settings that give a monitoring token. */
export const tokenSettings = {
  token: setting(
    z
      .string()
      .default('')
      .pipe(z.string().regex(/^(svc_mt_[0-9a-f]{48})?$/, EXPECTED)),
    {
      flag: '--token <token>',
      env: 'SVC_TOKEN',
      about: 'Use this monitoring token; prefer a file, because other users can read command lines',
      secret: true,
    },
  ),
  tokenFile: setting(z.string().default(''), {
    flag: '--token-file <file>',
    env: 'SVC_TOKEN_FILE',
    about: 'Read the monitoring token from this file, which other users must not be able to read',
  }),
}

export interface TokenSources {
  readonly command: Command
  readonly environment: NodeJS.ProcessEnv
  /** Users that the file may belong to, in addition to root and this one. */
  readonly owners?: readonly number[]
}

/**
 * The monitoring token: a flag overrides both variables.
 *
 * @throws Fault USAGE where there is none, there are two, or the file cannot be read or trusted.
 */
export function tokenOf(
  { token, tokenFile }: { readonly token: string; readonly tokenFile: string },
  { command, owners = [] }: TokenSources,
): string {
  const [isFlag, isFileFlag] = ['token', 'tokenFile'].map((name) => {
    return command.getOptionValueSourceWithGlobals(name) === 'cli'
  })
  const wanted =
    isFlag === isFileFlag ? { token, tokenFile } : isFlag ? { token, tokenFile: '' } : { token: '', tokenFile }
  if (wanted.token !== '' && wanted.tokenFile !== '') {
    throw new Fault('USAGE', 'the monitoring token is set twice: use either SVC_TOKEN_FILE or SVC_TOKEN')
  }
  if (wanted.tokenFile !== '') return readTokenFile(isFileFlag ? '--token-file' : 'SVC_TOKEN_FILE', tokenFile, owners)
  if (wanted.token !== '') return token
  throw new Fault('USAGE', '--token-file or SVC_TOKEN_FILE is required: a file with the monitoring token')
}

function readTokenFile(name: string, path: string, owners: readonly number[]): string {
  const where = `${name} ${path}`
  const file = opened(where, path)
  try {
    const status = fstatSync(file)
    if (!status.isFile()) throw new Fault('USAGE', `${where}: not a file`)
    assertPrivate(where, path, status, owners)
    const bytes = Buffer.alloc(FILE_BYTES_MAX)
    const text = bytes.toString('utf8', 0, readSync(file, bytes)).trim()
    // Whatever it contains may be a secret.
    if (!TOKEN.test(text)) throw new Fault('USAGE', `${where}: ${EXPECTED}, found something else`)
    return text
  } finally {
    closeSync(file)
  }
}

/** Without waiting for the other end of a pipe. */
function opened(where: string, path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new Fault('USAGE', `${where}: no such file`)
    if (code === 'EACCES') throw new Fault('USAGE', `${where}: ${ownUserText()} may not read the file`)
    throw new Fault('USAGE', `${where}: ${code ?? message}`)
  }
}

/**
 * Anyone with read access to the file can send events, and anyone with write access decides to
 * which organization they belong. The group may read a file of root: that is how systemd,
 * Kubernetes and packages give a secret to one user.
 */
function assertPrivate(
  where: string,
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
  owners: readonly number[],
): void {
  const self = process.geteuid?.() ?? 0
  if (![0, self, ...owners].includes(uid)) {
    throw new Fault('USAGE', `${where}: belongs to ${userText(uid)}; expected root or ${userText(self)}`)
  }
  if ((mode & OTHERS) === 0 && ((mode & GROUP_READ) === 0 || uid === 0)) return
  const octal = (mode & 0o777).toString(8).padStart(4, '0')
  throw new Fault('USAGE', `${where}: mode ${octal} gives other users access; run chmod 600 ${path}`)
}

/** Under sudo, the user who called it. */
export function sudoUser(environment: NodeJS.ProcessEnv): readonly number[] {
  const uid = environment['SUDO_UID'] ?? ''
  return process.geteuid?.() === 0 && /^\d{1,10}$/.test(uid) ? [Number(uid)] : []
}
