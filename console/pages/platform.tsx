import type { Strengths } from '../../engine/scan/confidence.ts'
import { Bar, Key, Timeline } from '../design/chart.tsx'
import { Card, countText, Empty, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { Count, PlatformFinding, PlatformView } from '../views/platform.ts'

export interface PlatformProps {
  readonly view: PlatformView
  readonly nowMs: number
  readonly mayApprove: boolean
  readonly mayWithdraw: boolean
  /** The change that the member just made; '' if none. */
  readonly done: string
}

export function Platform(props: PlatformProps) {
  const { view, nowMs, done } = props
  const { name, vendor, type, url, approved, finding } = view
  const host = URL.parse(url)?.host
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/platforms">Platforms</a> / {type}
        </p>
        <PageHead
          title={name}
          about={
            <span class="facts">
              {approved ? <Tag tone="good">approved</Tag> : <Tag tone="bad">not approved</Tag>}
              <span>{vendor}</span>
              {host !== undefined && (
                <a href={url} rel="noreferrer">
                  {host}
                </a>
              )}
              {finding !== undefined && (
                <span>
                  first seen <Time ms={finding.firstSeenMs} nowMs={nowMs} />
                </span>
              )}
            </span>
          }
        >
          <Decision {...props} />
        </PageHead>
      </div>
      {done === 'approved' && approved && <Notice title={`${name} is approved`}>{appliedBy(view)}</Notice>}
      {done === 'withdrawn' && !approved && (
        <Notice title={`The approval of ${name} is withdrawn`}>{appliedBy(view)}</Notice>
      )}
      {done === '' && view.decisionPending && (
        <Notice tone="warn" title="The decision waits for the next scan">
          {appliedBy(view)}
        </Notice>
      )}
      {finding === undefined ? (
        <Empty title={`Not seen in the last ${view.windowDays} days`}>
          <p class="muted">{name} is in the registry. Its figures appear here after the first scan with a match.</p>
          <a class="button" href="/platforms">
            Show all platforms
          </a>
        </Empty>
      ) : (
        <Finding view={view} finding={finding} nowMs={nowMs} />
      )}
    </>
  )
}

function appliedBy({ decisionPending }: PlatformView) {
  const text = decisionPending
    ? 'The next scan updates the risk on this page and in the API. It is already requested.'
    : 'The figures on this page include the decision.'
  return <p class="small">{text}</p>
}

function Decision({ view, mayApprove, mayWithdraw }: PlatformProps) {
  const path = `/platforms/${encodeURIComponent(view.name)}`
  if (!view.isRegistered) return undefined
  if (view.approved) {
    return mayWithdraw ? (
      <form method="post" action={`${path}/withdraw`}>
        <button type="submit">Withdraw approval</button>
      </form>
    ) : undefined
  }
  return mayApprove ? (
    <form method="post" action={`${path}/approve`}>
      <button class="first" type="submit">
        Approve
      </button>
    </form>
  ) : undefined
}

interface FindingProps {
  readonly view: PlatformView
  readonly finding: PlatformFinding
  readonly nowMs: number
}

function Finding({ view, finding, nowMs }: FindingProps) {
  return (
    <>
      <RiskCard view={view} finding={finding} />
      <div class="wide">
        <Card title="Use per day" note="distinct clients">
          <figure>
            <Timeline
              days={finding.timeline}
              label={`Distinct clients of ${view.name} per day`}
              unit="clients"
              width={600}
              height={240}
            />
            <figcaption>
              {finding.factor < 1 ? <Key tone="approved">approved</Key> : <Key tone="shadow">not approved</Key>}
              <span>
                {clientsText(finding)}, {countText(finding.matches)} {plural(finding.matches, 'match', 'matches')},{' '}
                {finding.days} {plural(finding.days, 'day', 'days')}
              </span>
              {finding.blocked > 0 && <span>{countText(finding.blocked)} blocked by the device that logged them</span>}
            </figcaption>
          </figure>
        </Card>
        <Confidence finding={finding} windowDays={view.windowDays} />
      </div>
      <div class="wide">
        <Names finding={finding} />
        <Card
          title="How it was seen"
          note={
            <>
              last <Time ms={finding.lastSeenMs} nowMs={nowMs} />
            </>
          }
        >
          <Counts counts={finding.methods} names={METHOD_NAMES} />
          <h3 class="rule">What the names are for</h3>
          <Counts counts={finding.roles} names={ROLE_NAMES} />
        </Card>
      </div>
    </>
  )
}

function RiskCard({ view, finding }: { readonly view: PlatformView; readonly finding: PlatformFinding }) {
  const { effectiveRisk, risk, confidence, factor } = finding
  return (
    <Card title="Risk" note="what this platform adds to the overall risk, 0 to 100">
      <p class="equation">
        <b>{Math.round(effectiveRisk)}</b>
        <span>
          = <b>{risk}</b> in the registry
        </span>
        <span>
          × <b>{confidence.toFixed(2)}</b> confidence
        </span>
        <span>
          × <b>{factor}</b> {factor < 1 ? 'because it is approved' : 'because it is not approved'}
        </span>
      </p>
      <ul class="lines">
        <li>
          <span>{view.why}</span>
        </li>
        {view.sources.length > 0 && (
          <li class="small muted">
            <span>Sources of the registry: {view.sources.join(', ')}</span>
          </li>
        )}
      </ul>
    </Card>
  )
}

function Confidence({ finding, windowDays }: { readonly finding: PlatformFinding; readonly windowDays: number }) {
  const { strengths, confidence, matches, days } = finding
  const kinds: readonly (readonly [keyof Strengths, string, string])[] = [
    ['domain', 'Name', 'how surely the name means use'],
    ['clients', 'Clients', clientsText(finding)],
    ['matches', 'Matches', `${countText(matches)} ${plural(matches, 'match', 'matches')}`],
    ['days', 'Days', `${days} of ${windowDays} days`],
  ]
  return (
    <Card title={`Confidence ${confidence.toFixed(2)}`} note="by kind of evidence">
      {strengths === undefined ? (
        <p class="muted">The evidence is older than the {windowDays} days that are kept.</p>
      ) : (
        <ul class="lines bars">
          {kinds.map(([kind, name, about]) => (
            <li key={kind}>
              <strong>{name}</strong>
              <span class="right">{strengths[kind].toFixed(2)}</span>
              <Bar share={strengths[kind]} label={`${name}: ${strengths[kind].toFixed(2)} of 1`} />
              <span class="small muted">{about}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

const NAME_COLUMNS: readonly Column<Count>[] = [
  { id: 'name', name: 'Name', cell: ([name]) => <span class="mono break">{name}</span> },
  { id: 'matches', name: 'Matches', cell: ([, count]) => (count === 0 ? '' : countText(count)), number: true },
]

function Names({ finding: { names, namesTotal } }: { readonly finding: PlatformFinding }) {
  const note = names.length < namesTotal ? `the first ${names.length} of ${namesTotal}` : 'no content, no URL'
  return (
    <Card title="Names seen" note={note} bare>
      <Table id="names" label="Names seen" columns={NAME_COLUMNS} rows={names} />
    </Card>
  )
}

const METHOD_NAMES: Readonly<Record<string, string>> = {
  dns: 'DNS query',
  tls: 'TLS ClientHello',
  quic: 'QUIC ClientHello',
  log: 'Log of another device',
}

const ROLE_NAMES: Readonly<Record<string, string>> = {
  web: 'Site or app',
  api: 'API',
  cdn: 'Assets and downloads',
  auth: 'Sign-in',
  telemetry: 'Telemetry',
  docs: 'Documentation',
}

interface CountsProps {
  readonly counts: readonly Count[]
  readonly names: Readonly<Record<string, string>>
}

function Counts({ counts, names }: CountsProps) {
  return (
    <ul class="lines">
      {counts.map(([what, count]) => (
        <li key={what}>
          <span>{names[what] ?? what}</span>
          <span class="right">{countText(count)}</span>
        </li>
      ))}
    </ul>
  )
}

function clientsText({ clients, isEstimate }: PlatformFinding): string {
  return `${isEstimate ? 'about ' : ''}${countText(clients)} ${plural(clients, 'client', 'clients')}`
}

function plural(count: number, one: string, more: string): string {
  return count === 1 ? one : more
}
