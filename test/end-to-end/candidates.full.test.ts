import t from 'tap'
import { sendTcp } from '../support/syslog-sender.ts'
import { rfc5424, SYSLOG_ON_LOOPBACK, SyslogService, squid } from '../support/syslog-service.ts'

for (const threads of ['1', '2']) {
  t.test(`a running service with ${threads} ingest threads lists candidates of syslog messages`, async (t) => {
    const site = await SyslogService.start(t, [...SYSLOG_ON_LOOPBACK, '--ingest-threads', threads])
    const sender = await sendTcp(t, site.port('tcp'))
    const now = Date.now()
    const names = ['claude.ai', 'unknown.ai', 'www.example.com', 'api.unknown.ai', 'llm.corp-tools.example']
    for (const name of names) sender.send(`${rfc5424(site.token, squid(name, '192.0.2.45', now))}\n`)
    await site.settled('tcp', names.length)
    const candidates = (): Promise<Record<string, unknown>[]> => site.admin('registry', 'candidates', 'list')
    const listed = await site.until('both are stored', async () => {
      const rows = await candidates()
      return rows.length === 2 ? rows : undefined
    })
    t.match(listed, [
      { name: 'llm.corp-tools.example', requests: 1, clients: 1 },
      { name: 'unknown.ai', requests: 2, clients: 1 },
    ])
    await site.admin('registry', 'candidates', 'add', 'unknown.ai', '--id', 'unknown')
    t.match(await candidates(), [{ name: 'llm.corp-tools.example' }])
    sender.send(`${rfc5424(site.token, squid('unknown.ai', '192.0.2.45', now))}\n`)
    t.match(await site.settled('tcp', names.length + 1), { stored: 2 }, 'the custom platform matches at once')
    t.equal((await site.metrics()).get('posture_ingest_candidates_skipped_total{limit="busy"}'), 0)
  })
}
