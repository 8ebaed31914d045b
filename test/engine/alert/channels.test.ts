import { mkdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import type { AlertChannel } from '../../../engine/store/alert-channels.ts'
import { type AlertSite, alertSite, webhookReceiver } from '../../support/alerts.ts'
import { syslogNg } from '../../support/syslog-ng.ts'

type Test = Parameters<typeof alertSite>[0]

interface Mail {
  readonly from: string
  readonly to: readonly string[]
  readonly user: string
  readonly secure: boolean
  readonly text: string
}

/** A real SMTP server on loopback. */
async function smtpServer(t: Test, directory: string, options: SMTPServerOptions = {}) {
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  t.teardown(() => new Promise<void>((resolve) => server.close(() => resolve())))
  const { port } = server.server.address() as AddressInfo
  return { port, mails, ca: readFileSync(certificateFile, 'utf8') }
}

function failureOf({ store, organization }: AlertSite, channel: AlertChannel): string {
  return store.alertChannels.state(organization.id, channel.id).failure
}

const MAIL = { kind: 'smtp', host: 'localhost', from: 'posture@acme.example', to: ['soc@acme.example'] } as const

t.test('mail is sent by STARTTLS with authentication, with a stable Message-ID', async (t) => {
  const site = alertSite(t)
  const { port, mails, ca } = await smtpServer(t, site.directory)
  site.addChannel({ ...MAIL, port, ca, user: 'posture', password: 'right' })
  site.scan(['claude.ai', 'chatgpt.com'])
  site.evaluate()
  await site.deliver()
  t.match(mails, [{ from: MAIL.from, to: MAIL.to, user: 'posture', secure: true }])
  const [{ text = '' } = {}] = mails
  t.match(text, /^Subject: \[Acme\] First scan: 2 new AI platforms$/m)
  const [alert] = site.store.alerts.newest(site.organization.id, 2).reverse()
  t.match(text, new RegExp(`^Message-ID: <${alert?.id}@acme\\.example>`, 'm'))
  t.match(text, /^Auto-Submitted: auto-generated/m)
  t.match(text, /New AI platform: Claude/)
})

t.test('mail over implicit TLS; a wrong password is retried and never shown', async (t) => {
  const site = alertSite(t)
  const { port, mails, ca } = await smtpServer(t, site.directory, { secure: true })
  const right = { ...MAIL, port, ca, tls: 'implicit', user: 'posture' } as const
  site.addChannel({ ...right, password: 'right' }, { name: 'right' })
  const wrong = site.addChannel({ ...right, password: 'wrong-password' }, { name: 'wrong' })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  t.equal(mails.length, 1)
  t.match(failureOf(site, wrong), /535/)
  t.notMatch(failureOf(site, wrong), /wrong-password/)
  t.equal(site.store.alertChannels.waiting(site.organization.id, wrong.id), 1)
})

t.test('mail is not sent without TLS, nor to a certificate that is not trusted', async (t) => {
  const site = alertSite(t)
  const plain = await smtpServer(t, site.directory, { disabledCommands: ['STARTTLS'], authOptional: true })
  const untrusted = await smtpServer(t, site.directory, { authOptional: true })
  const first = site.addChannel({ ...MAIL, port: plain.port, ca: plain.ca }, { name: 'plain' })
  const second = site.addChannel({ ...MAIL, port: untrusted.port }, { name: 'untrusted' })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  t.same([plain.mails, untrusted.mails], [[], []])
  t.not(failureOf(site, first), '')
  t.match(failureOf(site, second), /not trusted|certificate/)
})

t.test('a receiver that the mail server rejects makes a dead letter at once', async (t) => {
  const site = alertSite(t)
  const { port, ca } = await smtpServer(t, site.directory, {
    authOptional: true,
    onRcptTo: (_address, _session, done) => done(Object.assign(new Error('no such mailbox'), { responseCode: 550 })),
  })
  const channel = site.addChannel({ ...MAIL, port, ca })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  t.match(site.store.alertChannels.deadLetters(site.organization.id, channel.id), [{ failure: /550.*no such mailbox/ }])
})

t.test('syslog-ng receives each alert as CEF, LEEF and OCSF over TLS, TCP and UDP', async (t) => {
  const receiver = await syslogNg(t)
  const store = join(receiver.directory, 'alerts')
  mkdirSync(store)
  const site = alertSite({ testdir: () => store, teardown: (work) => t.teardown(work) })
  const ca = readFileSync(receiver.certificate.certificateFile, 'utf8')
  const { tls, tcp, udp } = receiver.ports
  const add = (transport: string, port: number, format: string): void => {
    site.addChannel({ kind: 'syslog', host: 'localhost', port, transport, format, ca }, { name: transport })
  }
  add('tls', tls, 'cef')
  add('tcp', tcp, 'leef')
  add('udp', udp, 'ocsf')
  site.scan(['claude.ai', 'chatgpt.com'])
  site.evaluate()
  await site.deliver()
  const got = await receiver.receivedAtLeast(6)
  const ids = site.store.alerts.newest(site.organization.id, 10).map(({ id }) => id)
  for (const beginning of ['CEF:0|', 'LEEF:2.0|', '{']) {
    const messages = got.filter(({ message }) => message.startsWith(beginning))
    t.same(messages.map(({ id }) => id).sort(), [...ids].sort(), beginning)
    t.match(messages[0], { program: 'posture-service', msgid: 'alert', pri: '133' })
  }
  for (const { id } of site.store.alertChannels.ofOrganization(site.organization.id)) {
    t.match(site.store.alertChannels.state(site.organization.id, id), { delivered: 1, failure: '' })
  }
})

t.test('a syslog channel gets all alerts, and retries while nobody listens', async (t) => {
  const lines: string[] = []
  const server = createTcpServer((socket) => {
    socket.on('data', (part) => lines.push(part.toString())).on('end', () => socket.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise<void>((resolve) => server.close(() => resolve()))
  const site = alertSite(t)
  const channel = site.addChannel({ kind: 'syslog', host: '127.0.0.1', port, transport: 'tcp' })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  t.equal(failureOf(site, channel), 'nothing listens there')
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  site.clock.add(60_000)
  await site.deliver()
  t.match(lines.join(''), /^\d+ <133>1 .* alert \[svc@00000 id="[0-9a-f]{32}"\] CEF:0\|/)
})

t.test('chats get text in which names are neither markup nor mentions', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t)
  site.addChannel({ kind: 'slack', url: `${receiver.url}/slack` })
  site.addChannel({ kind: 'teams', url: `${receiver.url}/teams` })
  const label = '<!channel> *bold* [link](https://evil.example)'
  site.administration.apiKeys.create(site.organization, label, ['scores:read'], site.clock.nowMs() + 86_400_000)
  site.evaluate()
  await site.deliver()
  const bodies = Object.fromEntries(receiver.received.map(({ path, body }) => [path, body]))
  const slack = bodies['/alerts/slack'] ?? ''
  t.match(slack, /&lt;!channel&gt;/)
  t.notMatch(slack, /<!channel>|[^\u200b]\*bold/)
  const teams = JSON.parse(bodies['/alerts/teams'] ?? '{}') as {
    attachments?: { content: { body: { text: string }[] } }[]
  }
  const [title] = teams.attachments?.[0]?.content.body ?? []
  t.match(title?.text, /\\\*bold\\\* \\\[link\\\]\\\(/)
})
