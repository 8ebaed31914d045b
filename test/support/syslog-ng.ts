import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Certificate, provideCertificate } from '../../engine/http/certificate.ts'
import { freePort } from './free-port.ts'
import { jsonLines } from './programs.ts'
import { killSyslogNg, startSyslogNgProcess } from './syslog-ng-process.ts'
import { testFolder } from './test-folder.ts'
import { until } from './wait.ts'

/**
 * syslog-ng as a receiver on all three transports. Parses each message and writes its parts as a
 * line of JSON.
 */
export interface SyslogNg {
  readonly certificate: Certificate
  /** The test's folder. Tests may add files. */
  readonly directory: string
  readonly ports: { readonly tls: number; readonly tcp: number; readonly udp: number }
  /** The messages received so far. */
  received(): ReceivedMessage[]
  /** Resolves when at least `count` messages have arrived. */
  receivedAtLeast(count: number): Promise<ReceivedMessage[]>
  /** Ends syslog-ng as a crash would. */
  kill(): Promise<void>
  start(): Promise<void>
}

export interface ReceivedMessage {
  readonly pri: string
  readonly time: string
  readonly host: string
  readonly program: string
  readonly msgid: string
  /** PARAMs of SD-ELEMENT `svc@00000`. */
  readonly key: string
  readonly id: string
  readonly message: string
}

const parameter = (name: string): string => `\${.SDATA.svc@00000.${name}}`
const PARTS = [
  ...['pri=$PRI', 'time=$S_ISODATE', 'host=$HOST', 'program=$PROGRAM', 'msgid=$MSGID', 'message=$MSG'],
  ...[`key=${parameter('key')}`, `id=${parameter('id')}`],
].join(' ')

/** Runs until the test ends. */
export async function syslogNg(t: { testdir(): string; teardown(work: () => unknown): void }): Promise<SyslogNg> {
  const directory = testFolder(t)
  const certificate = await provideCertificate(directory, undefined)
  const { keyFile, certificateFile } = certificate
  const output = join(directory, 'received')
  const [tls, tcp, udp] = [await freePort(), await freePort(), await freePort()] as const
  const tlsOptions = `tls(key-file("${keyFile}") cert-file("${certificateFile}") peer-verify(optional-untrusted))`
  const configuration = `@version: 3.35
options { keep-hostname(yes); chain-hostnames(no); use-dns(no); dns-cache(no); };
source all {
  syslog(ip("127.0.0.1") transport("tls") port(${tls}) ${tlsOptions});
  syslog(ip("127.0.0.1") transport("tcp") port(${tcp}));
  syslog(ip("127.0.0.1") transport("udp") port(${udp}) so-rcvbuf(4194304));
};
destination file { file("${output}" template("$(format-json ${PARTS})\\n") flush-lines(1)); };
log { source(all); destination(file); };
`
  let child: ChildProcess | undefined
  const start = async (): Promise<void> => {
    child = await startSyslogNgProcess(directory, configuration, [tls, tcp])
  }
  const kill = (): Promise<void> => killSyslogNg(child)
  t.teardown(kill)
  await start()
  const received = (): ReceivedMessage[] =>
    // The last line may not be written to its end yet.
    jsonLines(existsSync(output) ? readFileSync(output, 'utf8').split('\n').slice(0, -1).join('\n') : '')
  return {
    certificate,
    directory,
    ports: { tls, tcp, udp },
    received,
    async receivedAtLeast(count) {
      await until(`${count} messages`, () => received().length >= count)
      return received()
    },
    kill,
    start,
  }
}
