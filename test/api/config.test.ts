import t from 'tap'
import { checkTogether, serviceSettings } from '../../api/config.ts'
import { readSettings } from '../../engine/process/settings.ts'

const read = (environment: NodeJS.ProcessEnv) => checkTogether(readSettings(serviceSettings, { environment }))

t.test('the default is every address, and loopback for plain HTTP', async (t) => {
  t.match(read({}), { apiAddress: '0.0.0.0', ingestAddress: '::' })
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
