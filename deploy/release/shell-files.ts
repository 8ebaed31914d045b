import { gzipSync } from 'node:zlib'
import { COMMAND_LINES } from './command-lines.ts'
import { bashCompletion, fishCompletion, zshCompletion } from './completion.ts'
import { manualPage } from './manual.ts'

/**
 * Manual pages and completion scripts by their paths below /usr, where man-db, bash, zsh and fish
 * find them on Debian. Pages are compressed, as required by Debian Policy 12.1.
 *
 * @param epochSeconds the date of the pages, in seconds since 1970
 */
export function shellFiles(
  commands: readonly { readonly name: string }[],
  { version, epochSeconds }: { readonly version: string; readonly epochSeconds: number },
): ReadonlyMap<string, string | Buffer> {
  const files = new Map<string, string | Buffer>()
  for (const { name } of commands) {
    const line = COMMAND_LINES[name]
    if (line === undefined) throw new Error(`${name} is not in COMMAND_LINES`)
    // gzip stores neither name nor time here, so equal pages give equal bytes.
    const page = gzipSync(manualPage(line, version, epochSeconds * 1000), { level: 9 })
    files.set(`share/man/man${line.section}/${name}.${line.section}.gz`, page)
    files.set(`share/bash-completion/completions/${name}`, bashCompletion(line))
    files.set(`share/zsh/vendor-completions/_${name}`, zshCompletion(line))
    files.set(`share/fish/vendor_completions.d/${name}.fish`, fishCompletion(line))
  }
  return files
}
