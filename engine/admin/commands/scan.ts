import type { Command } from 'commander'
import { NameMatcher } from '../../../registry/match.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'
import { scanNow } from '../../scan/scan-now.ts'
import { PublishedList } from '../../store/published.ts'
import type { Scan } from '../../store/scans.ts'
import type { Store } from '../../store/store.ts'
import { coverageLine, type Discovery, PLATFORM_COLUMNS, platformRows } from '../platform-rows.ts'
import {
  type AdminContext,
  changeOptions,
  ofOrganization,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'
import { catalogOf, registryOption } from './registry-option.ts'

/** posture-admin scan run | list | show */
export function addScanCommands(program: Command): void {
  const scan = program.command('scan').description('discovery scans')

  const run = registryOption(
    ofOrganization(
      changeOptions(
        scan.command('run').description('scan now: fold what is buffered, and publish what the evidence says'),
      ),
    ),
  )
  run.action((options: { org: string; registry: string }) =>
    withStore(run, async (context) => {
      const { administration } = context
      const pending = administration.scans.request(administration.organization(options.org))
      const completed = await waitForScan(context, () => new NameMatcher(catalogOf(options.registry)), pending)
      if (completed !== undefined) print(run, [completed])
    }),
  )

  const list = ofOrganization(
    sharedOptions(scan.command('list').description('show the scans of an organization, newest first')),
  )
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.scans.ofOrganization(administration.organization(options.org).id).reverse())
    }),
  )

  const last = ofOrganization(
    sharedOptions(scan.command('show').description('show what the last completed scan found')),
  )
  last.action((options: { org: string }) =>
    withStore(last, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      const found = JSON.parse(discoveryJson(store, id)) as Discovery
      show(last, { columns: PLATFORM_COLUMNS, rows: platformRows(found) })
      const coverage = coverageLine(found)
      if (process.stderr.isTTY && coverage !== undefined) process.stderr.write(`${coverage}\n`)
    }),
  )
}

/** Waits until a scan that was asked for has ended. Ctrl-C leaves it pending: undefined then. @throws Fault SCAN_FAILED. */
export async function waitForScan(
  { store, clock }: AdminContext,
  matcher: () => NameMatcher,
  pending: Scan,
): Promise<Scan | undefined> {
  const stop = stopSignal()
  const givenUp = new AbortController()
  void stop.received.then(() => givenUp.abort())
  try {
    const scan = await scanNow(store, matcher, pending, clock, givenUp.signal)
    if (scan === undefined) {
      process.stderr.write(
        'posture-admin: the scan stays pending; posture-admin scan list shows when it is completed\n',
      )
      process.exitCode = exitStatusOf(await stop.received)
    }
    return scan
  } finally {
    stop.forget()
  }
}

/** Scan and platforms as the API answers them, all of one snapshot. */
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
      ['Started by', 'trigger'],
      ['Events', 'events'],
      ['Platforms', 'platforms_discovered'],
      ['Shadow AI', 'shadow_ai_count'],
      ['Risk', 'overall_risk_score'],
      ['Failure', 'failure'],
      ['Id', 'id'],
    ],
    rows: scans.map((scan) => ({
      id: scan.id,
      status: scan.status,
      trigger: scan.trigger,
      requested_at: timeText(scan.requestedAtMs),
      started_at: timeText(scan.startedAtMs),
      completed_at: timeText(scan.completedAtMs),
      events: scan.eventsFolded,
      platforms_discovered: scan.summary.platformsDiscovered,
      shadow_ai_count: scan.summary.shadowAiCount,
      overall_risk_score: scan.summary.overallRiskScore,
      failure: scan.failure,
    })),
  })
}
