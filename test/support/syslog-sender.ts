import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket, type TcpSocketConnectOpts } from 'node:net'
import { connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls'

/** A connection to a listener. */
export interface Sender<S extends Socket = Socket> {
  readonly socket: S
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>
  send(text: string | Uint8Array): void
}

export interface SenderOptions {
  readonly host?: string
  readonly localAddress?: string
}

export async function sendTcp(
  t: { teardown(work: () => unknown): void },
  port: number,
  { host = '127.0.0.1', localAddress }: SenderOptions = {},
): Promise<Sender> {
  const options: TcpSocketConnectOpts = { port, host, ...(localAddress === undefined ? {} : { localAddress }) }
  const socket = connect(options)
  const sender = senderOf(t, socket)
  await once(socket, 'connect')
  return sender
}

export interface TlsSenderOptions extends SenderOptions {
  readonly caFile: string
  readonly version?: SecureVersion
  /** Bytes to send before the handshake. */
  readonly before?: Uint8Array
}

/** Rejects when the handshake fails. */
export async function sendTls(
  t: { teardown(work: () => unknown): void },
  port: number,
  { host = '127.0.0.1', caFile, version, before }: TlsSenderOptions,
): Promise<Sender<TLSSocket>> {
  const socket = connect({ port, host })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  if (before !== undefined) socket.write(before)
  const versions = version === undefined ? {} : { minVersion: version, maxVersion: version }
  // Without this setting, OpenSSL does not offer TLS 1.1.
  const ciphers = version === 'TLSv1.1' ? { ciphers: 'DEFAULT@SECLEVEL=0' } : {}
  const secure = connectTls({ socket, ca: readFileSync(caFile), servername: 'localhost', ...versions, ...ciphers })
  const sender = senderOf(t, secure)
  await once(secure, 'secureConnect')
  return sender
}

function senderOf<S extends Socket>(t: { teardown(work: () => unknown): void }, socket: S): Sender<S> {
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  // The socket reports its end only after all data is read.
  socket.resume()
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
  })
  return { socket, closed, send: (text) => void socket.write(text) }
}

/** Sends one datagram per message, from a port that the system chooses. */
export async function sendUdp(
  port: number,
  messages: readonly string[],
  host = '127.0.0.1',
  from?: string,
): Promise<void> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  if (from !== undefined) await new Promise<void>((resolve) => socket.bind(0, from, resolve))
  for (const message of messages) {
    await new Promise((resolve) => socket.send(message, port, host, resolve))
  }
  socket.close()
}

/** The PROXY protocol header, version 2, for a client. */
export function proxyHeader(source: string, command = 1): Buffer {
  const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
  const isIpv6 = source.includes(':')
  const size = isIpv6 ? 16 : 4
  const addresses = Buffer.alloc(size * 2 + 4)
  if (isIpv6) {
    for (const [index, group] of source.split(':').entries())
      addresses.writeUInt16BE(Number.parseInt(group, 16), index * 2)
  } else addresses.set(source.split('.').map(Number))
  const fixed = Buffer.from([0x20 | command, isIpv6 ? 0x21 : 0x11, 0, addresses.length])
  return Buffer.concat([signature, fixed, addresses])
}
