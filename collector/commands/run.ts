import type { Command } from 'commander'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { fileProgress } from '../../engine/kernel/process/file-progress.ts'
import { createLogger, type Logger, setLogLevel } from '../../engine/kernel/process/log.ts'
import { catalogInForce, registryFileOptions } from '../../engine/kernel/process/registry-setting.ts'
import {
  addSettingOptions,
  changedSettings,
  environmentWith,
  readSettings,
  type SettingsFileOption,
} from '../../engine/kernel/process/settings.ts'
import { exitStatusOf, ReloadSignal, stopSignal } from '../../engine/kernel/process/signals.ts'
import { nearestName } from '../../engine/kernel/process/similar.ts'
import { printRows } from '../../engine/kernel/process/table.ts'
import { loadCatalogOrBuiltIn } from '../../registry/catalog.ts'
import { listInterfaces } from '../capture/interfaces.ts'
import type { Collector } from '../collector.ts'
import { type CollectorSettings, collectorSettings, readCollectorSettings } from '../config.ts'
import { CaptureWorker } from '../pipeline/capture-worker.ts'
import { ownerOfOutbox, prepareOutbox, userToBecome } from '../privileges.ts'
import type { RegistryUpdates } from '../registry-updates.ts'
import type { Sensor } from '../sensor.ts'

/**
 * Time to forward waiting events when a live collector is stopped, in milliseconds. With the
 * closing that follows, a stop takes 10 seconds.
 */
const DRAIN_MS = 8500
/**
 * The same when the reading of a file is interrupted. The user wants to continue, and waiting
 * events are safe on disk.
 */
const READ_DRAIN_MS = 500

interface RunOptions extends SettingsFileOption {
  readonly read?: string
  readonly shiftToNow?: boolean
  readonly listInterfaces?: boolean
}

/** posture-collector [run]: watches an interface or reads a capture file, and forwards matches. */
export function addRunCommand(program: Command): void {
  const run = addSettingOptions(
    program
      .command('run', { isDefault: true })
      .description('Capture on an interface and forward matches (the default command)'),
    collectorSettings,
  )
    .option('--read <file>', 'Read this capture file instead, and exit when the service has acknowledged its events')
    .option('--shift-to-now', 'Shift times so that the last packet was seen now; requires --read')
    .option(
      '--settings-file <file>',
      'Read NAME=value lines from this file, again on SIGHUP; they override the environment',
    )
    .option('--list-interfaces', 'Print the available interfaces, and exit')
  // commander passes an unknown command to the default command, and would report too many
  // arguments.
  run.allowExcessArguments(true)
  run.action(async (options: RunOptions) => {
    const [word] = run.args
    if (word !== undefined) throw new Fault('USAGE', unknownCommand(word, program))
    if (options.listInterfaces) return printInterfaces()
    if (options.shiftToNow && options.read === undefined)
      throw new Fault('USAGE', '--shift-to-now: requires --read <file>')
    const stop = stopSignal()
    // What is read again needs no token, whose file may be readable for root only.
    const settingsNow = (): CollectorSettings =>
      readSettings(collectorSettings, {
        command: run,
        environment: environmentWith(options, collectorSettings),
      })
    const settings = readCollectorSettings(run, environmentWith(options, collectorSettings))
    const log = createLogger('posture-collector', settings.logLevel)
    try {
      if (options.read === undefined) await watch(settings, log, stop.received, settingsNow)
      else await readFile(settings, log, stop.received, { path: options.read, shiftToNow: options.shiftToNow === true })
    } finally {
      stop.forget()
    }
  })
}

function unknownCommand(word: string, program: Command): string {
  const nearest = nearestName(word, [...program.commands.map((command) => command.name()), 'help'])
  const suggestion = nearest === undefined ? '' : ` (Did you mean ${nearest}?)`
  return `unknown command '${word}'${suggestion}; see ${program.name()} --help`
}

type StopSignal = Awaited<ReturnType<typeof stopSignal>['received']>

async function watch(
  settings: CollectorSettings,
  log: Logger,
  stopped: Promise<StopSignal>,
  settingsNow: () => CollectorSettings,
): Promise<void> {
  const hangUp = new ReloadSignal()
  const started = settingsNow()
  const wanted = userToBecome(settings)
  const user = wanted && prepareOutbox(settings.outbox, wanted)
  // Loads its modules in parallel with this thread. But not while root has the rights of the user,
  // who may not be able to read the program.
  const thread = user === undefined ? new CaptureWorker() : undefined
  try {
    // Imported here because the store takes longer to load than everything else, and no other
    // command needs it.
    const { Sensor } = await import('../sensor.ts')
    const { RegistryUpdates } = await import('../registry-updates.ts')
    const updates = new RegistryUpdates(settings, log, user)
    const catalog = catalogInForce(settings.registry, log, updates.data)
    const sensor = new Sensor(settings, thread, catalog, log, {
      onRegistry: (version) => void updates.announce(version),
      user,
    })
    sensor.collector.registryProblem = () => updates.problem
    let { registry } = settings
    updates.onChange = (data) => sensor.collector.useCatalog(catalogInForce(registry, log, data))
    hangUp.start(async () => {
      registry = (await reload(sensor, log, started, settingsNow, updates)) ?? registry
    })
    void stopped.then((signal) => {
      log.info({ signal }, 'stopping')
      return sensor.collector.drain(DRAIN_MS)
    })
    await report(sensor.collector, log, () => sensor.run()).finally(() => updates.close())
  } finally {
    thread?.cancel()
    hangUp.forget()
  }
}

async function readFile(
  settings: CollectorSettings,
  log: Logger,
  stopped: Promise<StopSignal>,
  file: { readonly path: string; readonly shiftToNow: boolean },
): Promise<void> {
  const { Collector } = await import('../collector.ts')
  const progress = fileProgress(file.path)
  const source = { kind: 'file', ...file, onProgress: progress.update } as const
  const { RegistryUpdates } = await import('../registry-updates.ts')
  // The file is read with one registry, which the last run of the sensor may have fetched.
  const user = ownerOfOutbox(settings.outbox)
  const { data } = new RegistryUpdates(settings, log, user)
  const collector = new Collector(settings, source, catalogInForce(settings.registry, log, data), log, { user })
  void stopped.then((signal) => {
    log.info({ signal }, 'stopping')
    // An interrupted read is incomplete.
    process.exitCode = exitStatusOf(signal)
    return collector.drain(READ_DRAIN_MS)
  })
  try {
    await report(collector, log, () => collector.run().finally(progress.end))
  } finally {
    progress.end()
  }
}

/** Runs to the end and logs the result. */
async function report(collector: Collector, log: Logger, run: () => ReturnType<Collector['run']>): Promise<void> {
  const { allBalanced, balancesOf } = await import('../accounting.ts')
  try {
    const damage = await run()
    const { status } = collector
    const { observed, events, transports, deciding } = status
    const {
      acknowledged = 0,
      duplicates = 0,
      outsideDedupWindow = 0,
      refused = 0,
    } = (deciding && transports[deciding]) || {}
    const counters = balancesOf(status)
    log.info(
      {
        frames: observed.frames,
        names: observed.names,
        matches: observed.matched,
        events: events.made,
        acknowledged,
        duplicates,
        rejected: refused,
        outsideDedupWindow,
        dropped: events.dropped,
        waiting: events.waiting,
        ...(status.live === undefined ? {} : { packetsDropped: status.live.dropped }),
      },
      'ended',
    )
    if (!allBalanced(counters)) log.error({ counters }, 'the counters do not balance; please report this')
    if (damage === undefined) return
    // An interrupted run exits as interrupted and only logs the other problem.
    if (process.exitCode !== undefined) log.warn({ reason: damage.message }, damage.code)
    else throw new Fault(damage.code, damage.message)
  } finally {
    await collector.close()
  }
}

/** SIGHUP: rereads registry file and log level, and logs other changes. Returns the file in use. */
async function reload(
  sensor: Sensor,
  log: Logger,
  started: CollectorSettings,
  settingsNow: () => CollectorSettings,
  { data }: Pick<RegistryUpdates, 'data'>,
): Promise<string | undefined> {
  try {
    const settings = settingsNow()
    const { logLevel, registry } = settings
    const { catalog, fault } = loadCatalogOrBuiltIn({ data, ...registryFileOptions(registry) })
    if (fault !== undefined) throw new Fault('REGISTRY_FILE', fault.message)
    await sensor.collector.useCatalog(catalog)
    setLogLevel(log, logLevel)
    log.info({ logLevel }, 'reloaded')
    const waiting = changedSettings(collectorSettings, { ...started, logLevel, registry }, settings)
    if (waiting.length > 0) log.warn({ settings: waiting }, 'changed settings that require a restart')
    return registry
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    log.error({ reason: error.message }, 'not reloaded; the previous settings and registry stay active')
    return undefined
  }
}

/**
 * Needs no setting and no permission, because a user who looks up the interface's name has neither
 * yet.
 */
function printInterfaces(): void {
  printRows(
    {
      columns: [
        ['Interface', 'name'],
        ['State', 'state'],
        ['Kind', 'kind', { hide: 2 }],
        ['Addresses', 'addresses', { wrap: true }],
        ['Received packets', 'received_packets', { hide: 1 }],
      ],
      rows: listInterfaces().map(({ receivedPackets, ...row }) => ({ ...row, received_packets: receivedPackets })),
    },
    {},
  )
}
