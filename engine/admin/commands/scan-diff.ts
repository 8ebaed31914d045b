import { type Command, InvalidArgumentError } from 'commander'
import type { Column } from '../../process/table.ts'
import { dayNumberOf, scanDiff } from '../scan-diff.ts'
import { ofOrganization, sharedOptions, show, withStore } from './context.ts'

/** posture-admin scan diff */
export function addScanDiff(scan: Command): void {
  const diff = ofOrganization(
    sharedOptions(
      scan
        .command('diff')
        .description('Compare the results of two days: new platforms, platforms that left, decisions and use')
        .argument('[before]', 'Day such as 2026-11-20; by default the last day with a scan before the other', dayNumber)
        .argument('[after]', 'Day such as 2026-11-21; by default the last day with a scan', dayNumber),
    ),
  )
  diff.action((first: number | undefined, second: number | undefined, { org }: { org?: string }) =>
    withStore(diff, ({ store, administration, registry }) => {
      const { id } = administration.organization(org)
      const names = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.id, platform.name]))
      const { rows } = store.environment.read(() => scanDiff(store, id, first, second))
      show(diff, {
        columns: COLUMNS,
        rows: rows.map(({ platformId, change, before, after }) => ({
          platform_id: platformId,
          platform_name: names.get(platformId) ?? platformId,
          use: after?.use ?? before?.use ?? null,
          change,
          decision: after?.decision ?? null,
          decision_before: before?.decision ?? null,
          risk: after?.risk ?? null,
          risk_before: before?.risk ?? null,
          clients: after?.clients ?? 0,
          clients_before: before?.clients ?? 0,
          matches: after?.matches ?? 0,
          matches_before: before?.matches ?? 0,
        })),
      })
    }),
  )
}

function dayNumber(text: string): number {
  const day = dayNumberOf(text)
  if (day === undefined) throw new InvalidArgumentError('expected a day such as 2026-11-20')
  return day
}

const COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['Change', 'change'],
  ['Decision', 'decision'],
  ['Decision before', 'decision_before', { hide: 4 }],
  ['Risk', 'risk', { hide: 1 }],
  ['Risk before', 'risk_before', { hide: 5 }],
  ['Clients', 'clients'],
  ['Clients before', 'clients_before', { hide: 2 }],
  ['Matches', 'matches'],
  ['Matches before', 'matches_before', { hide: 3 }],
]
