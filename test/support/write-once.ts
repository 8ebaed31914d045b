import { existsSync } from 'node:fs'
import { open } from 'lmdb'
import { Environment } from '../../engine/lmdb/environment.ts'

/** A process that writes into an environment once, when a file is there: as our programs do; or with no more than LMDB, whose lock it holds before that. */
const [, , how = '', path = '', file = ''] = process.argv
const nobody = new Int32Array(new SharedArrayBuffer(4))
/** Tells that it waits, and waits without a turn of the event loop. */
const untilReported = (): void => {
  process.send?.('waits')
  while (!existsSync(file)) Atomics.wait(nobody, 0, 0, 10)
}
if (how === 'ours') {
  const environment = new Environment(path, { setting: '--data-dir', schemaVersion: 1, freeBytesMin: 0 })
  const table = environment.table('t')
  untilReported()
  environment.write(() => table.putSync(Buffer.from('ours'), Buffer.from('v')))
  await environment.close()
} else {
  const root = open<Buffer, Buffer>({ path, noSubdir: false, maxDbs: 64, keyEncoding: 'binary', encoding: 'binary' })
  root.transactionSync(untilReported)
  await root.close()
}
process.disconnect()
