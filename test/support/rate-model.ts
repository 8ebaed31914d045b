import { Allowance, makeAllowanceTable } from '../../api/rate-limit/allowance.ts'
import type { Takeover } from '../../api/rate-limit/home.ts'
import { RateMemory } from '../../api/rate-limit/memory.ts'
import { RateNode } from '../../api/rate-limit/node.ts'
import {
  type Answer,
  type Ask,
  type Counts,
  GRANT_MS,
  HASH_BYTES,
  HOLD_MS,
  hashAt,
  keyName,
  type LeaseAnswer,
  type LeaseQuestion,
  PERMIT_MS,
  packUses,
  type Question,
  REFUSED,
  type Share,
  UNAVAILABLE,
  unpackUses,
} from '../../api/rate-limit/protocol.ts'
import { WINDOW_MS } from '../../api/rate-limit/rate-limit.ts'
import { NodeSightings } from '../../api/rate-limit/sightings.ts'
import { PAUSE_AFTER_MS, REPORT_EVERY_MS, TAKEOVER_AFTER_MS, TICK_MS } from '../../engine/replication/limits.ts'

/*
 * A model of a cluster with three nodes: clocks, processes, messages and the stream of changes are
 * simulated, and the rate limit is the real one. A history is a random course of requests and
 * faults, which its seed determines.
 */

/** Requests of a key in a window: fewer than in reality, so that short histories reach it. */
export const MODEL_LIMIT = 4
/** All of the limit: the allowances of reality leave 4 requests. */
const shareOf = (nodes: number): Share | undefined => {
  if (nodes <= 2) return { allowance: 2, others: 2 }
  return nodes <= 4 ? { allowance: 1, others: 3 } : undefined
}
const NODES = 3
const REQUESTS_MS = 100_000
/** Before the requests of every second history: until the nodes may use their allowances. */
const WARM_UP_MS = 140_000
const WARM_REQUESTS_MS = 220_000
const WATCH_MS = 500
const DELIVER_MS = 250
/** Of the table of allowances. */
const BUCKETS = 2
/** In every second history, the clock of each node is faster or slower by up to this share. */
const CLOCK_ERROR = 0.015
/**
 * Then the limit holds for slightly less than a window: the home counts a grant for GRANT_MS by a
 * fast clock, and a node uses it within PERMIT_MS by a slow one.
 */
const WINDOW_WITH_ERROR_MS = GRANT_MS / (1 + CLOCK_ERROR) - PERMIT_MS / (1 - CLOCK_ERROR)
const KEYS = [0, 1, 2].map((key) => Buffer.alloc(HASH_BYTES, key + 1))

/** Parts of the protocol that are left out, to show that the model notices it. */
export interface Mutation {
  readonly witness?: false
  readonly permitTime?: false
  readonly permitCheck?: false
  readonly collection?: false
  readonly fence?: false
  readonly pause?: false
  readonly reign?: false
  readonly completeness?: false
  readonly note?: false
  readonly freeAfter?: false
  readonly binding?: false
  readonly hold?: false
  readonly holdTime?: false
  readonly countTime?: false
  readonly leaseTime?: false
  readonly reserve?: false
  readonly allowanceCompleteness?: false
  readonly inheritance?: false
  readonly instance?: false
}

export interface History {
  readonly hasFaults: boolean
  readonly violations: string[]
  readonly uses: number
  /** Uses within the allowance of a node. */
  readonly allowed: number
  readonly takeovers: number
  /** Takeovers after which the home knew all earlier grants before they had ended. */
  readonly collected: number
}

/** mulberry32 */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

/** What happens next: a binary heap. */
class Agenda {
  nowMs = 0
  readonly #heap: Event[] = []
  #order = 0

  at(atMs: number, run: () => void): void {
    const heap = this.#heap
    const event = { atMs, order: this.#order++, run }
    let place = heap.length
    heap.push(event)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isBefore(event, heap[parent] as Event)) break
      heap[place] = heap[parent] as Event
      place = parent
    }
    heap[place] = event
  }

  runUntil(endMs: number): void {
    for (;;) {
      const [first] = this.#heap
      if (first === undefined || first.atMs > endMs) return
      this.#removeFirst()
      this.nowMs = first.atMs
      first.run()
    }
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop() as Event
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++
      if (!isBefore(heap[child] as Event, last)) break
      heap[place] = heap[child] as Event
      place = child
    }
    heap[place] = last
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)

/** Messages of the stream of changes. A row is the report of a node. */
type Message =
  | { readonly kind: 'takeover' | 'tick' | 'resignation'; readonly node: string; readonly generation: number }
  | { readonly kind: 'row'; readonly node: string; readonly name: string; readonly stamp: string }
  | { readonly kind: 'note'; readonly node: string; readonly isUnwitnessed: boolean }

class ModelCounts implements Counts {
  readonly #nowMs: () => number
  readonly #windowMs: number
  readonly #hasReserve: boolean
  #times = new Map<number, number[]>()

  constructor(nowMs: () => number, { windowMs, mutation }: Pick<Model, 'windowMs' | 'mutation'>) {
    this.#nowMs = nowMs
    this.#windowMs = windowMs
    this.#hasReserve = mutation.reserve !== false
  }

  take(keyHash: Buffer, reserved: number) {
    const nowMs = this.#nowMs()
    const times = this.#current(keyHash)
    const limit = MODEL_LIMIT - (this.#hasReserve ? reserved : 0)
    const allowed = times.length < limit
    if (allowed) times.push(nowMs)
    const oldest = times[0] ?? nowMs
    const resetSeconds = Math.ceil((oldest + this.#windowMs - nowMs) / 1000)
    const isReserved = !allowed && times.length < MODEL_LIMIT
    return { allowed, remaining: Math.max(0, limit - times.length), resetSeconds, isReserved }
  }

  add(keyHash: Buffer, ageMs: number): boolean {
    const times = this.#current(keyHash)
    times.push(this.#nowMs() - ageMs)
    times.sort((a, b) => a - b)
    return true
  }

  clear(): void {
    this.#times.clear()
  }

  #current(keyHash: Buffer): number[] {
    const key = keyHash[0] ?? 0
    const times = this.#times.get(key) ?? []
    while (times.length > 0 && this.#nowMs() - (times[0] ?? 0) >= this.#windowMs) times.shift()
    this.#times.set(key, times)
    return times
  }
}

/** What a node has on its disk. */
interface Disk {
  /** Id of the store. */
  id: string
  /** Messages of the stream that the store has. */
  read: number
  rows: Map<string, { name: string; stamp: string }>
  notes: Set<string>
  generation: number
  /** Written when the node stops in order. */
  saved: Saved | undefined
}

interface Saved {
  readonly atMs: number
  readonly grants: ReadonlyMap<string, Buffer>
  readonly allowance: Buffer | undefined
  readonly counts: ModelCounts
}

class ModelAllowance extends Allowance {
  readonly #mutation: Mutation

  constructor(nowMs: () => number, mutation: Mutation) {
    const holdMs = mutation.hold === false ? 0 : HOLD_MS / (mutation.holdTime === false ? 2 : 1)
    super(makeAllowanceTable(BUCKETS), nowMs, { buckets: BUCKETS, limit: MODEL_LIMIT, holdMs })
    this.#mutation = mutation
  }

  override setLease(lease: Omit<LeaseAnswer, 'kind'>, leftMs: number): void {
    const freeInMs = this.#mutation.freeAfter === false ? 0 : lease.freeInMs
    super.setLease({ ...lease, freeInMs }, this.#mutation.leaseTime === false ? 1e6 : leftMs)
  }
}

/** A process of a node. Times are those of its own clock, if not said otherwise. */
class Process {
  readonly disk: Disk
  readonly rate: RateNode
  readonly allowance: ModelAllowance
  isAlive = true
  isPrimary = false
  isResigning = false
  heardMs: number
  acknowledgedMs = 0
  sender: { readonly node: string; readonly generation: number; readonly sinceMs: number } | undefined
  isVacant = false
  reportsRead = 0
  /** As the home: when each node was asked last that holds a key. */
  readonly heldSinceMs = new Map<string, number>()
  readonly #model: Model
  readonly #name: string
  readonly #memory: RateMemory
  readonly #allowanceCompleteFromMs: number
  readonly #sightings = new NodeSightings()
  #counts: ModelCounts
  readonly #queue: { message: Message; done: () => void }[] = []
  #isAppending = false
  #isTakingOver = false
  #tickedMs = 0
  #unknownUntilMs = 0

  constructor(model: Model, name: string, disk: Disk) {
    this.#model = model
    this.#name = name
    this.disk = disk
    this.heardMs = model.clock(name)
    const { saved } = disk
    const nowMs = this.now
    const hasReported = [...disk.rows].some(([id, row]) => id === disk.id || row.name === name)
    const isComplete = saved !== undefined || !hasReported || model.mutation.completeness === false
    this.#memory = new RateMemory(nowMs, isComplete ? nowMs() : nowMs() + GRANT_MS)
    this.#counts = saved?.counts ?? new ModelCounts(nowMs, model)
    if (saved !== undefined) this.#memory.resume(disk.id, saved.grants, nowMs() - saved.atMs)
    if (model.mutation.fence === false) Object.defineProperty(this.#memory, 'generation', { value: 0 })
    if (model.mutation.inheritance === false) Object.defineProperty(this.#sightings, 'lessees', { value: () => [] })
    this.allowance = new ModelAllowance(nowMs, model.mutation)
    const kept = saved?.allowance
    if (saved !== undefined && kept !== undefined) this.allowance.resume(kept, nowMs() - saved.atMs)
    const isAllowanceComplete = kept !== undefined || !hasReported || model.mutation.allowanceCompleteness === false
    this.#allowanceCompleteFromMs = isAllowanceComplete ? nowMs() : nowMs() + GRANT_MS
    const home = () => (this.isVacant ? undefined : this.sender)
    this.rate = new RateNode({
      id: disk.id,
      nowMs,
      ask: this.#ask,
      memory: this.#memory,
      sightings: this.#sightings,
      home,
      allowance: this.allowance,
      allowanceCompleteFromMs: this.#allowanceCompleteFromMs,
      shareOf,
    })
  }

  readonly now = (): number => this.#model.clock(this.#name)

  readonly #ask: Ask = (node, question, done, timeoutMs) =>
    this.#model.ask(this, this.#name, node, question, done, timeoutMs)

  /** Runs now, or when the process continues. Never if it is dead. */
  run(work: () => void): void {
    if (!this.isAlive) return
    const untilMs = this.#model.pausedUntil(this.#name)
    if (untilMs > this.#model.agenda.nowMs) this.#model.agenda.at(untilMs, () => this.run(work))
    else work()
  }

  /** Messages of the stream, in order. */
  read(from: number, messages: readonly Message[]): void {
    if (this.isPrimary || from !== this.disk.read) return
    this.heardMs = this.now()
    for (const message of messages) this.#apply(message)
  }

  #apply(message: Message): void {
    const { disk } = this
    disk.read++
    if (message.kind === 'row') {
      for (const [id, { name }] of disk.rows) if (name === message.name) disk.rows.delete(id)
      disk.rows.set(message.node, message)
    } else if (message.kind === 'note') {
      if (message.isUnwitnessed) disk.notes.add(message.node)
      else disk.notes.delete(message.node)
    } else {
      const { node, generation } = message
      disk.generation = generation
      if (node !== this.sender?.node || generation !== this.sender.generation) {
        if (node !== disk.id) this.#sightings.onTakeover(this.now())
        this.sender = { node, generation, sinceMs: this.now() }
      }
      this.isVacant = message.kind === 'resignation' || node === disk.id
    }
  }

  /** A few times per second. */
  watch(): void {
    const now = this.now()
    if (this.isPrimary) {
      const report = this.#model.reports[this.reportsRead]
      if (report !== undefined) {
        this.reportsRead++
        this.append(report)
      } else if (now - this.#tickedMs >= TICK_MS && !this.isResigning) {
        this.#tickedMs = now
        this.append({ kind: 'tick', node: this.disk.id, generation: this.disk.generation })
      }
    } else this.#takeOverIfSilent(now)
    const rows = [...this.disk.rows].map(([id, { stamp }]) => ({ id, stamp }))
    this.#sightings.poll(rows, now)
    this.rate.tick()
    if (this.#unknownUntilMs > now && this.rate.unknownSeconds === 0) {
      this.#model.collected++
      this.#unknownUntilMs = 0
    }
  }

  #takeOverIfSilent(now: number): void {
    const { disk } = this
    if (this.#isTakingOver || (!this.isVacant && now - this.heardMs < TAKEOVER_AFTER_MS)) return
    this.#isTakingOver = true
    const generation = disk.generation + 1
    const message = { kind: 'takeover', node: disk.id, generation } as const
    const read = disk.read
    const previous = this.#previous()
    const isKnown = disk.generation === 0 && read === 0
    this.#model.append(this, this.#name, message, read, (outcome) => {
      this.#isTakingOver = false
      const isAppended = outcome === 'appended' || this.#model.stream[read] === message
      if (isAppended && !this.isResigning) this.#lead(generation, read, now, previous, isKnown)
    })
  }

  #lead(generation: number, read: number, sentMs: number, previous: Takeover['previous'], isKnown: boolean): void {
    const { disk } = this
    const { mutation } = this.#model
    // The node may have read its own takeover before the answer came.
    disk.read = read + 1
    if (mutation.collection === false) this.#counts = new ModelCounts(this.now, this.#model)
    disk.generation = generation
    disk.saved = undefined
    this.isPrimary = true
    this.isVacant = false
    this.acknowledgedMs = sentMs
    this.#model.takeovers++
    this.reportsRead = this.#model.reports.findIndex(({ stamp }) => !this.#model.stored.has(stamp))
    if (this.reportsRead === -1) this.reportsRead = this.#model.reports.length
    this.append({ kind: 'row', node: disk.id, name: this.#name, stamp: `${disk.id} ${generation}` })
    const parts = {
      counts: this.#counts,
      mayGrant: () =>
        mutation.pause === false || (!this.isResigning && this.now() - this.acknowledgedMs < PAUSE_AFTER_MS),
      mayLease: () => true,
      noteUnwitnessed: (isUnwitnessed: boolean, done: (isNoted: boolean) => void) => {
        if (mutation.note === false) done(true)
        else this.append({ kind: 'note', node: disk.id, isUnwitnessed }, () => done(true))
      },
      forgetUnwitnessed: () => {
        for (const node of disk.notes) if (node !== disk.id) this.append({ kind: 'note', node, isUnwitnessed: false })
      },
    }
    const takeover = { generation, isKnown: isKnown || mutation.collection === false, previous }
    this.rate.takeOver(parts, { ...takeover, unwitnessed: [...disk.notes] })
    if (!takeover.isKnown) this.#unknownUntilMs = this.now() + GRANT_MS
  }

  #previous(): Takeover['previous'] {
    if (this.#model.mutation.reign === false && this.sender !== undefined) return { ...this.sender, sinceMs: -1e9 }
    return this.sender
  }

  append(message: Message, done: () => void = () => {}): void {
    this.#queue.push({ message, done })
    if (!this.#isAppending) this.#appendNext()
  }

  #appendNext(): void {
    const [next] = this.#queue
    if (next === undefined || !this.isAlive) return
    this.#isAppending = true
    const sentMs = this.now()
    const read = this.disk.read
    this.#model.append(this, this.#name, next.message, read, (outcome) => {
      this.#isAppending = false
      const isAppended = outcome === 'appended' || this.#model.stream[read] === next.message
      if (!isAppended && this.#model.stream.length > read) return this.#model.replaced(this, this.#name)
      if (isAppended) {
        this.#queue.shift()
        this.acknowledgedMs = sentMs
        this.#applyOwn(next.message)
        next.done()
      }
      this.#appendNext()
    })
  }

  #applyOwn(message: Message): void {
    if (message.kind === 'row') this.#model.stored.add(message.stamp)
    this.#apply(message)
    this.isVacant = false
  }

  /** Everything that the next process may know. */
  save(): Saved | undefined {
    if (!this.#memory.isComplete) return undefined
    return {
      atMs: this.now(),
      grants: this.#memory.all(this.disk.id),
      allowance: this.now() >= this.#allowanceCompleteFromMs ? this.allowance.all() : undefined,
      counts: this.#counts,
    }
  }
}

export class Model {
  readonly agenda = new Agenda()
  readonly mutation: Mutation
  readonly windowMs: number
  readonly stream: Message[] = []
  /** Reports of nodes, in the order of the log of events. */
  readonly reports: Extract<Message, { kind: 'row' }>[] = []
  readonly stored = new Set<string>()
  takeovers = 0
  collected = 0
  readonly #random: () => number
  readonly #hasFaults: boolean
  readonly #offsets: number[] = []
  /** Milliseconds of the clock of each node in a millisecond. */
  readonly #rates: number[]
  readonly #hasClockError: boolean
  readonly #disks: Disk[] = []
  readonly #processes: (Process | undefined)[] = []
  readonly #pausedUntilMs: number[] = []
  /** Until when a node is disconnected from the brokers. */
  readonly #disconnectedUntilMs: number[] = []
  readonly #isStopping: boolean[] = []
  readonly #uses: { key: number; atMs: number }[] = []
  readonly #refusals: { key: number; atMs: number }[] = []
  #unavailable = 0
  #allowed = 0
  #stamps = 0
  readonly #isWarm: boolean
  readonly #startMs: number
  readonly #endMs: number
  readonly #lossShare: number
  readonly #delayMs: number

  constructor(seed: number, mutation: Mutation = {}) {
    this.#random = randomOf(seed)
    this.mutation = mutation
    this.windowMs = mutation.permitTime === false ? WINDOW_MS : GRANT_MS
    this.#hasFaults = this.#random() < 0.9
    this.#lossShare = this.#hasFaults && this.#random() < 0.3 ? 0.05 : 0
    this.#delayMs = this.#hasFaults && this.#random() < 0.4 ? 900 : 20
    const warmUpMs = seed % 2 === 0 ? WARM_UP_MS : 0
    this.#startMs = Math.max(warmUpMs, this.#hasFaults ? 0 : 15_000)
    this.#endMs = warmUpMs + (warmUpMs === 0 ? REQUESTS_MS : WARM_REQUESTS_MS)
    this.#isWarm = warmUpMs > 0
    this.#hasClockError = seed % 4 > 1
    this.#rates = this.#clockRates(randomOf(~seed))
  }

  run(): History {
    const names = [0, 1, 2]
    for (const name of names) {
      this.#offsets.push(this.#between(0, 1e6))
      this.#pausedUntilMs.push(0)
      this.#disconnectedUntilMs.push(0)
      this.#isStopping.push(false)
      this.#disks.push(this.#newDisk(name))
      const atMs = name === 0 ? 0 : this.#between(10, 3000)
      this.agenda.at(atMs, () => this.#start(name, name === 0))
    }
    if (this.#hasFaults) this.#planFaults()
    const pauses = KEYS.map(() => this.#pauses())
    let atMs = this.#startMs
    while (atMs < this.#endMs) {
      atMs += -Math.log(1 - this.#random()) * 700
      const burst = this.#random() < 0.1 ? 6 : 1
      const name = this.#below(NODES)
      const key = this.#isWarm ? this.#below(KEYS.length) : Number(this.#random() < 0.2)
      if (pauses[key]?.some(([fromMs, toMs]) => atMs >= fromMs && atMs < toMs)) continue
      for (let each = 0; each < burst; each++) this.agenda.at(atMs, () => this.#request(String(name), key))
    }
    this.agenda.runUntil(this.#endMs + 2 * PERMIT_MS)
    const violations = [...this.#exceeded(), ...(this.#hasFaults ? [] : this.#wronglyRefused())]
    const { takeovers, collected } = this
    const counts = { uses: this.#uses.length, allowed: this.#allowed, takeovers, collected }
    return { hasFaults: this.#hasFaults, violations, ...counts }
  }

  /** When a key is not used: at the beginning, and for about the time for which nodes hold it. */
  #pauses(): readonly (readonly [fromMs: number, toMs: number])[] {
    if (!this.#isWarm) return []
    const firstMs = this.#startMs + this.#between(0, 60_000)
    const secondMs = firstMs + this.#between(1000, 60_000)
    return [
      [0, firstMs],
      [secondMs, secondMs + this.#between(50_000, 140_000)],
    ]
  }

  clock(name: string): number {
    const node = Number(name)
    return this.agenda.nowMs * (this.#rates[node] ?? 1) + (this.#offsets[node] ?? 0)
  }

  /** Half of the clocks have the largest error. */
  #clockRates(random: () => number): number[] {
    return Array.from({ length: NODES }, () => {
      if (!this.#hasClockError) return 1
      const error = random() < 0.5 ? Math.sign(random() - 0.5) : 2 * random() - 1
      return 1 + error * CLOCK_ERROR
    })
  }

  pausedUntil(name: string): number {
    return this.#pausedUntilMs[Number(name)] ?? 0
  }

  #newDisk(name: number): Disk {
    const id = `${name}-${this.#stamps++}`
    return { id, read: 0, rows: new Map(), notes: new Set(), generation: 0, saved: undefined }
  }

  #between(low: number, high: number): number {
    return low + this.#random() * (high - low)
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #delay(): number {
    return this.#random() < 0.8 ? this.#between(0.1, 5) : this.#between(0.1, this.#delayMs)
  }

  #isDisconnected(name: string): boolean {
    return (this.#disconnectedUntilMs[Number(name)] ?? 0) > this.agenda.nowMs
  }

  #start(name: number, isFirst = false): void {
    if (this.#processes[name]?.isAlive) return
    const disk = this.#disks[name] as Disk
    const started = new Process(this, String(name), disk)
    started.isVacant = isFirst
    this.#processes[name] = started
    this.#isStopping[name] = false
    this.#every(started, WATCH_MS, () => started.watch())
    this.#every(started, REPORT_EVERY_MS, () => {
      if (!this.#isDisconnected(String(name)))
        this.reports.push({ kind: 'row', node: disk.id, name: String(name), stamp: `${disk.id} at ${this.#stamps++}` })
    })
    this.#every(started, DELIVER_MS, () => this.#deliver(started, String(name)))
  }

  #every(started: Process, periodMs: number, work: () => void): void {
    const next = (): void => {
      if (!started.isAlive) return
      started.run(() => {
        work()
        this.agenda.at(this.agenda.nowMs + periodMs, next)
      })
    }
    this.agenda.at(this.agenda.nowMs + this.#between(0, 50), next)
  }

  /** What the brokers have sent a node meanwhile. */
  #deliver(process: Process, name: string): void {
    const { read } = process.disk
    if (process.isPrimary || this.#isDisconnected(name) || read === this.stream.length) return
    const messages = this.stream.slice(read)
    this.agenda.at(this.agenda.nowMs + this.#delay(), () => process.run(() => process.read(read, messages)))
  }

  /** Appends a message if the stream has `read` messages. `unknown`: no answer came. */
  append(
    process: Process,
    name: string,
    message: Message,
    read: number,
    done: (outcome: 'appended' | 'conflict' | 'unknown') => void,
  ): void {
    const answer = (delayMs: number, outcome: 'appended' | 'conflict' | 'unknown'): void =>
      this.agenda.at(this.agenda.nowMs + delayMs, () => process.run(() => done(outcome)))
    this.agenda.at(this.agenda.nowMs + this.#delay(), () => {
      if (this.#isDisconnected(name)) return answer(PERMIT_MS, 'unknown')
      const isNext = this.stream.length === read
      if (isNext) this.stream.push(message)
      if (this.#isDisconnected(name) || this.#random() < this.#lossShare) return answer(PERMIT_MS, 'unknown')
      answer(this.#delay(), isNext ? 'appended' : 'conflict')
    })
  }

  /** Another node is the primary. The process ends, and the next one begins with another store. */
  replaced(process: Process, name: string): void {
    process.isAlive = false
    const disk = this.#newDisk(Number(name))
    for (const message of this.stream) {
      if (message.kind !== 'row') continue
      for (const [id, row] of disk.rows) if (row.name === message.name) disk.rows.delete(id)
      disk.rows.set(message.node, message)
    }
    const last = this.stream.findLast((message) => message.kind === 'takeover')
    for (const message of this.stream) {
      if (message.kind === 'note' && message.isUnwitnessed) disk.notes.add(message.node)
      else if (message.kind === 'note') disk.notes.delete(message.node)
    }
    disk.generation = last?.kind === 'takeover' ? last.generation : 0
    disk.read = this.stream.length
    this.#disks[Number(name)] = disk
    this.agenda.at(this.agenda.nowMs + this.#between(100, 5000), () => this.#start(Number(name)))
  }

  ask(
    asker: Process,
    name: string,
    node: string,
    asked: Question,
    done: (answer: Answer | undefined) => void,
    timeoutMs = PERMIT_MS,
  ): void {
    const question = asked.kind === 'lease' ? this.#mutatedLease(asked) : asked
    let isDone = false
    const sentMs = asker.now()
    const finish = (answer: Answer | undefined): void => {
      if (isDone) return
      isDone = true
      done(this.mutation.countTime === false ? this.#withoutEarlyUses(asker, node, question, answer, sentMs) : answer)
    }
    if (this.mutation.witness === false && question.kind === 'witness') return finish({ kind: 'witness', isKept: true })
    if (this.mutation.binding === false && question.kind === 'bind')
      return finish({ kind: 'bind', isComplete: true, uses: new Uint8Array(question.hashes.length / HASH_BYTES) })
    const timeoutAtMs = this.agenda.nowMs + timeoutMs / (this.#rates[Number(name)] ?? 1)
    this.agenda.at(timeoutAtMs, () => asker.run(() => finish(undefined)))
    const deliver = (): void => {
      const target = this.#processes.find((each) => each?.isAlive && each.disk.id === node)
      if (this.#isDisconnected(name) || this.#random() < this.#lossShare) return
      // No responder.
      if (target === undefined || this.#isDisconnected(nameOf(node)))
        return this.agenda.at(this.agenda.nowMs + this.#delay(), () => asker.run(() => finish(undefined)))
      target.run(() => {
        target.rate.answer(question, (answer) => {
          if (this.#isDisconnected(nameOf(node)) || this.#random() < this.#lossShare) return
          // The process may be paused between its decision and the message.
          const lateMs = this.#hasFaults && this.#random() < 0.02 ? this.#between(0, 30_000) : 0
          this.agenda.at(this.agenda.nowMs + lateMs + this.#delay(), () => asker.run(() => finish(answer)))
        })
      })
    }
    this.agenda.at(this.agenda.nowMs + this.#delay(), deliver)
    if (this.#lossShare > 0 && this.#random() < 0.05) this.agenda.at(this.agenda.nowMs + this.#delay(), deliver)
  }

  /** As if the home ignored the uses of a node that ends its hold by a faster clock. */
  #withoutEarlyUses(
    asker: Process,
    node: string,
    question: Question,
    answer: Answer | undefined,
    sentMs: number,
  ): Answer | undefined {
    if (question.kind !== 'bind' || answer?.kind !== 'bind' || !answer.isComplete) return answer
    const uses = unpackUses(answer.uses, question.hashes.length / HASH_BYTES).map((agesMs, index) => {
      const held = node + keyName(hashAt(question.hashes, index))
      const sinceMs = asker.heldSinceMs.get(held) ?? Number.NEGATIVE_INFINITY
      if (agesMs !== undefined) asker.heldSinceMs.set(held, sentMs)
      return agesMs !== undefined && asker.now() - sinceMs < HOLD_MS ? [] : agesMs
    })
    return { ...answer, uses: packUses(uses) }
  }

  #mutatedLease(question: LeaseQuestion): LeaseQuestion {
    const { instance } = this.mutation
    return {
      ...question,
      ...(instance === false ? { instance: nameOf(question.from) } : {}),
    }
  }

  /** A request to the API of a node. */
  #request(name: string, key: number): void {
    const process = this.#processes[Number(name)]
    const hash = KEYS[key] as Buffer
    if (process === undefined || this.#isStopping[Number(name)]) return
    process.run(() => {
      const sentMs = process.now()
      const later = (work: () => void): void =>
        this.agenda.at(this.agenda.nowMs + this.#between(0, 2), () => process.run(work))
      if (process.allowance.take(hash) !== undefined) {
        this.#allowed++
        this.#uses.push({ key, atMs: this.agenda.nowMs })
        return
      }
      later(() =>
        process.rate.permits(hash, (verdicts) =>
          later(() => {
            const [state = UNAVAILABLE] = verdicts
            const isLate = process.now() - sentMs >= PERMIT_MS && this.mutation.permitCheck !== false
            if (state === UNAVAILABLE || isLate) this.#unavailable++
            else if (state === REFUSED) this.#refusals.push({ key, atMs: this.agenda.nowMs })
            else this.#uses.push({ key, atMs: this.agenda.nowMs })
          }),
        ),
      )
    })
  }

  #planFaults(): void {
    const faults = 1 + this.#below(this.#isWarm ? 8 : 4)
    for (let fault = 0; fault < faults; fault++) {
      const atMs = this.#startMs + this.#between(2000, this.#endMs - this.#startMs - 10_000)
      const kind = this.#below(5)
      const anyone = this.#below(NODES)
      const ofPrimary = this.#random() < 0.6
      const lengthMs = this.#random() < 0.5 ? this.#between(200, 8000) : this.#between(8000, 70_000)
      this.agenda.at(atMs, () => {
        const primary = this.#processes.findIndex((each) => each?.isAlive && each.isPrimary)
        this.#fault(kind, ofPrimary && primary !== -1 ? primary : anyone, lengthMs)
      })
    }
  }

  #fault(kind: number, name: number, lengthMs: number): void {
    const process = this.#processes[name]
    if (process === undefined || !process.isAlive || this.#isStopping[name]) return
    const endMs = this.agenda.nowMs + lengthMs
    if (kind === 0) this.#pausedUntilMs[name] = endMs
    else if (kind === 1) this.#disconnectedUntilMs[name] = endMs
    else if (kind === 2) {
      process.isAlive = false
      process.disk.saved = undefined
      this.agenda.at(endMs, () => this.#start(name))
    } else {
      this.#isStopping[name] = true
      this.#stopInOrder(process, name, endMs)
    }
  }

  #stopInOrder(process: Process, name: number, restartMs: number): void {
    const end = (): void => {
      if (!process.isAlive) return
      process.disk.saved = process.save()
      process.isAlive = false
      this.agenda.at(Math.max(restartMs, this.agenda.nowMs), () => this.#start(name))
    }
    process.run(() => {
      process.isResigning = true
      const { id, generation } = process.disk
      if (!process.isPrimary) return end()
      // It still answers a moment, as the next home may ask it.
      const lingerMs = this.#between(0, 3000)
      process.append({ kind: 'resignation', node: id, generation }, () =>
        this.agenda.at(this.agenda.nowMs + lingerMs, () => process.run(end)),
      )
      this.agenda.at(this.agenda.nowMs + 5000, () => process.run(end))
    })
  }

  #exceeded(): string[] {
    const violations: string[] = []
    const windowMs = this.#hasClockError ? WINDOW_WITH_ERROR_MS : WINDOW_MS
    for (const key of KEYS.keys()) {
      const times = this.#uses.flatMap((use) => (use.key === key ? [use.atMs] : [])).sort((a, b) => a - b)
      for (let last = MODEL_LIMIT; last < times.length; last++) {
        const spanMs = (times[last] ?? 0) - (times[last - MODEL_LIMIT] ?? 0)
        if (spanMs < windowMs)
          violations.push(
            `${MODEL_LIMIT + 1} uses of key ${key} in ${spanMs.toFixed(0)} ms until ${times[last]?.toFixed(0)}`,
          )
      }
    }
    return violations
  }

  /** Without faults, a refusal has a cause in the last 61 s, and every request has a verdict. */
  #wronglyRefused(): string[] {
    const violations: string[] = []
    const slackMs = 200 + (this.#hasClockError ? GRANT_MS * 2 * CLOCK_ERROR : 0)
    for (const { key, atMs } of this.#refusals) {
      const within = this.#uses.filter(
        (use) => use.key === key && use.atMs > atMs - WINDOW_MS - PERMIT_MS - slackMs && use.atMs < atMs + slackMs,
      )
      if (within.length < MODEL_LIMIT) violations.push(`key ${key} was refused at ${atMs.toFixed(0)}`)
    }
    if (this.#unavailable > 0) violations.push(`${this.#unavailable} requests without a verdict`)
    return violations
  }
}

function nameOf(id: string): string {
  return id.split('-')[0] ?? ''
}
