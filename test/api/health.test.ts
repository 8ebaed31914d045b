import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Health } from '../../api/health.ts'
import { fileDescriptors } from '../../engine/kernel/process/descriptors.ts'
import { Metrics } from '../../engine/kernel/process/metrics.ts'
import { expiringCertificate } from '../support/expiring-certificate.ts'
import { startService } from '../support/programs.ts'
import { openStore, quietLog } from '../support/store.ts'

t.test('the service is degraded when 80 % of the file descriptors are open, and logs it only once', async (t) => {
  const { store } = openStore(t)
  let open = 100
  const warnings: string[] = []
  const log = Object.assign(Object.create(quietLog), { warn: (text: string) => warnings.push(text) })
  const health = new Health(store.environment, { failing: 0 }, log, undefined, () => ({ open, max: 1000 }))
  const rows = [
    { open: 799, isDegraded: false, warned: 0 },
    { open: 800, isDegraded: true, warned: 1 },
    { open: 1000, isDegraded: true, warned: 1 },
    { open: 700, isDegraded: false, warned: 1 },
    { open: 900, isDegraded: true, warned: 2 },
  ]
  for (const row of rows) {
    open = row.open
    health.poll()
    const { status, body } = health.answer()
    t.equal(status, row.isDegraded ? 503 : undefined, `${open} open`)
    t.equal(health.rows()[0]?.[3], row.isDegraded ? 1 : 0, 'the metric says the same')
    t.equal(body.includes(`${open} of 1000 file descriptors are open`), row.isDegraded)
    t.equal(warnings.length, row.warned)
  }
})

t.test('the service is degraded while its registry should be replaced', async (t) => {
  const { store } = openStore(t)
  let problem = ''
  const health = new Health(store.environment, { failing: 0 }, quietLog, undefined, undefined, () =>
    problem === '' ? [] : [problem],
  )
  t.equal(health.answer().status, undefined)
  problem = 'the registry 2026.11.23 was valid until 2027-05-22; install a newer release'
  t.match(health.answer(), { status: 503, body: JSON.stringify({ status: 'degraded', reasons: [problem] }) })
  t.equal(health.live().status, undefined, 'no reason to restart')
})

t.test('the service is degraded when its certificate has expired', async (t) => {
  const directory = t.testdir()
  const [certificateFile, keyFile] = [join(directory, 'certificate.pem'), join(directory, 'key.pem')]
  const { cert, key } = await expiringCertificate(-1)
  writeFileSync(certificateFile, cert)
  writeFileSync(keyFile, key, { mode: 0o600 })
  const files = ['--tls-certificate', certificateFile, '--tls-key', keyFile]
  const service = await startService(join(directory, 'data'), files)
  const [health, metrics] = await Promise.all(
    ['healthz', 'metrics'].map((path) => fetch(`http://127.0.0.1:${service.metricsPort}/${path}`)),
  )
  service.child.kill('SIGTERM')
  t.equal(health?.status, 503)
  t.match(await health?.text(), `the certificate in ${certificateFile} expired on`)
  t.match(
    await metrics?.text(),
    /^posture_service_certificate_expiration_timestamp_seconds\{certificate="tls_certificate"\} 1\d{9}$/m,
  )
  const { stderr } = await service.ended
  t.match(stderr, /"msg":"the certificate in \S+ expired on/)
})

t.test('the number and the limit of file descriptors are metrics', async (t) => {
  const found = fileDescriptors()
  t.ok((found?.open ?? 0) > 3)
  t.ok((found?.max ?? 0) >= (found?.open ?? 0))
  const metrics = new Metrics()
  const { body } = metrics.render([])
  metrics.close()
  t.match(body, /^process_open_fds \d+$/m)
  t.match(body, new RegExp(`^process_max_fds ${found?.max}$`, 'm'))
})

t.test('readiness and the role of a node', async (t) => {
  const { store } = openStore(t)
  const node = (isStale: boolean, isPrimary: boolean, problems: readonly string[] = []) => ({
    ...{ name: 'one', isStale, isPrimary, problems },
  })
  const rows = [
    { node: undefined, ready: undefined, primary: undefined, why: 'a service without a cluster' },
    { node: node(false, true), ready: undefined, primary: undefined, why: 'the primary' },
    { node: node(false, false), ready: undefined, primary: 503, why: 'a replica' },
    { node: node(true, false, ['no changes']), ready: 503, primary: 503, why: 'a replica without news' },
    { node: node(true, true), ready: 503, primary: 503, why: 'a primary that was cut off' },
    { node: node(false, false, ['the log is full']), ready: undefined, primary: 503, why: 'a problem of all nodes' },
  ]
  for (const { node, ready, primary, why } of rows) {
    const health = new Health(store.environment, { failing: 0 }, quietLog, node)
    const body = node === undefined ? '{"status":"live"}' : '{"status":"live","node":"one"}'
    t.same(health.live(), { type: 'application/json', body })
    t.equal(health.ready().status, ready, `${why}: readyz`)
    t.same(JSON.parse(health.ready().body).reasons, node?.problems ?? [])
    t.equal(health.primary().status, primary, `${why}: primary`)
  }
})
