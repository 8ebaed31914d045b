import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { type Certificate, provideCertificate } from '../../engine/http/certificate.ts'

/** syslog-ng as a receiver of all three transports: it takes each message apart, and writes the parts as a line of JSON. */
export interface SyslogNg {
  readonly certificate: Certificate
  /** The test's folder; others may put files into it. */
  readonly directory: string
  readonly ports: { readonly tls: number; readonly tcp: number; readonly udp: number }
  /** The messages so far. */
  received(): ReceivedMessage[]
  /** Resolved when so many are there. */
  receivedAtLeast(count: number): Promise<ReceivedMessage[]>
  /** As a crash would end it. */
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
  const directory = t.testdir()
  const certificate = await provideCertificate(directory, undefined)
  const { keyFile, certificateFile } = certificate
  const output = join(directory, 'received')
  const configuration = join(directory, 'syslog-ng.conf')
  const [tls, tcp, udp] = [await freePort(), await freePort(), await freePort()] as const
  const tlsWords = `tls(key-file("${keyFile}") cert-file("${certificateFile}") peer-verify(optional-untrusted))`
  writeFileSync(
    configuration,
    `@version: 3.35
options { keep-hostname(yes); chain-hostnames(no); use-dns(no); dns-cache(no); };
source all {
  syslog(ip("127.0.0.1") transport("tls") port(${tls}) ${tlsWords});
  syslog(ip("127.0.0.1") transport("tcp") port(${tcp}));
  syslog(ip("127.0.0.1") transport("udp") port(${udp}) so-rcvbuf(4194304));
};
destination file { file("${output}" template("$(format-json ${PARTS})\\n") flush-lines(1)); };
log { source(all); destination(file); };
`,
  )
  let child: ChildProcess | undefined
  const start = async (): Promise<void> => {
    const files = ['-f', configuration, '-R', join(directory, 'persist'), '-c', join(directory, 'control')]
    const words = ['-F', '--no-caps', ...files, '-p', join(directory, 'pid')]
    const started = spawn('syslog-ng', words, { stdio: ['ignore', 'ignore', 'inherit'] })
    child = started
    const failed = once(started, 'exit').then(([status]) => {
      throw new Error(`syslog-ng ended with ${status}`)
    })
    failed.catch(() => {})
    await Promise.race([Promise.all([listening(tls), listening(tcp)]), failed])
  }
  const kill = async (): Promise<void> => {
    const running = child
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }
  t.teardown(kill)
  await start()
  const received = (): ReceivedMessage[] =>
    existsSync(output)
      ? readFileSync(output, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line) as ReceivedMessage)
      : []
  return {
    certificate,
    directory,
    ports: { tls, tcp, udp },
    received,
    async receivedAtLeast(count) {
      for (;;) {
        const messages = received()
        if (messages.length >= count) return messages
        await later(20)
      }
    },
    kill,
    start,
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const connected = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (connected) return
    await later(20)
  }
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
