import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { provideCertificate } from '../../engine/http/certificate.ts'

/** A mail as the server received it. */
export interface Mail {
  readonly from: string
  readonly to: readonly string[]
  readonly user: string
  readonly secure: boolean
  readonly text: string
}

/** A real SMTP server on loopback. */
export async function smtpServer(
  t: { teardown(work: () => unknown): void },
  directory: string,
  options: SMTPServerOptions = {},
) {
  const { keyFile, certificateFile } = await provideCertificate(directory, undefined)
  const mails: Mail[] = []
  const server = new SMTPServer({
    key: readFileSync(keyFile),
    cert: readFileSync(certificateFile),
    onAuth: ({ username = '', password }, _session, done) => {
      if (password === 'right') done(null, { user: username })
      else done(Object.assign(new Error('no such user'), { responseCode: 535 }))
    },
    onData: (stream, session, done) => {
      let text = ''
      stream.on('data', (part: Buffer) => {
        text += part.toString()
      })
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: String(session.user ?? ''),
          secure: session.secure,
          text,
        })
        done(null, 'queued as 4711')
      })
    },
    logger: false,
    ...options,
  })
  // A client that a test kills in the middle of a mail resets its connection.
  server.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') throw error
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as AddressInfo
  return { port, mails, ca: readFileSync(certificateFile, 'utf8') }
}
