import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Fault } from '../kernel/process/error-codes.ts'
import { CA_BYTES_MAX, readInput } from '../kernel/process/input-file.ts'
import { keyPath } from '../kernel/process/key-file.ts'
import type { Network } from '../kernel/process/network.ts'
import { readPrivateFile } from '../kernel/process/private-file.ts'
import { SecretsKey, secretsKeyFile, secretsKeySetting } from '../kernel/process/secrets-key.ts'
import { networkList, setting } from '../kernel/process/settings.ts'
import { keptSharedSettings } from '../kernel/process/shared-settings.ts'
import { printable } from '../kernel/process/table.ts'
import { sudoUser } from '../kernel/process/token-setting.ts'
import { clientKeyProblems, secretsKeyProblems } from '../store/key-problems.ts'
import type { Store } from '../store/store.ts'
import { option } from './command.ts'

/** Secrets and keys of the service, and the networks to which it may connect. */
export const SECRETS_KEY = secretsKeySetting

/** The key that the option names, or the one of the service. */
export function secretsKeyOf({ dataDirectory }: Store, given = ''): SecretsKey {
  return new SecretsKey(keyFileOf(dataDirectory, given))
}

function keyFileOf(dataDirectory: string, given: string): string {
  const named = given === '' ? (process.env['SECRETS_KEY_FILE'] ?? '') : given
  return secretsKeyFile(named === '' ? keptSharedSettings(dataDirectory).secretsKeyFile : named, dataDirectory)
}

/** Prints why secrets and pseudonyms of the store cannot be used, on standard error. */
export function printKeyProblems(store: Store): void {
  for (const problem of [...secretsKeyProblems(store, secretsKeyOf(store)), ...clientKeyProblems(store)]) {
    process.stderr.write(`posture-admin: ${printable(problem)}\n`)
  }
}

/** The files that a restored service needs and a backup does not contain. Patterns name several. */
export function filesBesideStore(dataDirectory: string): string[] {
  const clientKeys = keyPath(dataDirectory, 'clients-*.key')
  const hasClientKeys = readdirSync(dirname(clientKeys)).some((name) => /^clients-.+\.key$/.test(name))
  const files = [keyFileOf(dataDirectory, ''), join(dataDirectory, 'tls')].filter((file) => existsSync(file))
  return hasClientKeys ? [...files, clientKeys] : files
}

export const OUTBOUND_NETWORKS = setting(networkList().optional(), {
  flag: '--outbound-networks <networks>',
  env: 'OUTBOUND_NETWORKS',
  about: 'Allow hosts in these networks, comma-separated; others need public addresses',
  defaultAbout: 'as the service does',
})

interface Outbound {
  readonly dataDir: string
  readonly outboundNetworks: readonly Network[] | undefined
}

export function outboundNetworksOf({ dataDir, outboundNetworks }: Outbound): readonly Network[] {
  return outboundNetworks ?? keptSharedSettings(dataDir).outboundNetworks
}

export const CA_FILE = option(
  '--ca-file <file>',
  'Trust the certificates in this PEM file instead of those of the system',
)

/** The certificates of --ca-file. @throws Fault USAGE */
export function certificatesIn(file: string): string {
  return readInput(file, CA_BYTES_MAX, { what: '--ca-file', code: 'USAGE' }).toString()
}

/**
 * A secret from a file that other users cannot read, or from standard input: never from the command
 * line, which they can read.
 *
 * @throws Fault USAGE
 */
export async function secretFrom(flag: string, file: string, bytesMax: number): Promise<string> {
  const where = `${flag} ${file}`
  const secret =
    file === '-'
      ? await standardInput(bytesMax)
      : readPrivateFile(where, file, { code: 'USAGE', owners: sudoUser(process.env) })
  if (secret !== '' && Buffer.byteLength(secret) <= bytesMax) return secret
  throw new Fault('USAGE', `${where}: expected a secret of 1 to ${bytesMax} bytes`)
}

/** Stops reading soon after `charactersMax`. */
async function standardInput(charactersMax: number): Promise<string> {
  let text = ''
  for await (const part of process.stdin) {
    text += String(part)
    if (text.length > charactersMax) break
  }
  return text.trim()
}
