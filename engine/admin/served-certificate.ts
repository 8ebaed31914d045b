import { connect } from 'node:tls'
import { within } from '../process/shutdown.ts'

/** How long a listener may take to present its certificate, in milliseconds. */
const HANDSHAKE_MS = 2000

/**
 * Whether a listener on one of the ports presents the certificate. The file alone does not prove
 * that: a service with a certificate of its own ignores it, and may have made it before.
 *
 * @param fingerprint SHA-256, as node:crypto prints it
 */
export async function isServed(
  fingerprint: string,
  hosts: readonly string[],
  ports: readonly number[],
): Promise<boolean> {
  const listeners = hosts.flatMap((host) => ports.map((port) => ({ host, port })))
  const presented = await Promise.all(listeners.map(({ host, port }) => presentedFingerprint(host, port)))
  return presented.includes(fingerprint)
}

/** Undefined if nothing listens there with TLS. The caller compares it, so no CA has to. */
async function presentedFingerprint(host: string, port: number): Promise<string | undefined> {
  let fingerprint: string | undefined
  const socket = connect({ host, port, rejectUnauthorized: false })
  const ended = new Promise<void>((resolve) => {
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
    socket.on('secureConnect', () => {
      fingerprint = socket.getPeerCertificate().fingerprint256
      resolve()
    })
  })
  await within(HANDSHAKE_MS, ended)
  socket.destroy()
  return fingerprint
}
