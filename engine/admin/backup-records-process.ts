import { spawnSync } from 'node:child_process'
import { copyRecords } from '../kernel/lmdb/copy-records.ts'

/** Sent to the process that copies the records of a backup. */
export interface CopyOrder {
  readonly from: string
  readonly to: string
  readonly bytesMax: number
}

/** What the process reports: the bytes of the records so far, or how it ended. */
export type CopyReport = { readonly bytes: number } | { readonly done: true } | { readonly damaged: string }

/** Private memory: V8's heap, and LMDB's changed pages. */
const MEMORY_BYTES_MAX = 1024 * 1024 * 1024

function report(message: CopyReport): void {
  process.send?.(message, undefined, undefined, () => {})
}

/** @throws Error */
function limitMemory(): void {
  const limits = [`--pid=${process.pid}`, '--core=0', `--data=${MEMORY_BYTES_MAX}`]
  const { error, stderr } = spawnSync('prlimit', limits, { encoding: 'utf8' })
  // Images without a shell do not have prlimit(1). They limit the container.
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return
  if (error !== undefined || stderr !== '') throw new Error(`its reader has no memory limit: ${error ?? stderr.trim()}`)
}

process.once('disconnect', () => process.exit())
process.once('message', async (order: CopyOrder) => {
  try {
    limitMemory()
    await copyRecords(order, (bytes) => report({ bytes }))
    report({ done: true })
  } catch (error) {
    report({ damaged: (error as Error).message })
  }
})
