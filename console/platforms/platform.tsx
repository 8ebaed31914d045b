import { USE_NAMES } from '../../engine/admin/platform-rows.ts'
import type { Strengths } from '../../engine/scan/confidence.ts'
import type { PlatformGroup } from '../../engine/scan/platform-groups.ts'
import { APPROVED_SHARE } from '../../engine/scan/risk.ts'
import type { AccessKind } from '../../registry/contact.ts'
import { knownText, type RiskTerm as RegistryTerm } from '../../registry/risk-sum.ts'
import { registeredPlatform } from '../clients/of-platform.tsx'
import { Bar, DAY_COLUMNS, Key, Timeline } from '../design/chart.tsx'
import { bytesColumn, platformClientsPath } from '../design/client-columns.tsx'
import { CsvLink, Filters } from '../design/list.tsx'
import {
  aboutText,
  Card,
  countOf,
  countText,
  Empty,
  Lines,
  lastDays,
  Notice,
  PageHead,
  platformPath,
  StateTag,
  Tag,
  Time,
  volumeText,
} from '../design/parts.tsx'
import { queryOf, RangeFields } from '../design/range.tsx'
import { type Column, countColumn, Table, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvTable } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import {
  DECISION_ACTIONS,
  DECISION_WORDS,
  DecisionCard,
  type DecisionProps,
  DONE,
  History,
  isWaiting,
  UNDONE,
  Undo,
  undoOf,
} from './decision.tsx'
import { decide } from './list.tsx'
import { managersPath } from './managers.tsx'
import { type Count, type PlatformFinding, type PlatformView, platformView } from './read-platform.ts'

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
  return <Lines rows={counts.map(([what, count]) => [names[what] ?? what, countText(count)])} />
}

function Page(props: DecisionProps) {
  const { visit, view } = props
  const { nowMs, organization } = visit
  const { name, vendor, type, url, state, finding } = view
  const host = URL.parse(url)?.host
  const undo = undoOf(visit)
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href="/platforms">Platforms</a> / {type}
          </>
        }
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
        {visit.may('client.read') && view.isRegistered && (
          <a class="button" href={platformClientsPath(name) + queryOf(view.range)}>
            Who uses it
          </a>
        )}
        {visit.may('approval.add') && view.isRegistered && isWaiting(state) && (
          <a class="button" href="#decision">
            Decide
          </a>
        )}
      </PageHead>
      {view.decisionPending && (
        <Notice tone="warn" title="The decision waits for the next scan">
          <p class="small">The next scan updates the risk on this page and in the API. It is already requested.</p>
        </Notice>
      )}
      {undo?.names.includes(name) && <Undo undo={undo} from={name} nowMs={nowMs} />}
      {finding === undefined ? (
        <>
          <Empty title={`Not seen in the ${lastDays(organization.evidenceWindowDays)}`}>
            <p class="muted">{name} is in the registry. Its figures appear here after the first scan with a match.</p>
            <a class="button" href="/platforms">
              Show all platforms
            </a>
          </Empty>
          <div class="two">
            <DecisionCard {...props} />
            <History {...props} />
          </div>
        </>
      ) : (
        <Finding {...props} finding={finding} />
      )}
    </>
  )
}

interface FindingProps extends DecisionProps {
  readonly finding: PlatformFinding
}

function Finding(props: FindingProps) {
  const { visit, finding } = props
  return (
    <div class="wide">
      <div class="column">
        <RiskCard {...props} />
        <UsePerDay {...props} />
        {finding.groups.length > 0 && <Groups {...props} />}
        <Names {...props} />
        <History {...props} />
      </div>
      <div class="column">
        <DecisionCard {...props} />
        <Confidence {...props} />
        <Card
          title="How it was seen"
          note={
            <>
              last <Time ms={finding.lastSeenMs} nowMs={visit.nowMs} />
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

function UsePerDay({ visit, view, finding }: FindingProps) {
  const { range, name } = view
  const use = finding.inRange ?? finding
  return (
    <Card title="Use per day" note={<span class="row">distinct clients {fileOf(view, 'days')}</span>}>
      <Filters action={platformPath(name)}>
        <RangeFields range={range} windowDays={visit.organization.evidenceWindowDays} nowMs={visit.nowMs} />
      </Filters>
      <figure>
        <Timeline
          days={finding.timeline}
          label={`Distinct clients of ${name} per day`}
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

function Groups({ visit, view, finding: { groups } }: FindingProps) {
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
      <Table visit={visit} id="groups" label="Groups" columns={columns} rows={shown} />
    </Card>
  )
}

const GROUPS_SHOWN = 10

/** A term of the risk, and the input that it comes from. */
interface RiskTerm {
  readonly input: string
  readonly reason: string
  /** Where the registry has the reason from. */
  readonly sources?: readonly string[]
  readonly points: number
  readonly isSum?: boolean
}

const RISK_COLUMNS: readonly Column<RiskTerm>[] = [
  {
    id: 'reason',
    name: 'Reason',
    cell: ({ isSum, reason, sources = [] }) => (
      <>
        {isSum ? <strong>{reason}</strong> : reason}
        {sources.length > 0 && <p class="small muted">Sources: {sources.join(', ')}</p>}
      </>
    ),
    csv: ({ reason }) => reason,
  },
  { id: 'input', name: 'Input', csv: ({ input }) => input },
  { id: 'sources', name: 'Sources', csv: ({ sources = [] }) => sources.join(', ') },
  {
    id: 'points',
    name: 'Points',
    cell: ({ isSum, points }) => (isSum ? <strong class="total">{countText(points)}</strong> : changeText(points)),
    csv: ({ points }) => points,
    number: true,
  },
]

/** The risk of a platform as a sum: its class and its known facts, or the registry's score if it is no sum. */
function riskTerms(
  { why, sources, terms }: PlatformView,
  { risk, confidence, isApproved }: PlatformFinding,
): readonly RiskTerm[] {
  const share = `It is approved, so a share of ${APPROVED_SHARE} counts`
  return [
    ...(terms.length === 0
      ? [{ input: 'registry', reason: why, sources, points: risk.registry }]
      : terms.map((term) => ({ ...term, reason: term.text, sources: term.source ? [sourceText(term)] : [] }))),
    { input: '', reason: 'Risk of the platform', points: risk.registry, isSum: true },
    {
      input: 'evidence',
      reason: `The evidence of use has a confidence of ${confidence.toFixed(2)}`,
      points: risk.evidence,
    },
    {
      input: 'decision',
      reason: isApproved ? share : 'It is not approved, so all of it counts',
      points: risk.decision,
    },
    { input: '', reason: 'Of this, what counts toward the overall risk', points: risk.total, isSum: true },
  ]
}

/** `openai.com, 2026-08-22` */
function sourceText({ source = '', date }: RegistryTerm): string {
  return `${new URL(source).hostname}${date === undefined ? '' : `, ${date}`}`
}

/** The CSV file of a table of the page. */
function fileOf({ name }: PlatformView, table: string) {
  return <CsvLink path={`${platformPath(name)}/${table}`} />
}

function RiskCard({ visit, view, finding }: FindingProps) {
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
      <Table visit={visit} id="risk" label="Risk as a sum" columns={RISK_COLUMNS} rows={riskTerms(view, finding)} />
    </Card>
  )
}

/** `85`, `−12`, `0`. */
function changeText(points: number): string {
  return points < 0 ? `−${countText(-points)}` : countText(points)
}

function Confidence({ visit, finding }: FindingProps) {
  const windowDays = visit.organization.evidenceWindowDays
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

const NAME_COLUMNS: readonly Column<Count>[] = [
  { id: 'name', name: 'Name', cell: ([name]) => <span class="mono break">{name}</span>, csv: ([name]) => name },
  {
    id: 'matches',
    name: 'Matches',
    cell: ([, count]) => (count === 0 ? '' : countText(count)),
    csv: ([, count]) => (count === 0 ? '' : count),
    number: true,
  },
]

function Names({ visit, view, finding: { names, namesTotal } }: FindingProps) {
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
      <Table visit={visit} id="names" label="Names seen" columns={NAME_COLUMNS} rows={names} />
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

function clientsText(use: Pick<PlatformFinding, 'clients' | 'isEstimate'>): string {
  return `${aboutText(use)} ${use.clients === 1 ? 'client' : 'clients'}`
}

const PATH = '/platforms/:name'

export const PLATFORM_ROUTES: readonly Route[] = [
  page(PATH, 'discovery.read', (visit, { name }) => platformPage(visit, name, EMPTY_FORM)),
  file('risk', RISK_COLUMNS, riskTerms),
  file('names', NAME_COLUMNS, (_, { names }) => names),
  file('days', DAY_COLUMNS, (_, { timeline }) => timeline),
  ...DECISION_WORDS.map((word) =>
    form(
      `${PATH}/${word}`,
      DECISION_ACTIONS[word],
      async (visit, { name = '' }: { readonly name?: string }) => {
        await decide(visit, word, [registeredPlatform(visit, name).id])
        return redirect(`${platformPath(name)}?done=${DONE[word]}`)
      },
      { again: (visit, state, { name = '' }: { readonly name?: string }) => platformPage(visit, name, state) },
    ),
  ),
]

/** A table of the page as a CSV file, empty if the last scan did not find the platform. */
function file<Row>(
  table: string,
  columns: readonly Column<Row>[],
  rowsOf: (view: PlatformView, finding: PlatformFinding) => readonly Row[],
): Route {
  return page(`${PATH}/${table}.csv`, 'discovery.read', (visit, { name = '' }: { readonly name?: string }) => {
    const view = platformView(visit, name)
    return csvTable(`platform-${table}`, columns, view.finding === undefined ? [] : rowsOf(view, view.finding))
  })
}

function platformPage(visit: Visit, name: string, form: FormState): Answer {
  const view = platformView(visit, name)
  const { state, finding, decisionPending } = view
  const counts = finding === undefined ? 'counts as soon as the platform is seen' : 'is in the figures on this page'
  const more = decisionPending ? '' : `. The decision ${counts}`
  // The notice of a decision that was replaced meanwhile would be wrong.
  const done =
    state === 'waiting'
      ? { withdrawn: `${name} waits for a decision again${more}` }
      : { [state]: `${name} is ${state}${more}` }
  return visit.page(name, '/platforms', Page({ visit, view, form }), { form, done: { ...done, undone: UNDONE } })
}
