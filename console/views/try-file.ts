import type { CaptureReport, LogReport, TriedPlatform } from '../../dry-run/report.ts'
import { type CoverageJson, coverageJson } from '../../engine/scan/coverage.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { scoreOf } from '../../registry/risk-sum.ts'
import type { Visit } from '../http/visit.ts'

export interface TriedRow extends TriedPlatform {
  readonly type: string
  readonly risk: number
  readonly approved: boolean
}

/** What an uploaded file would show. */
export interface TriedView {
  readonly fileName: string
  /** Bytes of the file as it was sent. */
  readonly fileBytes: number
  readonly report: CaptureReport | LogReport
  readonly platforms: readonly TriedRow[]
  readonly matches: number
  /** Times of the first and last listed match; undefined if there is none. */
  readonly firstMs: number | undefined
  readonly lastMs: number | undefined
  /** Of a capture. */
  readonly coverage: CoverageJson | undefined
  /** Of a log: the share of messages that were understood, 0 to 1. */
  readonly understood: number
  readonly windowDays: number
}

export interface ReadFile {
  readonly name: string
  readonly bytes: number
  readonly report: CaptureReport | LogReport
}

/** Adds what the organization's registry and approvals say about the platforms. */
export function triedFile({ site, organization, nowMs }: Visit, { name, bytes, report }: ReadFile): TriedView {
  const matcher = site.registry.matcherOf(organization.id)
  const { approved, plans } = site.store.decisions.inForce(organization.id, nowMs)
  const platforms = report.platforms.flatMap((tried): TriedRow[] => {
    const platform = matcher.platform(tried.id)
    if (platform === undefined) return []
    const { category } = PLATFORM_TYPES[platform.platformType]
    return [
      {
        ...tried,
        name: platform.name,
        type: category,
        risk: scoreOf(platform, plans),
        approved: approved.has(tried.id),
      },
    ]
  })
  const isCapture = report.kind === 'capture'
  return {
    fileName: name,
    fileBytes: bytes,
    report,
    platforms,
    matches: isCapture ? report.coverage.names_matched : report.outcomes.matched,
    firstMs: platforms.length > 0 ? Math.min(...platforms.map(({ firstMs }) => firstMs)) : undefined,
    lastMs: platforms.length > 0 ? Math.max(...platforms.map(({ lastMs }) => lastMs)) : undefined,
    coverage: isCapture ? coverageJson({ sensors: 1, days: 1, counters: report.coverage }) : undefined,
    understood: isCapture ? 1 : understoodShare(report),
    windowDays: organization.evidenceWindowDays,
  }
}

function understoodShare({ messages, outcomes }: LogReport): number {
  const not = outcomes.rejected + outcomes.unknown + outcomes.ambiguous
  return messages === 0 ? 0 : 1 - not / messages
}
