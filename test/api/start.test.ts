import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { listenOn } from '../support/free-port.ts'
import { run, SYSLOG_OFF, start } from '../support/programs.ts'

t.test('the service does not start with a wrong setting, and says which', async (t) => {
  const directory = t.testdir()
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const rows: readonly { readonly words: readonly string[]; readonly error: RegExp; readonly exit?: number }[] = [
    {
      words: ['--registry-file', file('bad.yaml', 'platforms:\n  - nam: x\n')],
      error: /REGISTRY_FILE \S+bad\.yaml/,
    },
    { words: ['--registry-file', join(directory, 'none.yaml')], error: /REGISTRY_FILE \S+none\.yaml: no such file/ },
    {
      words: ['--tls-key', file('key', 'x'), '--tls-certificate', file('cert', 'x')],
      error: /CERTIFICATE certificate \S+cert: expected certificates in PEM, found something else$/m,
      exit: 4,
    },
    { words: ['--api-port', '9443'], error: /USAGE --ingest-port 9443: --api-port uses the same port/ },
    {
      words: ['--settings-file', file('s.env', 'API_PROT=1\n')],
      error: /USAGE \S+s\.env:1: unknown setting API_PROT\. Did you mean API_PORT\?/,
    },
  ]
  for (const { words, error, exit = 2 } of rows) {
    const { status, stderr } = await run('service', ['--data-dir', join(directory, 'data'), ...SYSLOG_OFF, ...words])
    t.equal(status, exit, words.join(' '))
    t.match(stderr, error)
  }
})

t.test('a service that waits for its brokers says so until they are there', async (t) => {
  // Accepts connections and never answers, as a broker behind a firewall.
  const silent = createServer()
  const port = await listenOn(t, silent)
  const service = start('service', [
    '--data-dir',
    join(t.testdir(), 'data'),
    ...SYSLOG_OFF,
    '--brokers',
    `127.0.0.1:${port}`,
  ])
  const lines = (): number => service.output.stderr.split('"msg":"waiting for the brokers"').length - 1
  await new Promise<void>((resolve, reject) => {
    service.child.stderr?.on('data', () => lines() >= 2 && resolve())
    service.child.once('exit', () => reject(new Error(service.output.stderr)))
  })
  service.child.kill('SIGTERM')
  await service.ended
})
