import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEGABYTE = 1024 * 1024

/** A file system of its own, and a file in it that takes what others would need. */
export class SmallDisk {
  readonly directory = mkdtempSync(join(tmpdir(), 'small-disk-'))
  readonly #ballast = join(this.directory, 'ballast')

  constructor(t: { teardown(work: () => unknown): void }, megabytes: number) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.directory])
    t.teardown(() => {
      // Lazily: LMDB may still have its file open.
      execFileSync('umount', ['-l', this.directory])
      rmSync(this.directory, { recursive: true })
    })
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.directory)
    return bavail * bsize
  }

  fillUpTo(megabytesLeft: number): void {
    try {
      writeFileSync(this.#ballast, Buffer.alloc(Math.max(0, this.freeBytes - megabytesLeft * MEGABYTE)))
    } catch (error) {
      // What is written meanwhile takes space, too.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }

  free(): void {
    rmSync(this.#ballast)
  }
}
