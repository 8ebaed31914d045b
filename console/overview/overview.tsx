import type { ComponentChildren } from 'preact'
import { USE_NAMES } from '../../engine/admin/platform-rows.ts'
import { percentText } from '../../engine/export/report/text.ts'
import { DAY_COLUMNS, Key, Timeline } from '../design/chart.tsx'
import { bytesColumn, platformClientsPath } from '../design/client-columns.tsx'
import { HiddenTraffic } from '../design/coverage.tsx'
import { StateTag, Undo, Undone, type UndoView } from '../design/decision.tsx'
import { CsvLink, Filters } from '../design/list.tsx'
import {
  bytesText,
  Card,
  countOf,
  countText,
  lastDays,
  NO_VOLUME,
  Notice,
  PageHead,
  Risk,
  Tag,
  Time,
} from '../design/parts.tsx'
import { DateFields, rangesOf, rangeText } from '../design/range.tsx'
import { Scatter } from '../design/scatter.tsx'
import { type Column, Table } from '../design/table.tsx'
import { redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import { isWaiting, undoOf } from '../platforms/decisions.ts'
import { type LatestSources, LISTENER_NAMES, type SensorRow } from '../sources/read.ts'
import { formatText, SensorTag, SourceState } from '../sources/sources.tsx'
import {
  dailyUse,
  type OverviewFindings,
  type OverviewView,
  overviewView,
  type RecentRow,
  type RecentView,
  type WaitingRow,
} from './read.ts'

interface OverviewProps {
  readonly view: OverviewView
  readonly nowMs: number
  readonly mayDecide: boolean
  readonly mayReadClients: boolean
  readonly mayScan: boolean
  readonly mayReadTokens: boolean
  readonly done: string
  readonly undo: UndoView | undefined
}

function Overview({ view, nowMs, mayDecide, mayReadClients, mayScan, mayReadTokens, done, undo }: OverviewProps) {
  const { findings, windowDays, isScanPending } = view
  const about =
    findings === undefined ? (
      'No scan has completed yet'
    ) : (
      <>
        Last scan <Time ms={findings.completedMs} nowMs={nowMs} /> over the {lastDays(windowDays)} · next{' '}
        {isScanPending ? 'in a moment' : <Time ms={view.nextScanMs} nowMs={nowMs} />}
      </>
    )
  return (
    <>
      <PageHead title="Overview" about={about}>
        {mayScan && (
          <form method="post" action="/scan">
            <button type="submit">Scan now</button>
          </form>
        )}
      </PageHead>
      {(done === 'approved' || done === 'rejected') && (
        <Notice title={`The platform is ${done}`}>
          <p class="small">The next scan updates the risk. It is already requested.</p>
        </Notice>
      )}
      <Undone done={done} />
      <Undo undo={undo} from="overview" nowMs={nowMs} />
      {done === 'scan' && <Notice title={isScanPending ? 'The scan is requested' : 'The scan has run'} />}
      {findings === undefined ? (
        <FirstSteps view={view} mayScan={mayScan} mayReadTokens={mayReadTokens} />
      ) : (
        <Findings view={view} findings={findings} nowMs={nowMs} mayDecide={mayDecide} mayReadClients={mayReadClients} />
      )}
    </>
  )
}

/** The remaining steps before the first findings. */
function FirstSteps({ view, mayScan, mayReadTokens }: Pick<OverviewProps, 'view' | 'mayScan' | 'mayReadTokens'>) {
  const { hasToken, sources, bufferedEvents } = view
  const isReceiving = sources.total > 0
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
            ? `Events that wait: ${countText(bufferedEvents)}. They are in the next scan.${mayScan ? ' Scan now finds their platforms.' : ''}`
            : 'The first scan runs some seconds after the first event, and shows the platforms here.'}
        </Step>
      </ol>
      {mayReadTokens && (
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

interface FindingsProps {
  readonly view: OverviewView
  readonly findings: OverviewFindings
  readonly nowMs: number
  readonly mayDecide: boolean
  readonly mayReadClients: boolean
}

function Findings(props: FindingsProps) {
  const { view, findings, nowMs, mayDecide } = props
  const { sources, sensors, windowDays } = view
  return (
    <>
      <Figures view={view} findings={findings} />
      <Recent {...props} recent={findings.recent} />
      <Card
        title="Waiting for a decision"
        note={
          findings.waitingTotal > 0 && (
            <span class="row">
              <a href={`/platforms?${WAITING_QUERY}`}>all {countText(findings.waitingTotal)} that wait</a>
              <CsvLink path="/platforms" query={WAITING_QUERY} />
            </span>
          )
        }
        bare={findings.waiting.length > 0}
      >
        {findings.waiting.length === 0 ? (
          <p class="muted">Every platform that was seen has a decision.</p>
        ) : (
          <Table
            id="waiting"
            label="Waiting for a decision"
            columns={waitingColumns(nowMs, mayDecide)}
            rows={findings.waiting}
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
            <Timeline days={findings.days} label="Clients per day" unit="client" width={480} height={260} />
            <figcaption>
              <Key tone="shadow">a platform that is not approved</Key>
              <Key tone="approved">approved ones only</Key>
              {findings.days.map(({ mark }) => mark && <span>{mark}</span>)}
            </figcaption>
          </figure>
        </Card>
        <Card title="Risk and clients" note={`each platform, ${lastDays(windowDays)}`}>
          <figure>
            <Scatter dots={findings.dots} label="Risk of each platform by its number of clients" />
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
          <Sources sources={sources} nowMs={nowMs} />
          {sensors.rows.length > 0 && <Sensors rows={sensors.rows} nowMs={nowMs} />}
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
const NEW_SHOWN = 5

const RANGE_TITLES: Readonly<Record<number, string>> = { 1: 'Today (UTC)', 7: 'This week' }

/** What the last days have: each number leads to its list. */
function Recent({ view, recent, nowMs, mayDecide, mayReadClients }: RecentProps) {
  const { range, newPlatforms, blocked, blockedOnly } = recent
  const { days } = range
  const listOf = (more: Record<string, string>): string =>
    `/platforms?${new URLSearchParams({ ...range.query, use: 'ai', ...more })}`
  const clients = `${recent.isEstimate ? 'about ' : ''}${countText(recent.clients)}`
  const other = rangesOf(view.windowDays).filter((each) => each !== days)
  return (
    <Card
      title={days === undefined ? sentence(range.text) : (RANGE_TITLES[days] ?? sentence(lastDays(days)))}
      note={
        <span class="row">
          {other.map((each) => (
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
          <DateFields range={range} windowDays={view.windowDays} nowMs={nowMs} />
        </Filters>
      </details>
      <dl class="figures plain">
        <div>
          <dt>AI platforms used</dt>
          <dd>
            <a href={listOf({})}>{countText(recent.platforms)}</a>
          </dd>
          <dd>
            {newPlatforms.length === 0 ? (
              'none of them new'
            ) : (
              <a href={listOf({ ...(days !== undefined && { new: String(days) }), sort: '-risk' })}>
                {countText(newPlatforms.length)} new
              </a>
            )}
          </dd>
        </div>
        <div>
          <dt>Clients</dt>
          <dd>{mayReadClients ? <a href={`/clients?${new URLSearchParams(range.query)}`}>{clients}</a> : clients}</dd>
          <dd>
            {mayReadClients && (
              <a href={`/clients?${new URLSearchParams({ ...range.query, new: '7' })}`}>new this week</a>
            )}
          </dd>
        </div>
        <div>
          <dt>Sent</dt>
          <dd>
            {recent.bytesSent === 0 ? '–' : <a href={listOf({ sort: '-sent' })}>{bytesText(recent.bytesSent)}</a>}
          </dd>
          <dd>
            {recent.bytesSent + recent.bytesReceived === 0
              ? NO_VOLUME
              : `${bytesText(recent.bytesReceived) || 'nothing known'} received`}
          </dd>
        </div>
        <div>
          <dt>Blocked requests</dt>
          <dd>{blocked === 0 ? '0' : <a href={listOf({ sort: '-blocked' })}>{countText(blocked)}</a>}</dd>
          <dd>
            {blockedOnly > 0 && (
              <a href={listOf({ use: 'blocked', sort: '-blocked' })}>
                and {countOf(blockedOnly, 'platform')} {USE_NAMES.blocked}
              </a>
            )}
          </dd>
        </div>
      </dl>
      {newPlatforms.length > 0 && (
        <Table
          id="recent"
          label="New platforms"
          columns={recentColumns(mayDecide, mayReadClients)}
          rows={newPlatforms.slice(0, NEW_SHOWN)}
        />
      )}
    </Card>
  )
}

interface RecentProps extends Pick<FindingsProps, 'view' | 'nowMs' | 'mayDecide' | 'mayReadClients'> {
  readonly recent: RecentView
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

function recentColumns(mayDecide: boolean, mayReadClients: boolean): readonly Column<RecentRow>[] {
  const clients = ({ clients: count, isEstimate }: RecentRow): string =>
    `${isEstimate ? 'about ' : ''}${countText(count)}`
  const shown: readonly Column<RecentRow>[] = [
    { id: 'name', name: 'Platform', cell: ({ name }) => <a href={`/platforms/${encodeURIComponent(name)}`}>{name}</a> },
    { id: 'risk', name: 'Risk', cell: ({ risk }) => <Risk score={risk} /> },
    {
      id: 'clients',
      name: 'Clients',
      cell: (row) => (mayReadClients ? <a href={platformClientsPath(row.name)}>{clients(row)}</a> : clients(row)),
      number: true,
    },
    { id: 'used', name: 'Used', cell: ({ used }) => countText(used), number: true, wide: true },
    { ...bytesColumn<RecentRow>('sent', 'Sent', ({ bytesSent }) => bytesSent), wide: true },
    { id: 'blocked', name: 'Blocked', cell: ({ blocked }) => countText(blocked), number: true, wide: true },
  ]
  const decide: Column<RecentRow> = {
    id: 'decide',
    name: 'Decide',
    cell: ({ name, state }) => (isWaiting(state) ? <DecideInPlace name={name} /> : <StateTag state={state} />),
    quiet: true,
    wide: true,
  }
  return mayDecide ? [...shown, decide] : shown
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
const OTHER_USES = [
  ['ai_capable', 'aiCapable'],
  ['blocked', 'blocked'],
  ['touched', 'touched'],
] as const

function Figures({ view, findings }: Pick<FindingsProps, 'view' | 'findings'>) {
  const { overallRisk, riskChange, platforms, newPlatforms, notApproved, bytesSent, bytesReceived } = findings
  const { coverage } = view.sensors
  const share = coverage.visible_share
  return (
    <dl class="figures five">
      <div>
        <dt>Overall risk</dt>
        <dd>
          {overallRisk} <small>of 100</small>
        </dd>
        <dd>{riskChange === undefined ? 'no scan a week ago' : `${signed(riskChange)} in a week`}</dd>
      </div>
      <div>
        <dt>AI platforms</dt>
        <dd>{countText(platforms)}</dd>
        <dd>
          {newPlatforms === 0 ? (
            'none new this week'
          ) : (
            <a href={`/platforms?${NEW_QUERY}`}>{countText(newPlatforms)} new this week</a>
          )}
          {OTHER_USES.filter(([, key]) => findings[key] > 0).map(([use, key]) => (
            <>
              , <a href={`/platforms?use=${use}`}>{`${countText(findings[key])} ${USE_NAMES[use]}`}</a>
            </>
          ))}
        </dd>
      </div>
      <div>
        <dt>Not approved</dt>
        <dd>{countText(notApproved)}</dd>
        <dd>{platforms === 0 ? 'of none' : `${percentText(notApproved / platforms)} of the platforms`}</dd>
      </div>
      <div>
        <dt>Sent</dt>
        <dd>{bytesText(bytesSent) || '–'}</dd>
        <dd>
          {bytesSent + bytesReceived === 0 ? (
            NO_VOLUME
          ) : (
            <a href="/platforms?use=ai&amp;sort=-sent">{bytesText(bytesReceived) || 'nothing known'} received</a>
          )}
        </dd>
      </div>
      <div>
        <dt>Share of traffic seen</dt>
        <dd>{share === null ? '–' : percentText(share)}</dd>
        <dd>{share === null ? 'no sensor reports' : `by ${countOf(coverage.sensors, 'sensor')}`}</dd>
      </div>
    </dl>
  )
}

function signed(change: number): string {
  return change === 0 ? 'no change' : change > 0 ? `+${change}` : `−${-change}`
}

function waitingColumns(nowMs: number, mayDecide: boolean): readonly Column<WaitingRow>[] {
  const path = (name: string): string => `/platforms/${encodeURIComponent(name)}`
  const shown: readonly Column<WaitingRow>[] = [
    {
      id: 'name',
      name: 'Platform',
      cell: ({ name, isExpired }) => (
        <>
          <a href={path(name)}>{name}</a> {isExpired && <StateTag state="expired" />}
        </>
      ),
    },
    { id: 'risk', name: 'Risk', cell: ({ risk }) => <Risk score={risk} /> },
    {
      id: 'clients',
      name: 'Clients',
      cell: ({ clients, isEstimate }) => (isEstimate ? `about ${countText(clients)}` : countText(clients)),
      number: true,
      wide: mayDecide,
    },
    { id: 'first', name: 'First seen', cell: ({ firstSeenMs }) => <Time ms={firstSeenMs} nowMs={nowMs} />, wide: true },
    { id: 'why', name: 'Why it is risky', cell: ({ why }) => <span class="muted">{why}</span>, wide: true },
  ]
  const decide: Column<WaitingRow> = {
    id: 'decide',
    name: 'Decide',
    cell: ({ name }) => (
      <a class="button" href={`${path(name)}#decision`} aria-label={`Decide on ${name}`}>
        Decide
      </a>
    ),
    quiet: true,
  }
  return mayDecide ? [...shown, decide] : shown
}

function Sources({ sources, nowMs }: { readonly sources: LatestSources; readonly nowMs: number }) {
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

const SENSORS_SHOWN = 5

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
    const content = Overview({
      view: overviewView(visit),
      nowMs: visit.nowMs,
      mayDecide: visit.may('approval.add'),
      mayReadClients: visit.may('client.read'),
      mayScan: visit.may('scan.request'),
      mayReadTokens: visit.may('token.read'),
      undo: undoOf(visit),
      done: visit.request.query.get('done') ?? '',
    })
    return visit.page('Overview', '/overview', content)
  }),
  csvFile({
    path: '/overview/days',
    access: 'discovery.read',
    columns: () => DAY_COLUMNS,
    rows: dailyUse,
  }),
  form('/scan', 'scan.request', async (visit) => {
    await visit.change('scan.request', {})
    return redirect('/overview?done=scan')
  }),
]
