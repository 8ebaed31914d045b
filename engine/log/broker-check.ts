import type { NatsConnection } from '@nats-io/transport-node'
import { z } from 'zod'
import { Fault } from '../process/error-codes.ts'

/** Exported by the system account to services (deploy/nats/nats.conf). */
const STATE_SUBJECT = '$SYS.REQ.SERVER.PING.JSZ'
const ANSWER_MS = 3000

const answerSchema = z.object({
  server: z.object({ name: z.string() }),
  data: z
    .object({
      disabled: z.boolean().optional(),
      config: z.object({ sync_always: z.boolean().optional() }).optional(),
    })
    .optional(),
})

/**
 * Checks that every broker flushes each message before it acknowledges it: with the default of
 * NATS, a power failure of all brokers loses the acknowledged messages of two minutes. A broker
 * that is down or has disabled JetStream does not count, so a majority of `count` has to answer.
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
