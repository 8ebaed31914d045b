import type { Command } from 'commander'
import { Fault } from '../../engine/process/error-codes.ts'
import { createLogger } from '../../engine/process/log.ts'
import { catalogInForce } from '../../engine/process/registry-setting.ts'
import { addSettingOptions, readSettings } from '../../engine/process/settings.ts'
import { exitStatusOf, stopSignal } from '../../engine/process/shutdown.ts'
import { printRows } from '../../engine/process/table.ts'
import { listInterfaces } from '../capture/interfaces.ts'
import { collectorSettings, liveOptions } from '../config.ts'
import { fileProgress } from './progress.ts'

/** What a live collector may take to forward what waits, when it is stopped. */
const DRAIN_MS = 10_000
/** Who interrupts the reading of a file wants to go on with something else; what waits is safe. */
const READ_DRAIN_MS = 500

interface RunOptions {
  readonly read?: string
  readonly shiftToNow?: boolean
  readonly listInterfaces?: boolean
}

/** posture-collector [run]: watches an interface, or reads a capture file, and forwards what matches. */
export function addRunCommand(program: Command): void {
  const run = addSettingOptions(
    program
      .command('run', { isDefault: true })
      .description('watch an interface and forward what matches (the default)'),
    collectorSettings,
  )
    .option('--read <file>', 'read a capture file instead, and end when its events are with the service')
    .option('--shift-to-now', 'with --read: move its times so that its last packet was seen now')
    .option('--list-interfaces', 'print the interfaces that can be captured on, and end')
  run.action(async (options: RunOptions) => {
    if (options.listInterfaces) return printInterfaces()
    const stop = stopSignal()
    const settings = readSettings(collectorSettings, { command: run, environment: process.env })
    const log = createLogger('posture-collector', settings.logLevel)
    // Only here: the store and the HTTP client take longer to load than all else, and no other command needs them.
    const { Collector } = await import('../collector.ts')
    const collector = new Collector(settings, catalogInForce(settings.registry, log), log)
    const progress = fileProgress(options.read)
    const reading = options.read !== undefined
    const running = collector.run({
      capture: reading ? { kind: 'file', path: options.read } : { kind: 'interface', ...liveOptions(settings) },
      shiftToNow: reading && options.shiftToNow === true,
      onProgress: progress.update,
    })
    stop.received.then(async (signal) => {
      log.info({ signal }, 'stops')
      // A live collector ends by a signal as a matter of course; a reader of a file has not finished.
      if (reading) process.exitCode = exitStatusOf(signal)
      await collector.drain(reading ? READ_DRAIN_MS : DRAIN_MS)
    })
    try {
      const { damage, observed, ...report } = await running
      progress.end()
      log.info({ frames: observed.frames, names: observed.names, matched: observed.matched, ...report }, 'ended')
      if (damage === undefined) return
      // An interrupted run ends as interrupted, and says what else there was.
      if (process.exitCode !== undefined) log.warn({ reason: damage.message }, damage.code)
      else throw new Fault(damage.code, damage.message)
    } finally {
      progress.end()
      stop.forget()
    }
  })
}

/** Needs no setting and no permission: who looks for the right name has neither yet. */
function printInterfaces(): void {
  printRows(
    {
      columns: [
        ['Interface', 'name'],
        ['State', 'state'],
        ['Kind', 'kind'],
        ['Addresses', 'addresses'],
        ['Received packets', 'received_packets'],
      ],
      rows: listInterfaces().map(({ receivedPackets, ...row }) => ({ ...row, received_packets: receivedPackets })),
    },
    {},
  )
}
