import { SCAN_CHANGES, type ScanChange } from '../../engine/admin/scan-diff.ts'
import { dayText } from '../../engine/kernel/process/clock.ts'
import type { HistoryDay, HistoryPlatform } from '../../engine/store/history.ts'
import { csvOnly, textColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { StateTag } from '../design/decision.tsx'
import { FilterSelect, Filters } from '../design/filters.tsx'
import type { Paged } from '../design/paged.ts'
import { NumberedPages } from '../design/pages-links.tsx'
import { countText, Empty, PageHead, Tag, type Tone } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { ComparisonView, DifferenceRow } from '../views/comparison.ts'

export const COMPARISON_PATH = '/compare'

export interface ComparisonProps {
  readonly view: ComparisonView
  readonly rows: Paged<DifferenceRow>
  readonly query: URLSearchParams
}

/** What differs between the results of two days. */
export function Comparison({ view: { choices, diff }, rows, query }: ComparisonProps) {
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
        <CsvLink path={COMPARISON_PATH} query={query} />
      </PageHead>
      <Filters action={COMPARISON_PATH} found={`${countText(rows.total)} differ`}>
        <FilterSelect name="before" label="Before" value={dayText(before)} options={options} />
        <FilterSelect name="after" label="After" value={dayText(after)} options={options} />
      </Filters>
      <Summary results={diff.results} />
      {rows.total === 0 ? (
        <Empty title="Nothing differs">
          <p class="muted">Choose other days, or request a scan.</p>
        </Empty>
      ) : (
        <div class="card">
          <Table id="differences" label="Differences" columns={DIFFERENCE_COLUMNS} rows={rows.rows} />
        </div>
      )}
      <NumberedPages of={rows} query={query} />
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
    <dl class="figures three">
      {figures.map(([name, old, now]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{countText(now)}</dd>
          <dd>{old === now ? 'as before' : `before: ${countText(old)}`}</dd>
        </div>
      ))}
    </dl>
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

export const DIFFERENCE_COLUMNS: readonly Column<DifferenceRow>[] = [
  {
    ...textColumn('platform', 'Platform', ({ platform }: DifferenceRow) => platform),
    cell: ({ platform, isRegistered }) =>
      isRegistered ? <a href={`/platforms/${encodeURIComponent(platform)}`}>{platform}</a> : platform,
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
