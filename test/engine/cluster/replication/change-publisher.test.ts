import t, { type Test } from 'tap'
import { StreamEndsBefore } from '../../../../engine/cluster/log/brokers.ts'
import type { AppendOutcome, ChangeStream } from '../../../../engine/cluster/log/change-stream.ts'
import { ChangePublisher } from '../../../../engine/cluster/replication/change-publisher.ts'
import { nodeMessage, readMessage } from '../../../../engine/cluster/replication/messages.ts'
import { Fault, isFault } from '../../../../engine/kernel/process/error-codes.ts'
import { openStore, quietLog } from '../../../support/store.ts'
import { until } from '../../../support/wait.ts'

const SENDER = { node: 'a', name: 'a', generation: 1 }
const OTHER = { node: 'b', name: 'b', generation: 2 }
const CREATED = 'now'

/** As the brokers append: only if the last message has the expected number. */
class MemoryStream {
  readonly created = CREATED
  readonly messages: Buffer[] = [nodeMessage('takeover', SENDER)]
  /** Called before each attempt. */
  onAttempt: () => void = () => {}
  isAnswering = true
  trimmedTo = 0
  /** Messages that all brokers have lost. */
  lost = 0
  /** Whether the brokers have a leader. Without one, appends fail at once, and reads wait. */
  hasLeader = true

  async append(bytes: Buffer, sequence: number): Promise<AppendOutcome> {
    this.onAttempt()
    if (!this.hasLeader) return { kind: 'unknown', why: 'no responders' }
    const isNext = this.messages.length - this.lost === sequence - 1
    if (isNext) this.messages.push(bytes)
    // After the attempts that are in flight with it.
    await new Promise((resolve) => setImmediate(resolve))
    if (!this.isAnswering) return { kind: 'unknown', why: 'timeout' }
    return { kind: isNext ? 'appended' : 'conflict' }
  }

  async message(sequence: number): Promise<Buffer | undefined> {
    if (!this.hasLeader) await new Promise<never>(() => {})
    return sequence <= this.trimmedTo ? undefined : this.messages[sequence - 1]
  }

  async assertHas(sequence: number): Promise<void> {
    if (this.trimmedTo > sequence) throw new Fault('BROKERS_LOST', `it begins with message ${this.trimmedTo + 1}`)
    const last = this.messages.length - this.lost
    if (last < sequence) throw new StreamEndsBefore('changes', last, sequence)
  }

  async state() {
    return { lastSequence: this.messages.length, bytes: 0, bytesMax: 1e9 }
  }
}

/** A primary with changes for two messages. */
function primary(t: Test, stream: MemoryStream) {
  const { store } = openStore(t)
  const { environment } = store
  const state = {
    mode: 'primary',
    primary: 'a',
    change: 0,
    unpublishedBytes: 0,
    created: CREATED,
    sequence: 1,
  } as const
  environment.writeUnrecorded(() => environment.replication.putState({ ...state, ...SENDER }))
  const table = environment.table('nodes')
  const keys = ['one', 'two'].map((key) => Buffer.from(key))
  for (const key of keys) environment.write(() => table.putSync(key, Buffer.alloc(3 * 1024 * 1024)))
  environment.write(() => keys.map((key) => table.removeSync(key)))
  const publisher = new ChangePublisher(
    environment,
    stream as unknown as ChangeStream,
    SENDER,
    1,
    performance.now(),
    quietLog,
  )
  return { store, publisher }
}

t.test('nothing is appended after the takeover of another node', async (t) => {
  const stream = new MemoryStream()
  const { publisher } = primary(t, stream)
  // When the first change arrives, another node has taken its number.
  stream.onAttempt = () => {
    if (stream.messages.length === 1) stream.messages.push(nodeMessage('takeover', OTHER))
  }
  const failure = await new Promise((resolve) => publisher.start(resolve))
  t.ok(isFault(failure, 'REPLACED'), String(failure))
  t.same(
    stream.messages.map((bytes) => readMessage(bytes).kind),
    ['takeover', 'takeover'],
  )
  await publisher.stop()
})

t.test('a primary that was away until the takeover of another node was trimmed ends', async (t) => {
  const stream = new MemoryStream()
  const { publisher } = primary(t, stream)
  stream.onAttempt = () => {
    if (stream.messages.length > 1) return
    stream.messages.push(nodeMessage('takeover', OTHER), nodeMessage('tick', OTHER))
    stream.trimmedTo = 2
  }
  const failure = await new Promise((resolve) => publisher.start(resolve))
  t.ok(isFault(failure, 'BROKERS_LOST'), String(failure))
  await publisher.stop()
})

/** What brokers answer to the attempts of one change, 20 s after one another. */
const SHORT_STREAMS: Readonly<Record<string, readonly [answers: ('short' | 'silence')[], isLost: boolean]>> = {
  'for 40 s': [['short', 'short', 'short'], true],
  'for 20 s': [['short', 'short'], false],
  'twice for 20 s': [['short', 'short', 'silence', 'short', 'short'], false],
}

for (const [name, [answers, isLost]] of Object.entries(SHORT_STREAMS)) {
  t.test(`a stream ends too early ${name}: the primary ${isLost ? 'ends' : 'goes on'}`, async (t) => {
    const stream = new MemoryStream()
    const { publisher } = primary(t, stream)
    const [nowMs, left] = [performance.now.bind(performance), [...answers]]
    let aheadMs = -20_000
    t.intercept(performance, 'now', { value: () => nowMs() + aheadMs })
    stream.onAttempt = () => {
      const answer = left.shift()
      stream.lost = answer === 'short' ? 1 : 0
      stream.hasLeader = answer !== 'silence'
      if (answer !== undefined) aheadMs += 20_000
    }
    const failure = await new Promise((resolve) => {
      publisher.start(resolve)
      if (!isLost) until('nothing is appended', () => publisher.sequence > 1).then(() => resolve(undefined), resolve)
    })
    if (isLost) t.ok(isFault(failure, 'BROKERS_LOST'), String(failure))
    else t.equal(failure, undefined)
    t.same(left, [])
    await publisher.stop()
  })
}

t.test('a message that was appended without an answer counts from its first attempt', async (t) => {
  const stream = new MemoryStream()
  const { publisher, store } = primary(t, stream)
  stream.isAnswering = false
  let firstMs = 0
  stream.onAttempt = () => {
    firstMs ||= performance.now()
    if (stream.messages.length > 1) stream.isAnswering = true
  }
  publisher.start((error) => t.fail(String(error)))
  await until('the first change is not published', () => stream.messages.length > 1 && publisher.sequence > 1)
  t.ok(publisher.acknowledgedMs <= firstMs || stream.messages.length > 2, 'replicas have read it since then')
  await publisher.stop()
  t.equal(
    store.environment.read(() => store.environment.replication.firstUnpublished),
    undefined,
  )
  t.equal(readMessage(stream.messages.at(-1) ?? Buffer.alloc(0)).kind, 'resignation')
})

t.test('the primary appends as soon as the brokers have elected a leader', async (t) => {
  const stream = new MemoryStream()
  const { publisher } = primary(t, stream)
  stream.hasLeader = false
  let attempts = 0
  stream.onAttempt = () => {
    stream.hasLeader = ++attempts > 2
  }
  publisher.start((error) => t.fail(String(error)))
  await until('nothing is appended', () => publisher.sequence > 1)
  t.ok(attempts > 2)
  await publisher.stop()
})
