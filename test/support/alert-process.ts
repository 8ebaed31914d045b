import { AlertRunner } from '../../engine/alert/alert-runner.ts'
import { systemClock } from '../../engine/kernel/process/clock.ts'
import { networkOf } from '../../engine/kernel/process/network.ts'
import { SecretsKey } from '../../engine/kernel/process/secrets-key.ts'
import { Store } from '../../engine/store/store.ts'
import { quietLog, registries } from './store.ts'

/**
 * Runs as a separate process: alert-process DIRECTORY KEY_FILE. Evaluates and sends alerts once, as
 * the service does, and reports when nothing is left to do, so that a test can kill it before.
 */
const [directory = '', keyFile = ''] = process.argv.slice(2)
const loopback = networkOf('127.0.0.0/8')
const store = new Store(directory, { mustExist: true })
const runner = new AlertRunner(store, registries, systemClock, quietLog, {
  secrets: new SecretsKey(keyFile),
  allowed: loopback === undefined ? [] : [loopback],
  version: '1.2.3',
})
process.send?.('started')
runner.start()
await runner.idle()
process.send?.('idle')
