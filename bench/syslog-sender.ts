import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** The parent's request: send the bytes of `file`, `times` times over each connection. */
export interface SyslogSending {
  readonly port: number
  readonly tls: boolean
  readonly connections: number
  readonly file: string
  readonly times: number
}

process.on('message', async ({ port, tls, connections, file, times }: SyslogSending) => {
  const block = readFileSync(file)
  await Promise.all(Array.from({ length: connections }, () => send(port, tls, block, times)))
  process.send?.('sent')
})
process.on('disconnect', () => process.exit())

function send(port: number, tls: boolean, block: Buffer, times: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = tls
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect({ port, host: '127.0.0.1' })
    socket.on('error', reject)
    socket.on('close', () => resolve())
    // Neither syslog-ng nor our service sends data. Reading makes the end of the connection
    // visible.
    socket.resume()
    socket.once(tls ? 'secureConnect' : 'connect', async () => {
      for (let time = 0; time < times; time++) {
        if (!socket.write(block)) await new Promise((go) => socket.once('drain', go))
      }
      socket.end()
    })
  })
}
