import type { Command } from 'commander'
import { NameMatcher } from '../../ingest/match.ts'
import { createLogger } from '../../process/log.ts'
import { catalogInForce } from '../../process/registry-setting.ts'
import { runScan } from '../../scan/fold.ts'
import { PublishedList } from '../../store/published.ts'
import type { Scan } from '../../store/scans.ts'
import type { Store } from '../../store/store.ts'
import { type Discovery, PLATFORM_COLUMNS, platformRows } from '../platform-rows.ts'
import { sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin scan run | list | show */
export function addScanCommands(program: Command): void {
  const scan = program.command('scan').description('discovery scans')

  const run = sharedOptions(scan.command('run').description('fold what is buffered into a scan now'))
    .requiredOption('--org <name>', 'name or id of the organization')
    .option('--registry <file>', "the service's registry file", process.env['REGISTRY_FILE'] ?? '')
  run.action((options: { org: string; registry: string }) =>
    withStore(run, ({ store, administration, clock }) => {
      const matcher = new NameMatcher(catalogInForce(options.registry, createLogger('posture-admin', 'WARNING')))
      print(run, [runScan(store, matcher, administration.organization(options.org).id, 'administrator', clock)])
    }),
  )

  const list = sharedOptions(
    scan.command('list').description('show the scans of an organization, newest first'),
  ).requiredOption('--org <name>', 'name or id of the organization')
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.scans.ofOrganization(administration.organization(options.org).id).reverse())
    }),
  )

  const last = sharedOptions(
    scan.command('show').description('show what the last completed scan found'),
  ).requiredOption('--org <name>', 'name or id of the organization')
  last.action((options: { org: string }) =>
    withStore(last, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      show(last, { columns: PLATFORM_COLUMNS, rows: platformRows(JSON.parse(discoveryJson(store, id)) as Discovery) })
    }),
  )
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
      ['Started', 'started_at'],
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
