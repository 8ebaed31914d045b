import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { generate } from 'selfsigned'
import t from 'tap'
import { FORWARDERS } from '../../deploy/docs/page-tables.ts'
import { RunningForwarder } from '../support/forwarders.ts'
import { SyslogService, squid } from '../support/syslog-service.ts'
import { testFolder } from '../support/test-folder.ts'

/** Files of a CA and of a service certificate that it signed, with the flag or setting for each. */
async function signed(directory: string, name: string): Promise<{ caFile: string; flags: string[] }> {
  const ca = await generate([{ name: 'commonName', value: 'Test CA' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, digitalSignature: true, critical: true },
    ],
  })
  const service = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
    ca: { key: ca.private, cert: ca.cert },
  })
  const [caFile, keyFile, certificateFile] = ['ca.pem', 'key.pem', 'cert.pem'].map((file) => join(directory, file)) as [
    string,
    string,
    string,
  ]
  writeFileSync(caFile, ca.cert)
  writeFileSync(keyFile, service.private, { mode: 0o600 })
  writeFileSync(certificateFile, service.cert)
  return { caFile, flags: ['--tls-key', keyFile, '--tls-certificate', certificateFile] }
}

const CASES = [
  { certificate: 'localhost', received: 1, about: 'sends to a service with a certificate signed by the CA' },
  {
    certificate: 'other.example',
    received: 0,
    about: 'sends no token to a service with another name and a certificate signed by the CA',
  },
] as const

for (const forwarder of FORWARDERS) {
  for (const { certificate, received, about } of CASES) {
    t.test(`${forwarder} ${about}`, async (t) => {
      const directory = testFolder(t)
      const { caFile, flags } = await signed(directory, certificate)
      const service = await SyslogService.start(t, ['--syslog-tls', '127.0.0.1:0', ...flags], directory)
      const relay = await RunningForwarder.start(t, directory, forwarder, ['service-tls', 'files'], {
        MONITORING_TOKEN: service.token,
        INGEST_HOST: 'localhost',
        INGEST_PORT: String(service.port('tls')),
        CA_FILE: caFile,
      })
      relay.write('access.log', [squid('claude.ai')])
      await service.until('an attempt', async () => {
        const metrics = await service.metrics()
        return (metrics.get('posture_ingest_connections_total{listener="tls"}') ?? 0) > 0 || undefined
      })
      // syslog-ng checks files once a second.
      await later(2000)
      t.equal((await service.counts('tls')).received, received)
    })
  }
}
