import { StateTag, TermsFields } from '../design/decision.tsx'
import { FormError } from '../design/form.tsx'
import { Card, countOf, lastDays, Notice, Tag, Time, type Tone } from '../design/parts.tsx'
import type { FormState } from '../form.ts'
import { type DecisionTermsView, type HistoryEntry, isWaiting } from '../views/decisions.ts'
import type { PlatformView } from '../views/platform.ts'

export interface DecisionProps {
  readonly view: PlatformView
  readonly form: FormState
  readonly nowMs: number
  readonly mayDecide: boolean
  readonly mayWithdraw: boolean
  /** The change that the member just made; '' if none. */
  readonly done: string
}

const DONE_TITLES: Readonly<Record<string, string>> = {
  approved: 'is approved',
  rejected: 'is rejected',
  withdrawn: 'waits for a decision again',
}

/** What the member just decided. */
export function DecisionDone({ view, done }: DecisionProps) {
  const { name, state, decisionPending } = view
  const title = DONE_TITLES[done]
  const isShown = title !== undefined && (done === 'withdrawn' ? state === 'waiting' : state === done)
  if (!isShown) {
    return decisionPending ? (
      <Notice tone="warn" title="The decision waits for the next scan">
        {appliedBy(view)}
      </Notice>
    ) : undefined
  }
  return <Notice title={`${name} ${title}`}>{appliedBy(view)}</Notice>
}

function appliedBy({ decisionPending, finding }: PlatformView) {
  if (finding === undefined) return <p class="small">The decision counts as soon as the platform is seen.</p>
  const text = decisionPending
    ? 'The next scan updates the risk on this page and in the API. It is already requested.'
    : 'The figures on this page include the decision.'
  return <p class="small">{text}</p>
}

/** What follows a rejection: who used the platform, and how to stop the use. */
function AfterRejection({ view }: DecisionProps) {
  const { name, finding, windowDays, blockLists } = view
  const clients = finding?.clients ?? 0
  const used = `${finding?.isEstimate ? 'About ' : ''}${countOf(clients, 'client')} used ${name} in the ${lastDays(windowDays)}.`
  return (
    <div class="stack">
      <p>{clients === 0 ? `Nobody used ${name} in the ${lastDays(windowDays)}.` : used}</p>
      {blockLists !== undefined && (
        <ul class="links">
          {blockLists.map(({ label, blocks, riskMin }) => (
            <li key={label}>
              Block list{' '}
              <a href={`/block-lists/preview?${new URLSearchParams({ blocks, risk: String(riskMin) })}`}>{label}</a>{' '}
              selects it.
            </li>
          ))}
          {blockLists.length === 0 && (
            <li>
              No link of a block list selects it.{' '}
              <a href="/block-lists">Block it with a firewall, proxy or DNS server</a>
            </li>
          )}
        </ul>
      )}
    </div>
  )
}

/** The decision about a platform, and the form that makes another one. */
export function Decision(props: DecisionProps) {
  const { view, form, nowMs, mayDecide, mayWithdraw } = props
  const { last } = view.decision
  const isDecided = view.isRegistered && last.by !== '' && last.state !== 'waiting'
  const hasErrors = Object.keys(form.errors).length > 0
  return (
    <Card id="decision" title="Decision" note={<StateTag state={view.state} />}>
      {view.state === 'rejected' && <AfterRejection {...props} />}
      {isDecided ? <Terms terms={last} nowMs={nowMs} /> : <p class="muted">{noDecision(props)}</p>}
      {view.isRegistered && mayDecide && isWaiting(view.state) && <DecisionForm {...props} />}
      {view.isRegistered && !isWaiting(view.state) && (mayDecide || mayWithdraw) && (
        <div class="row decided">
          {mayDecide && (
            <details open={hasErrors}>
              <summary class="button">{view.state === 'rejected' ? 'Change, or set a date' : 'Change'}</summary>
              <DecisionForm {...props} />
            </details>
          )}
          {mayWithdraw && (
            <form method="post" action={`/platforms/${encodeURIComponent(view.name)}/withdraw`}>
              <button type="submit">Withdraw</button>
            </form>
          )}
        </div>
      )}
    </Card>
  )
}

function noDecision({ view, mayDecide }: DecisionProps): string {
  if (!view.isRegistered) return 'The platform is no longer in the registry.'
  if (mayDecide) return 'Nobody has decided about this platform. Until it is approved, it is shadow AI.'
  return 'Nobody has decided about this platform. Admins and owners can approve or reject it.'
}

function Terms({ terms, nowMs }: { readonly terms: DecisionTermsView; readonly nowMs: number }) {
  const { note, owner, plan, expiresAtMs, by, atMs } = terms
  return (
    <ul class="lines">
      {note !== '' && (
        <li>
          <span class="break">{note}</span>
        </li>
      )}
      <li>
        <span>Decided</span>
        <span class="right break">
          {by}, <Time ms={atMs} nowMs={nowMs} />
        </span>
      </li>
      {owner !== '' && (
        <li>
          <span>Owner</span>
          <span class="right break">{owner}</span>
        </li>
      )}
      {plan !== '' && (
        <li>
          <span>Plan</span>
          <span class="right break">{plan}</span>
        </li>
      )}
      <li>
        <span>{expiresAtMs !== 0 && expiresAtMs <= nowMs ? 'Expired' : 'Expires'}</span>
        <span class="right">
          <Time ms={expiresAtMs} nowMs={nowMs} />
        </span>
      </li>
    </ul>
  )
}

function DecisionForm({ view, form, nowMs }: DecisionProps) {
  const path = `/platforms/${encodeURIComponent(view.name)}`
  const { last } = view.decision
  return (
    <form class="stack" method="post" action={`${path}/approve`}>
      <FormError form={form} />
      <TermsFields form={form} nowMs={nowMs} {...last} plans={view.plans} />
      <div class="row">
        <button class="first" type="submit">
          Approve
        </button>
        <button type="submit" formaction={`${path}/reject`}>
          Reject
        </button>
      </div>
    </form>
  )
}

const EVENTS: Readonly<Record<HistoryEntry['event'], readonly [tone: Tone, text: string]>> = {
  approved: ['good', 'approved'],
  rejected: ['bad', 'rejected'],
  withdrawn: ['plain', 'withdrawn'],
  expired: ['warn', 'expired'],
  detected: ['plain', 'first detected'],
}

/** Everything that was decided about a platform, newest first. */
export function History({ view, nowMs }: Pick<DecisionProps, 'view' | 'nowMs'>) {
  const { history } = view.decision
  return (
    <Card title="History" note="the last 50 decisions">
      {history.length === 0 ? (
        <p class="muted">Nothing has been decided yet.</p>
      ) : (
        <ul class="lines">
          {history.map(({ timeMs, event, by, note, owner, expiresAtMs }) => (
            <li key={`${timeMs} ${event}`}>
              <div>
                <Tag tone={EVENTS[event][0]}>{EVENTS[event][1]}</Tag> {by !== '' && <span class="break">by {by}</span>}
                {note !== '' && <p class="break">{note}</p>}
                {(owner !== '' || expiresAtMs !== 0) && (
                  <p class="small muted break">
                    {owner !== '' && `Owner: ${owner}`}
                    {owner !== '' && expiresAtMs !== 0 && ' · '}
                    {expiresAtMs !== 0 && (
                      <>
                        Expires: <Time ms={expiresAtMs} nowMs={nowMs} />
                      </>
                    )}
                  </p>
                )}
              </div>
              <div class="right">
                <Time ms={timeMs} nowMs={nowMs} />
              </div>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}
