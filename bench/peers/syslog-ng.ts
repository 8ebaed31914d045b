import { spawnSync } from 'node:child_process'
import { existsSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { killSyslogNg, startSyslogNgProcess } from '../../test/support/syslog-ng-process.ts'
import { until } from '../../test/support/wait.ts'

/** syslog-ng, writing received messages to a file. */
export interface SyslogNgPeer {
  readonly version: string
  readonly pid: number
  /** Resolves when `count` lines are in the file. */
  lines(count: number): Promise<void>
  empty(): void
  stop(): Promise<void>
}

export interface SyslogNgOptions {
  readonly directory: string
  readonly port: number
  readonly tls: { readonly keyFile: string; readonly certificateFile: string } | undefined
}

export async function startSyslogNg({ directory, port, tls }: SyslogNgOptions): Promise<SyslogNgPeer> {
  const output = join(directory, 'received')
  const transport = tls
    ? `transport("tls") tls(key-file("${tls.keyFile}") cert-file("${tls.certificateFile}") peer-verify(optional-untrusted))`
    : 'transport("tcp")'
  // Windows and batches as large as its manual recommends for high rates. Reading and writing run
  // in threads.
  const child = await startSyslogNgProcess(
    directory,
    `@version: 3.35
options { threaded(yes); keep-hostname(yes); use-dns(no); dns-cache(no); stats-freq(0); flush-lines(1000); log-fifo-size(1000000); };
source in { syslog(ip("127.0.0.1") port(${port}) ${transport} max-connections(100) log-iw-size(100000) log-fetch-limit(1000) flags(store-raw-message)); };
destination out { file("${output}" template("$RAWMSG\\n") log-fifo-size(1000000)); };
log { source(in); destination(out); flags(flow-control); };
`,
    [port],
  )
  const [, version = '?'] =
    /syslog-ng \d+ \((\d[\d.]*)/.exec(spawnSync('syslog-ng', ['-V'], { encoding: 'utf8' }).stdout) ?? []
  return {
    version,
    pid: child.pid ?? 0,
    async lines(count) {
      // Counting lines takes CPU from the measured work, so lines are counted after the file stops
      // growing.
      let size = -1
      await until('every message is in the file', () => {
        const before = size
        size = existsSync(output) ? statSync(output).size : 0
        return size > 0 && size === before && linesOf(output) >= count
      })
    },
    empty() {
      if (existsSync(output)) truncateSync(output)
    },
    stop: () => killSyslogNg(child),
  }
}

function linesOf(file: string): number {
  return Number(spawnSync('wc', ['-l', file], { encoding: 'utf8' }).stdout.split(' ')[0])
}
