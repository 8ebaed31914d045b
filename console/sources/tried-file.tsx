import type { LogReport, TriedOutcome, TriedPlatform } from '../../dry-run/report.ts'
import { percentText } from '../../engine/export/report/text.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import { MESSAGE_BYTES_MAX } from '../../engine/limits.ts'
import { coverageJson } from '../../engine/scan/coverage.ts'
import { PLATFORM_TYPES } from '../../registry/platform-type.ts'
import { scoreOf } from '../../registry/risk-sum.ts'
import { type ChartTone, Key, Shares } from '../design/chart.tsx'
import { HiddenTraffic } from '../design/coverage.tsx'
import { Options } from '../design/form.tsx'
import { Card, countOf, countText, Empty, Figures, Lines, Notice, Risk, Tag, Time } from '../design/parts.tsx'
import { type Column, countColumn, csvOf, Table, timeColumn } from '../design/table.tsx'
import type { Visit } from '../http/visit.ts'
import { KEPT_MS } from '../try-file/limits.ts'
import type { Outcome } from '../try-file/upload.ts'

interface TriedRow extends TriedPlatform {
  readonly type: string
  readonly risk: number
  readonly approved: boolean
}

/**
 * How a file can be added to the organization. `no`: it is a capture, names no platform, was not read
 * to its end, or the member may not.
 */
export type Adding =
  | { readonly kind: 'kept'; readonly id: string; readonly organizationName: string; readonly tokens: readonly Token[] }
  | { readonly kind: 'not kept'; readonly problem: string }
  | { readonly kind: 'no' }

type Token = readonly [id: string, label: string]

export type ReadFile = Extract<Outcome, { kind: 'read' }>

/** What the organization's registry and approvals say about the platforms of a file. */
export function triedFile({ site, organization, nowMs }: Visit, file: ReadFile, adding: Adding) {
  const { report } = file
  const matcher = site.registry.matcherOf(organization.id)
  const { approved, plans } = site.store.decisions.inForce(organization.id, nowMs)
  const platforms = report.platforms.flatMap((tried): TriedRow[] => {
    const platform = matcher.platform(tried.id)
    if (platform === undefined) return []
    const { category: type } = PLATFORM_TYPES[platform.platformType]
    const risk = scoreOf(platform, plans)
    return [{ ...tried, name: platform.name, type, risk, approved: approved.has(tried.id) }]
  })
  return {
    ...{ file, report, platforms, adding },
    matches: report.kind === 'capture' ? report.coverage.names_matched : report.outcomes.matched,
    windowDays: organization.evidenceWindowDays,
  }
}

export type TriedView = ReturnType<typeof triedFile>

/** The share of messages that were understood, 0 to 1. */
function understoodShare({ messages, outcomes }: LogReport): number {
  const not = outcomes.rejected + outcomes.unknown + outcomes.ambiguous
  return messages === 0 ? 0 : 1 - not / messages
}

interface TriedFileProps {
  readonly visit: Visit
  readonly view: TriedView
}

/** What a file showed. */
export function TriedFile({ visit, view }: TriedFileProps) {
  const { file, report, platforms } = view
  const hasOthers = report.unmatchedNames.length > 0
  return (
    <>
      <p class="muted break" data-tried>
        <strong>{file.name}</strong>: {kindText(view)}
      </p>
      <Remarks view={view} />
      <Summary visit={visit} view={view} />
      <Add view={view} />
      {platforms.length > 0 ? (
        <FoundPlatforms visit={visit} view={view} />
      ) : (
        <Empty title="No AI platform in this file">
          <p class="muted">{nothingFound(view)}</p>
        </Empty>
      )}
      <div class="two">
        {report.kind === 'log' ? (
          <Outcomes report={report} />
        ) : (
          <HiddenTraffic
            coverage={coverageJson({ sensors: 1, days: 1, counters: report.coverage })}
            title="What a sensor could not see"
          />
        )}
        {hasOthers ? (
          <Card title="Most frequent other names" note="of no platform in the registry">
            <Lines rows={report.unmatchedNames.map(({ name, count }) => [name, countText(count)])} />
          </Card>
        ) : (
          <NextStep visit={visit} view={view} />
        )}
      </div>
      {report.kind === 'log' && report.problems.length > 0 && <Problems report={report} />}
      {hasOthers && <NextStep visit={visit} view={view} />}
    </>
  )
}

function kindText({ report, file }: TriedView): string {
  const packed = report.compression === 'none' ? '' : `, ${report.compression}`
  const size = `${sizeText(file.bytes)}${packed}`
  if (report.kind === 'capture') return `a capture in ${report.format} format, ${size}`
  const [first, ...others] = report.formats
  if (first === undefined) return `a log in no known format, ${size}`
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  return `a log in the format ${first.id}${more}, ${size}`
}

const UNITS = ['bytes', 'KiB', 'MiB'] as const

function sizeText(bytes: number): string {
  const unit = bytes < 1024 ? 0 : bytes < 1024 * 1024 ? 1 : 2
  const value = bytes / 1024 ** unit
  return `${unit === 0 ? bytes : value.toFixed(1)} ${UNITS[unit]}`
}

/** What limits the result. */
function Remarks({ view }: { readonly view: TriedView }) {
  const { report, matches, windowDays } = view
  return (
    <>
      {report.damage !== '' && (
        <Notice tone="warn" title="The file is damaged">
          <p class="break">Everything before the damage was read. {report.damage}</p>
        </Notice>
      )}
      {report.kind === 'log' && report.notUnderstood !== '' && (
        <Notice tone="warn" title="No line was understood">
          <p class="break">LOG_FORMAT: {report.notUnderstood}</p>
        </Notice>
      )}
      {report.ended !== 'complete' && (
        <Notice tone="warn" title="Only the beginning of the file was read">
          <p>
            {sizeText(report.bytes)} after decompression,{' '}
            {report.ended === 'bytes' ? 'the most that is read' : 'as much as fits the time limit'}. Try a part of it.
          </p>
        </Notice>
      )}
      {report.kind === 'log' && report.truncated > 0 && (
        <Notice tone="warn" title="Some messages are too long">
          <p>
            Of messages above {MESSAGE_BYTES_MAX / 1024} KiB, the service reads only the beginning:{' '}
            {countText(report.truncated)} of {countText(report.messages)}. A name after it is not found.
          </p>
        </Notice>
      )}
      {report.kind === 'log' && report.outsideWindow > 0 && (
        <Notice tone="warn" title="Some matches are too old">
          <p>
            {countText(report.outsideWindow)} of {countOf(matches, 'match is', 'matches are')} older than the evidence
            window of {countOf(windowDays, 'day')}. No scan would show them.
          </p>
        </Notice>
      )}
    </>
  )
}

function Summary({ visit: { nowMs }, view: { report, matches, platforms } }: TriedFileProps) {
  const isCapture = report.kind === 'capture'
  const firstMs = Math.min(...platforms.map((each) => each.firstMs))
  const lastMs = Math.max(...platforms.map((each) => each.lastMs))
  return (
    <Figures
      figures={[
        [
          'AI platforms',
          countText(report.platformsTotal),
          `${countText(platforms.filter(({ approved }) => !approved).length)} not approved`,
        ],
        [
          'Matches',
          countText(matches),
          `of ${isCapture ? countOf(report.coverage.names, 'name') : countOf(report.messages, 'message')}`,
        ],
        isCapture
          ? ['Packets', countText(report.coverage.packets), 'read']
          : ['Lines', countText(report.lines), `${percentText(understoodShare(report))} of the messages understood`],
        [
          'Time of the matches',
          platforms.length === 0 ? '–' : spanText(lastMs - firstMs),
          platforms.length === 0 ? (
            'no match'
          ) : (
            <>
              first <Time ms={firstMs} nowMs={nowMs} />
            </>
          ),
        ],
      ]}
    />
  )
}

/** Adds the matches of a log to the organization. */
function Add({ view: { adding, matches } }: { readonly view: TriedView }) {
  if (adding.kind === 'no') return null
  if (adding.kind === 'not kept') {
    return (
      <Notice tone="warn" title="This file cannot be added here">
        <p>
          It could not be kept: {adding.problem}. Add it with <code>posture-admin ingest file</code>.
        </p>
      </Notice>
    )
  }
  const { id, organizationName, tokens } = adding
  const [first] = tokens
  if (first === undefined) {
    return (
      <Notice tone="warn" title={`To add this log to ${organizationName}, create a monitoring token first`}>
        <a href="/monitoring-tokens">Monitoring Tokens</a>
      </Notice>
    )
  }
  return (
    <Card title={`Add this log to ${organizationName}`}>
      <form class="stack" method="post" action="/try-file/add">
        <input type="hidden" name="file" value={id} />
        <div class="field">
          <label for="token">As logs of the monitoring token</label>
          <Options name="token" options={tokens} chosen={first[0]} />
          <p class="hint">
            Its time zone and custom format apply. Lines that were added before are not counted again. The service keeps
            the file for {countOf(KEPT_MS / 60_000, 'minute')}, so that you can add it.
          </p>
        </div>
        <div class="row">
          <button type="submit" data-busy="Adding …">
            Add {countOf(matches, 'event')} to {organizationName}
          </button>
        </div>
      </form>
    </Card>
  )
}

const SPANS = [
  [86_400_000, 'days'],
  [3_600_000, 'hours'],
  [60_000, 'minutes'],
  [1000, 'seconds'],
] as const

function spanText(ms: number): string {
  const [unitMs, unit] = SPANS.find(([each]) => ms >= 2 * each) ?? [1000, 'seconds']
  return `${Math.round(ms / unitMs)} ${unit}`
}

const COLUMNS: readonly Column<TriedRow>[] = [
  {
    id: 'name',
    name: 'Platform',
    cell: ({ name, names }) => (
      <>
        <strong>{name}</strong>
        <p class="small muted break">{names.join(', ')}</p>
      </>
    ),
    csv: ({ name }) => name,
  },
  { id: 'names', name: 'Names', csv: ({ names }) => names.join(' ') },
  { id: 'type', name: 'Type', cell: ({ type }) => type, csv: ({ type }) => type, wide: true },
  { id: 'risk', name: 'Risk', cell: ({ risk }) => Risk({ score: risk }), csv: ({ risk }) => risk, number: true },
  {
    id: 'approved',
    name: 'Approved',
    cell: ({ approved }) => (approved ? Tag({ tone: 'good', children: 'approved' }) : 'no'),
    csv: ({ approved }) => String(approved),
    wide: true,
  },
  {
    id: 'clients',
    name: 'Clients',
    cell: ({ clients, clientsIncomplete }) => `${clientsIncomplete ? 'at least ' : ''}${countText(clients)}`,
    csv: ({ clients }) => clients,
    number: true,
  },
  { ...countColumn('matches', 'Matches', ({ matches }: TriedRow) => matches), wide: true },
  { id: 'first', name: 'First seen', csv: ({ firstMs }) => isoSeconds(firstMs) },
  { ...timeColumn('last', 'Last seen', ({ lastMs }: TriedRow) => lastMs), number: true, wide: true },
]

function FoundPlatforms({ visit, view: { platforms, report } }: TriedFileProps) {
  // Nothing is stored, so there is no address to load the file from.
  const csv = `data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(COLUMNS, platforms))}`
  return (
    <Card
      title="Platforms that would be found"
      note={
        <a class="button" href={csv} download="tried-file.csv">
          CSV
        </a>
      }
      bare
    >
      <Table visit={visit} id="tried" label="Platforms that would be found" columns={COLUMNS} rows={platforms} />
      {report.platformsTotal > platforms.length && (
        <p class="muted body">
          The {countText(platforms.length)} with the most matches of {countText(report.platformsTotal)}.
        </p>
      )}
    </Card>
  )
}

function nothingFound({ report }: TriedView): string {
  if (report.kind === 'capture') {
    if (report.coverage.packets === 0) return 'The capture has no packet.'
    return report.coverage.names === 0
      ? 'The capture has no DNS query and no server name. Was it taken where the clients connect to the internet?'
      : 'None of its names belongs to a platform of the registry.'
  }
  if (report.messages === 0) return 'The file has no lines.'
  if (report.notUnderstood !== '') return 'No line was understood. The reason is below.'
  const { unmatched, noDomain, ambiguous, matched } = report.outcomes
  if (noDomain > 0 && matched + unmatched + ambiguous === 0) {
    return 'No line names a host. Let the device log host names: DNS questions, URLs or TLS server names.'
  }
  return understoodShare(report) < 0.5
    ? 'Most lines were not understood. The reasons are below.'
    : 'None of its names belongs to a platform of the registry.'
}

const OUTCOMES: readonly (readonly [TriedOutcome, ChartTone, string])[] = [
  ['matched', 'shadow', 'Name an AI platform'],
  ['unmatched', 'approved', 'Name another host'],
  ['noDomain', 'third', 'Name no host'],
  ['skipped', 'fourth', 'Are no request of a client'],
  ['ambiguous', 'rest', 'May be no request of a client'],
  ['rejected', 'rest', 'Have an invalid field'],
  ['unknown', 'rest', 'Have no known format'],
]

function Outcomes({ report }: { readonly report: LogReport }) {
  const { messages, outcomes, formats } = report
  const all = Math.max(1, messages)
  return (
    <Card title="Messages by outcome" note={`${countText(messages)} messages`}>
      <Shares
        parts={OUTCOMES.map(([outcome, tone]) => ({ tone, share: outcomes[outcome] / all }))}
        label={`${percentText(outcomes.matched / all)} of the messages name an AI platform`}
      />
      <Lines
        rows={[
          ...OUTCOMES.filter(([outcome]) => outcomes[outcome] > 0).map(
            ([outcome, tone, what]) =>
              [
                <Key tone={tone}>{what}</Key>,
                `${percentText(outcomes[outcome] / all)} · ${countText(outcomes[outcome])}`,
              ] as const,
          ),
          ...(formats.length > 1 ? formats : []).map(
            ({ id, messages: count }) => [`Format ${id}`, countText(count)] as const,
          ),
        ]}
      />
    </Card>
  )
}

function Problems({ report }: { readonly report: LogReport }) {
  return (
    <Card title="Messages that were not understood" note="the first of each reason, redacted">
      <ul class="lines">
        {report.problems.map(({ format, reason, count, line, sample }) => (
          <li key={`${format} ${reason}`} class="sample">
            <div>
              <strong>
                {format === '' ? '' : `${format}: `}
                {reason}
              </strong>
              <span class="small muted">
                {' '}
                {countText(count)}, first in line {countText(line)}
              </span>
            </div>
            <pre>{sample}</pre>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function nextStep(report: TriedView['report']): readonly [title: string, text: string] {
  if (report.kind === 'capture') {
    return ['Next: watch this network', 'Run a collector where this capture was taken. It needs a monitoring token.']
  }
  if (report.formats.length === 0) {
    return ['Next: try another log', 'Setup shows which devices log names, and how to configure their logs.']
  }
  return [
    'Next: send this log',
    'Let the device send its log by syslog, with a monitoring token. Its lines then count in the next scan.',
  ]
}

function NextStep({ visit, view }: TriedFileProps) {
  const [title, text] = nextStep(view.report)
  return (
    <Empty title={title}>
      <p class="muted">{text}</p>
      {visit.may('token.read') && (
        <a class="button" href="/setup-guide">
          Setup
        </a>
      )}
    </Empty>
  )
}
