import type { Command } from 'commander'
import { z } from 'zod'
import { type Clock, isoSeconds, systemClock } from '../../process/clock.ts'
import { addSettingOptions, readSettings, setting, someText } from '../../process/settings.ts'
import { printRows, type Shown } from '../../process/table.ts'
import { Store } from '../../store/store.ts'
import { Administration } from '../administration.ts'

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

/** Runs `work` on the store that the command line names, and closes it whatever happens. Only `mayMake` makes a new one. */
export async function withStore(
  command: Command,
  work: (context: AdminContext) => void | Promise<void>,
  options: { mayMake?: boolean } = {},
): Promise<void> {
  const { dataDir } = readSettings(adminSettings, { command, environment: process.env })
  const store = new Store(dataDir, { mustExist: options.mayMake !== true })
  try {
    await work({ store, administration: new Administration(store, systemClock), clock: systemClock })
  } finally {
    await store.close()
  }
}

export function show(command: Command, shown: Shown): void {
  printRows(shown, command.optsWithGlobals<{ json?: boolean }>())
}

/** A time for people and programs; empty where there is none. */
export function timeText(timeMs: number): string {
  return timeMs === 0 ? '' : isoSeconds(timeMs)
}
