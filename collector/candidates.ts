import { CANDIDATES_PER_REPORT } from '../engine/kernel/event/coverage-report.ts'
import { CANDIDATES_MAX } from './limits.ts'

/** A name and its requests. */
export type CandidateCount = readonly [name: string, requests: number]

/** Bytes of the names in a report, which must fit into a syslog message with its counters. */
const REPORT_NAME_BYTES = 8 * 1024

/**
 * Names of no platform that look like AI services, without clients, until a coverage report has
 * taken them to the service. At the limit, further names are counted as `dropped`.
 */
export class Candidates {
  dropped = 0
  readonly #requests = new Map<string, number>()

  count(name: string): void {
    const known = this.#requests.get(name)
    if (known === undefined && this.#requests.size >= CANDIDATES_MAX) this.dropped++
    else this.#requests.set(name, (known ?? 0) + 1)
  }

  /** For one report: the names that wait, the most requested first. */
  next(): CandidateCount[] {
    const ordered = [...this.#requests].sort(([, a], [, b]) => b - a).slice(0, CANDIDATES_PER_REPORT)
    let bytes = 0
    return ordered.filter(([name]) => {
      bytes += name.length
      return bytes <= REPORT_NAME_BYTES
    })
  }

  /** The service has these. Requests since then wait for the next report. */
  reported(candidates: readonly CandidateCount[]): void {
    for (const [name, requests] of candidates) {
      const left = (this.#requests.get(name) ?? 0) - requests
      if (left > 0) this.#requests.set(name, left)
      else this.#requests.delete(name)
    }
  }
}
