import {
  COVERAGE_COLUMNS,
  COVERAGE_KIND_COLUMNS,
  coverageKinds,
  coverageLine,
  type Discovery,
  PLATFORM_COLUMNS,
} from '../admin/platform-rows.ts'
import { dayNumberOf, type ScanDifference, scanDiff } from '../admin/scan-diff.ts'
import { textOf } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import { type CoverageJson, coverageJson } from '../scan/coverage.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import { scanNow } from '../scan/scan-now.ts'
import type { Organization } from '../store/organizations.ts'
import { PublishedList } from '../store/published.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { argument, type Commands, change, flag, query, table } from './command.ts'
import type { AdminContext } from './context.ts'
import { interruptible } from './long-work.ts'

const scans = table<Scan>([
  ['Requested', 'requested_at'],
  [null, 'started_at'],
  [null, 'completed_at'],
  ['Status', 'status'],
  ['Trigger', 'trigger', { hide: 5 }],
  [null, 'organization_id'],
  [null, 'domain'],
  ['Events', 'events', { hide: 4, of: ({ eventsAdded }) => eventsAdded }],
  [null, 'events_unmatched'],
  [null, 'unmatched_waiting', { of: ({ waiting }) => waiting?.count ?? 0 }],
  [null, 'unmatched_rematched', { of: ({ waiting }) => waiting?.rematched ?? 0 }],
  [null, 'unmatched_expired', { of: ({ waiting }) => waiting?.expired ?? 0 }],
  [null, 'unmatched_dropped', { of: ({ waiting }) => waiting?.dropped ?? 0 }],
  [
    null,
    'summary',
    {
      of: ({ summary }) => ({
        platforms_discovered: summary.platformsDiscovered,
        shadow_ai_count: summary.shadowAiCount,
        overall_risk_score: summary.overallRiskScore,
      }),
    },
  ],
  ['Platforms', 'summary.platforms_discovered', { hide: 1 }],
  ['AI-capable', 'ai_capable_count', { hide: 7, of: ({ summary }) => summary.aiCapableCount }],
  ['Blocked', 'blocked_count', { hide: 9, of: ({ summary }) => summary.blockedCount ?? 0 }],
  ['Touched', 'touched_count', { hide: 10, of: ({ summary }) => summary.touchedCount ?? 0 }],
  ['Shadow AI', 'summary.shadow_ai_count', { hide: 2 }],
  ['Risk', 'summary.overall_risk_score', { hide: 3 }],
  ['Failure', 'failure', { wrap: true }],
  ['Registry', 'registry_version', { hide: 8, of: ({ registry = null }) => registry }],
  ['Id', 'id', { hide: 6 }],
])

const changes = table<ScanDifference & { readonly name: string }>([
  [null, 'platform_id'],
  ['Platform', 'platform_name', { of: ({ name }) => name }],
  [null, 'use', { of: ({ before, after }) => after?.use ?? before?.use ?? null }],
  ['Change', 'change'],
  ['Decision', 'decision', { of: ({ after }) => after?.decision ?? null }],
  ['Decision before', 'decision_before', { hide: 4, of: ({ before }) => before?.decision ?? null }],
  ['Risk', 'risk', { hide: 1, of: ({ after }) => after?.risk ?? null }],
  ['Risk before', 'risk_before', { hide: 5, of: ({ before }) => before?.risk ?? null }],
  ['Clients', 'clients', { of: ({ after }) => after?.clients ?? 0 }],
  ['Clients before', 'clients_before', { hide: 2, of: ({ before }) => before?.clients ?? 0 }],
  ['Matches', 'matches', { of: ({ after }) => after?.matches ?? 0 }],
  ['Matches before', 'matches_before', { hide: 3, of: ({ before }) => before?.matches ?? 0 }],
])

const DAY = textOf(dayNumberOf, 'expected a date such as 2026-11-20').optional()

export const commands: Commands = {
  run: change('Scan now: add buffered events to the evidence and publish the findings', {
    async run(context) {
      const completed = await waitForScan(context, context.administration.scans.request(context.organization))
      if (completed === undefined) return
      const { count = 0 } = completed.waiting ?? {}
      if (count > 0 && process.stderr.isTTY) {
        process.stderr.write(
          `${count} events name no platform of the registry and wait; see posture-admin registry add\n`,
        )
      }
      return scans([completed])
    },
  }),
  list: query('List the scans of an organization, newest first', {
    run: ({ store, organization }) => scans(store.scans.ofOrganization(organization.id).reverse()),
  }),
  show: query('Show the findings of the last completed scan', {
    params: { coverage: flag('--coverage', 'Show what the sensors could not see, instead of the findings') },
    run(context, { coverage: isWanted }) {
      if (!isWanted) return discovery(context)
      const { output } = context
      const coverage = coverageOf(context, context.organization)
      output.show({ columns: COVERAGE_COLUMNS, rows: [{ ...coverage }] })
      const kinds = coverageKinds(coverage)
      // In JSON, the kinds are a field of the record.
      if (!output.isTable || kinds.length === 0) return
      output.print('\n')
      return { columns: COVERAGE_KIND_COLUMNS, rows: kinds }
    },
  }),
  diff: query('Compare the results of two days: new platforms, platforms that left, decisions and use', {
    params: {
      before: argument('[before]', 'Day such as 2026-11-20; by default the last day with a scan before the other', DAY),
      after: argument('[after]', 'Day such as 2026-11-21; by default the last day with a scan', DAY),
    },
    run({ store, organization: { id }, registry }, { before, after }) {
      const names = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.id, platform.name]))
      const { rows } = store.environment.read(() => scanDiff(store, id, before, after))
      return changes(rows.map((row) => ({ ...row, name: names.get(row.platformId) ?? row.platformId })))
    },
  }),
}

/**
 * Waits for a requested scan. Ctrl-C leaves the scan pending and returns undefined. @throws Fault
 * SCAN_FAILED.
 */
export async function waitForScan({ store, registry, clock }: AdminContext, pending: Scan): Promise<Scan | undefined> {
  const { result, exitStatus } = await interruptible((signal) => scanNow(store, registry, pending, clock, signal))
  if (result === undefined) {
    process.stderr.write('posture-admin: the scan is still pending; see posture-admin scan list\n')
    process.exitCode = exitStatus
  }
  return result
}

/** The platforms of the last completed scan. On a terminal, standard error names the coverage. */
export function discovery(context: AdminContext, organization = context.organization): Shown {
  const found = JSON.parse(discoveryJson(context.store, organization.id)) as Discovery
  const coverage = coverageLine(coverageOf(context, organization))
  if (process.stderr.isTTY && coverage !== undefined) process.stderr.write(`${coverage}\n`)
  return { columns: PLATFORM_COLUMNS, rows: found.platforms }
}

/** What the sensors saw in the evidence window, until now. */
function coverageOf({ store, clock }: AdminContext, organization: Organization): CoverageJson {
  return coverageJson(store.coverage.sumSince(organization.id, firstDayOfWindow(organization, clock.nowMs())))
}

/** Scan and platforms as in the API, from one snapshot. */
function discoveryJson(store: Store, organizationId: string): string {
  return store.environment.read(() => {
    const head = store.published.head(organizationId, PublishedList.discovery)
    if (head === undefined) return '{"scan":null,"platforms":[]}'
    const elements = store.published.elements(organizationId, PublishedList.discovery, head.count, 0, head.count)
    return `{"scan":${head.text.toString()},"platforms":[${Buffer.concat(elements).toString()}]}`
  })
}
