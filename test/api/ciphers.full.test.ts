import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { opensslCertificate } from '../support/openssl-certificate.ts'
import { startService } from '../support/programs.ts'

/** What every TLS listener offers: TLS 1.2 and 1.3, forward secrecy, authenticated encryption. */
const ALLOWED =
  /^(TLS_AES_(128|256)_GCM_SHA(256|384)|TLS_CHACHA20_POLY1305_SHA256|ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305))$/
const KINDS = { rsa: 'RSA', 'ECDSA P-256': 'ECDSA' } as const

for (const implementation of IMPLEMENTATIONS) {
  for (const [kind, name] of Object.entries(KINDS)) {
    t.test(`sslscan over ${implementation}, a key of ${kind}`, async (t) => {
      const directory = t.testdir()
      const files = opensslCertificate(join(directory, 'tls'), kind as keyof typeof KINDS)
      const service = await startService(join(directory, 'service'), [
        ...['--http-server', implementation, '--api-threads', '1', '--syslog-tls', '0'],
        ...['--tls-key', files.keyFile, '--tls-certificate', files.certificateFile],
      ])
      t.teardown(async () => {
        service.child.kill('SIGKILL')
        await service.ended
      })
      const syslogPort = service.syslog.find(({ kind }) => kind === 'tls')?.port
      for (const port of [service.apiPort, service.ingestPort, syslogPort]) {
        const words = ['--no-colour', '--no-cipher-details', '--no-groups', '--xml=-', `127.0.0.1:${port}`]
        const { stdout } = spawnSync('sslscan', words, { encoding: 'utf8', timeout: 120_000 })
        const versions = [...stdout.matchAll(/<protocol type="(\w+)" version="([\d.]+)" enabled="1"/g)]
        t.same(
          versions.map(([, type, version]) => `${type} ${version}`),
          ['tls 1.2', 'tls 1.3'],
        )
        const ciphers = [...stdout.matchAll(/<cipher status="\w+" sslversion="([^"]+)" [^>]*cipher="([^"]+)"/g)]
        const weak = ciphers.filter(([, , cipher = '']) => !ALLOWED.test(cipher)).map(([, , cipher]) => cipher)
        t.same(weak, [], `port ${port}`)
        t.ok(ciphers.some(([, version, cipher = '']) => version === 'TLSv1.2' && cipher.includes(name)))
        t.ok(ciphers.some(([, version]) => version === 'TLSv1.3'))
      }
    })
  }
}
