import type { Use } from '../../registry/contact.ts'
import type { Matcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import { isFault } from '../kernel/process/error-codes.ts'
import type { DecisionState } from '../store/decisions.ts'
import type { Detection } from '../store/evidence.ts'
import { PublishedList } from '../store/published.ts'
import type { Store } from '../store/store.ts'

/** A detected platform as published, with what the summary and the history of a scan count. */
export interface PublishedFinding {
  readonly platform: Platform
  /** 0 to 100. */
  readonly risk: number
  readonly use: Use
  readonly confidence: number
  readonly decision: DecisionState
  readonly clients: number
  readonly matches: number
  /** In GET /api/v1/discovery, or in the list of the others. */
  readonly json: string
}

/** `{"id":"<36>",` */
const NAME_OFFSET = 45
const CONFIDENCE = /,"confidence":([\d.e-]+),"metadata":\{/
const CLIENTS = ',"top_clients":['

/**
 * The findings of the last scan by platform id, if it was on `day`. Its inputs must still apply: a
 * finding is then the same unless the evidence of its platform changed. undefined: they cannot be
 * used again, or are damaged, so that a scan must compute them all. Call it within
 * Environment.read.
 */
export function lastFindings(
  store: Store,
  matcher: Matcher,
  organizationId: string,
  day: number,
): Map<string, PublishedFinding> | undefined {
  try {
    return readFindings(store, matcher, organizationId, day)
  } catch (error) {
    if (isFault(error, 'STORE_DAMAGED')) return undefined
    throw error
  }
}

function readFindings(
  { history, published }: Store,
  matcher: Matcher,
  organizationId: string,
  day: number,
): Map<string, PublishedFinding> | undefined {
  const head = published.head(organizationId, PublishedList.discovery)
  const last = history.get(organizationId, day)
  const others = published.head(organizationId, PublishedList.others)
  if (head === undefined || others === undefined) return undefined
  if (last?.platforms.length !== head.count + others.count) return undefined
  const findings = new Map<string, PublishedFinding>()
  const texts = published.elementsOneByOne(organizationId, PublishedList.discovery, head.count)
  const otherTexts = published.elementsOneByOne(organizationId, PublishedList.others, others.count)
  for (const { id, use, decision, risk, clients, matches } of last.platforms) {
    const platform = matcher.platform(id)
    const { value: json = '' } = (use === 'ai' ? texts : otherTexts).next()
    const confidence = CONFIDENCE.exec(json)?.[1]
    // The history of another scan has other platforms in this place.
    const isSame = platform !== undefined && json.startsWith(nameField(platform), NAME_OFFSET)
    if (!isSame || confidence === undefined || json.includes(CLIENTS)) return undefined
    findings.set(id, { platform, risk, use, confidence: Number(confidence), decision, clients, matches, json })
  }
  return findings
}

const nameFields = new WeakMap<Platform, string>()

function nameField(platform: Platform): string {
  let field = nameFields.get(platform)
  if (field === undefined) {
    field = `"platform_name":${JSON.stringify(platform.name)},`
    nameFields.set(platform, field)
  }
  return field
}

/** `"2026-11-20T09:15:02Z"}` ends the JSON of a finding. */
const CREATED_OFFSET = -22
const ID_OFFSET = '{"id":"'.length

/** Instead of a detection, for a platform that nobody used. */
export const NEVER_FOUND: Detection = { id: '00000000-0000-0000-0000-000000000000', createdAtMs: 0 }

/** The id of a published platform, and when it was first detected: neither ever changes. */
export function detectionIn({ json }: PublishedFinding): { readonly id: string; readonly createdAt: string } {
  return { id: json.slice(ID_OFFSET, NAME_OFFSET - 2), createdAt: json.slice(CREATED_OFFSET, -2) }
}

const SHARE = ',"coverage":{"visible_share":'

/**
 * Findings with another visible share; the same if they have this one. No text in the JSON of a
 * finding contains unescaped quotes.
 */
export function withVisibleShare<F extends Pick<PublishedFinding, 'json'>>(
  findings: readonly F[],
  share: number | null,
): readonly F[] {
  // All findings of a scan have the same share.
  const first = findings[0]?.json ?? ''
  if (first.startsWith(`${SHARE}${share}}`, first.indexOf(SHARE))) return findings
  return findings.map((finding) => {
    const { json } = finding
    const start = json.indexOf(SHARE) + SHARE.length
    return { ...finding, json: `${json.slice(0, start)}${share}${json.slice(json.indexOf('}', start))}` }
  })
}

/**
 * The platforms whose findings may change with the evidence of `changed`: these, and those of the
 * same vendors, because clients of an API count as programs unless they use a site of the vendor.
 */
export function affectedBy(
  changed: Iterable<string>,
  findings: ReadonlyMap<string, PublishedFinding>,
  matcher: Matcher,
): Set<string> {
  const affected = new Set(changed)
  const vendors = new Set([...affected].map((id) => matcher.platform(id)?.vendor))
  for (const [id, { platform }] of findings) if (vendors.has(platform.vendor)) affected.add(id)
  return affected
}
