import t, { type Test } from 'tap'
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
  /** Ends when an answer arrives. */
  answerTime = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
  #wake = (): void => {}
  #isStopped = false

  receive(sequence: number): void {
    this.received.push(sequence)
    this.#wake()
  }

  async lastSequence(): Promise<number> {
    this.asked++
    const { last, isAnswering } = this
    await this.answerTime()
    if (!isAnswering) throw new Error('no leader')
    return last
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

function replica(t: Test) {
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
  const receive = async (...sequences: number[]): Promise<void> => {
    for (const sequence of sequences) stream.receive(sequence)
    await until('nothing is read', () => follower.lastRead === sequences.at(-1))
  }
  /** Ticks until one is news. A slow machine pauses the process, too. */
  const untilNews = async (): Promise<void> => {
    const { freshMs } = follower
    await until('no message is news', async () => {
      await receive(++stream.last)
      return follower.freshMs > freshMs
    })
  }
  const end = (): Promise<void> => {
    follower.stop()
    return following
  }
  return { environment, stream, follower, receive, untilNews, end }
}

t.test('what a connection held while the process was paused is no news', async (t) => {
  const { stream, follower, receive, untilNews, end } = replica(t)
  await untilNews()
  const { freshMs } = follower
  const { last } = stream
  stream.isAnswering = false
  stream.receive(last + 1)
  pause()
  await receive(last + 2)
  t.equal(follower.freshMs, freshMs, 'not after a pause')
  const { asked } = stream
  await until('the brokers are not asked again', () => stream.asked > asked)
  await receive(last + 3)
  t.equal(follower.freshMs, freshMs, 'not while the brokers do not answer')

  stream.last = last + 5
  stream.isAnswering = true
  const askedBefore = stream.asked
  await until('the brokers are not asked', () => stream.asked > askedBefore)
  await receive(last + 4, last + 5)
  t.equal(follower.freshMs, freshMs, 'not up to the last message that they had')
  await untilNews()
  await end()
})

t.test('an answer to a question from before a pause says nothing about it', async (t) => {
  const { stream, follower, receive, untilNews, end } = replica(t)
  await untilNews()
  const { freshMs } = follower
  const { last } = stream
  const { asked } = stream
  let answer = (): void => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  stream.answerTime = () => answered
  pause()
  await receive(last + 1)
  await until('the brokers are not asked', () => stream.asked > asked)
  stream.isAnswering = false
  pause()
  answer()
  await until('the brokers are not asked again', () => stream.asked > asked + 1)
  await receive(last + 2)
  t.equal(follower.freshMs, freshMs)
  stream.isAnswering = true
  stream.last = last + 2
  await untilNews()
  await end()
})

t.test('a store that hangs while it writes is not current afterwards', async (t) => {
  const { environment, follower, receive, stream, untilNews, end } = replica(t)
  await untilNews()
  const write = environment.writeUnrecorded.bind(environment)
  let hungMs = 0
  environment.writeUnrecorded = (work) => {
    const result = write(work)
    if (hungMs === 0) {
      pause()
      hungMs = performance.now()
    }
    return result
  }
  await receive(++stream.last)
  t.ok(follower.freshMs < hungMs - PAUSED_AFTER_MS, 'it was current before')
  await untilNews()
  await end()
})
