import type { Command } from 'commander'
import { systemClock } from '../../process/clock.ts'
import { backUp } from '../backup.ts'
import { restore } from '../restore.ts'
import { actorOf, dataDirectoryOf, sharedOptions, show, withStore } from './context.ts'
import { longWork } from './long-work.ts'

/** posture-admin backup | restore */
export function addBackupCommands(program: Command): void {
  const backup = sharedOptions(
    program
      .command('backup <file>')
      .description(
        'copy the store into a file while the service runs; it holds what the store holds, so guard it as well',
      ),
  ).option('--force', 'replace the file where there is one')
  backup.action((file: string, { force = false }: { force?: boolean }) =>
    withStore(backup, async ({ store, clock }) => {
      const startedMs = clock.nowMs()
      const made = await longWork('no backup was made', (onProgress, givenUp) =>
        backUp(store, file, { force, onProgress, givenUp }),
      )
      if (made === undefined) return
      const seconds = (clock.nowMs() - startedMs) / 1000
      show(backup, {
        columns: [
          ['File', 'file'],
          ['Bytes', 'bytes'],
          ['Schema', 'schema'],
          ['Records', 'records'],
          ['Seconds', 'seconds'],
        ],
        rows: [{ ...made, seconds }],
      })
    }),
  )

  const bring = sharedOptions(
    program
      .command('restore <file>')
      .description('make a backup the store of a data directory; the service must not run'),
  ).option('--force', 'replace the store where there is one; it is kept beside the new one')
  bring.action(async (file: string, { force = false }: { force?: boolean }) => {
    const dataDir = dataDirectoryOf(bring)
    const options = { force, actor: actorOf(bring), clock: systemClock }
    const restored = await longWork('nothing was restored', (onProgress, givenUp) =>
      restore(file, dataDir, { ...options, onProgress, givenUp }),
    )
    if (restored === undefined) return
    show(bring, {
      columns: [
        ['Organizations', 'organizations'],
        ['Records', 'records'],
        ['Schema', 'schema'],
        ['The store before is in', 'kept'],
      ],
      rows: [{ ...restored }],
    })
  })
}
