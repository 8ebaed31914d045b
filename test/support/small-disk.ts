import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MEGABYTE = 1024 * 1024

/** A file system, and a ballast file that takes up its space. */
export class Disk {
  readonly directory: string
  readonly #ballast: string

  constructor(directory: string) {
    this.directory = directory
    this.#ballast = join(directory, 'ballast')
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.directory)
    return bavail * bsize
  }

  fillUpTo(megabytesLeft: number): void {
    try {
      writeFileSync(this.#ballast, Buffer.alloc(Math.max(0, this.freeBytes - megabytesLeft * MEGABYTE)))
    } catch (error) {
      // Writes by the program under test can take the space meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }

  free(): void {
    rmSync(this.#ballast)
  }
}

/** A small file system in memory. */
export class SmallDisk extends Disk {
  constructor(t: { teardown(work: () => unknown): void }, megabytes: number) {
    super(mkdtempSync(join(tmpdir(), 'small-disk-')))
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.directory])
    t.teardown(() => {
      // Lazy unmount, because LMDB may still have its file open.
      execFileSync('umount', ['-l', this.directory])
      rmSync(this.directory, { recursive: true })
    })
  }
}
