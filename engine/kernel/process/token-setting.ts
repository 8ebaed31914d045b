import type { Command } from 'commander'
import { z } from 'zod'
import { Fault } from './error-codes.ts'
import { readPrivateFile } from './private-file.ts'
import { setting } from './settings.ts'

const TOKEN = /^svc_mt_[0-9a-f]{48}$/
const TOKEN_TEXT = 'svc_mt_ and 48 hex digits'

/** The two settings that give a monitoring token. */
export const tokenSettings = {
  token: setting(
    z
      .string()
      .default('')
      .pipe(z.string().regex(/^(svc_mt_[0-9a-f]{48})?$/, `expected ${TOKEN_TEXT}`)),
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
  throw new Fault(
    'USAGE',
    'a monitoring token is required: give it by SVC_TOKEN or --token, or the file that has it by SVC_TOKEN_FILE or --token-file',
  )
}

function readTokenFile(name: string, path: string, owners: readonly number[]): string {
  const expected = { pattern: TOKEN, text: TOKEN_TEXT }
  return readPrivateFile(`${name} ${path}`, path, { owners, code: 'USAGE', expected })
}

/** Under sudo, the user who called it. */
export function sudoUser(environment: NodeJS.ProcessEnv): readonly number[] {
  const uid = environment['SUDO_UID'] ?? ''
  return process.geteuid?.() === 0 && /^\d{1,10}$/.test(uid) ? [Number(uid)] : []
}
