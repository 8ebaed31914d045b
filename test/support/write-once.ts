import { existsSync } from 'node:fs'
import { open } from 'lmdb'
import { Environment } from '../../engine/kernel/lmdb/environment.ts'

/**
 * Runs as a separate process: writes into an environment once, as soon as a file exists. `ours`
 * writes as our programs do. Otherwise the process uses LMDB only and holds its write lock while it
 * waits. `ours` reports a second time before it writes.
 */
const [, , how = '', path = '', file = ''] = process.argv
const never = new Int32Array(new SharedArrayBuffer(4))
/** Reports that it waits, then blocks without a turn of the event loop. */
const untilReported = (): void => {
  process.send?.('waits')
  while (!existsSync(file)) Atomics.wait(never, 0, 0, 10)
}
if (how === 'ours') {
  const environment = new Environment(path, { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 })
  const table = environment.table('t')
  untilReported()
  process.send?.('writes')
  environment.write(() => table.putSync(Buffer.from('ours'), Buffer.from('v')))
  await environment.close()
} else {
  const root = open<Buffer, Buffer>({ path, noSubdir: false, maxDbs: 64, keyEncoding: 'binary', encoding: 'binary' })
  root.transactionSync(untilReported)
  await root.close()
}
process.disconnect()
