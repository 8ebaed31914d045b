import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { alertSite } from '../../support/alerts.ts'
import { syslogNg } from '../../support/syslog-ng.ts'

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
