import type { PlatformType } from '../../registry/platform-type.ts'
import type { DecisionState } from '../store/decisions.ts'

/** How urgent a finding is. Each format has its own numbers for it. */
export const SEVERITIES = ['informational', 'low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof SEVERITIES)[number]

/**
 * A finding as SIEM formats report it: a platform in use, or an alert. cef.ts, leef.ts and ocsf.ts
 * write it, for exports and for alerts alike.
 */
export interface FindingEvent {
  /** A finding that is sent again has the same id, so that receivers can drop the second one. */
  readonly id: string
  /** What happened, such as `platform.in-use`: a constant of the program, never text of users. */
  readonly kind: string
  /** The kind for people, such as `AI platform in use`. A constant of the program. */
  readonly title: string
  /** One sentence about this finding. */
  readonly message: string
  readonly severity: Severity
  /** When the finding was made. */
  readonly timeMs: number
  /** Whether it needs attention now: alerts, and platforms that wait for a decision. */
  readonly isAlert: boolean
  readonly organization: { readonly id: string; readonly name: string }
  /** The page of the console about it. */
  readonly url?: string | undefined
  readonly platform?: PlatformFacts | undefined
  /** The clients that the finding names. */
  readonly clients?: readonly ClientFacts[] | undefined
  /** Further values, such as the threshold of an alert. Names are snake_case constants. */
  readonly details?: Readonly<Record<string, string | number | boolean>> | undefined
}

export interface PlatformFacts {
  /** Of the registry. */
  readonly id: string
  readonly name: string
  readonly vendor: string
  readonly type: PlatformType
  readonly url: string
  readonly decision: DecisionState
  /** 0 to 100, of the registry. */
  readonly risk: number
  /** 0 to 1. */
  readonly confidence: number
  readonly matches: number
  /** The number of distinct clients. */
  readonly clients: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /** Names that clients asked for, the most frequent first. May be only some of them. */
  readonly domains: readonly string[]
}

export interface ClientFacts {
  /** An address, or its pseudonym. */
  readonly address: string
  /** '' if no log named the user. */
  readonly user: string
}

/** The program that reports a finding. */
export interface Reporter {
  readonly vendor: string
  readonly product: string
  readonly version: string
}

/** The reporter of all findings, by the version of the program. */
export function reporterOf(version: string): Reporter {
  return { vendor: 'Security Posture Service', product: 'Security Posture Service', version }
}

/** Lower bounds of the severities, for the registry's risk of a platform that is not approved. */
const RISK_FROM: readonly (readonly [risk: number, severity: Severity])[] = [
  [80, 'critical'],
  [60, 'high'],
  [40, 'medium'],
  [20, 'low'],
]

/** The severity of the use of a platform. Use that was approved is for information only. */
export function severityOfUse({ risk, decision }: Pick<PlatformFacts, 'risk' | 'decision'>): Severity {
  if (decision === 'approved') return 'informational'
  return RISK_FROM.find(([from]) => risk >= from)?.[1] ?? 'informational'
}

/** At most `charsMax` characters, counted in UTF-16 code units, without half a surrogate pair. */
export function truncated(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const last = text.charCodeAt(charsMax - 1)
  const isHighSurrogate = last >= 0xd800 && last <= 0xdbff
  return text.slice(0, isHighSurrogate ? charsMax - 1 : charsMax)
}
