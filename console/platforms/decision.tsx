import { z } from 'zod'
import { type DecisionTerms, undoableDecisions } from '../../engine/admin/approvals.ts'
import { DAY_MS, isoDay } from '../../engine/kernel/process/clock.ts'
import { utcTimeMs } from '../../engine/kernel/process/duration.ts'
import { DECISION_NOTE_BYTES_MAX } from '../../engine/limits.ts'
import type { ListedPlatform } from '../../engine/scan/listed-discovery.ts'
import { type Decision, type DecisionState, decisionState } from '../../engine/store/decisions.ts'
import { NAME_BYTES_MAX } from '../../engine/store/organizations.ts'
import { ActionButton, Field, FormError, Hidden, Select } from '../design/form.tsx'
import { Card, countOf, countText, Lines, lastDays, platformPath, StateTag, Tag, Time } from '../design/parts.tsx'
import { type FormState, RejectedForm } from '../form.ts'
import type { Visit } from '../http/visit.ts'
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
export const UNDONE = 'The decision is undone. The one before counts again'

/** Whether somebody has to decide about the platform. */
export function isWaiting(state: DecisionState): boolean {
  return state === 'waiting' || state === 'expired'
}

/** A platform of the registry, as links and forms name it. */
interface DecidedPlatform {
  readonly id: string
  readonly state: DecisionState
}

/**
 * The decisions of an organization about the platforms of its registry, by name. A decision shows
 * at once; the figures of a platform follow with the scan that it requested.
 */
export class DecisionsByName {
  readonly #byName = new Map<string, DecidedPlatform>()

  constructor({ site, organization, nowMs }: Visit) {
    const { states } = site.store.decisions.inForce(organization.id, nowMs)
    for (const { id, name } of site.registry.catalogOf(organization.id).platforms) {
      if (!this.#byName.has(name)) this.#byName.set(name, { id, state: states.get(id) ?? 'waiting' })
    }
  }

  /** undefined if the registry has no platform of this name. */
  get(name: string): DecidedPlatform | undefined {
    return this.#byName.get(name)
  }

  /** Of a platform that left the registry since the scan, the state that the scan counted. */
  stateOf({ name, decision }: ListedPlatform): DecisionState {
    return this.#byName.get(name)?.state ?? decision
  }
}

/** The last decisions by platform, withdrawals excepted. */
export function lastDecisions({ site, organization }: Visit): ReadonlyMap<string, Decision> {
  const decided = site.store.decisions.ofOrganization(organization.id)
  return new Map(decided.filter(({ kind }) => kind !== 'withdrawn').map((each) => [each.platformId, each]))
}

/** What the member decided last, with the platforms that it was about, if it can be undone. */
export function undoOf(visit: Visit) {
  const { site, organization, identity, nowMs } = visit
  if (!visit.may('approval.undo')) return undefined
  const undoable = undoableDecisions(site.store, organization.id, `member ${identity.member.name}`, nowMs)
  if (undoable === undefined) return undefined
  const matcher = site.registry.matcherOf(organization.id)
  const { decidedAtMs, platformIds } = undoable
  return { decidedAtMs, names: platformIds.map((id) => matcher.platform(id)?.name ?? id).sort() }
}

interface UndoProps {
  readonly undo: ReturnType<typeof undoOf>
  /** The page that follows: `overview`, or a platform. */
  readonly from?: string
  readonly nowMs: number
}

const NAMES_SHOWN = 3

/** Offers to undo the last decisions. */
export function Undo({ undo, from = '', nowMs }: UndoProps) {
  if (undo === undefined) return null
  const { decidedAtMs, names } = undo
  const more = names.length > NAMES_SHOWN ? ` and ${countText(names.length - NAMES_SHOWN)} more` : ''
  return (
    <form class="card undo" method="post" action="/decisions/undo">
      <p class="small">
        You decided about {names.slice(0, NAMES_SHOWN).join(', ')}
        {more} <Time ms={decidedAtMs} nowMs={nowMs} />. Undo works for ten minutes. It does not recall alerts that were
        sent, or block lists that devices fetched.
      </p>
      <Hidden
        fields={[
          ['at', String(decidedAtMs)],
          ['from', from],
        ]}
      />
      <button type="submit">Undo</button>
    </form>
  )
}

const line = (bytesMax: number) =>
  z
    .string()
    .trim()
    .default('')
    .refine((text) => Buffer.byteLength(text) <= bytesMax, `At most ${bytesMax} bytes`)

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

/** The terms of a decision in a form. @throws RejectedForm */
export function readTerms(visit: Visit): DecisionTerms {
  const { expires, ...terms } = visit.read(schema)
  if (expires === '') return terms
  const expiresAtMs = utcTimeMs(expires) ?? 0
  if (expiresAtMs > visit.nowMs) return { ...terms, expiresAtMs }
  throw new RejectedForm({ expires: 'This day has begun already. Enter a later one' })
}

interface TermsFieldsProps {
  readonly form: FormState
  readonly nowMs: number
  /** The last decision. A time that has passed is not offered again. */
  readonly last?: Decision | undefined
  /** Plans that the registry knows. Empty: no field. */
  readonly plans?: readonly string[]
}

/** The fields of an approval or a rejection. */
export function TermsFields({ form, nowMs, last, plans = [] }: TermsFieldsProps) {
  const { note = '', owner = '', plan = '', expiresAtMs = 0 } = last ?? {}
  return (
    <>
      <Field name="note" label="Note" form={form} value={note} maxLength={DECISION_NOTE_BYTES_MAX} hint="The reason" />
      <Field
        name="owner"
        label="Owner"
        form={form}
        value={owner}
        maxLength={NAME_BYTES_MAX}
        hint="Who is responsible for the use"
      />
      {plans.length > 0 && (
        <Select
          name="plan"
          label="Plan, if you approve"
          form={form}
          value={plan}
          options={[['', 'Any: the risk of the worst plan counts'], ...plans.map((each) => [each, each] as const)]}
        />
      )}
      <Field
        name="expires"
        label="Expires"
        form={form}
        type="date"
        value={expiresAtMs > nowMs ? isoDay(expiresAtMs) : ''}
        min={isoDay(nowMs + DAY_MS)}
        hint="At the beginning of this day (UTC) the platform waits for a decision again"
      />
    </>
  )
}

export interface DecisionProps {
  readonly visit: Visit
  readonly view: PlatformView
  readonly form: FormState
}

/** What follows a rejection: who used the platform, and how to stop the use. */
function AfterRejection({ visit, view: { name, finding, blockLists } }: DecisionProps) {
  const { clients = 0, isEstimate = false } = finding ?? {}
  const used = clients === 0 ? 'Nobody' : `${isEstimate ? 'About ' : ''}${countOf(clients, 'client')}`
  return (
    <div class="stack">
      <p>{`${used} used ${name} in the ${lastDays(visit.organization.evidenceWindowDays)}.`}</p>
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
export function DecisionCard(props: DecisionProps) {
  const { visit, view, form } = props
  const { state, isRegistered, name, last } = view
  const mayDecide = visit.may('approval.add')
  return (
    <Card id="decision" title="Decision" note={<StateTag state={state} />}>
      {state === 'rejected' && <AfterRejection {...props} />}
      {isRegistered && last !== undefined && decisionState(last, visit.nowMs) !== 'waiting' ? (
        <Terms terms={last} nowMs={visit.nowMs} />
      ) : (
        <p class="muted">
          {!isRegistered
            ? 'The platform is no longer in the registry.'
            : mayDecide
              ? 'Nobody has decided about this platform. Until it is approved, it is shadow AI.'
              : 'Nobody has decided about this platform. Admins and owners can approve or reject it.'}
        </p>
      )}
      {isRegistered && mayDecide && isWaiting(state) && <DecisionForm {...props} />}
      {isRegistered && mayDecide && !isWaiting(state) && (
        <div class="row decided">
          <details open={Object.keys(form.errors).length > 0}>
            <summary class="button">{state === 'rejected' ? 'Change, or set a date' : 'Change'}</summary>
            <DecisionForm {...props} />
          </details>
          <ActionButton action={`${platformPath(name)}/withdraw`}>Withdraw</ActionButton>
        </div>
      )}
    </Card>
  )
}

/** As in the audit log, without `member`. */
function byText({ decidedBy }: Decision): string {
  return decidedBy.replace(/^member /, '')
}

function Terms({ terms, nowMs }: { readonly terms: Decision; readonly nowMs: number }) {
  const { note, owner, plan = '', expiresAtMs, decidedAtMs } = terms
  return (
    <>
      {note !== '' && <p class="break">{note}</p>}
      <Lines
        rows={[
          [
            'Decided',
            <>
              {byText(terms)}, <Time ms={decidedAtMs} nowMs={nowMs} />
            </>,
          ],
          ...(owner === '' ? [] : [['Owner', owner] as const]),
          ...(plan === '' ? [] : [['Plan', plan] as const]),
          [expiresAtMs !== 0 && expiresAtMs <= nowMs ? 'Expired' : 'Expires', <Time ms={expiresAtMs} nowMs={nowMs} />],
        ]}
      />
    </>
  )
}

function DecisionForm({ visit, view, form }: DecisionProps) {
  const path = platformPath(view.name)
  return (
    <form class="stack" method="post" action={`${path}/approve`}>
      <FormError form={form} />
      <TermsFields form={form} nowMs={visit.nowMs} last={view.last} plans={view.plans} />
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

export function History({ visit: { nowMs }, view: { history } }: Omit<DecisionProps, 'form'>) {
  return (
    <Card title="History" note="the last 50 decisions">
      {history.length === 0 ? (
        <p class="muted">Nothing has been decided yet.</p>
      ) : (
        <ul class="lines">
          {history.map(({ timeMs, tone, event, decision }) => (
            <li key={`${timeMs} ${event}`}>
              <div>
                <Tag tone={tone}>{event}</Tag>
                {decision !== undefined && <HistoryDecision decision={decision} nowMs={nowMs} />}
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

function HistoryDecision({ decision, nowMs }: { readonly decision: Decision; readonly nowMs: number }) {
  const { note, owner, expiresAtMs } = decision
  return (
    <>
      {' '}
      <span class="break">by {byText(decision)}</span>
      {note !== '' && <p class="break">{note}</p>}
      {owner !== '' && <p class="small muted break">Owner: {owner}</p>}
      {expiresAtMs !== 0 && (
        <p class="small muted">
          Expires: <Time ms={expiresAtMs} nowMs={nowMs} />
        </p>
      )}
    </>
  )
}
