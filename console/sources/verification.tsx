import type { ComponentChildren } from 'preact'
import { type Arrival, arrivalsSince, VERIFY_MS, VERIFY_SINCE_MS } from '../../engine/admin/verify.ts'
import { insteadOf } from '../../engine/admin/verify-instead.ts'
import { HOUR_MS, isoSeconds, MINUTE_MS, SECOND_MS } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import { type MonitoringToken, statusOf } from '../../engine/store/secrets.ts'
import { Bar } from '../design/chart.tsx'
import { CsvLink } from '../design/list.tsx'
import { Card, countText, Figures, PageHead, Tag, Time, type Tone } from '../design/parts.tsx'
import { type Column, countColumn, Table } from '../design/table.tsx'
import { redirect } from '../http/answer.ts'
import { csvTable } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { LISTENER_NAMES } from './read.ts'
import { Steps } from './setup-guide.tsx'

/** Senders on the page, most recently active first. */
const SENDERS_SHOWN = 20
/** The newest buffered events that are read for their platforms. */
const EVENTS_READ_MAX = 500
const PLATFORMS_SHOWN = 12
/** The service remembers arrivals for an hour, so an older verification cannot be shown. */
const STARTED_MAX_MS = HOUR_MS - VERIFY_SINCE_MS - MINUTE_MS
/** Without an event after this time, the page says what arrived so far. */
const EXPLAIN_AFTER_MS = 10 * SECOND_MS

/**
 * `verified`: events arrived. `ended`: none arrived in time. `inactive`: the token is revoked or
 * expired.
 */
type State = 'waiting' | 'verified' | 'ended' | 'inactive'

/** The start of a verification in a query; undefined if a new one must begin. */
function startOf(query: URLSearchParams, nowMs: number): number | undefined {
  const text = query.get('started') ?? ''
  const startedMs = /^\d{1,15}$/.test(text) ? Number(text) : 0
  return startedMs <= nowMs && startedMs > nowMs - STARTED_MAX_MS ? startedMs : undefined
}

/** All senders with a token, most recently active first. */
function arrivalsOf({ site, organization }: Visit, { id }: MonitoringToken, startedMs: number): Arrival[] {
  return arrivalsSince(site.store, organization.id, new Set([id]), startedMs - VERIFY_SINCE_MS)
}

/**
 * What has arrived with a token since shortly before `startedMs`. The query has the start and the
 * store has the counts, so nothing is kept between two requests of a verification.
 */
function verificationView(visit: Visit, token: MonitoringToken, startedMs: number) {
  const { site, organization, nowMs } = visit
  const sinceMs = startedMs - VERIFY_SINCE_MS
  const status = statusOf(token, nowMs)
  const senders = arrivalsOf(visit, token, startedMs)
  const sum = (of: (arrival: Arrival) => number): number => senders.reduce((total, each) => total + of(each), 0)
  const events = sum((each) => each.events)
  const elapsedMs = Math.min(VERIFY_MS, nowMs - startedMs)
  const state: State =
    status !== 'active' ? 'inactive' : events > 0 ? 'verified' : elapsedMs >= VERIFY_MS ? 'ended' : 'waiting'
  const explains = state === 'ended' || (state === 'waiting' && elapsedMs >= EXPLAIN_AFTER_MS)
  return {
    ...{ token, status, state, startedMs, elapsedMs, events, senders },
    messages: sum((each) => each.messages),
    firstSeenMs: senders.length === 0 ? 0 : Math.min(...senders.map((each) => each.firstSeenMs)),
    lastSeenMs: senders[0]?.timeMs ?? 0,
    /** Names of AI platforms in the events that arrived. */
    platforms: state === 'verified' ? platformsSince(visit, sinceMs, events) : [],
    instead: explains ? insteadOf(site.store, organization, new Set([token.id]), sinceMs, nowMs) : [],
  } as const
}

type VerificationView = ReturnType<typeof verificationView>

/**
 * Platforms in the organization's newest events: those that wait for a scan, and those that a scan
 * has just found. Events of logs can be old, so the order of arrival counts, not their time.
 */
function platformsSince({ site, organization }: Visit, sinceMs: number, events: number): readonly string[] {
  const { buffer } = site.store
  const matcher = site.registry.matcherOf(organization.id)
  const count = Math.min(EVENTS_READ_MAX, events)
  const waiting = buffer
    .read(organization.id, Math.max(0, buffer.next(organization.id) - count), count)
    .flatMap(({ event }) => matcher.match(event.name)?.platform.name ?? [])
  const found = listedDiscovery(site.store, organization)
    .platforms.filter(({ createdMs, lastSeenMs }) => createdMs >= sinceMs || lastSeenMs >= sinceMs)
    .map(({ name }) => name)
  return [...new Set([...waiting, ...found])].sort()
}

/** How often the browser asks while no event has arrived, and afterwards. */
const WAITING_POLL_MS = 500
const VERIFIED_POLL_MS = 2000
/** Without scripts, the page is loaded again after this time while no event has arrived. */
const RELOAD_SECONDS = 2

interface VerificationProps {
  readonly visit: Visit
  readonly view: VerificationView
}

/** The title of the page, which shows the state in a tab of the browser. */
const TITLES: Readonly<Record<State, string>> = {
  waiting: 'Verifying',
  verified: 'Verified',
  ended: 'Not verified',
  inactive: 'Not verified',
}

function pollMs({ state, elapsedMs }: VerificationView): number | undefined {
  if (state === 'waiting') return WAITING_POLL_MS
  return state === 'verified' && elapsedMs < VERIFY_MS ? VERIFIED_POLL_MS : undefined
}

function Verification({ visit, view }: VerificationProps) {
  const { token, platforms, senders, startedMs, instead } = view
  const path = `/monitoring-tokens/${token.id}/verify`
  return (
    <>
      <PageHead
        title="Verify"
        about={
          <>
            Token “{token.label}”, <span class="mono">svc_mt_{token.visible}…</span>
          </>
        }
      >
        <a class="button" href="/monitoring-tokens">
          Monitoring Tokens
        </a>
      </PageHead>
      <Steps current={3} tokenId={token.id} />
      <Live id="verification" pollMs={pollMs(view)}>
        <StateCard view={view} />
        <LivePart id="verification-figures">
          <Arrived visit={visit} view={view} />
        </LivePart>
        <LivePart id="verification-platforms">
          {platforms.length > 0 && (
            <Card title="AI platforms in the events of the organization" note="the newest events">
              <ul class="names">
                {platforms.slice(0, PLATFORMS_SHOWN).map((name) => (
                  <li key={name}>
                    <Tag>{name}</Tag>
                  </li>
                ))}
                {platforms.length > PLATFORMS_SHOWN && (
                  <li class="muted">and {countText(platforms.length - PLATFORMS_SHOWN)} more</li>
                )}
              </ul>
            </Card>
          )}
        </LivePart>
        <LivePart id="verification-senders">
          {senders.length > 0 && (
            <Card
              title="Senders"
              note={
                <span class="row">
                  since five minutes before the start{' '}
                  <CsvLink path={path} query={new URLSearchParams({ started: String(startedMs) })} />
                </span>
              }
              bare
            >
              <Table
                {...{ visit, id: 'senders', label: 'Senders with this token', columns: COLUMNS }}
                rows={senders.slice(0, SENDERS_SHOWN)}
              />
              {senders.length > SENDERS_SHOWN && (
                <p class="muted after">and {countText(senders.length - SENDERS_SHOWN)} more</p>
              )}
            </Card>
          )}
        </LivePart>
        <LivePart id="verification-instead">
          {instead.length > 0 && (
            <Card title={view.state === 'ended' ? 'What arrived instead' : 'What arrived so far'}>
              <ul class="lines">
                {instead.map(({ found, next, sample }) => (
                  <li key={found} class="sample">
                    <div>
                      <strong>{found}</strong>
                      <p class="muted break">{next}.</p>
                    </div>
                    {sample !== '' && <pre>{sample}</pre>}
                  </li>
                ))}
              </ul>
            </Card>
          )}
        </LivePart>
      </Live>
    </>
  )
}

/** The state in one sentence. Screen readers announce each change. */
function StateCard({ view }: { readonly view: VerificationView }) {
  const { state, status, elapsedMs, token } = view
  const [tone, tag, title] = describe(view)
  return (
    <section class={`card verification ${state}`}>
      <div class="body">
        <LivePart id="verification-state" isStatus>
          <Tag tone={tone}>{tag}</Tag>
          <h2>{title}</h2>
        </LivePart>
        <LivePart id="verification-progress">
          {state === 'waiting' && (
            <div class="progress">
              <Bar share={elapsedMs / VERIFY_MS} label="Elapsed time" />
              <p class="small muted">{durationText(elapsedMs)} of 5 minutes. You can leave this page and come back.</p>
            </div>
          )}
          {state === 'verified' && (
            <p class="row">
              <a class="button first" href="/overview">
                Overview
              </a>
              <span class="muted">The next scan turns these events into findings.</span>
            </p>
          )}
          {state === 'ended' && (
            <p class="row">
              <a class="button first" href={`/monitoring-tokens/${token.id}/verify`}>
                Verify again
              </a>
            </p>
          )}
          {state === 'inactive' && (
            <p class="muted">
              Its senders are rejected since it is {status}. Generate a new token, and set it in the senders.
            </p>
          )}
        </LivePart>
      </div>
    </section>
  )
}

function describe({ state, status, messages }: VerificationView): readonly [tone: Tone, tag: string, title: string] {
  switch (state) {
    case 'waiting':
      return messages === 0
        ? ['plain', 'waiting', 'Waiting for the first event']
        : ['warn', 'waiting', 'Messages arrive, and none is an event yet']
    case 'verified':
      return ['good', 'verified', 'Events arrive']
    case 'ended':
      return ['bad', 'not verified', 'No event arrived within 5 minutes']
    case 'inactive':
      return ['bad', status, `This token is ${status}`]
    default:
      return state satisfies never
  }
}

function Arrived({ visit: { nowMs }, view }: VerificationProps) {
  const { messages, events, senders, firstSeenMs, lastSeenMs } = view
  return (
    <Figures
      figures={[
        ['Messages', countText(messages)],
        ['Events', countText(events)],
        ['Senders', countText(senders.length)],
        [
          'Last arrival',
          <span class="words">
            <Seen ms={lastSeenMs} nowMs={nowMs} />
          </span>,
          firstSeenMs > 0 && (
            <>
              first <Seen ms={firstSeenMs} nowMs={nowMs} />
            </>
          ),
        ],
      ]}
    />
  )
}

/** Like Time, in seconds below a minute. */
function Seen({ ms, nowMs }: { readonly ms: number; readonly nowMs: number }) {
  const elapsedMs = nowMs - ms
  if (ms === 0 || elapsedMs >= MINUTE_MS || elapsedMs < SECOND_MS) return <Time ms={ms} nowMs={nowMs} />
  return (
    <span class="time" title={new Date(ms).toISOString()}>
      {durationText(elapsedMs)} ago
    </span>
  )
}

/** `1 min 12 s` */
function durationText(ms: number): string {
  const seconds = Math.floor(ms / SECOND_MS)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

const COLUMNS: readonly Column<Arrival>[] = [
  {
    id: 'sender',
    name: 'Sender',
    cell: ({ host, address, listener }) => (
      <>
        <strong>{host === '' ? address : host}</strong>
        <p class="small muted break">
          {LISTENER_NAMES[listener] ?? listener}
          {host !== '' && ` from ${address}`}
        </p>
      </>
    ),
    csv: ({ host, address }) => (host === '' ? address : host),
  },
  { id: 'address', name: 'Address', csv: ({ address }) => address },
  { id: 'listener', name: 'Listener', csv: ({ listener }) => listener },
  {
    id: 'format',
    name: 'Format',
    cell: ({ format, listener }) =>
      format === '' ? <span class="muted">{listener === 'https' ? 'collector' : 'not recognized'}</span> : format,
    csv: ({ format }) => format,
  },
  { ...countColumn('messages', 'Messages', ({ messages }: Arrival) => messages), wide: true },
  countColumn('events', 'Events', ({ events }) => events),
  { ...countColumn('understood', 'Not understood', notUnderstood), wide: true },
  {
    id: 'first',
    name: 'First',
    cell: ({ firstSeenMs }, { nowMs }) => <Seen ms={firstSeenMs} nowMs={nowMs} />,
    csv: ({ firstSeenMs }) => isoSeconds(firstSeenMs),
    wide: true,
  },
  {
    id: 'last',
    name: 'Last',
    cell: ({ timeMs }, { nowMs }) => <Seen ms={timeMs} nowMs={nowMs} />,
    csv: ({ timeMs }) => isoSeconds(timeMs),
    wide: true,
  },
]

function notUnderstood({ otherwise }: Arrival): number {
  return (otherwise.rejected ?? 0) + (otherwise.unknown ?? 0) + (otherwise.ambiguous ?? 0)
}

interface LiveProps {
  readonly id: string
  /** How often the browser asks for the page again. undefined: its content is final. */
  readonly pollMs: number | undefined
  readonly children: ComponentChildren
}

/**
 * Content that the browser script updates in place: it requests the same page again, and replaces
 * the parts that differ. So the server renders each state with the same code, with and without
 * scripts.
 */
function Live({ id, pollMs, children }: LiveProps) {
  return (
    <div id={id} class="live" data-poll={pollMs}>
      {children}
      <p class="small muted" role="status" data-offline="The service does not answer. Trying again." />
    </div>
  )
}

interface LivePartProps {
  readonly id: string
  /** Screen readers announce each change. */
  readonly isStatus?: boolean
  readonly children: ComponentChildren
}

/** A part that is replaced as a whole, and only if it changed. */
function LivePart({ id, isStatus = false, children }: LivePartProps) {
  return (
    <div id={id} data-part="" role={isStatus ? 'status' : undefined}>
      {children}
    </div>
  )
}

export const VERIFICATION_ROUTES: readonly Route[] = [
  page('/monitoring-tokens/:id/verify', 'token.verify', (visit, { id }) => {
    const token = tokenOf(visit, id)
    const startedMs = startOf(visit.request.query, visit.nowMs)
    // Without a start in the query, a new verification begins.
    if (startedMs === undefined) return redirect(`/monitoring-tokens/${id}/verify?started=${visit.nowMs}`)
    const view = verificationView(visit, token, startedMs)
    return visit.page(TITLES[view.state], '/setup-guide', Verification({ visit, view }), {
      reloadSeconds: view.state === 'waiting' ? RELOAD_SECONDS : undefined,
    })
  }),
  page('/monitoring-tokens/:id/verify.csv', 'token.verify', (visit, { id }) => {
    const token = tokenOf(visit, id)
    const startedMs = startOf(visit.request.query, visit.nowMs) ?? visit.nowMs
    return csvTable('verify', COLUMNS, arrivalsOf(visit, token, startedMs))
  }),
]

/** @throws Fault NOT_FOUND, also for a token of another organization. */
function tokenOf({ site, organization }: Visit, id: string): MonitoringToken {
  const token = site.store.monitoringTokens.ofOrganization(organization.id).find((each) => each.id === id)
  if (token === undefined) throw new Fault('NOT_FOUND', 'There is no such token')
  return token
}
