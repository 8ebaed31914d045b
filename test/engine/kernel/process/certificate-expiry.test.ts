import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CertificateExpiry, certificateProblem } from '../../../../engine/kernel/process/certificate-expiry.ts'
import { DAY_MS } from '../../../../engine/kernel/process/clock.ts'
import { capturedLog } from '../../../support/captured-log.ts'
import { expiringCertificate } from '../../../support/expiring-certificate.ts'
import { admin, run } from '../../../support/programs.ts'

const NOW_MS = Date.parse('2026-11-27T12:00:00Z')

const certificate = async (days: number): Promise<string> => (await expiringCertificate(days, NOW_MS)).cert

const EXPIRED = 'the certificate in FILE expired on 2026-11-26; replace it'
const ROWS: readonly { readonly days: readonly number[]; readonly isCa?: boolean; readonly problem: string }[] = [
  { days: [], problem: '' },
  { days: [22], problem: '' },
  { days: [20], problem: 'the certificate in FILE expires in 20 days, on 2026-12-17; replace it' },
  { days: [1], problem: 'the certificate in FILE expires in 1 day, on 2026-11-28; replace it' },
  { days: [-1], problem: EXPIRED },
  { days: [400, -1], problem: EXPIRED },
  { days: [400, -1], isCa: true, problem: '' },
  { days: [-2, -1], isCa: true, problem: EXPIRED },
]

t.test('a chain ends with its first certificate, CA certificates with their last', async (t) => {
  const file = join(t.testdir(), 'chain.pem')
  for (const { days, isCa = false, problem } of ROWS) {
    writeFileSync(file, (await Promise.all(days.map((each) => certificate(each)))).join('\n'))
    t.equal(certificateProblem({ file, isCa }, NOW_MS).replace(file, 'FILE'), problem, `${days} ${isCa}`)
  }
  t.equal(certificateProblem({ file: '/nowhere' }, NOW_MS), '')
})

t.test('a problem is logged once a day until the certificate is replaced; an expired one degrades', async (t) => {
  const file = join(t.testdir(), 'certificate.pem')
  writeFileSync(file, await certificate(2))
  const { log, entries } = capturedLog()
  const expiry = new CertificateExpiry(() => [{ name: 'tls_certificate', file }], log)
  t.teardown(() => expiry.stop())
  const logged = entries.length
  const at = (days: number): number => {
    expiry.poll(NOW_MS + days * DAY_MS)
    return entries.length - logged
  }
  t.same([0, 0.4, 0.9, 1.5, 3, 4].map(at), [1, 2, 2, 3, 4, 4])
  t.match(expiry.expired(NOW_MS + 3 * DAY_MS), [/expired on 2026-11-29; replace it$/])
  t.same(expiry.endSeconds(), { tls_certificate: (NOW_MS + 2 * DAY_MS) / 1000 })
  writeFileSync(file, await certificate(400))
  t.equal(at(5), 4)
  t.same(expiry.expired(NOW_MS + 5 * DAY_MS), [])
})

t.test('posture-admin doctor reports the certificate of the service', async (t) => {
  const directory = t.testdir({ tls: {} })
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', directory)
  writeFileSync(join(directory, 'tls/certificate.pem'), (await expiringCertificate(-1)).cert)
  const { status, stderr } = await run('admin', ['doctor', '--data-dir', directory])
  t.equal(status, 0)
  t.match(stderr, /^posture-admin: the certificate in \S+certificate\.pem expired on \S+; replace it$/m)
})
