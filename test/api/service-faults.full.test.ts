import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { IMPLEMENTATIONS } from '../support/https.ts'
import { opensslCertificate, replaceCertificate } from '../support/openssl-certificate.ts'
import { run, SYSLOG_OFF, startService } from '../support/programs.ts'
import { rawClient, statusesOf } from '../support/raw-client.ts'
import { until } from '../support/wait.ts'

/**
 * Faults of a service. The service ends with an exit status or continues; it never ends by a
 * signal.
 */
/** Kinds of keys that node:http supports and uWebSockets.js does not. */
const KINDS = ['RSA-PSS', 'secp256k1'] as const

for (const kind of IMPLEMENTATIONS.includes('uws') ? KINDS : []) {
  t.test(`a certificate with a ${kind} key is rejected, because uWebSockets.js does not support it`, async (t) => {
    const directory = t.testdir()
    const files = opensslCertificate(join(directory, 'own'), kind)
    const own = ['--tls-key', files.keyFile, '--tls-certificate', files.certificateFile]
    const data = [
      '--data-dir',
      join(directory, 'data'),
      '--metrics-port',
      'off',
      '--api-port',
      '0',
      '--console-port',
      'off',
      ...SYSLOG_OFF,
    ]
    for (const more of [[], ['--http-server', 'uws']]) {
      const { status, stderr } = await run('service', [...data, ...own, '--ingest-port', 'off', ...more])
      const lines = stderr.split('\n').filter((line) => !/^(\{"level":[34]0.*)?$/.test(line))
      t.equal(status, 4, stderr)
      t.equal(lines.length, 1, stderr)
      t.match(
        lines[0],
        /^posture-service: CERTIFICATE .*certificate\.pem.*uWebSockets\.js does not support this key type/,
      )
    }

    t.test('an unsupported renewed certificate is ignored, and the service continues with the old one', async (t) => {
      const place = t.testdir()
      const live = opensslCertificate(join(place, 'live'), 'ECDSA P-256')
      const service = await startService(join(directory, 'data'), [
        ...['--tls-key', live.keyFile, '--tls-certificate', live.certificateFile, '--api-threads', '2'],
      ])
      t.teardown(() => service.child.kill('SIGKILL'))
      const shown = await fingerprintAt(service.apiPort)
      replaceCertificate(live, files)
      await until(
        'a word of each thread',
        () => service.output.stderr.split('the certificate was not reloaded').length > 3 || undefined,
      )
      t.equal(await fingerprintAt(service.apiPort), shown)
      const good = opensslCertificate(join(place, 'good'), 'rsa')
      replaceCertificate(live, good)
      await until(
        'the next one',
        async () => (await fingerprintAt(service.apiPort).catch(() => shown)) !== shown || undefined,
      )
      service.child.kill('SIGTERM')
      t.match(await service.ended, { status: 0, signal: null })
    })
  })
}

async function fingerprintAt(port: number): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

for (const implementation of IMPLEMENTATIONS) {
  for (const fault of ["throw new Error('made for the test')", "Promise.reject(new Error('made for the test'))"]) {
    t.test(
      `over ${implementation}: a fault in an API thread (${fault.split(' ')[0]}) shuts the service down cleanly`,
      async (t) => {
        // Only the API threads have a key table, so only they fail.
        const sign = join(t.testdir(), 'fail')
        const code = [
          "import { existsSync } from 'node:fs'; import { workerData } from 'node:worker_threads'",
          `const poll = () => { if (existsSync('${sign}')) { clearInterval(timer); ${fault} } }`,
          'const timer = workerData?.rateTable ? setInterval(poll, 50) : undefined',
        ].join('\n')
        const service = await startService(
          join(t.testdirName, 'data'),
          ['--plain-http', '--http-server', implementation, '--ingest-port', 'off', '--api-threads', '2'],
          { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(code)}` },
        )
        t.teardown(() => service.child.kill('SIGKILL'))
        const client = rawClient(service.apiPort)
        client.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
        await until('a connection is open', () => statusesOf(client.text()).length > 0 || undefined)
        writeFileSync(sign, '')
        const { status, signal, stderr } = await service.ended
        t.equal(signal, null, stderr)
        t.equal(status, 1)
        t.same(statusesOf(client.text()), [404], 'a connection was open')
        const errorLines = stderr.split('\n').filter((line) => line.startsWith('posture-service: '))
        t.same(errorLines, ['posture-service: INTERNAL an API thread failed: made for the test'])
        t.match(stderr, /"level":50.*"stack":"Error: made for the test.*an API thread failed/)
        t.match(stderr, /"msg":"stopped"/, 'the store was closed')
      },
    )
  }
}
