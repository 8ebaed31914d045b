import t from 'tap'
import { checkTogether, serviceSettings } from '../../api/config.ts'
import { readSettings } from '../../engine/kernel/process/settings.ts'

const read = (environment: NodeJS.ProcessEnv) => checkTogether(readSettings(serviceSettings, { environment }))

t.test('the default is every address, and loopback for plain HTTP', async (t) => {
  t.match(read({}), { apiAddress: '::', ingestAddress: '::' })
  t.match(read({ PLAIN_HTTP: 'true' }), { apiAddress: '127.0.0.1', ingestAddress: '127.0.0.1' })
})

t.test('private networks to connect to are a list of networks, empty by default', async (t) => {
  t.same(read({}).outboundNetworks, [])
  const { outboundNetworks } = read({ OUTBOUND_NETWORKS: '10.0.0.0/8, fd00::/8,192.0.2.1' })
  t.same(
    outboundNetworks.map(({ prefixBits }) => prefixBits),
    [104, 8, 128],
  )
  for (const text of ['private', '10.0.0.0/33', '10.0.0.0/8,', 'localhost']) {
    t.throws(() => read({ OUTBOUND_NETWORKS: text }), {
      code: 'USAGE',
      message: `OUTBOUND_NETWORKS: expected comma-separated networks, such as 10.0.0.0/8 or 2001:db8::/32, found "${text}"`,
    })
  }
})

t.test('plain HTTP refuses an address that is not loopback, and does not replace it', async (t) => {
  for (const address of ['0.0.0.0', '::', '192.0.2.1', 'example.com']) {
    for (const [variable, flag] of [
      ['API_ADDRESS', '--api-address'],
      ['INGEST_ADDRESS', '--ingest-address'],
    ] as const) {
      t.throws(() => read({ PLAIN_HTTP: 'true', [variable]: address }), {
        code: 'USAGE',
        message: `--plain-http serves loopback only, found ${flag} ${address}; leave out --plain-http, or use 127.0.0.1`,
      })
      t.match(read({ [variable]: address }), { plainHttp: false })
    }
  }
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) {
    t.match(read({ PLAIN_HTTP: 'true', API_ADDRESS: address }), { apiAddress: address })
  }
})

t.test('listeners do not share a port, whatever addresses they have', async (t) => {
  const rows: readonly { readonly environment: NodeJS.ProcessEnv; readonly error?: string }[] = [
    { environment: { API_PORT: '9443' }, error: '--ingest-port 9443: --api-port uses the same port' },
    { environment: { CONSOLE_PORT: '8443' }, error: '--console-port 8443: --api-port uses' },
    { environment: { METRICS_PORT: '8444' }, error: '--metrics-port 8444: --console-port uses' },
    { environment: { SYSLOG_TLS: '9443' }, error: '--syslog-tls 9443: --ingest-port uses' },
    { environment: { SYSLOG_TCP: '192.0.2.1:9443' }, error: '--syslog-tcp 9443: --ingest-port uses' },
    { environment: { DNSTAP_TCP: '514' }, error: '--dnstap-tcp 514: --syslog-tcp uses' },
    { environment: { DNSTAP_TLS: '600', DNSTAP_TCP: '601,600' }, error: '--dnstap-tcp 600: --dnstap-tls uses' },
    { environment: { SYSLOG_TCP: '600,600' }, error: '--syslog-tcp 600: --syslog-tcp uses' },
    // Neither UDP nor other addresses are the same port.
    { environment: { SYSLOG_UDP: '9443' } },
    { environment: { API_ADDRESS: '192.0.2.1', INGEST_ADDRESS: '192.0.2.2', API_PORT: '9443' } },
    { environment: { API_ADDRESS: '0.0.0.0', INGEST_ADDRESS: '2001:db8::1', API_PORT: '9443' } },
    { environment: { API_PORT: '0', CONSOLE_PORT: '0', INGEST_PORT: 'off' } },
  ]
  for (const { environment, error } of rows) {
    const name = JSON.stringify(environment)
    if (error === undefined) t.doesNotThrow(() => read(environment), name)
    else t.throws(() => read(environment), { code: 'USAGE', message: error }, name)
  }
})
