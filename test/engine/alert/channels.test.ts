import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import t from 'tap'
import { pathOf } from '../../../engine/alert/completed-message.ts'
import type { AlertChannel } from '../../../engine/store/alert-channels.ts'
import { type AlertSite, alertSite, overdueRecommendations, webhookReceiver } from '../../support/alerts.ts'
import { listenOn } from '../../support/free-port.ts'
import { smtpServer } from '../../support/smtp-server.ts'

function failureOf({ store, organization }: AlertSite, channel: AlertChannel): string {
  return store.alertChannels.state(organization.id, channel.id).failure
}

const MAIL = { kind: 'smtp', host: 'localhost', from: 'posture@acme.example', to: ['soc@acme.example'] } as const

t.test('mail is sent by STARTTLS with authentication, with a stable Message-ID', async (t) => {
  const site = alertSite(t, { consoleOrigin: 'https://posture.example' })
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
  const facts = /Category: LLM Chat Assistant\s+Vendor: Anthropic\s+Risk: \d+\s+Risk reason: \S/
  const decoded = text.replaceAll(/=\r?\n/g, '')
  t.match(decoded, facts)
  t.match(decoded, 'https://posture.example/platforms/Claude')
})

t.test('a chat gets what is known about an only alert, and a link to the console', async (t) => {
  const receiver = await webhookReceiver(t)
  const site = alertSite(t, { consoleOrigin: 'https://posture.example' })
  site.addChannel({ kind: 'slack', url: `${receiver.url}/slack` })
  site.addChannel({ kind: 'teams', url: `${receiver.url}/teams` })
  site.scan(['claude.ai'])
  site.evaluate()
  await site.deliver()
  const bodies = Object.fromEntries(receiver.received.map(({ path, body }) => [path, body]))
  t.match(bodies['/alerts/slack'], 'Category: LLM Chat Assistant')
  t.match(bodies['/alerts/slack'], '<https://posture.example/platforms/Claude|Open in the console>')
  const action = {
    type: 'Action.OpenUrl',
    title: 'Open in the console',
    url: 'https://posture.example/platforms/Claude',
  }
  t.match(JSON.parse(bodies['/alerts/teams'] ?? '{}'), { attachments: [{ content: { actions: [action] } }] })
})

t.test('an alert about a day links to the use of that day', async (t) => {
  const details = { day: '2026-11-19' }
  for (const [kind, path] of [
    ['platform', '/platforms/A%2FB?from=2026-11-19&to=2026-11-19'],
    ['group', '/clients?group=7&sort=-sent&from=2026-11-19&to=2026-11-19'],
    ['organization', '/clients?sort=-sent&from=2026-11-19&to=2026-11-19'],
  ] as const) {
    t.equal(pathOf({ subject: { kind, id: '7', name: 'A/B' }, details }), path)
  }
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
  const label = '<!channel> @all *bold* [link](https://evil.example) ada@acme.example'
  site.administration.apiKeys.create(site.organization, label, ['scores:read'], site.clock.nowMs() + 86_400_000)
  site.evaluate()
  await site.deliver()
  const bodies = Object.fromEntries(receiver.received.map(({ path, body }) => [path, body]))
  const slack = bodies['/alerts/slack'] ?? ''
  t.match(slack, /&lt;!channel&gt;/)
  t.notMatch(slack, /<!channel>|@all|[^\u200b]\*bold|\]\(/)
  t.match(slack, 'ada@acme.example')
  const teams = JSON.parse(bodies['/alerts/teams'] ?? '{}') as {
    attachments?: { content: { body: { text: string }[] } }[]
  }
  const [title] = teams.attachments?.[0]?.content.body ?? []
  t.match(title?.text, /\\\*bold\\\* \\\[link\\\]\\\(/)
})

t.test('10,000 findings at once all reach a SIEM, in order', async (t) => {
  let text = ''
  const server = createTcpServer((socket) => {
    socket.setEncoding('utf8')
    socket.on('data', (part) => {
      text += part
    })
    socket.on('end', () => socket.end())
  })
  const port = await listenOn(t, server)
  const site = alertSite(t)
  const { store, organization } = site
  site.addChannel({ kind: 'syslog', host: '127.0.0.1', port, transport: 'tcp' })
  const remove = overdueRecommendations(site, 10_000)
  t.same(site.evaluate(), { 'item-overdue': 10_000 })
  await site.deliver()
  const ids = [...text.matchAll(/ alert \[svc@00000 id="([0-9a-f]{32})"\] /g)].map(([, id]) => id)
  t.same(
    ids,
    store.alerts
      .newest(organization.id, 10_000)
      .reverse()
      .map(({ id }) => id),
  )
  remove()
})
