import type { NatsConnection } from '@nats-io/transport-node'
import { z } from 'zod'
import { Fault } from '../../kernel/process/error-codes.ts'

/** The first release with which this service was tested. */
const VERSION_MIN = [2, 15] as const

/** Exported by the system account to services (deploy/nats/nats.conf). */
const STATE_SUBJECT = '$SYS.REQ.SERVER.PING.JSZ'
const ANSWER_MS = 3000

const answerSchema = z.object({
  server: z.object({ name: z.string(), ver: z.string() }),
  data: z
    .object({
      disabled: z.boolean().optional(),
      config: z.object({ sync_always: z.boolean().optional() }).optional(),
    })
    .optional(),
})

/**
 * Checks that every broker is new enough, and flushes each message before it acknowledges it: with
 * the default of NATS, a power failure of all brokers loses the acknowledged messages of two
 * minutes. A broker that is down or has disabled JetStream does not count, so a majority of `count`
 * has to answer.
 *
 * @throws Fault BROKERS_UNSAFE; BROKERS_UNREACHABLE if fewer than a majority answers
 */
export async function checkBrokers(connection: NatsConnection, count: number): Promise<void> {
  const names = new Set<string>()
  try {
    const answers = await connection.requestMany(STATE_SUBJECT, '{}', {
      // Ends early if one is down: after 300 ms without an answer.
      strategy: 'stall',
      maxMessages: count,
      maxWait: ANSWER_MS,
    })
    for await (const answer of answers) {
      const { server, data } = answerSchema.parse(answer.json())
      // A broker whose disk is full disables JetStream, so it acknowledges nothing.
      if (data?.disabled === true) continue
      names.add(server.name)
      if (!isVersionEnough(server.ver)) {
        const expected = VERSION_MIN.join('.')
        throw new Fault('BROKERS_UNSAFE', `${server.name}: expected NATS ${expected} or later, found ${server.ver}`)
      }
      if (data?.config?.sync_always !== true) {
        throw new Fault(
          'BROKERS_UNSAFE',
          `${server.name}: acknowledges messages before they are on disk; set jetstream { sync_interval: always }`,
        )
      }
    }
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('BROKERS_UNREACHABLE', `${STATE_SUBJECT}: ${(error as Error).message}`, { cause: error })
  }
  if (names.size <= count / 2) {
    throw new Fault(
      'BROKERS_UNREACHABLE',
      `${names.size} of ${count} brokers report that JetStream runs; deploy/nats/nats.conf has the permission`,
    )
  }
}

/** @param version such as 2.15.1 or 2.16.0-beta.1 */
function isVersionEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin, minorMin] = VERSION_MIN
  return major > majorMin || (major === majorMin && minor >= minorMin)
}
