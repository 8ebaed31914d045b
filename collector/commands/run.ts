import type { Command } from 'commander'
import { Fault } from '../../engine/process/error-codes.ts'
import { createLogger } from '../../engine/process/log.ts'
import { catalogInForce } from '../../engine/process/registry-setting.ts'
import { addSettingOptions, readSettings } from '../../engine/process/settings.ts'
import { exitStatusOf, stopSignal } from '../../engine/process/shutdown.ts'
import { type CollectorSettings, collectorSettings } from '../config.ts'
import type { CaptureSource } from '../observe.ts'
import { fileProgress } from './progress.ts'

/** What a live collector may take to forward what waits, when it is stopped. */
const DRAIN_MS = 10_000
/** Who interrupts the reading of a file wants to go on with something else; what waits is safe. */
const READ_DRAIN_MS = 500

interface RunOptions {
  readonly read?: string
  readonly shiftToNow?: boolean
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
  run.action(async (options: RunOptions) => {
    const stop = stopSignal()
    const settings = readSettings(collectorSettings, { command: run, environment: process.env })
    const log = createLogger('posture-collector', settings.logLevel)
    // Only here: the store and the HTTP client take longer to load than all else, and no other command needs them.
    const { Collector } = await import('../collector.ts')
    const collector = new Collector(settings, catalogInForce(settings.registry, log), log)
    const progress = fileProgress(options.read)
    const reading = options.read !== undefined
    const running = collector.run({
      capture: reading ? { kind: 'file', path: options.read } : interfaceOf(settings),
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

function interfaceOf(settings: CollectorSettings): CaptureSource {
  const { snaplenBytes, ringMegabytes, promiscuous, tunnels, expression } = settings
  return {
    kind: 'interface',
    name: settings.interface,
    snaplenBytes,
    ringBytes: ringMegabytes * 1024 * 1024,
    promiscuous,
    tunnels,
    expression,
  }
}
