import { readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Runs as the user of the service: hostile-racer DIRECTORY TARGET. Replaces every new name in the
 * directory by a link to the target, until it is killed.
 */
const [directory = '', target = ''] = process.argv.slice(2)
const before = new Set(readdirSync(directory))
process.send?.('ready')
for (let round = 0; ; round++) {
  for (const name of readdirSync(directory)) {
    if (before.has(name)) continue
    const path = join(directory, name)
    const aside = join(directory, `aside.${round}`)
    try {
      renameSync(path, aside)
      before.add(`aside.${round}`)
      symlinkSync(target, path)
      rmSync(aside, { recursive: true, force: true })
    } catch {
      // The program was faster.
    }
  }
}
