import { createHash } from 'node:crypto'
import type { ComponentChildren } from 'preact'
import { renderToString } from 'preact-render-to-string'
import { lawFrom } from '../../assess/grade.ts'
import { GROUP_PEOPLE_MIN } from '../../limits.ts'
import { frameworkName } from '../../store/framework.ts'
import type { ReportContent, ReportedFindings } from './content.ts'
import { DOCUMENT_STYLE, REPORT_STYLE } from './style.ts'
import {
  bytesText,
  changeText,
  countOf,
  countText,
  dateText,
  lastDays,
  NO_VOLUME,
  percentText,
  pointsText,
  riskLevel,
} from './text.ts'

export interface ArticleProps {
  readonly content: ReportContent
  readonly findings: ReportedFindings
  /** The address of a platform's page; undefined for a document without a console. */
  readonly linkOf?: (platform: string) => string
}

/** The report itself: the only rendering, for the console's page and for the document. */
export function Article({ content, findings, linkOf }: ArticleProps) {
  const { organization, domain, sinceMs, untilMs, nowMs } = content
  const named = (name: string) => (linkOf === undefined ? name : <a href={linkOf(name)}>{name}</a>)
  return (
    <article class="posture-report">
      <h1>Use of AI at {organization}</h1>
      <p class="about">
        {domain} · {dateText(sinceMs)} to {dateText(untilMs - 1)} (UTC)
      </p>
      <p class="summary">{summaryText(content, findings)}</p>
      <Figures content={content} findings={findings} />
      <Change content={content} findings={findings} />
      <Part
        title="Platforms with the highest risk"
        note={`${countText(findings.risks.length)} of ${countText(findings.platforms)}`}
      >
        {findings.risks.length === 0 ? (
          <p>No platform was found.</p>
        ) : (
          <Rows
            heads={['Platform', 'Risk', 'Clients', 'Decision', 'Owner', 'Why it is risky']}
            rows={findings.risks.map(({ name, risk, clients, isEstimate, state, owner, why }) => [
              named(name),
              <Level score={risk} />,
              isEstimate ? `about ${countText(clients)}` : countText(clients),
              state,
              owner === '' ? 'nobody' : owner,
              why,
            ])}
          />
        )}
      </Part>
      {findings.groups.length > 0 && (
        <Part title="Groups" note={`of at least ${GROUP_PEOPLE_MIN} people, the most matches first`}>
          <Rows
            heads={['Group', 'Members', 'Clients', 'Platforms', 'Matches', 'Sent']}
            rows={findings.groups.map(({ name, members, clients, platformIds, matches, bytesSent }) => [
              name,
              countText(members),
              countText(clients),
              countText(platformIds.size),
              countText(matches),
              bytesText(bytesSent),
            ])}
          />
        </Part>
      )}
      <Part title="Who decides what" note={`${countText(findings.decisions.length)} of ${countText(findings.decided)}`}>
        <ShareBar
          label="Platforms by decision"
          parts={[
            { tone: 'good', name: 'approved', count: findings.byState.approved },
            { tone: 'bad', name: 'rejected', count: findings.byState.rejected },
            { tone: 'warn', name: 'expired', count: findings.byState.expired },
            { tone: 'plain', name: 'waiting for a decision', count: findings.byState.waiting },
          ]}
        />
        {findings.decisions.length > 0 && (
          <Rows
            heads={['Platform', 'Decision', 'Decided by', 'Owner', 'Since', 'Until']}
            rows={findings.decisions.map(({ name, state, by, owner, atMs, expiresAtMs }) => [
              named(name),
              state,
              by.replace(/^(?:member|operator) /, ''),
              owner === '' ? 'nobody' : owner,
              dateText(atMs),
              expiresAtMs === 0 ? '' : dateText(expiresAtMs),
            ])}
          />
        )}
      </Part>
      <Coverage content={content} />
      <Part title="Assessments">
        {content.scores.length === 0 ? (
          <p>No framework was assessed yet.</p>
        ) : (
          <Rows
            heads={['Framework', 'Score', 'Grade', 'Basis', 'Change', 'Completed']}
            rows={content.scores.map(({ name, score, grade, basis, change, completedMs }) => [
              name,
              String(score),
              grade,
              basis,
              change === undefined ? '' : changeText(change),
              dateText(completedMs),
            ])}
          />
        )}
      </Part>
      <Recommendations content={content} />
      <p class="about">
        Risk is 0 (none) to 100. The overall risk follows from the platforms that are used, how certain their use is,
        and whether they are approved. Made on {dateText(nowMs)} from the scan of {dateText(findings.completedMs)} by
        Security Posture Service.
      </p>
    </article>
  )
}

/** The report in a few sentences. */
export function summaryText({ organization, days, coverage }: ReportContent, findings: ReportedFindings): string {
  const { platforms, aiCapable, byState, overallRisk } = findings
  const capable = aiCapable === 0 ? '' : ` ${aiCapableText(aiCapable)}`
  if (platforms === 0) return `In the ${lastDays(days)}, no AI platform was seen at ${organization}.${capable}`
  const notApproved = platforms - byState.approved
  const share = coverage.visible_share
  return [
    `In the ${lastDays(days)}, ${countOf(platforms, 'AI platform was', 'AI platforms were')} used at ${organization}. `,
    notApproved === 0 ? 'All of them are approved. ' : `${countOf(notApproved, 'is', 'are')} not approved. `,
    `The overall risk is ${overallRisk} of 100 (${riskLevel(overallRisk)}).`,
    share === null ? '' : ` Sensors could see ${percentText(share)} of the traffic.`,
    capable,
  ].join('')
}

function aiCapableText(count: number): string {
  const [isUsed, is] = count === 1 ? ['other product', 'is'] : ['other products', 'are']
  return `${countText(count)} ${isUsed} in use ${is} general software with AI features, and not counted.`
}

function Figures({ content: { coverage }, findings }: Pick<ArticleProps, 'content' | 'findings'>) {
  const { overallRisk, platforms, bytesSent, bytesReceived, byState, change } = findings
  const share = coverage.visible_share
  const figures: readonly (readonly [name: string, value: string, note: string])[] = [
    [
      'Overall risk',
      `${overallRisk} of 100`,
      change.risk === undefined ? 'no earlier scan' : `${changeText(change.risk)} since then`,
    ],
    ['Platforms', countText(platforms), `${countText(change.newPlatforms)} new`],
    [
      'Sent',
      bytesText(bytesSent) || '–',
      bytesSent + bytesReceived === 0 ? NO_VOLUME : `${bytesText(bytesReceived) || 'nothing known'} received`,
    ],
    ['Not approved', countText(platforms - byState.approved), `${countText(byState.approved)} approved`],
    [
      'Share of traffic seen',
      share === null ? '–' : percentText(share),
      share === null ? 'no sensor reports' : `by ${countOf(coverage.sensors, 'sensor')}`,
    ],
  ]
  return (
    <dl class="figures">
      {figures.map(([name, value, note]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          <dd>{note}</dd>
        </div>
      ))}
    </dl>
  )
}

function Change({ content, findings }: Pick<ArticleProps, 'content' | 'findings'>) {
  const { sinceMs, untilMs, isSinceLast, nowMs } = content
  const { risk, risks, newNames, ...counts } = findings.change
  const last = isSinceLast ? 'the last report, ' : ''
  const isPast = untilMs < nowMs
  // The millisecond before midnight is of the last day.
  const period = isPast ? `from ${dateText(sinceMs)} to ${dateText(untilMs - 1)}` : `since ${last}${dateText(sinceMs)}`
  const lines = [
    risk === undefined
      ? 'No scan had completed at that time.'
      : `The overall risk ${isPast ? 'at the end was' : 'is'} ${pointsText(risk)} ${isPast ? 'at the beginning' : 'then'}.`,
    counts.newPlatforms === 0
      ? 'No new platform was found.'
      : `${countOf(counts.newPlatforms, 'new platform')}: ${newNames.join(', ')}${counts.newPlatforms > newNames.length ? ' and others' : ''}.`,
    `${countOf(counts.approved, 'platform')} approved, ${countText(counts.rejected)} rejected.`,
    `${countOf(counts.assessmentsCompleted, 'assessment')} completed.`,
    `${countOf(counts.recommendationsOpened, 'recommendation')} opened, ${countText(counts.recommendationsCompleted)} completed.`,
  ]
  return (
    <Part title={`Change ${period}`}>
      {risks.length > 1 && <RiskChart points={risks} untilMs={untilMs} />}
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </Part>
  )
}

function Coverage({ content }: Pick<ArticleProps, 'content'>) {
  const { coverage, silentSensors, sources, silentSources } = content
  const { visible_share: share, hidden, names_seen: seen } = coverage
  const silent = (count: number): string => (count === 0 ? '' : `, of which ${countOf(count, 'is', 'are')} silent`)
  return (
    <Part title="What this report can know">
      <p>
        {share === null
          ? 'No sensor reported in this period, so nobody can say which share of the traffic was seen. '
          : `${countOf(coverage.sensors, 'sensor')}${silent(silentSensors)} saw ${percentText(share)} of the traffic. `}
        {sources === 0
          ? 'No source sends events or logs. '
          : `Events and logs come from ${countOf(sources, 'source')}${silent(silentSources)}. `}
        Use that passes no sensor and no log, such as on a phone in another network, is not in this report.
      </p>
      {coverage.sensors > 0 && (
        <ShareBar
          label="Names that the sensors could see"
          parts={[
            { tone: 'good', name: 'readable names', count: Math.max(0, seen - hidden.ech) },
            { tone: 'bad', name: 'Encrypted Client Hello', count: hidden.ech },
            { tone: 'warn', name: 'encrypted DNS and tunnels', count: hidden.encrypted_dns + hidden.tunnels },
            { tone: 'plain', name: 'no name, or incomplete', count: hidden.no_name + hidden.incomplete },
          ]}
        />
      )}
    </Part>
  )
}

function Recommendations({ content }: Pick<ArticleProps, 'content'>) {
  const { recommendations, openRecommendations, openWithoutOwner, completedRecommendations, nowMs } = content
  const completed = `${countText(completedRecommendations)} completed`
  if (openRecommendations === 0) {
    return (
      <Part title="Recommendations" note={completed}>
        <p>No recommendation is open.</p>
      </Part>
    )
  }
  const note = `the ${recommendations.length} most urgent of ${countText(openRecommendations)} open, ${countText(openWithoutOwner)} without an owner, ${completed}`
  return (
    <Part title="Recommendations" note={note}>
      <Rows
        heads={['Priority', 'Recommendation', 'Framework', 'Owner']}
        rows={recommendations.map(({ priority, title, frameworkId, itemId, owner }) => {
          const from = lawFrom(frameworkId, itemId, nowMs)
          return [
            String(priority),
            from === undefined ? title : `${title} (law from ${from})`,
            `${frameworkName(frameworkId)} ${itemId}`,
            owner === '' ? 'nobody' : owner,
          ]
        })}
      />
    </Part>
  )
}

function Level({ score }: { readonly score: number }) {
  const level = riskLevel(score)
  return (
    <span class={`level ${level}`}>
      {score} {level}
    </span>
  )
}

interface PartProps {
  readonly title: string
  readonly note?: string
  readonly children: ComponentChildren
}

function Part({ title, note, children }: PartProps) {
  return (
    <section>
      <h2>{title}</h2>
      {note !== undefined && <p class="about">{note}</p>}
      {children}
    </section>
  )
}

interface RowsProps {
  readonly heads: readonly string[]
  readonly rows: readonly (readonly ComponentChildren[])[]
}

function Rows({ heads, rows }: RowsProps) {
  return (
    <table>
      <thead>
        <tr>
          {heads.map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells) => (
          <tr>
            {cells.map((cell) => (
              <td>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const STYLE = `${DOCUMENT_STYLE}${REPORT_STYLE}`
/** Nothing is loaded, no script runs, and of styles only these are used (CSP Level 3). */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; form-action 'none'`

/** The report as one HTML file that needs no other. */
export function reportDocument(content: ReportContent, findings: ReportedFindings): string {
  const html = renderToString(
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content={POLICY} />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>{`Use of AI at ${content.organization}`}</title>
        <style dangerouslySetInnerHTML={{ __html: STYLE }} />
      </head>
      <body>
        <Article content={content} findings={findings} />
      </body>
    </html>,
  )
  return `<!DOCTYPE html>\n${html}\n`
}

/** Drawing area of the chart of the risk, in SVG units. */
const WIDTH = 600
const HEIGHT = 120
const RISK_MAX = 100
const BAR_HEIGHT = 14

interface RiskPoint {
  readonly atMs: number
  readonly risk: number
}

/** The overall risk until `untilMs`, as steps: it is that of a scan until the next one. */
function RiskChart({ points, untilMs }: { readonly points: readonly RiskPoint[]; readonly untilMs: number }) {
  const first = points[0]?.atMs ?? 0
  const span = Math.max(1, untilMs - first)
  const x = (atMs: number): number => Math.round(((atMs - first) / span) * WIDTH)
  const y = (risk: number): number => Math.round((1 - risk / RISK_MAX) * HEIGHT)
  const steps = points.map(({ atMs, risk }, index) =>
    index === 0 ? `M${x(atMs)} ${y(risk)}` : `H${x(atMs)}V${y(risk)}`,
  )
  const [from, to] = [points[0]?.risk ?? 0, points.at(-1)?.risk ?? 0]
  const label = `Overall risk from ${dateText(first)} (${from}) to ${dateText(untilMs)} (${to})`
  return (
    <figure>
      <svg viewBox={`0 -4 ${WIDTH} ${HEIGHT + 8}`} role="img" aria-label={label}>
        <path class="grid" d={`M0 0H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT}H${WIDTH}`} />
        <path class="line" d={`${steps.join('')}H${WIDTH}`} />
      </svg>
      <figcaption>{label}. The lines are 0, 50 and 100.</figcaption>
    </figure>
  )
}

interface SharePart {
  readonly tone: 'good' | 'warn' | 'bad' | 'plain'
  readonly name: string
  readonly count: number
}

/** Parts of a whole as one bar, with their numbers below: color alone says nothing. */
function ShareBar({ label, parts }: { readonly label: string; readonly parts: readonly SharePart[] }) {
  const all = parts.reduce((sum, { count }) => sum + count, 0)
  if (all === 0) return null
  let from = 0
  const bars = parts.map(({ tone, count }) => {
    const bar = { tone, from, width: (count / all) * WIDTH }
    from += bar.width
    return bar
  })
  return (
    <figure>
      <svg viewBox={`0 0 ${WIDTH} ${BAR_HEIGHT}`} role="img" aria-label={label}>
        {bars.map(({ tone, from: start, width }) => (
          <rect key={tone} class={tone} x={start} y="0" width={width} height={BAR_HEIGHT} />
        ))}
      </svg>
      <figcaption>
        {label}:{' '}
        {parts.map(({ tone, name, count }, index) => (
          <span key={name}>
            {index > 0 && ' · '}
            <i class={tone} /> {name} {countText(count)} ({percentText(count / all)})
          </span>
        ))}
      </figcaption>
    </figure>
  )
}
