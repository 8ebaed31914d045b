import type { Command } from 'commander'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'
import { printsTable } from '../../process/table.ts'
import { type CoverageJson, coverageJson } from '../../scan/coverage.ts'
import { firstDayOfWindow } from '../../scan/prepare.ts'
import { scanNow } from '../../scan/scan-now.ts'
import type { Organization } from '../../store/organizations.ts'
import { PublishedList } from '../../store/published.ts'
import type { Scan } from '../../store/scans.ts'
import type { Store } from '../../store/store.ts'
import {
  COVERAGE_COLUMNS,
  COVERAGE_KIND_COLUMNS,
  coverageKinds,
  coverageLine,
  type Discovery,
  PLATFORM_COLUMNS,
} from '../platform-rows.ts'
import {
  type AdminContext,
  changeOptions,
  ofOrganization,
  printText,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'
import { addScanDiff } from './scan-diff.ts'

/** posture-admin scan run | list | show | diff */
export function addScanCommands(scan: Command): void {
  const run = ofOrganization(
    changeOptions(
      scan.command('run').description('Scan now: add buffered events to the evidence and publish the findings'),
    ),
  )
  run.action((options: { org?: string }) =>
    withStore(run, async (context) => {
      const { administration } = context
      const pending = administration.scans.request(administration.organization(options.org))
      const completed = await waitForScan(context, pending)
      if (completed === undefined) return
      print(run, [completed])
      const { count = 0 } = completed.waiting ?? {}
      if (count > 0 && process.stderr.isTTY) {
        process.stderr.write(
          `${count} events name no platform of the registry and wait; see posture-admin registry add\n`,
        )
      }
    }),
  )

  const list = ofOrganization(
    sharedOptions(scan.command('list').description('List the scans of an organization, newest first')),
  )
  list.action((options: { org?: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.scans.ofOrganization(administration.organization(options.org).id).reverse())
    }),
  )

  const last = ofOrganization(
    sharedOptions(scan.command('show').description('Show the findings of the last completed scan')),
  )
  last.option('--coverage', 'Show what the sensors could not see, instead of the findings')
  last.action((options: { org?: string; coverage?: true }) =>
    withStore(last, (context) => {
      const organization = context.administration.organization(options.org)
      if (options.coverage === undefined) return showDiscovery(last, context, organization)
      const coverage = coverageOf(context, organization)
      show(last, { columns: COVERAGE_COLUMNS, rows: [{ ...coverage }] })
      // In JSON, the kinds are a field of the record.
      if (!printsTable(last.optsWithGlobals<{ json?: boolean }>())) return
      const kinds = coverageKinds(coverage)
      if (kinds.length === 0) return
      printText(last, '\n')
      show(last, { columns: COVERAGE_KIND_COLUMNS, rows: kinds })
    }),
  )

  addScanDiff(scan)
}

/**
 * Waits for a requested scan. Ctrl-C leaves the scan pending and returns undefined. @throws Fault
 * SCAN_FAILED.
 */
export async function waitForScan({ store, registry, clock }: AdminContext, pending: Scan): Promise<Scan | undefined> {
  const stop = stopSignal()
  const cancel = new AbortController()
  void stop.received.then(() => cancel.abort())
  try {
    const scan = await scanNow(store, registry, pending, clock, cancel.signal)
    if (scan === undefined) {
      process.stderr.write('posture-admin: the scan is still pending; see posture-admin scan list\n')
      process.exitCode = exitStatusOf(await stop.received)
    }
    return scan
  } finally {
    stop.forget()
  }
}

/** Prints the platforms of the last completed scan. */
export function showDiscovery(command: Command, context: AdminContext, organization: Organization): void {
  const found = JSON.parse(discoveryJson(context.store, organization.id)) as Discovery
  show(command, { columns: PLATFORM_COLUMNS, rows: found.platforms })
  const coverage = coverageLine(coverageOf(context, organization))
  if (process.stderr.isTTY && coverage !== undefined) process.stderr.write(`${coverage}\n`)
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

function print(command: Command, scans: readonly Scan[]): void {
  show(command, {
    columns: [
      ['Requested', 'requested_at'],
      ['Status', 'status'],
      ['Trigger', 'trigger', { hide: 5 }],
      ['Events', 'events', { hide: 4 }],
      ['Platforms', 'summary.platforms_discovered', { hide: 1 }],
      ['AI-capable', 'ai_capable_count', { hide: 7 }],
      ['Shadow AI', 'summary.shadow_ai_count', { hide: 2 }],
      ['Risk', 'summary.overall_risk_score', { hide: 3 }],
      ['Failure', 'failure', { wrap: true }],
      ['Registry', 'registry_version', { hide: 8 }],
      ['Id', 'id', { hide: 6 }],
    ],
    rows: scans.map((scan) => ({
      id: scan.id,
      organization_id: scan.organizationId,
      status: scan.status,
      domain: scan.domain,
      trigger: scan.trigger,
      requested_at: timeText(scan.requestedAtMs),
      started_at: timeText(scan.startedAtMs),
      completed_at: timeText(scan.completedAtMs),
      events: scan.eventsAdded,
      events_unmatched: scan.eventsUnmatched,
      unmatched_waiting: scan.waiting?.count ?? 0,
      unmatched_rematched: scan.waiting?.rematched ?? 0,
      unmatched_expired: scan.waiting?.expired ?? 0,
      unmatched_dropped: scan.waiting?.dropped ?? 0,
      summary: {
        platforms_discovered: scan.summary.platformsDiscovered,
        shadow_ai_count: scan.summary.shadowAiCount,
        overall_risk_score: scan.summary.overallRiskScore,
      },
      ai_capable_count: scan.summary.aiCapableCount,
      registry_version: scan.registry ?? null,
      failure: scan.failure,
    })),
  })
}
