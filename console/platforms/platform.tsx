import { USE_NAMES } from '../../engine/admin/platform-rows.ts'
import type { Strengths } from '../../engine/scan/confidence.ts'
import type { PlatformGroup } from '../../engine/scan/platform-groups.ts'
import { APPROVED_SHARE } from '../../engine/scan/risk.ts'
import type { AccessKind } from '../../registry/contact.ts'
import { knownText, type RiskTerm as RegistryTerm } from '../../registry/risk-sum.ts'
import { Bar, Key, Timeline } from '../design/chart.tsx'
import { bytesColumn, platformClientsPath } from '../design/client-columns.tsx'
import { StateTag, Undo, Undone, type UndoView } from '../design/decision.tsx'
import { CsvLink, Filters } from '../design/list.tsx'
import { Card, countOf, countText, Empty, lastDays, PageHead, Tag, Time, volumeText } from '../design/parts.tsx'
import { queryOf, RangeFields } from '../design/range.tsx'
import { type Column, countColumn, Table, textColumn } from '../design/table.tsx'
import { Decision, DecisionDone, type DecisionProps, History } from './decision.tsx'
import { isWaiting } from './decisions.ts'
import { managersPath } from './managers.tsx'
import type { Count, PlatformFinding, PlatformView } from './read-platform.ts'

const ACCESS_NAMES: Readonly<Record<AccessKind, string>> = {
  web: 'In a browser',
  app: 'Desktop or mobile app',
  api: 'API',
  tool: 'Editor, agent or other program',
}

/** How the platform was used, with the names that show it, and what is not use. */
function Access({ finding: { access, programmaticClients, touched } }: { readonly finding: PlatformFinding }) {
  return (
    <Card title="How it is used" note="by the names that clients requested">
      {access.length === 0 ? (
        <p class="muted">Nobody used it.</p>
      ) : (
        <ul class="lines">
          {access.map(({ kind, matches, domains }) => (
            <li key={kind}>
              <div>
                {ACCESS_NAMES[kind]}
                <p class="small muted break">{domains.join(', ')}</p>
              </div>
              <span class="right">{countText(matches)}</span>
            </li>
          ))}
        </ul>
      )}
      {programmaticClients !== undefined && (
        <p class="small muted">
          {programmaticClients === 0
            ? 'Every client of the API also used a site or app of the vendor.'
            : `${countOf(programmaticClients, 'client')} requested only the API, and no site or app of the vendor: programs.`}
        </p>
      )}
      {touched > 0 && (
        <p class="small muted">
          {countOf(touched, 'match', 'matches')} only touched the platform: pictures, widgets, telemetry, updates,
          documentation or sign-in.
        </p>
      )}
    </Card>
  )
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

interface PlatformProps extends DecisionProps {
  /** The member may read who uses the platform. */
  readonly mayReadClients: boolean
  readonly undo: UndoView | undefined
}

export function Platform(props: PlatformProps) {
  const { view, nowMs, mayDecide, mayReadClients } = props
  const { name, vendor, type, url, state, finding } = view
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
              <StateTag state={state} />
              {view.use !== undefined && view.use !== 'ai' && <Tag>{USE_NAMES[view.use]}</Tag>}
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
          {mayReadClients && view.isRegistered && (
            <a class="button" href={platformClientsPath(name) + queryOf(view.range)}>
              Who uses it
            </a>
          )}
          {mayDecide && view.isRegistered && isWaiting(state) && (
            <a class="button" href="#decision">
              Decide
            </a>
          )}
        </PageHead>
      </div>
      <DecisionDone {...props} />
      <Undone done={props.done} />
      {props.undo?.names.includes(name) && <Undo undo={props.undo} from={name} nowMs={nowMs} />}
      {finding === undefined ? (
        <>
          <Empty title={`Not seen in the ${lastDays(view.windowDays)}`}>
            <p class="muted">{name} is in the registry. Its figures appear here after the first scan with a match.</p>
            <a class="button" href="/platforms">
              Show all platforms
            </a>
          </Empty>
          <div class="two">
            <Decision {...props} />
            <History view={view} nowMs={nowMs} />
          </div>
        </>
      ) : (
        <Finding {...props} finding={finding} />
      )}
    </>
  )
}

interface FindingProps extends PlatformProps {
  readonly finding: PlatformFinding
}

function Finding(props: FindingProps) {
  const { view, finding, nowMs } = props
  return (
    <div class="wide">
      <div class="column">
        <RiskCard view={view} finding={finding} />
        <UsePerDay {...props} />
        {finding.groups.length > 0 && <Groups view={view} groups={finding.groups} />}
        <Names view={view} finding={finding} />
        <History view={view} nowMs={nowMs} />
      </div>
      <div class="column">
        <Decision {...props} />
        <Confidence finding={finding} windowDays={view.windowDays} />
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
        <Access finding={finding} />
      </div>
    </div>
  )
}

function UsePerDay({ view, finding, nowMs }: FindingProps) {
  const { range, windowDays } = view
  const use = finding.inRange ?? finding
  return (
    <Card title="Use per day" note={<span class="row">distinct clients {fileOf(view, 'days')}</span>}>
      <Filters action={`/platforms/${encodeURIComponent(view.name)}`}>
        <RangeFields range={range} windowDays={windowDays} nowMs={nowMs} />
      </Filters>
      <figure>
        <Timeline
          days={finding.timeline}
          label={`Distinct clients of ${view.name} per day`}
          unit="client"
          width={600}
          height={240}
        />
        <figcaption>
          {finding.isApproved ? <Key tone="approved">approved</Key> : <Key tone="shadow">not approved</Key>}
          <span>
            {clientsText(use)}, {countOf(use.used, 'used match', 'used matches')}, {countOf(use.days, 'day')}
          </span>
          <span>{volumeText(use)}</span>
          {use.blocked > 0 && <span>{countText(use.blocked)} blocked by the device that logged them</span>}
        </figcaption>
      </figure>
    </Card>
  )
}

function Groups({ view, groups }: { readonly view: PlatformView; readonly groups: PlatformFinding['groups'] }) {
  const columns: readonly Column<PlatformGroup>[] = [
    {
      ...textColumn('group', 'Group', ({ name }: PlatformGroup) => name),
      cell: ({ name }) => (
        <a
          class="break"
          href={`/clients?${new URLSearchParams({ platform: view.name, group: name, ...view.range?.query })}`}
        >
          {name}
        </a>
      ),
    },
    countColumn('clients', 'Clients', ({ clients }) => clients),
    countColumn('used', 'Used', ({ used }) => used),
    { ...countColumn('blocked', 'Blocked', ({ blocked }) => blocked), wide: true },
    bytesColumn('sent', 'Sent', ({ bytesSent }) => bytesSent),
  ]
  const shown = groups.slice(0, GROUPS_SHOWN)
  return (
    <Card
      title="Groups"
      note={
        <span class="row">
          {countText(shown.length)} of {countText(groups.length)} <a href={managersPath(view.name)}>Notify managers</a>
        </span>
      }
      bare
    >
      <Table id="groups" label="Groups" columns={columns} rows={shown} />
    </Card>
  )
}

const GROUPS_SHOWN = 10

/** A term of the risk, and the input that it comes from. */
interface RiskTerm {
  readonly id: 'registry' | `registry-${string}` | 'platform' | 'evidence' | 'decision' | 'total'
  readonly input: string
  readonly reason: string
  /** Where the registry has the reason from. */
  readonly sources: readonly string[]
  readonly points: number
}

export const RISK_COLUMNS: readonly Column<RiskTerm>[] = [
  {
    id: 'reason',
    name: 'Reason',
    cell: ({ id, reason, sources }) => (
      <>
        {id === 'total' || id === 'platform' ? <strong>{reason}</strong> : reason}
        {sources.length > 0 && <p class="small muted">Sources: {sources.join(', ')}</p>}
      </>
    ),
    csv: ({ reason }) => reason,
  },
  { id: 'input', name: 'Input', csv: ({ input }) => input },
  { id: 'sources', name: 'Sources', csv: ({ sources }) => sources.join(', ') },
  {
    id: 'points',
    name: 'Points',
    cell: ({ id, points }) =>
      id === 'total' || id === 'platform' ? <strong class="total">{countText(points)}</strong> : changeText(points),
    csv: ({ points }) => points,
    number: true,
  },
]

/** The risk of a platform as a sum. */
export function riskTerms(view: PlatformView, { risk, confidence, isApproved }: PlatformFinding): readonly RiskTerm[] {
  const share = `It is approved, so a share of ${APPROVED_SHARE} counts`
  return [
    ...registryTerms(view, risk.registry),
    { id: 'platform', input: '', reason: 'Risk of the platform', sources: [], points: risk.registry },
    {
      id: 'evidence',
      input: 'evidence',
      reason: `The evidence of use has a confidence of ${confidence.toFixed(2)}`,
      sources: [],
      points: risk.evidence,
    },
    {
      id: 'decision',
      input: 'decision',
      reason: isApproved ? share : 'It is not approved, so all of it counts',
      sources: [],
      points: risk.decision,
    },
    { id: 'total', input: '', reason: 'Of this, what counts toward the overall risk', sources: [], points: risk.total },
  ]
}

/** The class of the platform and its known facts, or the registry's score if it is no sum. */
function registryTerms({ why, sources, terms }: PlatformView, points: number): RiskTerm[] {
  if (terms.length === 0) return [{ id: 'registry', input: 'registry', reason: why, sources, points }]
  return terms.map((term) => ({
    id: `registry-${term.input}`,
    input: term.input,
    reason: term.text,
    sources: term.source === undefined ? [] : [sourceText(term)],
    points: term.points,
  }))
}

/** `openai.com, 2026-08-22` */
function sourceText({ source = '', date }: RegistryTerm): string {
  return `${new URL(source).hostname}${date === undefined ? '' : `, ${date}`}`
}

/** The CSV file of a table of the page. */
function fileOf({ name }: PlatformView, table: string) {
  return <CsvLink path={`/platforms/${encodeURIComponent(name)}/${table}`} />
}

function RiskCard({ view, finding }: { readonly view: PlatformView; readonly finding: PlatformFinding }) {
  const known = view.terms.length === 0 ? '' : `. ${knownText(view.terms)}`
  const plans = view.planRisks === '' ? '' : `. With a plan: ${view.planRisks}`
  const note = (
    <span class="row">
      0 to 100, as of the last scan{known}
      {plans} {fileOf(view, 'risk')}
    </span>
  )
  return (
    <Card title="Risk" note={note} bare>
      <Table id="risk" label="Risk as a sum" columns={RISK_COLUMNS} rows={riskTerms(view, finding)} />
    </Card>
  )
}

/** `85`, `−12`, `0`. */
function changeText(points: number): string {
  return points < 0 ? `−${countText(-points)}` : countText(points)
}

function Confidence({ finding, windowDays }: { readonly finding: PlatformFinding; readonly windowDays: number }) {
  const { strengths, confidence, used, days } = finding
  const kinds: readonly (readonly [keyof Strengths, string, string])[] = [
    ['domain', 'Name', 'how surely the name means use'],
    ['clients', 'Clients', clientsText(finding)],
    ['matches', 'Matches', countOf(used, 'used match', 'used matches')],
    ['days', 'Days', `${days} of ${countOf(windowDays, 'day')}`],
  ]
  return (
    <Card title={`Confidence ${confidence.toFixed(2)}`} note="by kind of evidence">
      {strengths === undefined ? (
        <p class="muted">The evidence is older than the evidence window of {countOf(windowDays, 'day')}.</p>
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

export const NAME_COLUMNS: readonly Column<Count>[] = [
  { id: 'name', name: 'Name', cell: ([name]) => <span class="mono break">{name}</span>, csv: ([name]) => name },
  {
    id: 'matches',
    name: 'Matches',
    cell: ([, count]) => (count === 0 ? '' : countText(count)),
    csv: ([, count]) => (count === 0 ? '' : count),
    number: true,
  },
]

function Names({ view, finding: { names, namesTotal } }: Pick<FindingProps, 'view' | 'finding'>) {
  const note = names.length < namesTotal ? `the first ${names.length} of ${namesTotal}` : 'no content, no URL'
  return (
    <Card
      title="Names seen"
      note={
        <span class="row">
          {note} {fileOf(view, 'names')}
        </span>
      }
      bare
    >
      <Table id="names" label="Names seen" columns={NAME_COLUMNS} rows={names} />
    </Card>
  )
}

const METHOD_NAMES: Readonly<Record<string, string>> = {
  dns: 'DNS query',
  tls: 'TLS ClientHello',
  quic: 'QUIC ClientHello',
  log: 'Log of another device',
  tls_inferred: 'TLS ClientHello, name from a DNS answer',
  quic_inferred: 'QUIC connection, name from a DNS answer',
  dns_alias: 'Alias in a DNS answer',
}

const ROLE_NAMES: Readonly<Record<string, string>> = {
  web: 'Site',
  app: 'Desktop or mobile app',
  api: 'API',
  cdn: 'Assets and downloads',
  auth: 'Sign-in',
  telemetry: 'Telemetry',
  docs: 'Documentation',
}

function clientsText({ clients, isEstimate }: Pick<PlatformFinding, 'clients' | 'isEstimate'>): string {
  return `${isEstimate ? 'about ' : ''}${countOf(clients, 'client')}`
}
