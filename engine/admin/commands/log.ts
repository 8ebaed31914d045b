import { basename } from 'node:path'
import type { Command } from 'commander'
import { Fault } from '../../process/error-codes.ts'
import { SCANS } from '../../scan/scan-now.ts'
import type { LogRead } from '../../store/log-positions.ts'
import type { Store } from '../../store/store.ts'
import { hold } from '../restore.ts'
import { auditForAll } from '../store-audit.ts'
import { actorOf, sharedOptions, show, withStore } from './context.ts'

/** posture-admin log: show, forget */
export function addLogCommands(log: Command): void {
  const shown = sharedOptions(log.command('show').description('Show how far the store has read the log of the brokers'))
  shown.action(() => withStore(shown, ({ store }) => print(shown, positionOf(store))))

  const forget = sharedOptions(
    log
      .command('forget')
      .description(
        'Forget the log, after its messages were lost; the service must be stopped, and starts with a new log',
      ),
  )
  forget.action(() =>
    withStore(forget, async ({ store, clock }) => {
      const release = await hold(store.environment.path, store.dataDirectory, SCANS)
      try {
        const position = positionOf(store)
        const entry = { action: 'store.forget-log', actor: actorOf(forget), timeMs: clock.nowMs() } as const
        store.environment.write(() => {
          store.logPositions.forget()
          auditForAll(store, { ...entry, subject: basename(store.dataDirectory) })
        })
        print(forget, position)
      } finally {
        await release()
      }
    }),
  )
}

/** @throws Fault NOT_FOUND */
function positionOf(store: Store): LogRead {
  const position = store.logPositions.events
  if (position === undefined) throw new Fault('NOT_FOUND', 'the service has never read a log of brokers')
  return position
}

function print(command: Command, { sequence, created, backups }: LogRead): void {
  show(command, {
    columns: [
      ['Read to message', 'sequence'],
      ['Log created', 'created'],
      ['In the last backups', 'backups'],
    ],
    rows: [{ sequence, created, backups: backups.join(', ') }],
  })
}
