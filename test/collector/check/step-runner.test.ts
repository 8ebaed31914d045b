import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startStep } from '../../../collector/check/step-runner.ts'
import { collectorSettings } from '../../../collector/config.ts'
import { CHECK_STEP_MS } from '../../../collector/limits.ts'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { listenOn } from '../../support/free-port.ts'
import { ip, namespace, skipNamespaces } from '../../support/namespace.ts'
import { PROGRAMS } from '../../support/programs.ts'

const UNKNOWN_TOKEN = `svc_mt_${'8'.repeat(48)}`

t.test('a step fails when another server answers in place of the service', async (t) => {
  const { keyFile, certificateFile, fingerprint } = await provideCertificate(t.testdir(), undefined)
  const portal = createServer({ key: readFileSync(keyFile), cert: readFileSync(certificateFile) }, (_request, answer) =>
    answer.end('<html>Welcome</html>'),
  )
  const httpsPort = await listenOn(t, portal)
  const settings = collectorSettings.parse({ token: UNKNOWN_TOKEN, fingerprint, httpsPort })
  t.match(await startStep('token', settings).outcome, {
    result: 'failed',
    code: 'SERVICE_UNREACHABLE',
    found: /answered 200, but not as the service does$/,
    fix: /whether it is the service that answers there$/,
  })
})

/** A port that accepts connections and sends nothing. */
async function silentPort(t: Test): Promise<number> {
  const server = createTcpServer((socket) => t.teardown(() => socket.on('error', () => {}).destroy()))
  return listenOn(t, server)
}

t.test('a step that takes too long fails', async (t) => {
  const settings = collectorSettings.parse({ token: UNKNOWN_TOKEN, httpsPort: await silentPort(t) })
  t.match(await startStep('tls', settings, 500).outcome, {
    result: 'failed',
    code: 'SERVICE_UNREACHABLE',
    found: 'localhost: no answer within 0.5 s',
    fix: /^a firewall or proxy on the path/,
  })
  t.ok(CHECK_STEP_MS <= 10_000)
})

for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  t.test(`${signal} during a step ends the check at once with status ${status}`, async (t) => {
    const parameters = ['check', '--interface', 'lo', '--outbox', t.testdir(), '--https-port', `${await silentPort(t)}`]
    // A separate process group, so that the signal reaches the step's process as well, as with
    // Ctrl-C in a terminal and timeout(1).
    const child = spawn(process.execPath, [PROGRAMS.collector, ...parameters], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { SVC_TOKEN: UNKNOWN_TOKEN },
    })
    let stdout = ''
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    await new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk) => {
        stdout += chunk
        if (stdout.includes('"resolution"')) resolve()
      })
    })
    process.kill(-(child.pid ?? 0), signal)
    const ended = await new Promise((resolve) => child.once('close', resolve))
    t.equal(ended, status)
    t.equal(stderr, '')
    t.notMatch(stdout, /"check":"tls"/, 'it did not wait for the step')
  })
}

t.test('a name server that does not answer does not delay the end', { skip: skipNamespaces }, async (t) => {
  const name = `spsdns${process.pid}`
  const inside = namespace(t, name)
  // ip netns exec mounts this file over /etc/resolv.conf.
  const folder = `/etc/netns/${name}`
  mkdirSync(folder, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  ip(...inside('ip', 'link', 'set', 'lo', 'up'))
  const script = fileURLToPath(new URL('../../support/silent-name-server.js', import.meta.url))
  const command = [process.execPath, script, PROGRAMS.collector, 'check', '--endpoint', 'posture.example', '--outbox']
  const { status, stdout, stderr } = spawnSync('ip', inside(...command, t.testdir(), '--interface', 'lo'), {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], SVC_TOKEN: UNKNOWN_TOKEN },
  })
  t.equal(status, 130, stderr)
  const checks = [...stdout.matchAll(/^\{"check":"(\w+)"/gm)].map(([, check]) => check)
  t.same(checks, ['settings', 'interface', 'health', 'outbox'])
  const [, endedMs] = /^ended after (\d+) ms$/m.exec(stderr) ?? []
  t.ok(Number(endedMs) < 5000, `${endedMs} ms; a resolver of the C library waits for 10 s and more`)
})
