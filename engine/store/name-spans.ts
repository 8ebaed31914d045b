import { DAY_MS, isoDay, isoSeconds } from '../kernel/process/clock.ts'
import { NAME_SPANS_PER_ADDRESS_MAX } from '../limits.ts'

/** The time in which an address had a name. */
export interface NameSpan {
  readonly name: string
  /** 0: the beginning is not known. */
  readonly fromMs: number
  /** The span ends before this time. Infinity: the end is not known. */
  readonly toMs: number
}

/** The names of an address in a range of time. */
export interface NamesInRange {
  /** The name at the end of the range. */
  readonly current: NameSpan | undefined
  /** The other names in the range, the newest first, each once. */
  readonly earlier: readonly NameSpan[]
}

/**
 * Adds a span to the spans of an address, which are in order and do not overlap. The new span
 * replaces others in its time, and joins spans of the same name that touch it. At the limit, the
 * oldest spans leave.
 */
export function withSpan(spans: readonly NameSpan[], added: NameSpan): NameSpan[] {
  if (!(added.fromMs < added.toMs)) return [...spans]
  // Most files are in the order of time.
  if ((spans.at(-1)?.toMs ?? 0) < added.fromMs) return [...spans, added].slice(-NAME_SPANS_PER_ADDRESS_MAX)
  const others = spans.flatMap((span) => [
    { ...span, toMs: Math.min(span.toMs, added.fromMs) },
    { ...span, fromMs: Math.max(span.fromMs, added.toMs) },
  ])
  const ordered = [...others, added]
    .filter(({ fromMs, toMs }) => fromMs < toMs)
    .sort((first, second) => first.fromMs - second.fromMs)
  const joined: NameSpan[] = []
  for (const span of ordered) {
    const last = joined.at(-1)
    if (last?.name === span.name && last.toMs === span.fromMs)
      joined.push({ ...span, fromMs: joined.pop()?.fromMs ?? 0 })
    else joined.push(span)
  }
  return joined.slice(-NAME_SPANS_PER_ADDRESS_MAX)
}

/**
 * Adds a span of a file to those before it. Spans without a beginning come first: they begin with the
 * import, and must not replace times that the file has, whatever the order of its lines.
 */
export function withGiven(spans: readonly NameSpan[], added: NameSpan): NameSpan[] {
  const dated = spans.filter(({ fromMs }) => fromMs !== 0)
  const undated = spans.filter(({ fromMs }) => fromMs === 0)
  if (added.fromMs !== 0) return [...undated, ...withSpan(dated, added)]
  const longer = undated.filter(({ toMs }) => toMs > added.toMs)
  return [...longer.slice(1 - NAME_SPANS_PER_ADDRESS_MAX), added, ...dated]
}

/** The spans without the time from `endMs` on. */
export function endedAt(spans: readonly NameSpan[], endMs: number): NameSpan[] {
  return spans.flatMap((span) => (span.fromMs < endMs ? [{ ...span, toMs: Math.min(span.toMs, endMs) }] : []))
}

/** The names in a range of time; both ends belong to it. */
export function namesIn(spans: readonly NameSpan[], fromMs: number, toMs: number): NamesInRange {
  const found = spans.filter((span) => span.fromMs <= toMs && span.toMs > fromMs)
  const last = found.at(-1)
  const current = last !== undefined && last.toMs > toMs ? last : undefined
  // Later entries of a Map replace earlier ones, so that each name has its newest span.
  const others = new Map(found.map((span) => [span.name, span]))
  others.delete(current?.name ?? '')
  return { current, earlier: [...others.values()].sort((first, second) => second.fromMs - first.fromMs) }
}

/** `laptop-9`, `laptop-9, +1 earlier`, `earlier laptop-7`; '' if the address had no name. */
export function namesText({ current, earlier }: NamesInRange): string {
  const [newest, ...rest] = earlier
  if (newest === undefined) return current?.name ?? ''
  if (current !== undefined) return `${current.name}, +${earlier.length} earlier`
  return `earlier ${newest.name}${rest.length === 0 ? '' : `, +${rest.length}`}`
}

/** `laptop-7 from 2026-11-03 to 2026-11-09T08:00:00Z` */
export function spanText(span: NameSpan): string {
  return `${span.name} ${spanTimes(span)}`.trimEnd()
}

/** `since 2026-11-03`, `until 2026-11-09`; '' if neither is known. */
export function spanTimes({ fromMs, toMs }: NameSpan): string {
  const time = (ms: number): string => (ms % DAY_MS === 0 ? isoDay(ms) : isoSeconds(ms))
  if (toMs === Number.POSITIVE_INFINITY) return fromMs === 0 ? '' : `since ${time(fromMs)}`
  return fromMs === 0 ? `until ${time(toMs)}` : `from ${time(fromMs)} to ${time(toMs)}`
}
