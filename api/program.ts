import type { Command } from 'commander'
import { createLogger } from '../engine/process/log.ts'
import { createProgram } from '../engine/process/program.ts'
import { catalogInForce } from '../engine/process/registry-setting.ts'
import { addSettingOptions, readSettings } from '../engine/process/settings.ts'
import { stopSignal } from '../engine/process/shutdown.ts'

import { checkTogether, serviceSettings } from './config.ts'
import { Service } from './service.ts'

const DRAIN_MS = 10_000

/** A parent that started us with an IPC channel is our supervisor: without it nobody would stop us. */
function parentGone(): Promise<string> {
  return new Promise((resolve) => {
    if (process.connected) process.once('disconnect', () => resolve('parent gone'))
  })
}

/** posture-service. The documentation is generated from it, too. */
export function serviceProgram(): Command {
  const program = createProgram(
    'posture-service',
    'Receives events, folds them into discovery scans and serves the read-only REST API.',
  )
  addSettingOptions(program, serviceSettings).action(async () => {
    const stop = stopSignal()
    const settings = checkTogether(readSettings(serviceSettings, { command: program, environment: process.env }))
    const log = createLogger('posture-service', settings.logLevel)
    const service = new Service(settings, catalogInForce(settings.registry, log), log)
    try {
      const listening = await service.start()
      // For a parent that started us with an IPC channel and waits until we serve.
      process.send?.({ kind: 'listening', ...listening })
      const signal = await Promise.race([stop.received, parentGone(), service.failure])
      log.info({ signal }, 'stopping')
    } finally {
      await service.drain(DRAIN_MS)
      if (process.connected) process.disconnect()
    }
  })
  return program
}
