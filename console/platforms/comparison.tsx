import {
  dayNumberOf,
  SCAN_CHANGES,
  type ScanChange,
  type ScanDifference,
  scanDiff,
} from '../../engine/admin/scan-diff.ts'
import { dayOf, dayText } from '../../engine/kernel/process/clock.ts'
import type { HistoryDay, HistoryPlatform } from '../../engine/store/history.ts'
import { CsvLink, FilterSelect, Filters, PagedTable, paged } from '../design/list.tsx'
import { countText, Empty, Figures, PageHead, PlatformLink, StateTag, Tag, type Tone } from '../design/parts.tsx'
import { rangeOf, rangesOf } from '../design/range.tsx'
import { type Column, csvOnly, textColumn } from '../design/table.tsx'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** A platform that differs, by its name. */
interface DifferenceRow extends ScanDifference {
  readonly platform: string
  /** The platform is in the registry, so it has a page. */
  readonly isRegistered: boolean
}

/**
 * Compares the last scans of the query's days `before` and `after`. `days=7` compares the last scan
 * with the one 7 days ago; `from` and `to` take the last scan until each of these days.
 */
function comparisonView({ site, organization, request: { query }, nowMs }: Visit) {
  const { store, registry } = site
  const days = store.history.days(organization.id)
  const choices = days.toReversed()
  if (days.length < 2) return { choices, diff: undefined, rows: [] as DifferenceRow[] }
  const chosen = (name: string): number | undefined => {
    const day = dayNumberOf(query.get(name) ?? '')
    return day !== undefined && days.includes(day) ? day : undefined
  }
  // The first scan, if there is none before.
  const until = (day: number | undefined): number | undefined =>
    day === undefined ? undefined : (days.findLast((each) => each <= day) ?? days[0])
  const range = rangeOf(query, organization.evidenceWindowDays, nowMs, { offersWindow: true })
  const first = range?.days === undefined ? range?.firstDay : dayOf(nowMs) - range.days
  const after = chosen('after') ?? until(range?.lastDay) ?? days.at(-1)
  const before = chosen('before') ?? until(first) ?? days.findLast((day) => day < (after ?? 0)) ?? after
  const { rows, ...diff } = scanDiff(store, organization.id, before, after)
  const names = new Map(registry.catalogOf(organization.id).platforms.map(({ id, name }) => [id, name]))
  return {
    choices,
    diff,
    rows: rows.map(
      (row): DifferenceRow => ({
        ...row,
        platform: names.get(row.platformId) ?? row.platformId,
        isRegistered: names.has(row.platformId),
      }),
    ),
  }
}

const PATH = '/compare'

/** What differs between the results of two days. */
function Comparison({ visit }: { readonly visit: Visit }) {
  const { query } = visit.request
  const { choices, diff, rows } = comparisonView(visit)
  if (diff === undefined) {
    return (
      <>
        <PageHead title="Compare scans" />
        <Empty title="No two days with a completed scan">
          <p class="muted">Scans of another day can be compared with the first one.</p>
          <a class="button" href="/scan-frequency">
            Show when scans run
          </a>
        </Empty>
      </>
    )
  }
  const options = choices.map((day) => [dayText(day), dayText(day)] as const)
  const [before, after] = diff.days
  return (
    <>
      <PageHead title="Compare scans" about="The last scans of two days: new platforms, decisions and use">
        {rangesOf(visit.organization.evidenceWindowDays).map((each) => (
          <a key={each} class="button" href={`${PATH}?days=${each}`}>
            {each === 1 ? 'Last day' : `Last ${each} days`}
          </a>
        ))}
        <CsvLink path={PATH} query={query} paging={['page']} />
      </PageHead>
      <Filters action={PATH} found={`${countText(rows.length)} differ`}>
        <FilterSelect name="before" label="Before" value={dayText(before)} options={options} />
        <FilterSelect name="after" label="After" value={dayText(after)} options={options} />
      </Filters>
      <Summary results={diff.results} />
      <PagedTable
        {...{ visit, id: 'differences', label: 'Differences', columns: COLUMNS, rows: paged(rows, query) }}
        empty={
          <Empty title="Nothing differs">
            <p class="muted">Choose other days, or request a scan.</p>
          </Empty>
        }
      />
    </>
  )
}

function Summary({ results: [before, after] }: { readonly results: readonly [HistoryDay, HistoryDay] }) {
  const figures = [
    ['Platforms', before.summary.platformsDiscovered, after.summary.platformsDiscovered],
    ['Not approved', before.summary.shadowAiCount, after.summary.shadowAiCount],
    ['Overall risk', before.summary.overallRiskScore, after.summary.overallRiskScore],
  ] as const
  return (
    <Figures
      look="three"
      figures={figures.map(([name, old, now]) => [
        name,
        countText(now),
        old === now ? 'as before' : `before: ${countText(old)}`,
      ])}
    />
  )
}

const CHANGE_NAMES: Readonly<Record<ScanChange, readonly [word: string, tone: Tone]>> = {
  new: ['new', 'warn'],
  gone: ['gone', 'plain'],
  decision: ['decision', 'plain'],
  risk: ['risk', 'plain'],
  use: ['use', 'plain'],
  none: ['none', 'plain'],
}

/** `3 (before: 2)` */
function pairText(now: number, old: number): string {
  return now === old ? countText(now) : `${countText(now)} (before: ${countText(old)})`
}

function numberColumn(
  id: string,
  name: string,
  number: (platform: HistoryPlatform) => number,
  wide: boolean,
): readonly Column<DifferenceRow>[] {
  const countedIn = (platform: HistoryPlatform | undefined): number => (platform === undefined ? 0 : number(platform))
  return [
    {
      id,
      name,
      cell: ({ before, after }) => pairText(countedIn(after), countedIn(before)),
      csv: ({ after }) => countedIn(after),
      number: true,
      wide,
    },
    { id: `${id}-before`, name: `${name} before`, csv: ({ before }) => countedIn(before) },
  ]
}

const COLUMNS: readonly Column<DifferenceRow>[] = [
  {
    ...textColumn('platform', 'Platform', ({ platform }: DifferenceRow) => platform),
    cell: ({ platform, isRegistered }) => (isRegistered ? PlatformLink({ name: platform }) : platform),
  },
  {
    id: 'change',
    name: 'Change',
    cell: ({ change }) => {
      const [word, tone] = CHANGE_NAMES[change]
      return <Tag tone={tone}>{word}</Tag>
    },
    sort: ({ change }) => SCAN_CHANGES.indexOf(change),
    csv: ({ change }) => change,
  },
  {
    id: 'decision',
    name: 'Decision',
    cell: ({ before, after }) => (
      <span class="facts">
        {after !== undefined && <StateTag state={after.decision} />}
        {before !== undefined && before.decision !== after?.decision && (
          <span class="small muted">before: {before.decision}</span>
        )}
      </span>
    ),
    csv: ({ after }) => after?.decision ?? '',
    wide: true,
  },
  csvOnly(textColumn('decision-before', 'Decision before', ({ before }) => before?.decision ?? '')),
  ...numberColumn('risk', 'Risk', ({ risk }) => risk, true),
  ...numberColumn('clients', 'Clients', ({ clients }) => clients, false),
  ...numberColumn('matches', 'Matches', ({ matches }) => matches, true),
]

export const COMPARISON_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit) => visit.page('Compare scans', '/platforms', Comparison({ visit }))),
  csvFile(PATH, 'discovery.read', COLUMNS, (visit) => comparisonView(visit).rows),
]
