import type { Command } from 'commander'
import { createLogger, nameNode } from '../engine/kernel/process/log.ts'
import { createProgram } from '../engine/kernel/process/program.ts'
import {
  addSettingOptions,
  environmentWith,
  readSettings,
  type SettingsFileOption,
} from '../engine/kernel/process/settings.ts'
import { exitStatusOf, ReloadSignal, stopSignal } from '../engine/kernel/process/signals.ts'
import { checkTogether, type ServiceSettings, serviceSettings } from './config.ts'

const DRAIN_MS = 10_000

/** The command line of posture-service. */
export function serviceProgram(): Command {
  const program = createProgram(
    'posture-service',
    'Receive events, run discovery scans over them and serve the read-only REST API',
  )
  addSettingOptions(program, serviceSettings).option(
    '--settings-file <file>',
    'Read NAME=value lines from this file, again on SIGHUP; they override the environment',
  )
  return program.action(async (options: SettingsFileOption) => {
    const stop = stopSignal()
    const hangUp = new ReloadSignal()
    const settingsNow = (): ServiceSettings =>
      checkTogether(
        readSettings(serviceSettings, { command: program, environment: environmentWith(options, serviceSettings) }),
      )
    const settings = settingsNow()
    if (settings.brokers.length > 0) nameNode(settings.nodeName)
    const log = createLogger('posture-service', settings.logLevel)
    // Imported here, so that --help and the documentation generators do not load the native addons.
    const [{ Service }, { openStore }] = await Promise.all([import('./service.ts'), import('./open-store.ts')])
    const stopping = new AbortController()
    let hasOpened = false
    void stop.received.then((signal) => {
      stopping.abort()
      // While it joins a cluster, which can wait for others, it has nothing to end.
      if (!hasOpened && settings.brokers.length > 0) process.exit(exitStatusOf(signal))
    })
    const service = new Service(settings, log, await openStore(settings, log, stopping.signal))
    hasOpened = true
    try {
      const listening = await service.start()
      // For a parent that started the service with an IPC channel and waits until it is ready.
      process.send?.({ kind: 'listening', ...listening })
      hangUp.start(() => service.reload(settingsNow))
      const signal = await Promise.race([stop.received, parentExited(), service.failure])
      log.info({ signal }, 'stopping')
    } finally {
      await service.drain(DRAIN_MS)
      if (process.connected) process.disconnect()
    }
  })
}

/**
 * A parent with an IPC channel is the service's supervisor. Without the parent, nothing would stop
 * the service.
 */
function parentExited(): Promise<string> {
  return new Promise((resolve) => {
    if (process.connected) process.once('disconnect', () => resolve('parent exited'))
  })
}
