import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Forwarder } from '../../deploy/docs/page-tables.ts'
import { RunningForwarder } from '../support/forwarders.ts'
import { freePort } from '../support/free-port.ts'
import { startService } from '../support/programs.ts'
import { SyslogService, squid } from '../support/syslog-service.ts'

/** Lines per name: more than rsyslog's default queues hold. */
const LINES = 3000

interface Case {
  readonly forwarder: Forwarder
  readonly kind: 'tls' | 'tcp'
  /** What the forwarder does while the service is unavailable. */
  readonly meanwhile: 'runs on' | 'restarts' | 'is killed'
  /**
   * Of the first lines after the service has stopped. docs/collect/syslog-ng.md lists the
   * forwarders that detect a closed connection only by writing.
   */
  readonly lostMax: number
}

const CASES: readonly Case[] = [
  { forwarder: 'rsyslog', kind: 'tls', meanwhile: 'runs on', lostMax: 0 },
  { forwarder: 'rsyslog', kind: 'tls', meanwhile: 'restarts', lostMax: 0 },
  { forwarder: 'rsyslog', kind: 'tcp', meanwhile: 'restarts', lostMax: 0 },
  { forwarder: 'syslog-ng', kind: 'tls', meanwhile: 'restarts', lostMax: 5 },
  { forwarder: 'syslog-ng', kind: 'tcp', meanwhile: 'runs on', lostMax: 0 },
  { forwarder: 'syslog-ng', kind: 'tcp', meanwhile: 'restarts', lostMax: 0 },
  { forwarder: 'syslog-ng', kind: 'tcp', meanwhile: 'is killed', lostMax: 0 },
]

for (const { forwarder, kind, meanwhile, lostMax } of CASES) {
  t.test(
    `${forwarder} over ${kind}: messages survive while the service is unavailable and the forwarder ${meanwhile}`,
    async (t) => {
      const port = await freePort()
      const listen = [`--syslog-${kind}`, `127.0.0.1:${port}`]
      const service = await SyslogService.start(t, listen)
      const relay = await RunningForwarder.start(t, service.directory, forwarder, [`service-${kind}`, 'files'], {
        MONITORING_TOKEN: service.token,
        INGEST_HOST: 'localhost',
        INGEST_PORT: String(port),
        CA_FILE: service.certificateFile,
      })
      const write = (host: string): void =>
        relay.write(
          'access.log',
          Array.from({ length: LINES }, () => squid(host)),
        )
      write('claude.ai')
      await service.settled(kind, LINES)
      service.service.child.kill('SIGTERM')
      t.equal((await service.service.ended).status, 0)

      write('chatgpt.com')
      // Time for the forwarder to read the lines, detect that the service is unavailable, and queue
      // them.
      await later(3000)
      if (meanwhile !== 'runs on') {
        await relay.stop(meanwhile === 'restarts' ? 'SIGTERM' : 'SIGKILL')
        checkKept(t, forwarder, relay.bufferDirectory, service.token)
        await relay.start()
      }
      write('api.anthropic.com')
      await later(1000)

      const again = await startService(service.data, listen)
      t.teardown(async () => {
        again.child.kill('SIGKILL')
        await again.ended
      })
      // The lines that waited on disk can arrive after those that were written later.
      await service.until('all that waited', () => {
        const stored = service.stored()
        const [first = 0, last = 0] = ['chatgpt.com', 'api.anthropic.com'].map((name) => stored.get(name))
        return (first >= LINES - lostMax && last >= LINES) || undefined
      })
      // Duplicates arrive at once, because the forwarder has nothing else to send.
      await later(1500)
      const { 'chatgpt.com': first = 0, ...others } = Object.fromEntries(service.stored())
      t.same(others, { 'claude.ai': LINES, 'api.anthropic.com': LINES }, 'nothing is lost, nothing counts twice')
      t.ok(first <= LINES && first >= LINES - lostMax, `${first} of the messages that were written first`)
    },
  )
}

/** The queue is on disk, with the permissions that the page documents. */
function checkKept(t: Test, forwarder: Forwarder, directory: string, token: string): void {
  const kept = readdirSync(directory).filter((file) => /^posture|\.rqf$/.test(file))
  for (const name of kept) {
    const file = join(directory, name)
    t.equal(statSync(file).mode & 0o077, 0, `only the owner may read ${name}`)
    t.equal(readFileSync(file).includes(token), forwarder === 'syslog-ng', `${name}: the token, as the page says`)
  }
  t.ok(
    kept.some((name) => readFileSync(join(directory, name)).includes('chatgpt.com')),
    'the lines are in it',
  )
}
