import { FORMATS, NO_FORMAT } from '../formats/formats.ts'
import type { LogLine } from '../formats/log-line.ts'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { REJECTED_ORGANIZATIONS_MAX, REJECTS_PER_SECOND_MAX } from '../limits.ts'
import type { Reject } from '../store/sources.ts'
import { OrganizationRate } from './rates.ts'
import { redact, SAMPLE_CHARS_MAX } from './redact.ts'
import type { Source } from './sources.ts'

/** A rate-limited sample of the messages that were not understood. */
export class RejectSamples {
  #rejects: Reject[] = []
  readonly #rate = new OrganizationRate(REJECTS_PER_SECOND_MAX, REJECTED_ORGANIZATIONS_MAX)

  /** @param format the index of the format, or NO_FORMAT */
  keep(line: LogLine, source: Source, format: number, start: number, end: number): void {
    const nowMs = line.referenceMs
    const isKept = this.#rate.take(source.owner.organizationId, nowMs)
    // The last sample of each source is always kept, regardless of the rate limit.
    const isShown = Math.abs(nowMs - source.sampledAtMs) >= SECOND_MS
    if (!isKept && !isShown) return
    const sample = redact(line.text(start, Math.min(end, start + SAMPLE_CHARS_MAX * 2)))
    source.sample = sample
    source.sampledAtMs = nowMs
    if (!isKept) return
    this.#rejects.push({
      organizationId: source.owner.organizationId,
      timeMs: line.referenceMs,
      listener: source.listener,
      address: source.address,
      host: source.host,
      tokenId: source.owner.tokenId,
      format: format === NO_FORMAT ? '' : (FORMATS[format]?.id ?? ''),
      reason: line.reason === '' ? 'no format recognized' : line.reason,
      sample,
    })
  }

  /** Returns and clears the samples since the last call. */
  take(): Reject[] {
    const rejects = this.#rejects
    this.#rejects = []
    return rejects
  }
}
