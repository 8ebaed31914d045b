import { isUsed } from '../../registry/contact.ts'
import { reasonOf } from '../../registry/risk-sum.ts'
import { basesOf } from '../assess/basis.ts'
import { scoreChanges } from '../assess/compare.ts'
import { isoSeconds } from '../kernel/process/clock.ts'
import { contactsOf, type PublishedPlatform, publishedPlatforms } from '../scan/listed-discovery.ts'
import { NEVER_FOUND } from '../scan/unchanged-findings.ts'
import { profileText } from '../store/framework.ts'
import type { Organization } from '../store/organizations.ts'
import { PublishedList } from '../store/published.ts'
import { CLIENTS_EXPORT } from './client-rows.ts'
import { columns, type Export, type ExportedRow, type ExportSource, type Row, TIME } from './exported-row.ts'
import { type FindingEvent, severityOfUse } from './finding-event.ts'

/** What can be exported. */
export const EXPORTS = ['platforms', 'clients', 'scans', 'assessments', 'recommendations'] as const
export type ExportKind = (typeof EXPORTS)[number]

export const EXPORT_OF: Readonly<Record<ExportKind, Export>> = {
  platforms: {
    about: 'The platforms of the last completed scan',
    columns: columns({
      id: 'The id of the finding, as in the API; empty if nobody ever used the platform',
      platform_id: 'The id in the registry; empty if the registry no longer has the platform',
      platform_name: 'The name',
      platform_type: 'The type',
      vendor: 'The vendor',
      category: 'The category of the type',
      url: 'The site',
      use: '`ai` for an AI platform that was used, `ai_capable` for software with AI features, `blocked` or `touched` if nobody used it',
      decision: '`waiting`, `approved`, `rejected` or `expired`',
      decision_owner: 'Who is responsible for the use',
      decision_note: 'The note of the decision',
      risk: '0 to 100, of the registry',
      risk_reason: 'The reason for the risk',
      confidence: '0 to 1',
      access: 'How it was used: `web`, `app`, `api`, `tool`, the most frequent first',
      matches: 'Matched requests',
      used_matches: 'Those that used the platform',
      blocked_matches: 'Those that a device blocked',
      touched_matches: 'The others: widgets, pictures, telemetry, updates, documentation, sign-in',
      clients: 'Distinct clients',
      clients_error: 'Relative standard error of `clients`; 0: exact',
      programmatic_clients: 'Clients that requested the API, and no site or app of the vendor',
      days: 'Days with matches',
      first_seen: TIME,
      last_seen: TIME,
      domains: 'Matched names, the most frequent first, at most 20',
      domains_total: 'All matched names',
      detected_at: 'The first scan that found the platform; empty if nobody ever used it',
      scan_id: 'The last completed scan',
      scanned_at: 'When it completed',
    }),
    rows: platformRows,
  },
  clients: CLIENTS_EXPORT,
  scans: {
    about: 'The completed scans that are stored',
    columns: columns({
      id: 'The id, as in the API',
      trigger: 'Why the scan started',
      domain: 'The domain of the organization',
      requested_at: TIME,
      started_at: TIME,
      completed_at: TIME,
      platforms_discovered: 'AI platforms that the scan found',
      ai_capable_count: 'Software with AI features that was used',
      blocked_count: 'Platforms of which all requests were blocked',
      touched_count: 'Platforms that were only touched, not used',
      shadow_ai_count: 'AI platforms that were not approved',
      overall_risk_score: '0 to 100',
      events_added: 'Events that the scan read',
      events_unmatched: 'Those that match no platform',
      registry_version: 'The version of the registry that the scan used',
    }),
    rows: scanRows,
  },
  assessments: {
    about: 'All assessments, also those that are not completed',
    columns: columns({
      id: 'The id, as in the API',
      framework_id: 'The framework',
      title: 'The title',
      profile: 'The part of the framework that is assessed; `all items` if it is the whole',
      status: '`draft`, `in_progress` or `completed`',
      overall_score: '0 to 100; empty until completed',
      grade: 'A to F; empty until completed',
      not_applicable_percent: 'Items that are not applicable, of all items',
      unsupported_answers: 'Answers that are better than what discovery shows',
      score_change: 'Points since the previous completed assessment of the framework; empty without one',
      started_at: TIME,
      completed_at: TIME,
      updated_at: TIME,
    }),
    rows: assessmentRows,
  },
  recommendations: {
    about: 'The recommendations of completed assessments',
    columns: columns({
      id: 'The id, as in the API',
      framework_id: 'The framework',
      item_id: 'The item of the framework',
      title: 'What to do',
      priority: '1 is the highest',
      status: '`open`, `in_progress`, `completed` or `dismissed`',
      category: 'The category of the item',
      owner: 'Who carries it out',
      due_on: 'Until which day',
      created_at: TIME,
      status_changed_at: TIME,
    }),
    rows: recommendationRows,
  },
}

function* platformRows({ store, registry, organization }: ExportSource): Generator<ExportedRow> {
  const { published, decisions } = store
  const { id: organizationId } = organization
  const head = published.head(organizationId, PublishedList.discovery)
  if (head === undefined) return
  const scan = JSON.parse(head.text.toString()) as { id: string; completed_at: string }
  const { platforms } = registry.catalogOf(organizationId)
  const registered = new Map(platforms.map((platform) => [`${platform.name}\0${platform.vendor}`, platform]))
  const decided = decisions.ofPlatforms(
    organizationId,
    platforms.map(({ id }) => id),
  )
  for (const found of publishedPlatforms(store, organizationId)) {
    const { metadata } = found
    const { used, blocked, touched } = contactsOf(found)
    const isFound = found.id !== NEVER_FOUND.id
    const platform = registered.get(`${found.platform_name}\0${metadata.vendor}`)
    const decision = metadata.decision === 'waiting' ? undefined : decided.get(platform?.id ?? '')
    const row: Row = {
      id: isFound ? found.id : null,
      platform_id: platform?.id ?? null,
      platform_name: found.platform_name,
      platform_type: found.platform_type,
      vendor: metadata.vendor,
      category: metadata.category,
      url: found.url,
      use: metadata.use,
      decision: metadata.decision,
      decision_owner: decision?.owner || null,
      decision_note: decision?.note || null,
      risk: metadata.risk.score,
      risk_reason: reasonOf(metadata.risk),
      confidence: found.confidence,
      access: metadata.access.map(({ kind }) => kind),
      matches: metadata.matches,
      used_matches: used,
      blocked_matches: blocked,
      touched_matches: touched,
      clients: metadata.clients,
      clients_error: metadata.clients_error,
      programmatic_clients: metadata.programmatic_clients ?? 0,
      days: metadata.days,
      first_seen: metadata.first_seen,
      last_seen: metadata.last_seen,
      domains: metadata.domains,
      domains_total: metadata.domains_total,
      detected_at: isFound ? found.created_at : null,
      scan_id: scan.id,
      scanned_at: scan.completed_at,
    }
    // A finding says that a platform is in use.
    if (!isUsed(metadata.use)) {
      yield { id: `${metadata.vendor} ${found.platform_name}`, changedMs: Date.parse(metadata.last_seen), row }
      continue
    }
    const finding = findingOf(found, used, platform?.id ?? '', organization, scan.completed_at)
    yield { id: found.id, changedMs: Date.parse(metadata.last_seen), row, finding }
  }
}

const AI_IN_USE = { kind: 'platform.in-use', title: 'AI platform in use' } as const
const AI_CAPABLE_IN_USE = { kind: 'software.in-use', title: 'Software with AI features in use' } as const

function findingOf(
  { id, platform_name: name, platform_type, url, confidence, metadata }: PublishedPlatform,
  matches: number,
  platformId: string,
  { id: organizationId, name: organizationName }: Organization,
  completedAt: string,
): FindingEvent {
  const { decision, vendor, use, access, clients, domains, programmatic_clients } = metadata
  const risk = metadata.risk.score
  const isAi = use === 'ai'
  return {
    id,
    ...(isAi ? AI_IN_USE : AI_CAPABLE_IN_USE),
    message: `${name} is in use. Decision: ${decision}`,
    severity: isAi || decision === 'rejected' ? severityOfUse({ risk, decision }) : 'informational',
    timeMs: Date.parse(completedAt),
    isAlert: isAi && (decision === 'waiting' || decision === 'expired'),
    details: {
      access: access.map(({ kind }) => kind).join(', '),
      ...(programmatic_clients === undefined ? {} : { programmatic_clients }),
    },
    organization: { id: organizationId, name: organizationName },
    platform: {
      ...{ id: platformId, name, vendor, url, decision, risk, confidence, matches, clients, domains },
      type: platform_type,
      firstSeenMs: Date.parse(metadata.first_seen),
      lastSeenMs: Date.parse(metadata.last_seen),
    },
  }
}

function* scanRows({ store, organization }: ExportSource): Generator<ExportedRow> {
  for (const scan of store.scans.ofOrganization(organization.id)) {
    if (scan.status !== 'completed') continue
    const row: Row = {
      id: scan.id,
      trigger: scan.trigger,
      domain: scan.domain,
      requested_at: timeText(scan.requestedAtMs),
      started_at: timeText(scan.startedAtMs),
      completed_at: timeText(scan.completedAtMs),
      platforms_discovered: scan.summary.platformsDiscovered,
      ai_capable_count: scan.summary.aiCapableCount,
      blocked_count: scan.summary.blockedCount ?? null,
      touched_count: scan.summary.touchedCount ?? null,
      shadow_ai_count: scan.summary.shadowAiCount,
      overall_risk_score: scan.summary.overallRiskScore,
      events_added: scan.eventsAdded,
      events_unmatched: scan.eventsUnmatched,
      registry_version: scan.registry ?? null,
    }
    yield { id: scan.id, changedMs: scan.completedAtMs, row }
  }
}

function* assessmentRows({ store, organization, nowMs }: ExportSource): Generator<ExportedRow> {
  const all = store.assessments.ofOrganization(organization.id)
  const changes = scoreChanges(store.assessments.completed(organization.id))
  const basis = basesOf(store, organization.id, nowMs)
  all.sort((a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1))
  for (const assessment of all) {
    const { id, frameworkId, title, profile, status, result, startedAtMs, completedAtMs, updatedAtMs } = assessment
    const { notApplicablePercent, unsupported } = basis(assessment)
    const row: Row = {
      id,
      framework_id: frameworkId,
      title,
      profile: profileText(profile),
      status,
      overall_score: result?.overallScore ?? null,
      grade: result?.grade ?? null,
      not_applicable_percent: notApplicablePercent,
      unsupported_answers: unsupported.length,
      score_change: changes.get(id) ?? null,
      started_at: timeText(startedAtMs),
      completed_at: timeText(completedAtMs),
      updated_at: timeText(updatedAtMs),
    }
    yield { id, changedMs: Math.max(updatedAtMs, completedAtMs), row }
  }
}

function* recommendationRows({ store, organization }: ExportSource): Generator<ExportedRow> {
  for (const each of store.recommendations.ofOrganization(organization.id)) {
    const row: Row = {
      id: each.id,
      framework_id: each.frameworkId,
      item_id: each.itemId,
      title: each.title,
      priority: each.priority,
      status: each.status,
      category: each.category,
      owner: each.owner || null,
      due_on: each.dueOn || null,
      created_at: timeText(each.createdAtMs),
      status_changed_at: timeText(each.statusChangedAtMs),
    }
    yield { id: each.id, changedMs: Math.max(each.createdAtMs, each.statusChangedAtMs), row }
  }
}

function timeText(timeMs: number): string | null {
  return timeMs === 0 ? null : isoSeconds(timeMs)
}
