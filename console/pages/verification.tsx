import type { ComponentChildren } from 'preact'
import { type Arrival, VERIFY_MS } from '../../engine/admin/verify.ts'
import type { Instead } from '../../engine/admin/verify-instead.ts'
import { isoSeconds, MINUTE_MS, SECOND_MS } from '../../engine/kernel/process/clock.ts'
import { Bar } from '../design/chart.tsx'
import { countColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { Card, countText, PageHead, Tag, Time, type Tone } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { VerificationView } from '../views/verification.ts'
import { LISTENER_NAMES } from './listeners.ts'
import { Steps } from './setup-guide.tsx'

/** How often the browser asks while no event has arrived, and afterwards. */
const WAITING_POLL_MS = 500
const VERIFIED_POLL_MS = 2000
/** Without scripts, the page is loaded again after this time while no event has arrived. */
const RELOAD_SECONDS = 2

export interface VerificationProps {
  readonly view: VerificationView
  readonly nowMs: number
}

/** The title of the page, which shows the state in a tab of the browser. */
export function verificationTitle({ state }: VerificationView): string {
  return { waiting: 'Verifying', verified: 'Verified', ended: 'Not verified', inactive: 'Not verified' }[state]
}

/** When a browser without scripts loads the page again; undefined if it does not. */
export function reloadSeconds({ state }: VerificationView): number | undefined {
  return state === 'waiting' ? RELOAD_SECONDS : undefined
}

function pollMs({ state, elapsedMs }: VerificationView): number | undefined {
  if (state === 'waiting') return WAITING_POLL_MS
  return state === 'verified' && elapsedMs < VERIFY_MS ? VERIFIED_POLL_MS : undefined
}

export function Verification({ view, nowMs }: VerificationProps) {
  const { label, visible, tokenId, platforms, morePlatforms, senders, moreSenders } = view
  return (
    <>
      <PageHead
        title="Verify"
        about={
          <>
            Token “{label}”, <span class="mono">svc_mt_{visible}…</span>
          </>
        }
      >
        <a class="button" href="/monitoring-tokens">
          Monitoring Tokens
        </a>
      </PageHead>
      <Steps current={3} tokenId={tokenId} />
      <Live id="verification" pollMs={pollMs(view)}>
        <State view={view} />
        <LivePart id="verification-figures">
          <Figures view={view} nowMs={nowMs} />
        </LivePart>
        <LivePart id="verification-platforms">
          {platforms.length > 0 && (
            <Card title="AI platforms in the events of the organization" note="the newest events">
              <ul class="names">
                {platforms.map((name) => (
                  <li key={name}>
                    <Tag>{name}</Tag>
                  </li>
                ))}
                {morePlatforms > 0 && <li class="muted">and {countText(morePlatforms)} more</li>}
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
                  <CsvLink
                    path={`/monitoring-tokens/${tokenId}/verify`}
                    query={new URLSearchParams({ started: String(view.startedMs) })}
                  />
                </span>
              }
              bare
            >
              <Table id="senders" label="Senders with this token" columns={arrivalColumns(nowMs)} rows={senders} />
              {moreSenders > 0 && <p class="muted after">and {countText(moreSenders)} more</p>}
            </Card>
          )}
        </LivePart>
        <LivePart id="verification-instead">
          <WhatArrived view={view} />
        </LivePart>
      </Live>
    </>
  )
}

/** The state in one sentence. Screen readers announce each change. */
function State({ view }: { readonly view: VerificationView }) {
  const { state, status, elapsedMs, tokenId } = view
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
              <a class="button first" href={`/monitoring-tokens/${tokenId}/verify`}>
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

function Figures({ view, nowMs }: VerificationProps) {
  const { messages, events, senders, moreSenders, firstSeenMs, lastSeenMs } = view
  return (
    <dl class="figures">
      <div>
        <dt>Messages</dt>
        <dd>{countText(messages)}</dd>
      </div>
      <div>
        <dt>Events</dt>
        <dd>{countText(events)}</dd>
      </div>
      <div>
        <dt>Senders</dt>
        <dd>{countText(senders.length + moreSenders)}</dd>
      </div>
      <div>
        <dt>Last arrival</dt>
        <dd class="words">
          <Seen ms={lastSeenMs} nowMs={nowMs} />
        </dd>
        {firstSeenMs > 0 && (
          <dd>
            first <Seen ms={firstSeenMs} nowMs={nowMs} />
          </dd>
        )}
      </div>
    </dl>
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

export function arrivalColumns(nowMs: number): readonly Column<Arrival>[] {
  return [
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
      cell: ({ firstSeenMs }) => <Seen ms={firstSeenMs} nowMs={nowMs} />,
      csv: ({ firstSeenMs }) => isoSeconds(firstSeenMs),
      wide: true,
    },
    {
      id: 'last',
      name: 'Last',
      cell: ({ timeMs }) => <Seen ms={timeMs} nowMs={nowMs} />,
      csv: ({ timeMs }) => isoSeconds(timeMs),
      wide: true,
    },
  ]
}

function notUnderstood({ otherwise }: Arrival): number {
  return (otherwise.rejected ?? 0) + (otherwise.unknown ?? 0) + (otherwise.ambiguous ?? 0)
}

/** What arrived in place of an event, with the next step for each. */
function WhatArrived({ view: { instead, state } }: Pick<VerificationProps, 'view'>) {
  if (instead.length === 0) return null
  return (
    <Card title={state === 'ended' ? 'What arrived instead' : 'What arrived so far'}>
      <ul class="lines">
        {instead.map((each) => (
          <Finding key={each.found} {...each} />
        ))}
      </ul>
    </Card>
  )
}

function Finding({ found, next, sample }: Instead) {
  return (
    <li class="sample">
      <div>
        <strong>{found}</strong>
        <p class="muted break">{next}.</p>
      </div>
      {sample !== '' && <pre>{sample}</pre>}
    </li>
  )
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
