import t, { type Test } from 'tap'
import type { ChangeStream, StreamMessage } from '../../../../engine/cluster/log/change-stream.ts'
import { ChangeFollower } from '../../../../engine/cluster/replication/change-follower.ts'
import { PAUSED_AFTER_MS } from '../../../../engine/cluster/replication/limits.ts'
import { changeMessages, nodeMessage } from '../../../../engine/cluster/replication/messages.ts'
import type { ReplicationState } from '../../../../engine/kernel/lmdb/replication.ts'
import { openStore, quietLog } from '../../../support/store.ts'
import { until } from '../../../support/wait.ts'

const SENDER = { node: 'b', name: 'b', generation: 1 }
const CREATED = 'now'

/** A stream, of ticks by default. The test says what brokers know, and what a node has received. */
class TickStream {
  readonly created = CREATED
  readonly received: { readonly sequence: number; readonly bytes: Buffer }[] = []
  last = 1
  isAnswering = true
  asked = 0
  /** Ends when an answer arrives. */
  answerTime = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve))
  #wake = (): void => {}
  #isStopped = false

  receive(sequence: number, bytes = nodeMessage('tick', SENDER)): void {
    this.received.push({ sequence, bytes })
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
      const message = this.received.shift()
      if (message !== undefined) yield { ...message, pending: 0 }
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

function replica(t: Test, more: Partial<ReplicationState> = {}) {
  const { environment } = openStore(t).store
  const state = {
    node: 'a',
    primary: 'b',
    generation: 1,
    change: 0,
    unpublishedBytes: 0,
    created: CREATED,
    sequence: 1,
    ...more,
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
  return { environment, stream, follower, following, receive, untilNews, end }
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

/** The next message for a replica with change 3 of node b, in generation 2. */
const NEXT: readonly (readonly [what: string, message: Buffer, refused?: string])[] = [
  ['a tick', nodeMessage('tick', { node: 'b', name: 'b', generation: 2 })],
  ['a resignation', nodeMessage('resignation', { node: 'b', name: 'b', generation: 2 })],
  ['the next primary', nodeMessage('takeover', { node: 'c', name: 'c', generation: 3 })],
  ['the same node again', nodeMessage('takeover', { node: 'b', name: 'b', generation: 3 })],
  ['the next change', change(2, 4)],
  ['a change that the store has', change(2, 3)],
  ['a tick of another node', nodeMessage('tick', { node: 'c', name: 'c', generation: 2 }), 'tick of c in generation 2'],
  ['a tick of a later primary', nodeMessage('tick', { node: 'c', name: 'c', generation: 3 }), 'tick of c'],
  ['a primary after the next', nodeMessage('takeover', { node: 'c', name: 'c', generation: 4 }), 'takeover of c'],
  ['a primary of the same number', nodeMessage('takeover', { node: 'c', name: 'c', generation: 2 }), 'takeover of c'],
  ['a change of a later primary', change(3, 3), 'change 3 is of generation 3, after 2'],
  ['a change after the next', change(2, 5), 'change 5 follows change 3'],
]

function change(generation: number, number: number): Buffer {
  const [message = Buffer.alloc(0)] = changeMessages(generation, [{ number, writes: Buffer.alloc(0) }])
  return message
}

for (const [what, message, refused] of NEXT) {
  t.test(
    `${what} is ${refused === undefined ? 'read' : 'refused: the brokers have lost what was before'}`,
    async (t) => {
      const { stream, follower, following, end } = replica(t, { generation: 2, change: 3 })
      stream.receive(2, message)
      if (refused === undefined) {
        await until('nothing is read', () => follower.lastRead === 2)
        await end()
      } else {
        const code = 'BROKERS_LOST'
        await t.rejects(following, { code, message: new RegExp(refused) })
        t.equal(follower.state.sequence, 1, 'nothing is stored')
      }
    },
  )
}

t.test('a store from a snapshot takes the primary from the first tick', async (t) => {
  const { environment, receive, end } = replica(t, { primary: '' })
  await receive(2)
  t.match(
    environment.read(() => environment.replication.state),
    { primary: 'b', generation: 1, sequence: 2 },
  )
  await end()
})
