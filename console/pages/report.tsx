import { isoSeconds } from '../../engine/process/clock.ts'
import { FRAMEWORKS } from '../../engine/store/framework.ts'
import type { Recommendation } from '../../engine/store/recommendations.ts'
import { CsvLink } from '../design/csv-link.tsx'
import { StateTag } from '../design/decision.tsx'
import {
  Card,
  countOf,
  countText,
  dateText,
  Empty,
  lastDays,
  PageHead,
  Risk,
  riskLevel,
  Tag,
} from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FrameworkRow } from '../views/assessments.ts'
import type { ReportFindings, ReportPlatform, ReportView } from '../views/report.ts'
import { changeText, Grade } from './assessments.tsx'
import { HiddenTraffic, percentText } from './coverage.tsx'

export interface ReportProps {
  readonly view: ReportView
  readonly nowMs: number
}

/** One page for a manager. The print style sheet leaves out the navigation. */
export function Report({ view, nowMs }: ReportProps) {
  const { organization, domain, fromMs, toMs, findings, sensors, recommendations, openRecommendations } = view
  if (findings === undefined) {
    return (
      <>
        <PageHead title="Report" />
        <Empty title="No scan has completed yet">
          <p class="muted">The report sums up the findings of the last scan.</p>
          <a class="button first" href="/overview">
            See what is missing
          </a>
        </Empty>
      </>
    )
  }
  return (
    <article class="report">
      <PageHead
        title={`Use of AI at ${organization}`}
        about={`${domain} · ${dateText(fromMs)} to ${dateText(toMs)} (UTC)`}
      >
        <button class="first" type="button" data-prints hidden>
          Print or save as PDF
        </button>
      </PageHead>
      <p class="lead">{summary(view, findings)}</p>
      <Figures view={view} findings={findings} />
      {findings.highest.length > 0 && (
        <Card
          title="Platforms with the highest risk"
          note={
            <span class="row">
              {findings.highest.length} of {countText(findings.platforms)} <CsvLink path="/report/platforms" />
            </span>
          }
          bare
        >
          <Table
            id="highest"
            label="Platforms with the highest risk"
            columns={platformColumns}
            rows={findings.highest}
          />
        </Card>
      )}
      <div class="two start">
        <div class="column">
          <Visibility view={view} />
          <Card
            title="Assessments"
            note={view.frameworks.length > 0 && <CsvLink path="/report/assessments" />}
            bare={view.frameworks.length > 0}
          >
            {view.frameworks.length === 0 ? (
              <p class="muted">No framework was assessed yet.</p>
            ) : (
              <Table id="grades" label="Assessments" columns={frameworkColumns} rows={view.frameworks} />
            )}
          </Card>
        </div>
        {sensors.coverage.sensors > 0 && <HiddenTraffic coverage={sensors.coverage} />}
      </div>
      <Card
        title="Recommendations"
        bare={recommendations.length > 0}
        note={
          <span class="row">
            {recommendationsNote(view)} {openRecommendations > 0 && <CsvLink path="/report/recommendations" />}
          </span>
        }
      >
        {openRecommendations === 0 ? (
          <p class="muted">No recommendation is open.</p>
        ) : (
          <Table id="open" label="Open recommendations" columns={recommendationColumns} rows={recommendations} />
        )}
      </Card>
      <p class="small muted">
        Risk is 0 (none) to 100. The overall risk follows from the platforms that are used, how certain their use is,
        and whether they are approved. Made on {dateText(nowMs)} from the scan of {dateText(findings.completedMs)} by
        Security Posture Service.
      </p>
    </article>
  )
}

/** The findings in words. */
function summary({ days, organization, sensors }: ReportView, findings: ReportFindings): string {
  const { platforms, notApproved, overallRisk, riskChange, newPlatforms } = findings
  if (platforms === 0) return `In the ${lastDays(days)}, no AI platform was seen at ${organization}.`
  const [, level] = riskLevel(overallRisk)
  const share = sensors.coverage.visible_share
  return [
    `In the ${lastDays(days)}, ${countOf(platforms, 'AI platform was', 'AI platforms were')} used at ${organization}`,
    newPlatforms > 0 ? `, ${countText(newPlatforms)} of them for the first time. ` : '. ',
    notApproved === 0 ? 'All of them are approved. ' : `${countOf(notApproved, 'is', 'are')} not approved. `,
    `The overall risk is ${overallRisk} of 100 (${level})`,
    riskChange === undefined ? '.' : `, ${riskChangeText(riskChange)} ${countOf(days, 'day')} ago.`,
    share === null ? '' : ` Sensors could see ${percentText(share)} of the traffic.`,
  ].join('')
}

function riskChangeText(change: number): string {
  if (change === 0) return 'the same as'
  const points = Math.abs(change)
  return `${countOf(points, 'point')} ${change > 0 ? 'higher' : 'lower'} than`
}

function Figures({ view, findings }: { readonly view: ReportView; readonly findings: ReportFindings }) {
  const { overallRisk, riskChange, platforms, newPlatforms, notApproved } = findings
  const share = view.sensors.coverage.visible_share
  return (
    <dl class="figures">
      <div>
        <dt>Overall risk</dt>
        <dd>
          {overallRisk} <small>of 100</small>
        </dd>
        <dd>
          {riskChange === undefined
            ? `no scan ${countOf(view.days, 'day')} ago`
            : `${changeText(riskChange)} in ${countOf(view.days, 'day')}`}
        </dd>
      </div>
      <div>
        <dt>Platforms</dt>
        <dd>{countText(platforms)}</dd>
        <dd>{countText(newPlatforms)} new</dd>
      </div>
      <div>
        <dt>Not approved</dt>
        <dd>{countText(notApproved)}</dd>
        <dd>{countText(platforms - notApproved)} approved</dd>
      </div>
      <div>
        <dt>Share of traffic seen</dt>
        <dd>{share === null ? '–' : percentText(share)}</dd>
        <dd>{share === null ? 'no sensor reports' : `by ${countOf(view.sensors.coverage.sensors, 'sensor')}`}</dd>
      </div>
    </dl>
  )
}

function Visibility({ view: { sources, silentSources, sensors } }: { readonly view: ReportView }) {
  const { visible_share: share, sensors: count } = sensors.coverage
  const silent = silentSources === 0 ? '' : `, of which ${countOf(silentSources, 'is', 'are')} silent`
  return (
    <Card title="What this report can know">
      <p>
        {share === null
          ? 'No sensor reported in this period, so nobody can say which share of the traffic was seen. '
          : `${countOf(count, 'sensor')} saw ${percentText(share)} of the traffic that passed ${count === 1 ? 'it' : 'them'}. `}
        {sources === 0
          ? 'No source sends events or logs. '
          : `Events and logs come from ${countOf(sources, 'source')}${silent}. `}
        Use that passes no sensor and no log, such as on a phone in another network, is not in this report.
      </p>
    </Card>
  )
}

export const platformColumns: readonly Column<ReportPlatform>[] = [
  {
    id: 'name',
    name: 'Platform',
    cell: ({ name }) => <a href={`/platforms/${encodeURIComponent(name)}`}>{name}</a>,
    csv: ({ name }) => name,
  },
  { id: 'risk', name: 'Risk', cell: ({ risk }) => <Risk score={risk} />, csv: ({ risk }) => risk },
  {
    id: 'clients',
    name: 'Clients',
    cell: ({ clients, isEstimate }) => (isEstimate ? `about ${countText(clients)}` : countText(clients)),
    csv: ({ clients }) => clients,
    number: true,
    wide: true,
  },
  {
    id: 'decision',
    name: 'Decision',
    cell: ({ state }) => <StateTag state={state} />,
    csv: ({ state }) => state,
  },
  {
    id: 'owner',
    name: 'Owner',
    cell: ({ owner }) => (owner === '' ? <span class="muted">nobody</span> : owner),
    csv: ({ owner }) => owner,
    wide: true,
  },
  {
    id: 'why',
    name: 'Why it is risky',
    cell: ({ why }) => <span class="small">{why}</span>,
    csv: ({ why }) => why,
    wide: true,
  },
]

export const frameworkColumns: readonly Column<FrameworkRow>[] = [
  { id: 'name', name: 'Framework', cell: ({ name }) => name, csv: ({ name }) => name },
  {
    id: 'grade',
    name: 'Score',
    cell: ({ last }) => last?.result && <Grade grade={last.result.grade} score={last.result.overallScore} />,
    csv: ({ last }) => last?.result?.overallScore ?? '',
  },
  {
    id: 'change',
    name: 'Change',
    cell: ({ scoreChange }) => (scoreChange === undefined ? '' : changeText(scoreChange)),
    csv: ({ scoreChange }) => scoreChange ?? '',
    number: true,
  },
  {
    id: 'completed',
    name: 'Completed',
    cell: ({ last }) => last && dateText(last.completedAtMs),
    csv: ({ last }) => (last === undefined ? '' : isoSeconds(last.completedAtMs)),
    wide: true,
  },
]

export const recommendationColumns: readonly Column<Recommendation>[] = [
  {
    id: 'priority',
    name: 'Priority',
    cell: ({ priority }) => <Tag tone={priority === 1 ? 'bad' : priority === 2 ? 'warn' : 'plain'}>{priority}</Tag>,
    csv: ({ priority }) => priority,
  },
  {
    id: 'title',
    name: 'Recommendation',
    cell: ({ title, frameworkId, itemId }) => (
      <>
        {title}{' '}
        <span class="small muted">
          {FRAMEWORKS[frameworkId]} {itemId}
        </span>
      </>
    ),
    csv: ({ title }) => title,
  },
  { id: 'item', name: 'Item', csv: ({ frameworkId, itemId }) => `${FRAMEWORKS[frameworkId]} ${itemId}` },
  { id: 'status', name: 'Status', csv: ({ status }) => status },
  {
    id: 'owner',
    name: 'Owner',
    cell: ({ owner }) => (owner === '' ? <span class="muted">nobody</span> : owner),
    csv: ({ owner }) => owner,
    wide: true,
  },
]

function recommendationsNote({
  recommendations,
  openRecommendations,
  openWithoutOwner,
  doneRecommendations,
}: ReportView) {
  if (openRecommendations === 0) return `${countText(doneRecommendations)} completed`
  return [
    `the ${recommendations.length} most urgent of ${countText(openRecommendations)} open`,
    `${countText(openWithoutOwner)} without an owner`,
    `${countText(doneRecommendations)} completed`,
  ].join(', ')
}
