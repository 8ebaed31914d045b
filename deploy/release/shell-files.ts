import { gzipSync } from 'node:zlib'
import { COMMAND_LINES } from './command-lines.ts'
import { bashCompletion, fishCompletion, zshCompletion } from './completion.ts'
import { manualPage } from './manual.ts'

/**
 * The manual pages and completion scripts of commands, by their paths below /usr, which Debian's packages of man-db, bash,
 * zsh and fish read. Pages are compressed, as Debian Policy 12.1 asks.
 *
 * @param epochSeconds seconds since 1970 of the day that the pages show.
 */
export function shellFiles(
  commands: readonly { readonly name: string }[],
  { version, epochSeconds }: { readonly version: string; readonly epochSeconds: number },
): ReadonlyMap<string, string | Buffer> {
  const files = new Map<string, string | Buffer>()
  for (const { name } of commands) {
    const line = COMMAND_LINES[name]
    if (line === undefined) throw new Error(`${name} is not in COMMAND_LINES`)
    // gzip writes neither name nor time, so the same page gives the same bytes.
    const page = gzipSync(manualPage(line, version, epochSeconds * 1000), { level: 9 })
    files.set(`share/man/man${line.section}/${name}.${line.section}.gz`, page)
    files.set(`share/bash-completion/completions/${name}`, bashCompletion(line))
    files.set(`share/zsh/vendor-completions/_${name}`, zshCompletion(line))
    files.set(`share/fish/vendor_completions.d/${name}.fish`, fishCompletion(line))
  }
  return files
}
