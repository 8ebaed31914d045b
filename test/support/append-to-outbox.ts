import { Outbox } from '../../collector/outbox/outbox.ts'

/**
 * Runs as a separate process: append-to-outbox DIRECTORY. Appends twice, so that a fault point can
 * kill the process after the first append.
 */
const outbox = new Outbox(process.argv[2] ?? '')
for (const framesDone of [100, 200]) {
  const event = {
    name: 'claude.ai',
    client: '10.0.0.1',
    method: 'dns',
    firstSeenMs: 1,
    lastSeenMs: 1,
    count: 1,
  } as const
  outbox.write({ added: [event, event, event], position: { source: 'file', framesDone } })
}
await outbox.close()
