import { createRequire } from 'node:module'
import { basename } from 'node:path'

const require = createRequire(import.meta.url)

export interface FileProgress {
  readonly update: (bytesRead: number, bytesTotal: number) => void
  readonly end: () => void
}

/** A progress bar on standard error where that is a terminal; nothing in a pipe, and nothing without a file. */
export function fileProgress(path: string | undefined): FileProgress {
  if (path === undefined || !process.stderr.isTTY) return { update: () => {}, end: () => {} }
  const { Presets, SingleBar } = require('cli-progress') as typeof import('cli-progress')
  const bar = new SingleBar(
    { format: `${basename(path)} {bar} {percentage}%`, clearOnComplete: true, hideCursor: true },
    Presets.shades_classic,
  )
  let started = false
  return {
    update(bytesRead, bytesTotal) {
      // Nobody knows how much comes through a pipe.
      if (bytesTotal === 0) return
      if (started) bar.update(bytesRead)
      else bar.start(bytesTotal, bytesRead)
      started = true
    },
    end() {
      if (started) bar.stop()
      started = false
    },
  }
}
