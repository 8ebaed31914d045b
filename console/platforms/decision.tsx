import { z } from 'zod'
import type { DecisionTerms } from '../../engine/admin/approvals.ts'
import { utcTimeMs } from '../../engine/kernel/process/duration.ts'
import { DECISION_NOTE_BYTES_MAX } from '../../engine/limits.ts'
import { NAME_BYTES_MAX } from '../../engine/store/organizations.ts'
import { StateTag, TermsFields } from '../design/decision.tsx'
import { FormError, SubmitOrCancel } from '../design/form.tsx'
import { Card, countOf, lastDays, Notice, PageHead, Tag, Time, type Tone } from '../design/parts.tsx'
import { type FormFields, type FormState, readForm } from '../form.ts'
import { Kept, type KeptFields } from '../http/confirm.tsx'
import { type DecisionTermsView, type HistoryEntry, isWaiting } from './decisions.ts'
import type { PlatformView } from './read-platform.ts'

/** The decisions that forms make, by the last part of their path. */
export const DECISION_ACTIONS = {
  approve: 'approval.add',
  reject: 'approval.reject',
  withdraw: 'approval.remove',
} as const
export type DecisionWord = keyof typeof DECISION_ACTIONS
export const DECISION_WORDS = Object.keys(DECISION_ACTIONS) as DecisionWord[]

/** The state after each, for the notice of the next page. */
export const DONE: Readonly<Record<DecisionWord, string>> = {
  approve: 'approved',
  reject: 'rejected',
  withdraw: 'withdrawn',
}

const line = (bytesMax: number) =>
  z
    .string()
    .trim()
    .default('')
    .refine((text) => Buffer.byteLength(text) <= bytesMax, `At most ${bytesMax} bytes`)

/** The use case refuses times that have passed. */
const schema = z.object({
  note: line(DECISION_NOTE_BYTES_MAX),
  owner: line(NAME_BYTES_MAX),
  plan: line(NAME_BYTES_MAX),
  expires: z
    .string()
    .trim()
    .default('')
    .refine((text) => text === '' || utcTimeMs(text) !== undefined, 'Enter a day such as 2027-03-31'),
})

/** The terms of a decision in a form, or the form with its errors. */
export function readTerms(
  fields: FormFields,
  nowMs: number,
): { readonly terms: DecisionTerms } | { readonly state: FormState } {
  const read = readForm(schema, fields)
  if ('state' in read) return read
  const { expires, ...terms } = read.data
  if (expires === '') return { terms }
  const expiresAtMs = utcTimeMs(expires) ?? 0
  if (expiresAtMs > nowMs) return { terms: { ...terms, expiresAtMs } }
  return { state: { values: fields, errors: { expires: 'This day has begun already. Enter a later one' } } }
}

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

interface ConfirmDecisionProps {
  /** The path of the decision, with the filters of the list. */
  readonly action: string
  /** What happens to how many: `Reject 914 platforms`. */
  readonly what: string
  readonly kept: KeptFields
  /** The address of the list. */
  readonly back: string
}

/** Asks before a decision about many platforms, because it concerns more than one screen shows. */
export function ConfirmDecision({ action, what, kept, back }: ConfirmDecisionProps) {
  return (
    <>
      <PageHead
        title={`${what}?`}
        about="The selection is larger than one screen. Each platform gets the same decision."
      />
      <section class="card narrow">
        <form class="stack body" method="post" action={action}>
          <Kept fields={kept} />
          <input type="hidden" name="confirmed" value="yes" />
          <SubmitOrCancel cancel={back}>{what}</SubmitOrCancel>
        </form>
      </section>
    </>
  )
}
