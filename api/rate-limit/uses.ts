/*
 * Uses of API keys that the other nodes of a cluster do not know yet. Each API thread adds to a
 * queue in shared memory, and the main thread makes messages of it:
 *
 *   added    u32  uses that the thread has added, modulo 2^32
 *   taken    u32  uses that the main thread has taken, modulo 2^32
 *   lost     u32  uses that no other node will know
 *   uses          a ring of
 *     hash   16 bytes  the first ones of the key's SHA-256, as the rate table uses them
 *     time   u32       ms of the monotonic clock, modulo 2^32, rounded up
 *
 * A message, little-endian, as the memory of all supported machines is:
 *
 *   version  u32  1
 *   time     u32  when the uses were taken, by the same clock as theirs
 *   uses          as in the ring, oldest first
 *
 * Receivers only compute ages, so the clocks of nodes may differ.
 */
import { WINDOW_MS } from './rate-limit.ts'

const VERSION = 1
const HEADER_BYTES = 8
const USE_BYTES = 20
/** Of a thread: 82 KB, and 81,920 uses/s. The rest waits for the next message. */
export const MESSAGE_USES_MAX = 4096
/** Per thread, 1.3 MB: without brokers, a window with 1,092 uses/s. A power of two. */
export const QUEUE_USES_MAX = 65_536

const ADDED_WORD = 0
const TAKEN_WORD = 1
const LOST_WORD = 2
const FIRST_WORD = 3
const TIME_WORD = 4
const HEADER_WORDS = HEADER_BYTES / 4
const USE_WORDS = USE_BYTES / 4
const QUEUE_WORDS = FIRST_WORD + QUEUE_USES_MAX * USE_WORDS

export function makeUseQueues(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(threads * QUEUE_WORDS * 4)
}

export function useQueues(memory: SharedArrayBuffer): UseQueue[] {
  const threads = memory.byteLength / (QUEUE_WORDS * 4)
  return Array.from({ length: threads }, (_, thread) => new UseQueue(memory, thread))
}

/** The queue of one API thread. */
export class UseQueue {
  readonly #words: Int32Array

  constructor(memory: SharedArrayBuffer, thread: number) {
    this.#words = new Int32Array(memory, thread * QUEUE_WORDS * 4, QUEUE_WORDS)
  }

  /** By the API thread. */
  add(keyHash: Buffer, nowMs: number): void {
    const words = this.#words
    const added = words[ADDED_WORD] ?? 0
    if (this.waiting >= QUEUE_USES_MAX) {
      Atomics.add(words, LOST_WORD, 1)
      return
    }
    const at = wordOf(added)
    for (let word = 0; word < TIME_WORD; word++) words[at + word] = keyHash.readInt32LE(4 * word)
    words[at + TIME_WORD] = Math.ceil(nowMs)
    // Last: with it, the use is valid.
    Atomics.store(words, ADDED_WORD, added + 1)
  }

  /**
   * By the main thread: takes at most `usesMax` uses, and drops those older than a window. Returns
   * a message, or undefined without uses.
   */
  take(usesMax: number, nowMs: number): Uint8Array | undefined {
    const words = this.#words
    const message = new Int32Array(HEADER_WORDS + Math.min(usesMax, this.waiting) * USE_WORDS)
    message[0] = VERSION
    message[1] = Math.floor(nowMs)
    const added = Atomics.load(words, ADDED_WORD)
    let [taken = 0, free] = [words[TAKEN_WORD], HEADER_WORDS]
    for (; taken !== added; taken = (taken + 1) | 0) {
      const at = wordOf(taken)
      const isPast = ageMs(nowMs, words[at + TIME_WORD] ?? 0) >= WINDOW_MS
      if (isPast) Atomics.add(words, LOST_WORD, 1)
      else if (free === message.length) break
      else for (let word = 0; word < USE_WORDS; word++) message[free++] = words[at + word] ?? 0
    }
    Atomics.store(words, TAKEN_WORD, taken)
    return free === HEADER_WORDS ? undefined : new Uint8Array(message.buffer, 0, free * 4)
  }

  /** Uses that the main thread has not taken. */
  get waiting(): number {
    return (Atomics.load(this.#words, ADDED_WORD) - Atomics.load(this.#words, TAKEN_WORD)) | 0
  }

  /** Uses beyond the size of the queue, and those that became older than a window in it. */
  get lost(): number {
    return Atomics.load(this.#words, LOST_WORD) >>> 0
  }
}

export function usesIn(message: Uint8Array): number {
  return (message.length - HEADER_BYTES) / USE_BYTES
}

/**
 * Calls `onUse` for each use in a message: where the hash of its key begins, and its age. Returns
 * false if no node can have sent the message.
 */
export function readUses(message: Buffer, onUse: (at: number, ageMs: number) => void): boolean {
  const uses = usesIn(message)
  if (!(Number.isInteger(uses) && uses > 0 && uses <= MESSAGE_USES_MAX)) return false
  if (message.readUInt32LE(0) !== VERSION) return false
  const sentMs = message.readUInt32LE(4)
  for (let at = HEADER_BYTES; at < message.length; at += USE_BYTES) {
    onUse(at, ageMs(sentMs, message.readInt32LE(at + TIME_WORD * 4)))
  }
  return true
}

function wordOf(use: number): number {
  return FIRST_WORD + (use & (QUEUE_USES_MAX - 1)) * USE_WORDS
}

/** Both times are modulo 2^32. That of a use is rounded up, so it may be 1 ms later. */
function ageMs(nowMs: number, timeMs: number): number {
  return Math.max(0, (Math.floor(nowMs) - timeMs) | 0)
}
