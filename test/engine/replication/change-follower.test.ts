import t from 'tap'
import type { ChangeStream, StreamMessage } from '../../../engine/log/change-stream.ts'
import { ChangeFollower } from '../../../engine/replication/change-follower.ts'
import { PAUSED_AFTER_MS } from '../../../engine/replication/limits.ts'
import { nodeMessage } from '../../../engine/replication/messages.ts'
import { openStore, quietLog } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

const SENDER = { node: 'b', name: 'b', generation: 1 }
const CREATED = 'now'

/** A stream of ticks. The test says what the brokers know, and what the connection has received. */
class TickStream {
  readonly created = CREATED
  readonly received: number[] = []
  last = 1
  isAnswering = true
  asked = 0
  #wake = (): void => {}
  #isStopped = false

  receive(sequence: number): void {
    this.received.push(sequence)
    this.#wake()
  }

  async lastSequence(): Promise<number> {
    this.asked++
    await new Promise((resolve) => setImmediate(resolve))
    if (!this.isAnswering) throw new Error('no leader')
    return this.last
  }

  async *read(): AsyncGenerator<StreamMessage> {
    while (!this.#isStopped) {
      const sequence = this.received.shift()
      if (sequence !== undefined) yield { sequence, bytes: nodeMessage('tick', SENDER), pending: 0 }
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }

  stopReading(): void {
    this.#isStopped = true
    this.#wake()
  }
}

/** Nothing of this process runs, as after SIGSTOP and until SIGCONT. */
function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSED_AFTER_MS + 100)
}

t.test('what a connection held while the process was paused is no news', async (t) => {
  const { environment } = openStore(t).store
  const state = {
    node: 'a',
    primary: 'b',
    generation: 1,
    change: 0,
    unpublishedBytes: 0,
    created: CREATED,
    sequence: 1,
  }
  environment.writeUnrecorded(() => environment.replication.putState({ ...state, mode: 'replica' }))
  const stream = new TickStream()
  const follower = new ChangeFollower(environment, stream as unknown as ChangeStream, quietLog)
  const following = follower.follow(() => {})
  const untilRead = (sequence: number) => until('nothing is read', () => follower.lastRead === sequence)
  let { freshMs } = follower
  stream.receive(2)
  await untilRead(2)
  t.ok(follower.freshMs > freshMs, 'a message is news')

  freshMs = follower.freshMs
  stream.isAnswering = false
  stream.receive(3)
  pause()
  stream.receive(4)
  await untilRead(4)
  t.equal(follower.freshMs, freshMs, 'not after a pause')
  await until('the brokers are not asked again', () => stream.asked > 1)
  stream.receive(5)
  await untilRead(5)
  t.equal(follower.freshMs, freshMs, 'not while the brokers do not answer')

  stream.last = 7
  stream.isAnswering = true
  const { asked } = stream
  await until('the brokers are not asked', () => stream.asked > asked)
  for (const sequence of [6, 7]) stream.receive(sequence)
  await untilRead(7)
  t.equal(follower.freshMs, freshMs, 'not up to the last message that they had')
  stream.receive(8)
  await untilRead(8)
  t.ok(follower.freshMs > freshMs, 'a later message is news')
  follower.stop()
  await following
})
