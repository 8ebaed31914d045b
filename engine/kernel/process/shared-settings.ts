import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { Fault } from './error-codes.ts'
import { logFailure } from './failure.ts'
import { readInput } from './input-file.ts'
import type { Logger } from './log.ts'
import { type Network, networkText } from './network.ts'
import { networkList } from './settings.ts'

/*
 * Settings of the service that commands need, too. The service writes them to its data directory,
 * because commands do not read its environment or settings file.
 */

const FILE = 'shared-settings.json'
const FILE_BYTES_MAX = 1024 * 1024

const schema = z.object({ outboundNetworks: networkList(), secretsKeyFile: z.string() })

export interface SharedSettings {
  readonly outboundNetworks: readonly Network[]
  /** '': secrets.key in the data directory. */
  readonly secretsKeyFile: string
}

/** Without space, commands use the settings that were kept before. */
export function keepSharedSettings(
  dataDirectory: string,
  { outboundNetworks, secretsKeyFile }: SharedSettings,
  log: Logger,
): void {
  const file = join(dataDirectory, FILE)
  const part = `${file}.part`
  // Commands run in other directories.
  const absolute = secretsKeyFile === '' ? '' : resolve(secretsKeyFile)
  try {
    writeFileSync(
      part,
      `${JSON.stringify({ outboundNetworks: outboundNetworks.map(networkText).join(','), secretsKeyFile: absolute })}\n`,
      { mode: 0o600 },
    )
    renameSync(part, file)
  } catch (error) {
    rmSync(part, { force: true })
    logFailure(log, error, 'the settings for commands were not kept', { level: 'warn' })
  }
}

/** Of the service that used the data directory last. @throws Fault USAGE if the file is damaged */
export function keptSharedSettings(dataDirectory: string): SharedSettings {
  const file = join(dataDirectory, FILE)
  if (!existsSync(file)) return { outboundNetworks: [], secretsKeyFile: '' }
  const text = readInput(file, FILE_BYTES_MAX, { what: 'settings of the service', code: 'USAGE' }).toString()
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    throw new Fault('USAGE', `settings of the service ${file}: damaged; restart the service`)
  }
}
