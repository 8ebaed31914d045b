import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t from 'tap'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { opensslCertificate } from '../support/openssl-certificate.ts'
import { startService } from '../support/programs.ts'
import { until } from '../support/wait.ts'

/** The names and the fingerprint of the certificate that a port shows. */
function shownBy(port: number): Promise<{ names: string; fingerprint: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate()
      socket.destroy()
      resolve({ names: certificate?.subjectAltName ?? '', fingerprint: certificate?.fingerprint256 ?? '' })
    })
    socket.on('error', reject)
  })
}

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}: SIGHUP reads certificates and settings again`, async (t) => {
    const directory = t.testdir()
    const settingsFile = join(directory, 'service.env')
    const set = (text: string): void => writeFileSync(settingsFile, text)
    set('TLS_NAMES=one.example\n')
    const service = await startService(join(directory, 'service'), [
      ...['--http-server', implementation, '--api-threads', '2', '--syslog-tls', '0', '--settings-file', settingsFile],
    ])
    t.teardown(() => service.child.kill('SIGKILL'))
    const syslogPort = service.syslog[0]?.port ?? 0
    const ports = [service.apiPort, service.ingestPort, syslogPort]
    const shown = () => Promise.all(ports.map(shownBy))
    for (const { names } of await shown()) t.match(names, /DNS:one\.example/)
    const reload = async (text: string, entry: RegExp): Promise<void> => {
      const before = service.output.stderr.length
      set(text)
      service.child.kill('SIGHUP')
      await until(String(entry), () => entry.test(service.output.stderr.slice(before)))
    }

    await reload(
      'TLS_NAMES=two.example,192.0.2.7\nLOG_LEVEL=WARNING\nTOKEN_MAX_MESSAGES_PER_SECOND=5\n',
      /require a restart/,
    )
    t.match(service.output.stderr, /"settings":\["--token-max-messages-per-second"\]/)
    await until('all ports show the new names', async () =>
      (await shown()).every(({ names }) => /DNS:two\.example, IP Address:192\.0\.2\.7/.test(names)),
    )
    for (const { names } of await shown()) t.notMatch(names, /one\.example/)
    t.notMatch(service.output.stderr.split('require a restart')[1], /"level":30/, 'the new log level applies')

    const kept = await shown()
    await reload('TLS_NAMES=-\n', /not reloaded/)
    t.match(service.output.stderr, /TLS_NAMES: expected comma-separated host names/)
    t.same(await shown(), kept)

    const own = opensslCertificate(join(directory, 'own'), 'ECDSA P-256')
    await reload(`TLS_KEY=${own.keyFile}\nTLS_CERTIFICATE=${own.certificateFile}\n`, /"reloaded"/)
    await until('all ports show the own certificate', async () =>
      (await shown()).every(({ names }) => names === 'DNS:localhost, IP Address:127.0.0.1'),
    )
    t.ok(readFileSync(join(directory, 'service/tls/certificate.pem')).length > 0)

    service.child.kill('SIGTERM')
    t.match(await service.ended, { status: 0, signal: null })
  })
}

t.test('SIGHUP while the service starts does not end it', async (t) => {
  const starting = startService(join(t.testdir(), 'service'), ['--api-threads', '1'])
  const service = await starting
  for (let each = 0; each < 20; each++) service.child.kill('SIGHUP')
  await until('a reload', () => service.output.stderr.includes('"reloaded"'))
  service.child.kill('SIGTERM')
  t.match(await service.ended, { status: 0 })
})
