import { once } from 'node:events'
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { provideCertificate } from '../../../engine/http/certificate.ts'
import { CertificateWatch } from '../../../engine/http/certificate-watch.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { quietLog } from '../../support/store.ts'
import { sendTls } from '../../support/syslog-sender.ts'
import { rfc5424, SYSLOG_ON_LOOPBACK, SyslogService, squid } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

const MATCHING = squid('claude.ai')

t.test('a change is reported once, and only if the certificate is usable', async (t) => {
  const directory = t.testdir()
  const [files, after] = await Promise.all(
    ['own', 'after'].map((name) => provideCertificate(join(directory, name), undefined)),
  )
  if (files === undefined || after === undefined) throw new Error('no certificates')
  const before = join(directory, 'before')
  mkdirSync(before)
  copyFileSync(files.certificateFile, join(before, 'certificate.pem'))
  copyFileSync(files.keyFile, join(before, 'key.pem'))
  let reported = 0
  const watch = new CertificateWatch(files, quietLog, () => reported++, 3_600_000)
  t.teardown(() => watch.stop())
  const rows: { name: string; change: () => void; reported: number }[] = [
    { name: 'nothing', change: () => {}, reported: 0 },
    {
      name: 'the same bytes, written again',
      change: () => copyFileSync(join(before, 'certificate.pem'), files.certificateFile),
      reported: 0,
    },
    { name: 'only the key so far', change: () => copyFileSync(after.keyFile, files.keyFile), reported: 0 },
    { name: 'its certificate', change: () => copyFileSync(after.certificateFile, files.certificateFile), reported: 1 },
    {
      name: 'another certificate appended',
      change: () =>
        appendFileSync(files.certificateFile, `\n${readFileSync(join(before, 'certificate.pem'), 'latin1')}`),
      reported: 2,
    },
    { name: 'no certificate', change: () => writeFileSync(files.certificateFile, 'none'), reported: 2 },
    { name: 'an empty file', change: () => writeFileSync(files.certificateFile, ''), reported: 2 },
    { name: 'no file', change: () => rmSync(files.certificateFile), reported: 2 },
    {
      name: 'a file in place of the directory',
      change: () => {
        renameSync(join(directory, 'own'), join(directory, 'elsewhere'))
        writeFileSync(join(directory, 'own'), '')
      },
      reported: 2,
    },
    {
      name: 'the directory again, with the first certificate',
      change: () => {
        rmSync(join(directory, 'own'))
        renameSync(join(directory, 'elsewhere'), join(directory, 'own'))
        copyFileSync(join(before, 'certificate.pem'), files.certificateFile)
        copyFileSync(join(before, 'key.pem'), files.keyFile)
      },
      reported: 3,
    },
  ]
  for (const row of rows) {
    row.change()
    watch.poll()
    watch.poll()
    t.equal(reported, row.reported, row.name)
  }
})

t.test('the watch checks periodically', async (t) => {
  const directory = t.testdir()
  const files = await provideCertificate(join(directory, 'own'), undefined)
  const after = await provideCertificate(join(directory, 'after'), undefined)
  const reported = new Promise<void>((resolve) => {
    const watch = new CertificateWatch(files, quietLog, resolve, 20)
    t.teardown(() => watch.stop())
  })
  copyFileSync(after.keyFile, files.keyFile)
  copyFileSync(after.certificateFile, files.certificateFile)
  // The watch's timer is unreferenced, so another timer keeps the process running.
  const alive = setInterval(() => {}, 1000)
  await reported
  clearInterval(alive)
})

/** SHA-256 of the certificate that new connections receive. */
async function shownAt(port: number): Promise<string> {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

for (const http of IMPLEMENTATIONS) {
  t.test(`new connections get a certificate that was replaced on disk, over ${http}`, async (t) => {
    const directory = t.testdir()
    const [before, after] = await Promise.all(
      ['before', 'after'].map((name) => provideCertificate(join(directory, name), undefined)),
    )
    if (before === undefined || after === undefined) throw new Error('no certificates')
    const own = ['--tls-key', before.keyFile, '--tls-certificate', before.certificateFile, '--http-server', http]
    const service = await SyslogService.start(t, [...SYSLOG_ON_LOOPBACK, ...own], directory)
    const ports = [service.port('tls'), service.service.ingestPort, service.service.apiPort]
    const old = await sendTls(t, service.port('tls'), { caFile: before.certificateFile })
    t.same(
      await Promise.all(ports.map(shownAt)),
      ports.map(() => before.fingerprint),
    )
    // Key and certificate do not match for a moment. The old pair stays in use, and no connection
    // ends.
    copyFileSync(after.keyFile, before.keyFile)
    await until('the log line', () => service.service.output.stderr.includes('keeping the old one') || undefined)
    t.same(
      await Promise.all(ports.map(shownAt)),
      ports.map(() => before.fingerprint),
    )
    copyFileSync(after.certificateFile, before.certificateFile)
    await until(
      'the log line',
      () => service.service.output.stderr.includes('using the renewed certificate') || undefined,
    )
    await until('all ports', async () => {
      const shown = await Promise.all(ports.map(shownAt))
      return shown.every((one) => one === after.fingerprint) || undefined
    })
    old.send(`${rfc5424(service.token, MATCHING)}\n`)
    t.match(await service.settled('tls', 1), { stored: 1 }, 'open connections continue')
  })
}
