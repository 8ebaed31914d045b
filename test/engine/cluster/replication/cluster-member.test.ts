import t, { type Test } from 'tap'
import { StreamBeginsAfter, StreamEndsBefore } from '../../../../engine/cluster/log/brokers.ts'
import type { AppendOutcome, ChangeStream, StreamMessage } from '../../../../engine/cluster/log/change-stream.ts'
import {
  ClusterMember,
  type MemberOptions,
  mayHaveOwnChanges,
  needsSnapshot,
} from '../../../../engine/cluster/replication/cluster-member.ts'
import { ANSWERING_MS, TAKEOVER_AFTER_MS } from '../../../../engine/cluster/replication/limits.ts'
import { nodeMessage } from '../../../../engine/cluster/replication/messages.ts'
import { deferred } from '../../../../engine/kernel/process/deferred.ts'
import { Fault } from '../../../../engine/kernel/process/error-codes.ts'
import { openStore, quietLog } from '../../../support/store.ts'
import { until } from '../../../support/wait.ts'

const SEQUENCE = 5
const CREATED = 'now'

/** A stream whose primary is silent. Notes when it was asked, and refuses to append. */
class SilentStream {
  readonly created = CREATED
  readonly askedAtMs: number[] = []
  readonly appendedAtMs: number[] = []
  answers = true
  readonly #stopping = new AbortController()

  async lastSequence(): Promise<number> {
    this.askedAtMs.push(performance.now())
    if (!this.answers) throw new Error('no leader')
    return SEQUENCE
  }

  async append(): Promise<AppendOutcome> {
    this.appendedAtMs.push(performance.now())
    return { kind: 'conflict' }
  }

  async message(): Promise<undefined> {}

  async assertHas(): Promise<void> {}

  async *read(): AsyncGenerator<StreamMessage> {
    await new Promise((resolve) => this.#stopping.signal.addEventListener('abort', resolve))
  }

  stopReading(): void {
    this.#stopping.abort()
  }
}

/** A replica that watches the stream from now on. */
async function replica(t: Test, stream: SilentStream): Promise<ClusterMember> {
  const { store } = openStore(t)
  const state = {
    mode: 'replica',
    node: 'a',
    primary: 'other',
    generation: 1,
    change: 0,
    unpublishedBytes: 0,
    created: CREATED,
  } as const
  store.environment.writeUnrecorded(() => store.environment.replication.putState({ ...state, sequence: SEQUENCE }))
  const member = new ClusterMember(store, {
    ...{ stream: stream as unknown as ChangeStream, name: 'a', mayLead: true, log: quietLog },
    ...({} as Pick<MemberOptions, 'events' | 'snapshots'>),
    onPromoted: () => void t.fail('the stream appends nothing'),
    onFailure: (error) => void t.fail(String(error)),
  })
  await member.start()
  stream.askedAtMs.length = 0
  member.watch()
  t.teardown(() => member.stop())
  return member
}

/** Whether the store is replaced, and if so, whether it stays next to the new one. */
type Failure = readonly [what: string, error: unknown, isReplaced: boolean, isKept?: boolean, unpublished?: number]

const TRIMMED = new StreamBeginsAfter('changes', 9, 5)
const FAILURES: readonly Failure[] = [
  ['trimmed messages', TRIMMED, true, false],
  ['trimmed messages, with own changes', TRIMMED, true, true, 7],
  ['a stream that ends too early', new StreamEndsBefore('changes', 5, 9), false],
  ['a change that does not follow', new Fault('BROKERS_LOST', 'change 9 follows change 5'), true, true],
  ['another primary', new Fault('REPLACED', 'another node is the primary now'), true, true],
  ['brokers that do not answer', new Fault('BROKERS_UNREACHABLE', 'no leader'), false],
  ['another error', new Error('disk'), false],
]

for (const [what, error, isReplaced, isKept = true, unpublished] of FAILURES) {
  const becomes = isReplaced ? `is ${isKept ? 'kept and ' : ''}replaced` : 'stays'
  t.test(`after ${what}, the store ${becomes}`, async (t) => {
    t.equal(needsSnapshot(error), isReplaced)
    t.equal(mayHaveOwnChanges(error, unpublished), isKept)
  })
}

t.test('a replica asks the brokers before its primary was silent for long enough', async (t) => {
  const stream = new SilentStream()
  const heardMs = performance.now()
  const member = await replica(t, stream)
  await until('the replica does not try to take over', () => stream.appendedAtMs.length > 0)
  const [asked = 0, appended = 0] = [stream.askedAtMs[0], stream.appendedAtMs[0]]
  t.ok(asked - heardMs < TAKEOVER_AFTER_MS, `asked after ${asked - heardMs} ms`)
  t.ok(appended - heardMs >= TAKEOVER_AFTER_MS)
  t.ok(appended - asked >= ANSWERING_MS)
  t.notOk(member.isPrimary)
})

t.test('a replica does not take over right after an election of the brokers', async (t) => {
  const stream = new SilentStream()
  const member = await replica(t, stream)
  stream.answers = false
  await until('the primary is not silent', () => member.silenceMs > TAKEOVER_AFTER_MS)
  t.same(stream.appendedAtMs, [])
  const answeredMs = performance.now()
  stream.answers = true
  await until('the replica does not try to take over', () => stream.appendedAtMs.length > 0)
  t.ok((stream.appendedAtMs[0] ?? 0) - answeredMs >= ANSWERING_MS)
})

/** The primary resigns; another replica takes over while this one asks the brokers. */
class ContestedStream extends SilentStream {
  member: ClusterMember | undefined
  readonly #takenOver = deferred<void>()

  override async lastSequence(): Promise<number> {
    const sequence = await super.lastSequence()
    if (this.member === undefined) return sequence
    this.#takenOver.resolve()
    await until('the takeover is not read', () => this.member?.state.generation === 2)
    return SEQUENCE + 2
  }

  override async *read(): AsyncGenerator<StreamMessage> {
    const resignation = nodeMessage('resignation', { node: 'b', name: 'other', generation: 1 })
    yield { sequence: SEQUENCE + 1, bytes: resignation, pending: 0 }
    await this.#takenOver.promise
    const takeover = nodeMessage('takeover', { node: 'c', name: 'third', generation: 2 })
    yield { sequence: SEQUENCE + 2, bytes: takeover, pending: 0 }
    yield* super.read()
  }
}

t.test('a replica does not take over from the one that was faster', async (t) => {
  const stream = new ContestedStream()
  const member = await replica(t, stream)
  stream.member = member
  await until('the brokers are not asked', () => member.state.generation === 2)
  const askedMs = performance.now()
  await until('the brokers are not asked again', () => stream.appendedAtMs.length + stream.askedAtMs.length > 1)
  t.ok((stream.appendedAtMs[0] ?? Number.POSITIVE_INFINITY) - askedMs >= ANSWERING_MS)
})
