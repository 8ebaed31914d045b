import { createRequire } from 'node:module'
import { basename } from 'node:path'

const require = createRequire(import.meta.url)

export interface FileProgress {
  readonly update: (done: number, total: number) => void
  readonly end: () => void
}

/** A progress bar for a file. Shown on standard error if that is a terminal and there is a file. */
export function fileProgress(path: string | undefined): FileProgress {
  return progressOf(path === undefined ? undefined : basename(path))
}

/** A progress bar for work with this name. */
export function progressOf(what: string | undefined): FileProgress {
  if (what === undefined || !process.stderr.isTTY) return { update: () => {}, end: () => {} }
  const { Presets, SingleBar } = require('cli-progress') as typeof import('cli-progress')
  const bar = new SingleBar(
    { format: `${what} {bar} {percentage}%`, clearOnComplete: true, hideCursor: true },
    Presets.shades_classic,
  )
  let started = false
  return {
    update(done, total) {
      // The size of a pipe's data is unknown.
      if (total === 0) return
      if (started) bar.update(done)
      else bar.start(total, done)
      started = true
    },
    end() {
      if (started) bar.stop()
      started = false
    },
  }
}
