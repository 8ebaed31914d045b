import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { DurableQueue } from '../kernel/lmdb/queue.ts'
import { slicesOf } from '../kernel/lmdb/queue-chunk.ts'
import type { SealedSecret } from '../kernel/process/secrets-key.ts'
import { ALERT_DEAD_LETTERS_MAX, ALERT_MESSAGES_WAITING_MAX, ALERT_OUTCOMES_MAX } from '../limits.ts'
import type { AlertRule, AlertSeverity } from './alerts.ts'
import { Family } from './family.ts'
import { ownKey, UUID_BYTES, u64Bytes, uuidBytes, uuidText } from './keys.ts'

export const ALERT_CHANNEL_KINDS = ['webhook', 'slack', 'teams', 'smtp', 'syslog'] as const
export type AlertChannelKind = (typeof ALERT_CHANNEL_KINDS)[number]

/** Where alerts of an organization are sent. */
export interface AlertChannel {
  readonly id: string
  readonly organizationId: string
  /** Unique in the organization, regardless of case. */
  readonly name: string
  readonly kind: AlertChannelKind
  /** What lists show of the receiver. Contains no secret. */
  readonly target: string
  /** Only alerts of this severity and above. */
  readonly severityMin: AlertSeverity
  /** Only alerts of these rules. Absent: of all. */
  readonly rules?: readonly AlertRule[]
  /** Only alerts about these groups. Absent: about any, and about none. */
  readonly groups?: readonly string[]
  /** The settings of the kind in JSON, with their secrets, encrypted for this channel. */
  readonly settings: SealedSecret
  readonly createdAtMs: number
}

/**
 * What the encrypted settings of a channel are bound to: moved elsewhere, they cannot be opened.
 */
export function channelContext({ organizationId, id }: Pick<AlertChannel, 'organizationId' | 'id'>): string {
  return `alert channel ${organizationId} ${id}`
}

/** What happened to the messages of a channel. Absent before the first attempt. */
export interface AlertChannelState {
  readonly delivered: number
  readonly failedAttempts: number
  readonly deadLetters: number
  /** Dead letters that were removed because there were too many. */
  readonly dropped: number
  /** 0: never. */
  readonly deliveredAtMs: number
  readonly failedAtMs: number
  /** Failed attempts of the first waiting message. */
  readonly attempts: number
  /** When the first of these attempts failed. Absent: there was none. */
  readonly failingSinceMs?: number
  /** Why the last attempt failed; '' after a success. */
  readonly failure: string
}

const NO_STATE: AlertChannelState = {
  delivered: 0,
  failedAttempts: 0,
  deadLetters: 0,
  dropped: 0,
  deliveredAtMs: 0,
  failedAtMs: 0,
  attempts: 0,
  failure: '',
}

/** A message in the queue of a channel. */
export interface QueuedMessage {
  readonly sequence: number
  /** When it was queued, in milliseconds since 1970. */
  readonly queuedAtMs: number
  /** The message in JSON; see engine/alert/message.ts. */
  readonly json: string
}

/** What happened to a message that left the queue. */
export interface MessageOutcome {
  readonly kind: 'delivered' | 'dead' | 'retried' | 'discarded' | 'dropped'
  readonly atMs: number
}

/** A message that was not delivered. */
export interface DeadLetter {
  /** Its sequence in the queue that it left. */
  readonly sequence: number
  readonly queuedAtMs: number
  readonly failedAtMs: number
  readonly attempts: number
  readonly failure: string
  readonly json: string
}

/** Bytes of the time that precedes a queued message. */
const TIME_BYTES = 8
const CHANNEL_KEY_BYTES = 2 * UUID_BYTES

/**
 * The channels of each organization, and their messages:
 *
 *   alert-channels        organization (16) + channel (16)                 AlertChannel
 *   alert-channel-states  organization (16) + channel (16)                 AlertChannelState
 *   alert-queue           organization (16) + channel (16) + sequence (8)  see queue.ts; an entry
 *                         is the time in milliseconds since 1970 (f64, little-endian) and JSON
 *   alert-outcomes        organization (16) + channel (16) + sequence (8)  MessageOutcome
 *   alert-dead-letters    organization (16) + channel (16) + sequence (8)  DeadLetter
 *
 * A message waits if its sequence is in the queue; otherwise it has an outcome, until
 * ALERT_OUTCOMES_MAX later ones have one.
 */
export class AlertChannels {
  readonly #channels: Family<AlertChannel>
  readonly #states: Family<AlertChannelState>
  readonly #queue: Table
  readonly #outcomes: Family<MessageOutcome>
  readonly #deadLetters: Family<DeadLetter>

  constructor(environment: Environment) {
    this.#channels = new Family(environment.table('alert-channels'), 'alert channel')
    this.#states = new Family(environment.table('alert-channel-states'), 'state of an alert channel')
    this.#queue = environment.table('alert-queue')
    this.#outcomes = new Family(environment.table('alert-outcomes'), 'outcome of an alert message')
    this.#deadLetters = new Family(environment.table('alert-dead-letters'), 'dead letter')
  }

  get(organizationId: string, channelId: string): AlertChannel | undefined {
    return this.#channels.get(ownKey(organizationId, channelId))
  }

  /** Sorted by time of creation. */
  ofOrganization(organizationId: string): AlertChannel[] {
    return Array.from(this.#channels.range(uuidBytes(organizationId)), ({ value }) => value).sort(
      (a, b) => a.createdAtMs - b.createdAtMs || (a.name < b.name ? -1 : 1),
    )
  }

  /** Ids of organization and channel, of all channels. */
  *all(): Generator<readonly [organizationId: string, channelId: string]> {
    for (const key of this.#channels.keys(Buffer.alloc(0))) yield [uuidText(key), uuidText(key.subarray(UUID_BYTES))]
  }

  put(channel: AlertChannel): void {
    this.#channels.put(ownKey(channel.organizationId, channel.id), channel)
  }

  /** Removes a channel with everything that waits for it. */
  remove({ organizationId, id }: AlertChannel): void {
    const key = ownKey(organizationId, id)
    this.#channels.remove(key)
    this.#states.remove(key)
    const queue = this.#queueOf(organizationId, id)
    queue.removeThrough(queue.nextSequence)
    for (const family of [this.#outcomes, this.#deadLetters]) {
      for (const each of Array.from(family.keys(key), (found) => Buffer.from(found))) family.remove(each)
    }
    // The state of the queue. No other channel ever has the same id.
    this.#queue.removeSync(Buffer.concat([key, QUEUE_STATE_KEY]))
  }

  state(organizationId: string, channelId: string): AlertChannelState {
    return this.#states.get(ownKey(organizationId, channelId)) ?? NO_STATE
  }

  /** Number of messages that wait. */
  waiting(organizationId: string, channelId: string): number {
    return this.#queueOf(organizationId, channelId).length
  }

  /** The sequence of the first message that waits, or of the next one. */
  firstWaiting(organizationId: string, channelId: string): number {
    return this.#queueOf(organizationId, channelId).firstSequence
  }

  /**
   * Appends a message. Beyond the limit, the oldest becomes a dead letter. Returns its sequence.
   */
  append(organizationId: string, channelId: string, json: string, nowMs: number): number {
    const queue = this.#queueOf(organizationId, channelId)
    const time = Buffer.alloc(TIME_BYTES)
    time.writeDoubleLE(nowMs)
    const sequence = queue.append(slicesOf([Buffer.concat([time, Buffer.from(json)])]), nowMs)
    while (queue.length > ALERT_MESSAGES_WAITING_MAX) {
      if (this.removeDamaged(organizationId, channelId, nowMs) > 0) continue
      this.fail(organizationId, channelId, queue.firstSequence, 'too many messages were waiting', nowMs)
    }
    return sequence
  }

  /** The first message that waits. @throws DamagedChunk; see removeDamaged(). */
  first(organizationId: string, channelId: string): QueuedMessage | undefined {
    const queue = this.#queueOf(organizationId, channelId)
    const [entry] = queue.read(queue.firstSequence, 1)
    if (entry === undefined) return undefined
    return {
      sequence: entry.sequence,
      queuedAtMs: entry.bytes.readDoubleLE(0),
      json: entry.bytes.toString('utf8', TIME_BYTES),
    }
  }

  /** Removes messages that cannot be read, and returns their number. */
  removeDamaged(organizationId: string, channelId: string, nowMs: number): number {
    const queue = this.#queueOf(organizationId, channelId)
    const first = queue.firstSequence
    const removed = queue.removeDamaged()
    for (let at = 0; at < removed; at++) {
      this.#putOutcome(organizationId, channelId, first + at, { kind: 'dropped', atMs: nowMs })
    }
    if (removed > 0) {
      const state = this.state(organizationId, channelId)
      const dropped = state.dropped + removed
      this.#putState(organizationId, channelId, { ...ofNextMessage(state), dropped })
    }
    return removed
  }

  /** Records that the first message was delivered. */
  deliver(organizationId: string, channelId: string, sequence: number, nowMs: number): void {
    const queue = this.#queueOf(organizationId, channelId)
    // It may have become a dead letter meanwhile, or the channel was removed.
    if (queue.firstSequence !== sequence || queue.length === 0) return
    queue.removeThrough(sequence)
    this.#putOutcome(organizationId, channelId, sequence, { kind: 'delivered', atMs: nowMs })
    const state = this.state(organizationId, channelId)
    this.#putState(organizationId, channelId, {
      ...ofNextMessage(state),
      delivered: state.delivered + 1,
      deliveredAtMs: nowMs,
      failure: '',
    })
  }

  /** Records a failed attempt. The message stays the first, unless fail() follows. */
  postpone(organizationId: string, channelId: string, failure: string, nowMs: number): void {
    if (this.get(organizationId, channelId) === undefined) return
    const state = this.state(organizationId, channelId)
    const { failedAttempts, attempts, failingSinceMs = nowMs } = state
    this.#putState(organizationId, channelId, {
      ...state,
      failedAttempts: failedAttempts + 1,
      attempts: attempts + 1,
      failingSinceMs,
      failedAtMs: nowMs,
      failure,
    })
  }

  /** Makes the first message a dead letter. */
  fail(organizationId: string, channelId: string, sequence: number, failure: string, nowMs: number): void {
    const message = this.first(organizationId, channelId)
    if (message?.sequence !== sequence) return
    const state = this.state(organizationId, channelId)
    this.#queueOf(organizationId, channelId).removeThrough(sequence)
    this.#putOutcome(organizationId, channelId, sequence, { kind: 'dead', atMs: nowMs })
    this.#deadLetters.put(messageKey(organizationId, channelId, sequence), {
      sequence,
      queuedAtMs: message.queuedAtMs,
      failedAtMs: nowMs,
      attempts: state.attempts,
      failure,
      json: message.json,
    })
    const dropped = this.#dropDeadLetters(organizationId, channelId, nowMs)
    this.#putState(organizationId, channelId, {
      ...ofNextMessage(state),
      deadLetters: state.deadLetters + 1,
      dropped: state.dropped + dropped,
      failedAtMs: nowMs,
      failure,
    })
  }

  deadLetterCount(organizationId: string, channelId: string): number {
    return this.#deadLetters.count(ownKey(organizationId, channelId))
  }

  /** Oldest first. */
  deadLetters(organizationId: string, channelId: string): DeadLetter[] {
    return Array.from(this.#deadLetters.range(ownKey(organizationId, channelId)), ({ value }) => value)
  }

  /** Queues a dead letter again, as the last message, and returns its sequence. */
  retry({ organizationId, id }: AlertChannel, { sequence, json }: DeadLetter, nowMs: number): number {
    this.#deadLetters.remove(messageKey(organizationId, id, sequence))
    this.#putOutcome(organizationId, id, sequence, { kind: 'retried', atMs: nowMs })
    return this.append(organizationId, id, json, nowMs)
  }

  /** Removes a dead letter. */
  discard({ organizationId, id }: AlertChannel, { sequence }: DeadLetter, nowMs: number): void {
    this.#deadLetters.remove(messageKey(organizationId, id, sequence))
    this.#putOutcome(organizationId, id, sequence, { kind: 'discarded', atMs: nowMs })
  }

  /**
   * What happened to a message. `waiting`: it is in the queue. undefined: it is no longer known.
   */
  outcome(organizationId: string, channelId: string, sequence: number): MessageOutcome['kind'] | 'waiting' | undefined {
    if (sequence >= this.firstWaiting(organizationId, channelId)) return 'waiting'
    return this.#outcomes.get(messageKey(organizationId, channelId, sequence))?.kind
  }

  #dropDeadLetters(organizationId: string, channelId: string, nowMs: number): number {
    const keys = Array.from(this.#deadLetters.keys(ownKey(organizationId, channelId)), (key) => Buffer.from(key))
    const old = keys.slice(0, Math.max(0, keys.length - ALERT_DEAD_LETTERS_MAX))
    for (const key of old) {
      this.#deadLetters.remove(key)
      const sequence = Number(key.readBigUInt64BE(CHANNEL_KEY_BYTES))
      this.#putOutcome(organizationId, channelId, sequence, { kind: 'dropped', atMs: nowMs })
    }
    return old.length
  }

  #putOutcome(organizationId: string, channelId: string, sequence: number, outcome: MessageOutcome): void {
    this.#outcomes.put(messageKey(organizationId, channelId, sequence), outcome)
    const old = sequence - ALERT_OUTCOMES_MAX
    if (old > 0) this.#outcomes.remove(messageKey(organizationId, channelId, old))
  }

  #putState(organizationId: string, channelId: string, state: AlertChannelState): void {
    this.#states.put(ownKey(organizationId, channelId), state)
  }

  #queueOf(organizationId: string, channelId: string): DurableQueue {
    return new DurableQueue(this.#queue, ownKey(organizationId, channelId))
  }
}

/** The key of a queue's state after its prefix (queue.ts). */
const QUEUE_STATE_KEY = Buffer.alloc(8, 0xff)

/** The state after the first message has left the queue. */
function ofNextMessage({ failingSinceMs: _, ...state }: AlertChannelState): AlertChannelState {
  return { ...state, attempts: 0 }
}

function messageKey(organizationId: string, channelId: string, sequence: number): Buffer {
  return Buffer.concat([ownKey(organizationId, channelId), u64Bytes(sequence)])
}
