import { candidateOf } from '../../registry/candidate-names.ts'
import { canonicalName } from '../../registry/domain-name.ts'
import { Counter, countUp } from '../batch/counters.ts'
import { type FoundName, NAME_TEXT_BYTES_MAX, nameHash, writeNameText } from './name.ts'

/** Hashes of names that were read before: 64 KiB each. A collision costs a candidate. */
const SLOTS = 16_384
/**
 * New names of a run over a batch that are read: reading takes 100 times as long as a lookup.
 * Further ones are counted as `candidatesUnread`.
 */
const NAMES_PER_RUN = 256

/** Finds the names of no platform that look like AI services (registry/candidate-names.ts). */
export class CandidateFilter {
  readonly #plain = new Uint32Array(SLOTS)
  readonly #candidates = new Uint32Array(SLOTS)
  readonly #text = Buffer.alloc(NAME_TEXT_BYTES_MAX)
  readonly #view = new DataView(this.#text.buffer, this.#text.byteOffset, this.#text.length)
  readonly #counters: Uint32Array
  #namesLeft = 0

  constructor(counters: Uint32Array) {
    this.#counters = counters
  }

  /** Begins a run over a section. */
  begin(): void {
    this.#namesLeft = NAMES_PER_RUN
  }

  accepts(name: FoundName): boolean {
    const hash = nameHash(name.view, name.start, name.end)
    const slot = hash & (SLOTS - 1)
    if (this.#plain[slot] === hash) return false
    if (this.#candidates[slot] === hash) return true
    if (this.#namesLeft === 0) {
      countUp(this.#counters, Counter.candidatesUnread)
      return false
    }
    this.#namesLeft--
    const host = canonicalName(this.#text.toString('latin1', 0, writeNameText(name, this.#view, 0)))
    const isCandidate = host !== undefined && candidateOf(host) !== undefined
    const seen = isCandidate ? this.#candidates : this.#plain
    seen[slot] = hash
    return isCandidate
  }
}
