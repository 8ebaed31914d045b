import { userInfo } from 'node:os'
import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { type Clock, isoSeconds, systemClock } from '../../process/clock.ts'
import { jsonOption } from '../../process/program.ts'
import { addSettingOptions, readSettings, setting, someText, wholeNumber } from '../../process/settings.ts'
import { printRows, printsTable, type Shown, secretText } from '../../process/table.ts'
import { confirmChanges } from '../../store/confirm-changes.ts'
import { RegistryInForce } from '../../store/registry-in-force.ts'
import { Store } from '../../store/store.ts'
import { Administration } from '../administration.ts'
import type { Actor } from '../changes.ts'

const adminSettings = z.object({
  dataDir: setting(someText().default('/var/lib/posture-service'), {
    flag: '--data-dir <directory>',
    env: 'DATA_DIR',
    about: "Use the service's data directory; the service may be running",
  }),
})

const organizationSettings = z.object({
  org: setting(z.string().optional(), {
    flag: '--org <name>',
    env: 'POSTURE_ORG',
    about: 'Select the organization by name or id',
    defaultAbout: 'the only organization',
  }),
})

/** The environment of a posture-admin command. */
export interface AdminContext {
  readonly store: Store
  readonly administration: Administration
  /** The registry of each organization. */
  readonly registry: RegistryInForce
  readonly clock: Clock
}

/** Adds the options of all commands: data directory and output format. */
export function sharedOptions(command: Command): Command {
  return jsonOption(addSettingOptions(command, adminSettings))
}

/** Adds the options of commands that make changes: in addition, the member who makes the change. */
export function changeOptions(command: Command): Command {
  return sharedOptions(command).option(
    '--as <member>',
    'Make the change as this member of the organization, with its role, instead of as the operator',
  )
}

/** Adds the option that names the organization. Where there is only one, nobody has to name it. */
export function ofOrganization(command: Command): Command {
  return addSettingOptions(command, organizationSettings).hook('preAction', (_, action) => {
    const { org } = readSettings(organizationSettings, { command: action, environment: process.env })
    action.setOptionValue('org', org)
  })
}

/**
 * Opens the store that the command line names, runs `work` and closes the store. Creates the store
 * only with `create`.
 */
export async function withStore(
  command: Command,
  work: (context: AdminContext) => void | Promise<void>,
  options: { create?: boolean } = {},
): Promise<void> {
  const dataDir = dataDirectoryOf(command)
  const store = new Store(dataDir, { mustExist: options.create !== true })
  try {
    const administration = new Administration(store, systemClock, actorOf(command))
    await work({ store, administration, registry: new RegistryInForce(store), clock: systemClock })
    await confirmChanges(store)
  } finally {
    await store.close()
  }
}

/** The data directory that the command line names. */
export function dataDirectoryOf(command: Command): string {
  return readSettings(adminSettings, { command, environment: process.env }).dataDir
}

/** Parses an integer option. */
export function countOption(min: number, max: number): (text: string) => number {
  return (text) => {
    const count = wholeNumber(min, max).safeParse(text)
    if (count.success) return count.data
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`)
  }
}

/** Under sudo, the actor is the calling user. */
export function actorOf(command: Command): Actor {
  const { as } = command.opts<{ as?: string }>()
  if (as !== undefined) return { kind: 'member', name: as }
  return { kind: 'operator', name: process.env['SUDO_USER'] || userName() }
}

/** In a container, the uid may have no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}`
  }
}

export function show(command: Command, shown: Shown): void {
  printRows(shown, command.optsWithGlobals<{ json?: boolean }>(), (text) => printText(command, text))
}

/**
 * Writes to the program's output: standard output, or the caller in the same process (program.ts).
 */
export function printText(command: Command, text: string): void {
  command.configureOutput().writeOut?.(text)
}

/**
 * Prints the record of a new secret, with the secret below it. In JSON, the secret is a field of
 * the record.
 */
export function showSecret(command: Command, shown: Shown, name: string, secret: string): void {
  show(command, shown)
  if (printsTable(command.optsWithGlobals<{ json?: boolean }>())) printText(command, `\n${secretText(name, secret)}`)
}

/** A time as in the API; null if there is none. */
export function timeText(timeMs: number): string | null {
  return timeMs === 0 ? null : isoSeconds(timeMs)
}
