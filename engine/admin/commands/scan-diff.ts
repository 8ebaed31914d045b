import { type Command, InvalidArgumentError } from 'commander'
import { DAY_MS, isoSeconds } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Column } from '../../process/table.ts'
import type { HistoryDay, HistoryPlatform } from '../../store/history.ts'
import type { Store } from '../../store/store.ts'
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
      const [before, after] = store.environment.read(() => chosen(store, id, first, second))
      show(diff, { columns: COLUMNS, rows: diffRows(before, after, (platform) => names.get(platform) ?? platform) })
    }),
  )
}

function dayNumber(text: string): number {
  const timeMs = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(timeMs)) throw new InvalidArgumentError('expected a day such as 2026-11-20')
  return timeMs / DAY_MS
}

/** @throws Fault NOT_FOUND */
function chosen(store: Store, id: string, first: number | undefined, second: number | undefined) {
  const days = store.history.days(id)
  const after = second ?? days.at(-1)
  const before = first ?? days.findLast((day) => day < (after ?? 0))
  if (after === undefined || before === undefined) {
    throw new Fault('NOT_FOUND', 'no two days with a completed scan; compare again after the scan of another day')
  }
  return [resultOf(store, id, before, days), resultOf(store, id, after, days)] as const
}

function resultOf(store: Store, id: string, day: number, days: readonly number[]): HistoryDay {
  const result = store.history.get(id, day)
  if (result !== undefined) return result
  const span = days.length === 0 ? 'no day has one' : `${dayText(days[0] ?? 0)} to ${dayText(days.at(-1) ?? 0)}`
  throw new Fault('NOT_FOUND', `no completed scan on ${dayText(day)}; days with scans: ${span}`)
}

function dayText(day: number): string {
  return isoSeconds(day * DAY_MS).slice(0, 10)
}

const COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['Change', 'change'],
  ['Decision', 'decision'],
  ['Before', 'decision_before', { hide: 2 }],
  ['Risk', 'risk', { hide: 1 }],
  ['Clients', 'clients'],
  ['Before', 'clients_before', { hide: 3 }],
  ['Matches', 'matches'],
  ['Before', 'matches_before', { hide: 4 }],
]

/** The platforms that differ: new ones, those that left, other decisions, other use. */
function diffRows(before: HistoryDay, after: HistoryDay, nameOf: (id: string) => string) {
  const [was, is] = [before, after].map(({ platforms }) => new Map(platforms.map((each) => [each.id, each])))
  const ids = [...new Set([...(is?.keys() ?? []), ...(was?.keys() ?? [])])]
  return ids
    .map((id) => ({ id, old: was?.get(id), now: is?.get(id) }))
    .map(({ id, old, now }) => ({ id, old, now, change: changeOf(old, now) }))
    .filter(({ change }) => change !== 'none')
    .sort((a, b) => CHANGES.indexOf(a.change) - CHANGES.indexOf(b.change))
    .map(({ id, old, now, change }) => ({
      platform_id: id,
      platform_name: nameOf(id),
      change,
      decision: now?.decision ?? null,
      decision_before: old?.decision ?? null,
      risk: now?.risk ?? old?.risk ?? null,
      clients: now?.clients ?? 0,
      clients_before: old?.clients ?? 0,
      matches: now?.matches ?? 0,
      matches_before: old?.matches ?? 0,
    }))
}

const CHANGES = ['new', 'gone', 'decision', 'use', 'none'] as const

function changeOf(old: HistoryPlatform | undefined, now: HistoryPlatform | undefined): (typeof CHANGES)[number] {
  if (old === undefined) return 'new'
  if (now === undefined) return 'gone'
  if (old.decision !== now.decision || old.risk !== now.risk) return 'decision'
  return old.clients === now.clients && old.matches === now.matches ? 'none' : 'use'
}
