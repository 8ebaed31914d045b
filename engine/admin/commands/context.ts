import { userInfo } from 'node:os'
import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { type Clock, isoSeconds, systemClock } from '../../process/clock.ts'
import { addSettingOptions, readSettings, setting, someText, wholeNumber } from '../../process/settings.ts'
import { printRows, type Shown } from '../../process/table.ts'
import { Store } from '../../store/store.ts'
import { Administration } from '../administration.ts'
import type { Actor } from '../changes.ts'

const adminSettings = z.object({
  dataDir: setting(someText().default('/var/lib/posture-service'), {
    flag: '--data-dir <directory>',
    env: 'DATA_DIR',
    about: "The service's data directory; the service may be running",
  }),
})

/** What every command of posture-admin works with. */
export interface AdminContext {
  readonly store: Store
  readonly administration: Administration
  readonly clock: Clock
}

/** Adds the options that all commands share: the data directory and the form of the output. */
export function sharedOptions(command: Command): Command {
  return addSettingOptions(command, adminSettings).option('--json', 'print JSON on a terminal, too')
}

/** The same for commands that change something: in whose name. */
export function changeOptions(command: Command): Command {
  return sharedOptions(command).option(
    '--as <member>',
    'make the change in the name of a member of the organization, if its role allows; otherwise as the operator',
  )
}

/** Commands of one organization name it. */
export function ofOrganization(command: Command): Command {
  return command.requiredOption('--org <name>', 'name or id of the organization')
}

/** Runs `work` on the store that the command line names, and closes it whatever happens. Only `mayMake` makes a new one. */
export async function withStore(
  command: Command,
  work: (context: AdminContext) => void | Promise<void>,
  options: { mayMake?: boolean } = {},
): Promise<void> {
  const dataDir = dataDirectoryOf(command)
  const store = new Store(dataDir, { mustExist: options.mayMake !== true })
  try {
    const administration = new Administration(store, systemClock, actorOf(command))
    await work({ store, administration, clock: systemClock })
  } finally {
    await store.close()
  }
}

/** The data directory that the command line names. */
export function dataDirectoryOf(command: Command): string {
  return readSettings(adminSettings, { command, environment: process.env }).dataDir
}

/** Reads the value of an option that is a whole number. */
export function countOption(min: number, max: number): (text: string) => number {
  return (text) => {
    const count = wholeNumber(min, max).safeParse(text)
    if (count.success) return count.data
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`)
  }
}

/** Who runs a program by sudo is who answers for it. */
export function actorOf(command: Command): Actor {
  const { as } = command.opts<{ as?: string }>()
  if (as !== undefined) return { kind: 'member', name: as }
  return { kind: 'operator', name: process.env['SUDO_USER'] || userName() }
}

/** A container may run under a number that has no name. */
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

/** Writes to where the program's output goes: standard output, or the caller in the same process (program.ts). */
export function printText(command: Command, text: string): void {
  command.configureOutput().writeOut?.(text)
}

/** A time for people and programs; empty where there is none. */
export function timeText(timeMs: number): string {
  return timeMs === 0 ? '' : isoSeconds(timeMs)
}
