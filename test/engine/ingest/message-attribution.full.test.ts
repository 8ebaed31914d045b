import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { sendTcp, sendTls, sendUdp } from '../../support/syslog-sender.ts'
import { organizationWithToken, rfc5424, SyslogService, squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

const MATCHING = squid('claude.ai')
const UNKNOWN_TOKEN = `svc_mt_${'0'.repeat(48)}`
/** Longer than the service's view of bindings may be out of date. */
const BINDINGS_SEEN_MS = 1100

function withoutToken(message: string): string {
  return `<134>1 2026-11-20T09:15:02.123Z proxy-1 squid 4711 - - ${message}`
}

t.test('messages without a known token are counted, named in the log, and never stored', async (t) => {
  const service = await SyslogService.start(t)
  const rows: { name: string; message: string }[] = [
    { name: 'unknown token', message: rfc5424(UNKNOWN_TOKEN, MATCHING) },
    { name: 'empty token', message: rfc5424('', MATCHING) },
    { name: 'a truncated token', message: rfc5424(service.token.slice(0, -1), MATCHING) },
    { name: 'a token with an additional byte', message: rfc5424(`${service.token}0`, MATCHING) },
    { name: 'a token in upper case', message: rfc5424(service.token.toUpperCase(), MATCHING) },
    { name: 'no STRUCTURED-DATA', message: withoutToken(MATCHING) },
    { name: 'another SD-ID', message: withoutToken(MATCHING).replace(' - - ', ` - [x@1 key="${service.token}"] `) },
    { name: 'another name', message: rfc5424(service.token, MATCHING).replace('key=', 'token=') },
    { name: 'the token in the message', message: withoutToken(`${service.token} ${MATCHING}`) },
    { name: 'a bare line', message: MATCHING },
  ]
  const sender = await sendTcp(t, service.port('tcp'))
  for (const [index, { name, message }] of rows.entries()) {
    sender.send(`${message}\n`)
    await sendUdp(service.port('udp'), [message])
    const received = index + 1
    t.match(await service.settled('tcp', received), { unauthorized: received }, `${name}, over TCP`)
    t.match(await service.settled('udp', received), { unauthorized: received }, `${name}, over UDP`)
  }
  const other = await sendTcp(t, service.port('tcp'), { localAddress: '127.0.0.9' })
  other.send(`${MATCHING}\n${MATCHING}\n`)
  await service.settled('tcp', rows.length + 2)
  t.equal(service.stored().size, 0, 'nothing is stored')
  const dropLines = service.service.output.stderr.split('\n').filter((line) => line.includes('is dropped'))
  t.equal(dropLines.length, 2, `each address once a minute: ${dropLines.join('\n')}`)
  t.ok(dropLines.some((line) => line.includes('127.0.0.9')))
  t.notOk(service.service.output.stderr.includes(service.token.slice(0, 20)), 'no token in the log')
  const sources = await until('sources', async () => {
    const rows = await service.admin('ingest', 'sources')
    return rows.length === 3 ? rows : undefined
  })
  for (const source of sources) t.match(source, { remark: 'no known token', organization: null, matched: 0 })
})

t.test('a token revoked between two messages of a connection is rejected', async (t) => {
  const service = await SyslogService.start(t)
  const [tls, tcp] = await Promise.all([
    sendTls(t, service.port('tls'), { caFile: service.certificateFile }),
    sendTcp(t, service.port('tcp')),
  ])
  const message = rfc5424(service.token, MATCHING)
  const sendAll = async (): Promise<void> => {
    for (const sender of [tls, tcp]) sender.send(`${message.length} ${message}`)
    await sendUdp(service.port('udp'), [message])
  }
  await sendAll()
  for (const kind of ['tls', 'tcp', 'udp'] as const) t.match(await service.settled(kind, 1), { stored: 1 }, kind)
  const [token] = await service.admin('token', 'list', '--org', 'Acme')
  await service.admin('token', 'revoke', String(token?.['id']), '--org', 'Acme')
  await sendAll()
  for (const kind of ['tls', 'tcp', 'udp'] as const) {
    t.match(await service.settled(kind, 2), { stored: 1, unauthorized: 1 }, kind)
  }
  t.notOk(tls.socket.destroyed || tcp.socket.destroyed, 'the connections go on')
})

t.test('devices that cannot send a token are identified by port, address or network', async (t) => {
  const service = await SyslogService.start(t)
  await organizationWithToken(service.data, 'Other', 'others')
  const [acme] = await service.admin('token', 'list', '--org', 'Acme')
  const [other] = await service.admin('token', 'list', '--org', 'Other')
  const bind = (token: typeof acme, org: string, ...to: string[]) =>
    service.admin('token', 'bind', String(token?.['id']), '--org', org, ...to)
  await bind(acme, 'Acme', '--port', String(service.port('tcp')))
  await bind(other, 'Other', '--address', '127.0.0.0/29', '--port', String(service.port('tcp')))
  await bind(acme, 'Acme', '--address', '127.0.0.6')
  await later(BINDINGS_SEEN_MS)
  const rows: { name: string; from: string; label: string }[] = [
    { name: 'a port only', from: '127.0.0.9', label: 'devices' },
    { name: 'a network takes precedence over the port', from: '127.0.0.5', label: 'others' },
    { name: 'an address takes precedence over a network', from: '127.0.0.6', label: 'devices' },
  ]
  for (const { name, from, label } of rows) {
    const sender = await sendTcp(t, service.port('tcp'), { localAddress: from })
    sender.send(`${withoutToken(MATCHING)}\n`)
    const row = await until(name, async () =>
      (await service.admin('ingest', 'sources')).find(({ address, matched }) => address === from && matched === 1),
    )
    t.match(row, { token_label: label }, name)
  }
  await sendUdp(service.port('udp'), [withoutToken(MATCHING)], '127.0.0.1', '127.0.0.6')
  t.match(await service.settled('udp', 1), { stored: 1 }, 'an address, to any port')
  await sendUdp(service.port('udp'), [withoutToken(MATCHING)], '127.0.0.1', '127.0.0.5')
  t.match(await service.settled('udp', 2), { stored: 1, unauthorized: 1 }, 'a network with another port')
  const own = await sendTcp(t, service.port('tcp'), { localAddress: '127.0.0.5' })
  own.send(`${rfc5424(service.token, MATCHING)}\n`)
  t.match(await service.settled('tcp', 4), { stored: 4 }, 'a token in the message takes precedence over every binding')
  t.match((await service.admin('ingest', 'sources', '--org', 'Acme')).length > 0, true)
  await service.admin('token', 'unbind', String(acme?.['id']), '--org', 'Acme')
  await later(BINDINGS_SEEN_MS)
  const sender = await sendTcp(t, service.port('tcp'), { localAddress: '127.0.0.9' })
  sender.send(`${withoutToken(MATCHING)}\n`)
  t.match(await service.settled('tcp', 5), { stored: 4, unauthorized: 1 }, 'unbound')
})
