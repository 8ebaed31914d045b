import type { ComponentChildren } from 'preact'
import { USE_NAMES } from '../../engine/admin/platform-rows.ts'
import { percentText } from '../../engine/export/report/text.ts'
import { DAY_MS, dayOf } from '../../engine/kernel/process/clock.ts'
import { aiPlatforms, type ListedPlatform, listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import { nextScanMs } from '../../engine/scan/periods.ts'
import { recentPlatforms } from '../../engine/scan/recent-use.ts'
import { byRisk } from '../../engine/scan/risk.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { History } from '../../engine/store/history.ts'
import type { Scan } from '../../engine/store/scans.ts'
import { DAY_COLUMNS, type DayBar, Key, shortDay, Timeline } from '../design/chart.tsx'
import { bytesColumn, platformClientsPath } from '../design/client-columns.tsx'
import { HiddenTraffic } from '../design/coverage.tsx'
import { ActionButton } from '../design/form.tsx'
import { CsvLink, Filters } from '../design/list.tsx'
import {
  aboutText,
  bytesText,
  Card,
  countOf,
  countText,
  Figures,
  lastDays,
  NO_VOLUME,
  PageHead,
  PlatformLink,
  platformPath,
  Risk,
  StateTag,
  Tag,
  Time,
} from '../design/parts.tsx'
import { DateFields, lastDaysRange, rangeOf, rangesOf, rangeText } from '../design/range.tsx'
import { Scatter } from '../design/scatter.tsx'
import { type Column, countColumn, Table, timeColumn } from '../design/table.tsx'
import { csvFile } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { DecisionsByName, isWaiting, UNDONE, Undo, undoOf } from '../platforms/decision.tsx'
import { LISTENER_NAMES, latestSources, type SensorRow, sensorsView } from '../sources/read.ts'
import { formatText, SensorTag, SourceState } from '../sources/sources.tsx'

/** A listed platform, and its decision now. */
interface PlatformRow extends ListedPlatform {
  readonly state: DecisionState
}

/**
 * Distinct clients of AI platforms per day, as the last scan counted them: clients of
 * platforms that are not approved, and clients of approved platforms only.
 */
function dailyUse({ site, organization, nowMs }: Visit): readonly DayBar[] {
  const { scanStates, dailyUse, history } = site.store
  const today = dayOf(nowMs)
  const firstDay = Math.max(scanStates.get(organization.id).firstDay, today - organization.evidenceWindowDays + 1)
  const known = new Map(dailyUse.get(organization.id).map((use) => [use.day, use]))
  const days: DayBar[] = []
  const marked = firstDayWithContacts(history, organization.id)
  for (let day = firstDay; day <= today; day++) {
    const use = known.get(day) ?? { day, approved: 0, notApproved: 0 }
    days.push(day === marked ? { ...use, mark: `Since ${shortDay(day)}, only used platforms count` } : use)
  }
  return days
}

/**
 * The first day of a scan that told use from other contacts (registry/contact.ts), if there are
 * earlier scans.
 */
function firstDayWithContacts(history: History, organizationId: string): number | undefined {
  const days = history.days(organizationId)
  let [first, end] = [0, days.length]
  while (first < end) {
    const middle = (first + end) >> 1
    if (history.get(organizationId, days[middle] ?? 0)?.summary.touchedCount === undefined) first = middle + 1
    else end = middle
  }
  return first === 0 ? undefined : days[first]
}

const CHANGE_DAYS = 7
const WAITING_SHOWN = 5
const SOURCES_SHOWN = 5
const SENSORS_SHOWN = 5
const NEW_SHOWN = 5

/** The latest completed scan, and what changed in a week; undefined before the first. */
function findingsOf(visit: Visit) {
  const { site, organization, nowMs, request } = visit
  const { scan, platforms: listed } = listedDiscovery(site.store, organization)
  if (scan === undefined) return undefined
  const sinceMs = nowMs - CHANGE_DAYS * DAY_MS
  const decisions = new DecisionsByName(visit)
  const rowOf = (platform: ListedPlatform): PlatformRow => ({ ...platform, state: decisions.stateOf(platform) })
  const platforms = aiPlatforms(listed).map(rowOf)
  const wanted = ({ status, completedAtMs }: Scan): boolean => status === 'completed' && completedAtMs <= sinceMs
  const before = site.store.scans.last(organization.id, wanted)
  const risk = scan.summary.overall_risk_score
  const chosen = rangeOf(request.query, organization.evidenceWindowDays, nowMs, { offersWindow: true })
  const range = chosen ?? lastDaysRange(CHANGE_DAYS, nowMs)
  const { firstDay = 0, lastDay = Number.POSITIVE_INFINITY } = chosen ?? {}
  const catalog = site.registry.catalogOf(organization.id).platforms
  const recent = recentPlatforms(site.store, organization, listed, catalog, range)
  const [newFromMs, newToMs] =
    range.days === undefined
      ? [range.firstDay * DAY_MS, (range.lastDay + 1) * DAY_MS]
      : [nowMs - range.days * DAY_MS, Number.POSITIVE_INFINITY]
  const recentAi = aiPlatforms(recent.platforms)
  return {
    completedMs: Date.parse(scan.completed_at),
    risk,
    /** undefined if no scan had completed at that time. */
    riskChange: before && risk - before.summary.overallRiskScore,
    listed,
    platforms,
    newCount: platforms.filter(({ newMs }) => newMs > sinceMs).length,
    waiting: platforms.filter(({ state }) => isWaiting(state)).sort(byRisk),
    days: dailyUse(visit).filter(({ day }) => day >= firstDay && day <= lastDay),
    range,
    /** The use in the range. */
    recent,
    recentAi,
    recentNew: recentAi
      .filter(({ newMs }) => newMs > newFromMs && newMs < newToMs)
      .map(rowOf)
      .sort(byRisk),
  }
}

interface FindingsProps {
  readonly visit: Visit
  readonly findings: NonNullable<ReturnType<typeof findingsOf>>
}

function sumOf<Key extends string>(rows: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return rows.reduce((sum, row) => sum + row[key], 0)
}

function Overview({ visit }: { readonly visit: Visit }) {
  const { site, organization, nowMs } = visit
  const findings = findingsOf(visit)
  const isScanPending = site.store.scans.pending(organization.id) !== undefined
  const next = isScanPending ? 'in a moment' : <Time ms={nextScanMs(organization, nowMs)} nowMs={nowMs} />
  return (
    <>
      <PageHead
        title="Overview"
        about={
          findings === undefined ? (
            'No scan has completed yet'
          ) : (
            <>
              Last scan <Time ms={findings.completedMs} nowMs={nowMs} /> over the{' '}
              {lastDays(organization.evidenceWindowDays)} · next {next}
            </>
          )
        }
      >
        {visit.may('scan.request') && <ActionButton action="/scan">Scan now</ActionButton>}
      </PageHead>
      <Undo undo={undoOf(visit)} from="overview" nowMs={nowMs} />
      {findings === undefined ? <FirstSteps visit={visit} /> : <Findings visit={visit} findings={findings} />}
    </>
  )
}

/** The remaining steps before the first findings. */
function FirstSteps({ visit }: { readonly visit: Visit }) {
  const { site, organization, nowMs } = visit
  const hasToken = site.store.monitoringTokens.activeCount(organization.id, nowMs) > 0
  const isReceiving = latestSources(visit, 0).total > 0
  const bufferedEvents = site.store.buffer.count(organization.id)
  return (
    <Card title="Three steps to the first findings">
      <ol class="lines steps">
        <Step isDone={hasToken} title="Generate a monitoring token">
          A collector or a log sender proves with it that its events are yours.
        </Step>
        <Step isDone={isReceiving} title="Send events">
          Run a collector at the network edge, or point the syslog of a firewall, proxy or DNS server to this service.{' '}
          <a href="/sources">Sources</a> shows what arrives.
        </Step>
        <Step isDone={false} title="Scan">
          {bufferedEvents > 0
            ? `Events that wait: ${countText(bufferedEvents)}. They are in the next scan.${visit.may('scan.request') ? ' Scan now finds their platforms.' : ''}`
            : 'The first scan runs some seconds after the first event, and shows the platforms here.'}
        </Step>
      </ol>
      {visit.may('token.read') && (
        <p>
          <a class={isReceiving ? 'button' : 'button first'} href="/setup-guide">
            Setup
          </a>
        </p>
      )}
    </Card>
  )
}

interface StepProps {
  readonly isDone: boolean
  readonly title: string
  readonly children: ComponentChildren
}

function Step({ isDone, title, children }: StepProps) {
  return (
    <li>
      <div>
        <strong>{title}</strong>
        <p class="muted">{children}</p>
      </div>
      {isDone ? <Tag tone="good">done</Tag> : <Tag>to do</Tag>}
    </li>
  )
}

/** The list of platforms that shows all that wait, the highest risk first. */
const WAITING_QUERY = new URLSearchParams({ state: 'waiting', use: 'ai', sort: '-risk' })

function Findings(props: FindingsProps) {
  const { visit, findings } = props
  const { waiting, days, platforms } = findings
  const windowDays = visit.organization.evidenceWindowDays
  const sensors = sensorsView(visit)
  return (
    <>
      <Summary visit={visit} findings={findings} coverage={sensors.coverage} />
      <Recent {...props} />
      <Card
        title="Waiting for a decision"
        note={
          waiting.length > 0 && (
            <span class="row">
              <a href={`/platforms?${WAITING_QUERY}`}>all {countText(waiting.length)} that wait</a>
              <CsvLink path="/platforms" query={WAITING_QUERY} />
            </span>
          )
        }
        bare={waiting.length > 0}
      >
        {waiting.length === 0 ? (
          <p class="muted">Every platform that was seen has a decision.</p>
        ) : (
          <Table
            {...{ visit, id: 'waiting', label: 'Waiting for a decision', columns: WAITING_COLUMNS }}
            rows={waiting.slice(0, WAITING_SHOWN)}
          />
        )}
      </Card>
      <div class="two">
        <Card
          title="AI use per day"
          note={
            <span class="row">
              distinct clients <CsvLink path="/overview/days" />
            </span>
          }
        >
          <figure>
            <Timeline days={days} label="Clients per day" unit="client" width={480} height={260} />
            <figcaption>
              <Key tone="shadow">a platform that is not approved</Key>
              <Key tone="approved">approved ones only</Key>
              {days.map(({ mark }) => mark && <span>{mark}</span>)}
            </figcaption>
          </figure>
        </Card>
        <Card title="Risk and clients" note={`each platform, ${lastDays(windowDays)}`}>
          <figure>
            <Scatter dots={platforms} label="Risk of each platform by its number of clients" />
            <figcaption>
              <Key tone="dot">not approved</Key>
              <Key tone="ring">approved</Key>
              <span>↑ risk, → clients</span>
            </figcaption>
          </figure>
        </Card>
      </div>
      <div class="two">
        <div class="column">
          <Sources visit={visit} />
          {sensors.rows.length > 0 && <Sensors rows={sensors.rows} nowMs={visit.nowMs} />}
        </div>
        {sensors.coverage.sensors > 0 ? (
          <HiddenTraffic coverage={sensors.coverage} />
        ) : (
          <Card title="What the sensors could not see">
            <p class="muted">
              No collector has reported in the {lastDays(windowDays)}, so nothing is known of hidden traffic.
            </p>
          </Card>
        )}
      </div>
    </>
  )
}

/** The list of platforms that are new this week. */
const NEW_QUERY = new URLSearchParams({ use: 'ai', new: '7', sort: '-risk' })

const RANGE_TITLES: Readonly<Record<number, string>> = { 1: 'Today (UTC)', 7: 'This week' }

/** What the last days have: each number leads to its list. */
function Recent({ visit, findings }: FindingsProps) {
  const { range, recent, recentAi, recentNew } = findings
  const { days } = range
  const windowDays = visit.organization.evidenceWindowDays
  const [sent, received] = [sumOf(recentAi, 'bytesSent'), sumOf(recentAi, 'bytesReceived')]
  const blocked = sumOf(recentAi, 'blocked')
  const blockedOnly = recent.platforms.filter(({ use }) => use === 'blocked').length
  const linkTo = (text: string, more: Record<string, string>) => (
    <a href={`/platforms?${new URLSearchParams({ ...range.query, use: 'ai', ...more })}`}>{text}</a>
  )
  const clientsLink = (text: string, more: Record<string, string>) => (
    <a href={`/clients?${new URLSearchParams({ ...range.query, ...more })}`}>{text}</a>
  )
  const mayReadClients = visit.may('client.read')
  return (
    <Card
      title={days === undefined ? sentence(range.text) : (RANGE_TITLES[days] ?? sentence(lastDays(days)))}
      note={
        <span class="row">
          {rangesOf(windowDays)
            .filter((each) => each !== days)
            .map((each) => (
              <a key={each} href={`/overview?days=${each}`}>
                {sentence(rangeText(each))}
              </a>
            ))}
        </span>
      }
      bare
    >
      <details class="body" open={days === undefined}>
        <summary>Other days</summary>
        <Filters action="/overview">
          <DateFields range={range} windowDays={windowDays} nowMs={visit.nowMs} />
        </Filters>
      </details>
      <Figures
        look="plain"
        figures={[
          [
            'AI platforms used',
            linkTo(countText(recentAi.length), {}),
            recentNew.length === 0
              ? 'none of them new'
              : linkTo(`${countText(recentNew.length)} new`, {
                  ...(days !== undefined && { new: String(days) }),
                  sort: '-risk',
                }),
          ],
          [
            'Clients',
            mayReadClients ? clientsLink(aboutText(recent), {}) : aboutText(recent),
            mayReadClients && clientsLink('new this week', { new: '7' }),
          ],
          [
            'Sent',
            sent === 0 ? '–' : linkTo(bytesText(sent), { sort: '-sent' }),
            sent + received === 0 ? NO_VOLUME : `${bytesText(received) || 'nothing known'} received`,
          ],
          [
            'Blocked requests',
            blocked === 0 ? '0' : linkTo(countText(blocked), { sort: '-blocked' }),
            blockedOnly > 0 &&
              linkTo(`and ${countOf(blockedOnly, 'platform')} ${USE_NAMES.blocked}`, {
                use: 'blocked',
                sort: '-blocked',
              }),
          ],
        ]}
      />
      {recentNew.length > 0 && (
        <Table
          {...{ visit, id: 'recent', label: 'New platforms', columns: RECENT_COLUMNS }}
          rows={recentNew.slice(0, NEW_SHOWN)}
        />
      )}
    </Card>
  )
}

const NAME: Column<PlatformRow> = { id: 'name', name: 'Platform', cell: PlatformLink }
const RISK: Column<PlatformRow> = { id: 'risk', name: 'Risk', cell: ({ risk }) => <Risk score={risk} /> }

const RECENT_COLUMNS: readonly Column<PlatformRow>[] = [
  NAME,
  RISK,
  {
    id: 'clients',
    name: 'Clients',
    cell: (row, visit) =>
      visit.may('client.read') ? <a href={platformClientsPath(row.name)}>{aboutText(row)}</a> : aboutText(row),
    number: true,
  },
  { ...countColumn('used', 'Used', ({ used }: PlatformRow) => used), wide: true },
  { ...bytesColumn<PlatformRow>('sent', 'Sent', ({ bytesSent }) => bytesSent), wide: true },
  { ...countColumn('blocked', 'Blocked', ({ blocked }: PlatformRow) => blocked), wide: true },
  {
    id: 'decide',
    name: 'Decide',
    action: 'approval.add',
    quiet: true,
    wide: true,
    cell: ({ name, state }) => (isWaiting(state) ? <DecideInPlace name={name} /> : <StateTag state={state} />),
  },
]

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

/** Without a note, owner or expiry, which the platform's page has. */
function DecideInPlace({ name }: { readonly name: string }) {
  return (
    <form class="row end" method="post" action="/decisions/approve?from=overview">
      <input type="hidden" name="platform" value={name} />
      <button type="submit" aria-label={`Approve ${name}`}>
        Approve
      </button>
      <button type="submit" formaction="/decisions/reject?from=overview" aria-label={`Reject ${name}`}>
        Reject
      </button>
    </form>
  )
}

/** Platforms that the figures do not count. */
const OTHER_USES = ['ai_capable', 'blocked', 'touched'] as const

interface SummaryProps extends FindingsProps {
  readonly coverage: ReturnType<typeof sensorsView>['coverage']
}

function Summary({ findings, coverage }: SummaryProps) {
  const { risk, riskChange, platforms, newCount, listed } = findings
  const notApproved = platforms.filter(({ approved }) => !approved).length
  const [sent, received] = [sumOf(platforms, 'bytesSent'), sumOf(platforms, 'bytesReceived')]
  const share = coverage.visible_share
  const others = OTHER_USES.map((use) => [use, listed.filter((each) => each.use === use).length] as const)
  return (
    <Figures
      look="five"
      figures={[
        [
          'Overall risk',
          <>
            {risk} <small>of 100</small>
          </>,
          riskChange === undefined ? 'no scan a week ago' : `${signed(riskChange)} in a week`,
        ],
        [
          'AI platforms',
          countText(platforms.length),
          <>
            {newCount === 0 ? (
              'none new this week'
            ) : (
              <a href={`/platforms?${NEW_QUERY}`}>{countText(newCount)} new this week</a>
            )}
            {others
              .filter(([, count]) => count > 0)
              .map(([use, count]) => (
                <>
                  , <a href={`/platforms?use=${use}`}>{`${countText(count)} ${USE_NAMES[use]}`}</a>
                </>
              ))}
          </>,
        ],
        [
          'Not approved',
          countText(notApproved),
          platforms.length === 0 ? 'of none' : `${percentText(notApproved / platforms.length)} of the platforms`,
        ],
        [
          'Sent',
          bytesText(sent) || '–',
          sent + received === 0 ? (
            NO_VOLUME
          ) : (
            <a href="/platforms?use=ai&amp;sort=-sent">{bytesText(received) || 'nothing known'} received</a>
          ),
        ],
        [
          'Share of traffic seen',
          share === null ? '–' : percentText(share),
          share === null ? 'no sensor reports' : `by ${countOf(coverage.sensors, 'sensor')}`,
        ],
      ]}
    />
  )
}

function signed(change: number): string {
  return change === 0 ? 'no change' : change > 0 ? `+${change}` : `−${-change}`
}

const WAITING_COLUMNS: readonly Column<PlatformRow>[] = [
  {
    ...NAME,
    cell: ({ name, state }) => (
      <>
        <PlatformLink name={name} /> {state === 'expired' && <StateTag state="expired" />}
      </>
    ),
  },
  RISK,
  { id: 'clients', name: 'Clients', cell: aboutText, number: true },
  { ...timeColumn('first', 'First seen', ({ firstSeenMs }: PlatformRow) => firstSeenMs), wide: true },
  { id: 'why', name: 'Why it is risky', cell: ({ why }) => <span class="muted">{why}</span>, wide: true },
  {
    id: 'decide',
    name: 'Decide',
    action: 'approval.add',
    quiet: true,
    cell: ({ name }) => (
      <a class="button" href={`${platformPath(name)}#decision`} aria-label={`Decide on ${name}`}>
        Decide
      </a>
    ),
  },
]

function Sources({ visit }: { readonly visit: Visit }) {
  const sources = latestSources(visit, SOURCES_SHOWN)
  const { nowMs } = visit
  return (
    <Card title="Sources" note={sources.total > 0 && <a href="/sources">all {countText(sources.total)}</a>}>
      {sources.total === 0 ? (
        <p class="muted">
          Nothing arrives at the moment. <a href="/sources">Connect a source</a>
        </p>
      ) : (
        <ul class="lines">
          {sources.rows.map((source) => (
            <li key={`${source.tokenLabel} ${source.listener} ${source.sender}`}>
              <div>
                <strong class="break">{source.sender}</strong>
                <p class="small muted">
                  {LISTENER_NAMES[source.listener] ?? source.listener} · {formatText(source)}
                </p>
              </div>
              <div class="right">
                <SourceState source={source} />
                <p>
                  <Time ms={source.lastSeenMs} nowMs={nowMs} />
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

function Sensors({ rows, nowMs }: { readonly rows: readonly SensorRow[]; readonly nowMs: number }) {
  return (
    <Card title="Sensors" note={<a href="/sensors">all {countText(rows.length)}</a>}>
      <ul class="lines">
        {rows.slice(0, SENSORS_SHOWN).map(({ instance, state, heardMs }) => (
          <li key={instance}>
            <span class="mono break">{instance}</span>
            <div class="right">
              <SensorTag state={state} />
              <p>
                <Time ms={heardMs} nowMs={nowMs} />
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  )
}

export const OVERVIEW_ROUTES: readonly Route[] = [
  page('/overview', 'discovery.read', (visit) => {
    const isPending = visit.site.store.scans.pending(visit.organization.id) !== undefined
    const done = {
      approved: 'The platform is approved. The requested scan updates the risk',
      rejected: 'The platform is rejected. The requested scan updates the risk',
      undone: UNDONE,
      scan: isPending ? 'The scan is requested' : 'The scan has run',
    }
    return visit.page('Overview', '/overview', Overview({ visit }), { done })
  }),
  csvFile('/overview/days', 'discovery.read', DAY_COLUMNS, dailyUse),
  changeForm('/scan', 'scan.request', () => ({}), '/overview?done=scan'),
]
