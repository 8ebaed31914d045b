import type { ComponentChildren } from 'preact'
import { countOf, countText, riskLevel as levelOf } from '../../engine/export/report/text.ts'
import { isoSeconds } from '../../engine/kernel/process/clock.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { html } from './html.ts'

export {
  bytesText,
  countOf,
  countText,
  lastDays,
  NO_VOLUME,
  volumeText,
} from '../../engine/export/report/text.ts'

interface PageHeadProps {
  readonly title: string
  /** The pages above. */
  readonly crumb?: ComponentChildren
  readonly about?: ComponentChildren
  readonly children?: ComponentChildren
}

/** The heading of a page, with a description and actions. */
export function PageHead({ title, crumb, about, children }: PageHeadProps) {
  const head = (
    <div class="top">
      <div>
        <h1>{title}</h1>
        {about !== undefined && <p>{about}</p>}
      </div>
      {children !== undefined && <div class="row">{children}</div>}
    </div>
  )
  if (crumb === undefined) return head
  return (
    <div>
      <p class="crumb">{crumb}</p>
      {head}
    </div>
  )
}

interface CardProps {
  /** For links to the card. */
  readonly id?: string
  readonly title: string
  readonly note?: ComponentChildren
  /** No padding around the content, for a table. */
  readonly bare?: boolean
  readonly children: ComponentChildren
}

export function Card({ id, title, note, bare = false, children }: CardProps) {
  return (
    <section id={id} class="card">
      <header>
        <h2>{title}</h2>
        {note !== undefined && <p>{note}</p>}
      </header>
      {bare ? children : <div class="body">{children}</div>}
    </section>
  )
}

type Row = readonly [name: ComponentChildren, value: ComponentChildren]

/** Names with their values, one per line. */
export function Lines({ rows }: { readonly rows: readonly Row[] }) {
  return (
    <ul class="lines">
      {rows.map(([name, value], at) => (
        <li key={at}>
          <span class="break">{name}</span>
          <span class="right break">{value}</span>
        </li>
      ))}
    </ul>
  )
}

/** Names with their values, in two columns. A row whose value is undefined is left out. */
export function Facts({ rows }: { readonly rows: readonly Row[] }) {
  return (
    <dl class="settings">
      {rows.map(
        ([name, value], at) =>
          value !== undefined && (
            <div key={at}>
              <dt>{name}</dt>
              <dd class="break">{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

interface FiguresProps {
  /** `five`: the number of figures, if it is not four. `plain`: without a border, in a card. */
  readonly look?: string
  readonly figures: readonly (readonly [name: string, value: ComponentChildren, about?: ComponentChildren])[]
}

/** Large figures in a row, each with a remark below. */
export function Figures({ look = '', figures }: FiguresProps) {
  return (
    <dl class={`figures ${look}`.trim()}>
      {figures.map(([name, value, about]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
          {about !== undefined && <dd>{about}</dd>}
        </div>
      ))}
    </dl>
  )
}

/** A link to the page of a platform. */
export function PlatformLink({ name }: { readonly name: string }) {
  return html`<a href="${platformPath(name)}">${name}</a>`
}

export function platformPath(name: string): string {
  return `/platforms/${encodeURIComponent(name)}`
}

/** A card for one form. */
export function NarrowCard({ children }: { readonly children: ComponentChildren }) {
  return (
    <section class="card narrow">
      <div class="body column">{children}</div>
    </section>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

/** A colored word. The color adds no information. */
export function Tag({ tone = 'plain', children }: { tone?: Tone; children: ComponentChildren }) {
  return html`<span class="${tone === 'plain' ? 'tag' : `tag ${tone}`}">${children}</span>`
}

const STATE_TONES: Readonly<Record<DecisionState, Tone>> = {
  waiting: 'plain',
  approved: 'good',
  rejected: 'bad',
  expired: 'warn',
}

/** The decision about a platform. Cells of long tables call it as a function. */
export function StateTag({ state }: { readonly state: DecisionState }) {
  return Tag({ tone: STATE_TONES[state], children: state })
}

const RISK_TONES = { high: 'bad', medium: 'warn', low: 'plain' } as const

/**
 * A risk of 0 to 100, with its level in words. Cells of long tables call this and `Time` as
 * functions: each component costs the renderer an object and three calls.
 */
export function Risk({ score }: { score: number }) {
  const [tone, word] = riskLevel(score)
  return Tag({ tone, children: `${score} ${word}` })
}

/** The color and the word for a risk of 0 to 100. */
function riskLevel(score: number): readonly [tone: Tone, word: string] {
  const level = levelOf(score)
  return [RISK_TONES[level], level]
}

/** A message above the content: a result or an error. */
export function Notice({
  tone = 'good',
  title,
  children,
}: {
  tone?: 'good' | 'warn' | 'bad'
  title: string
  children?: ComponentChildren
}) {
  return (
    <section class={`notice ${tone}`} role={tone === 'good' ? 'status' : 'alert'}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** A secret that cannot be decrypted; nothing if `problem` is ''. */
export function KeyProblem({ problem }: { problem: string }) {
  return problem === '' ? null : (
    <Notice tone="bad" title="The key of the stored secrets is missing or wrong">
      <p class="break">{problem}</p>
    </Notice>
  )
}

/** Shown by a page without data: the reason, and the next step. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="card empty">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** A secret that is shown only once, with a copy button. */
export function SecretText({ id, value }: { id: string; value: string }) {
  return (
    <div class="secret">
      <code id={id}>{value}</code>
      <CopyButton id={id} what="the secret" />
    </div>
  )
}

/** A command or a part of a file, with a copy button. `what` describes it for screen readers. */
export function Snippet({ id, what, text }: { id: string; what: string; text: string }) {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area needs keyboard focus */}
      <pre id={id} tabIndex={0}>
        {text}
      </pre>
      <CopyButton id={id} what={what} />
    </div>
  )
}

/** Copies the text of an element. The browser script shows it, and says in it whether it worked. */
function CopyButton({ id, what }: { id: string; what: string }) {
  return (
    <button type="button" data-copies={id} aria-live="polite" hidden>
      <span>Copy</span> <span class="visually-hidden">{what}</span>
    </button>
  )
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** `2 hours ago`, `in 21 minutes`, `just now`. */
export function relativeTime(timeMs: number, nowMs: number): string {
  const distance = Math.abs(nowMs - timeMs)
  const [unit, unitMs] = UNITS.find(([, each]) => distance >= each) ?? ['', 0]
  if (unitMs === 0) return timeMs > nowMs ? 'in a moment' : 'just now'
  const text = countOf(Math.floor(distance / unitMs), unit)
  return timeMs > nowMs ? `in ${text}` : `${text} ago`
}

/** A relative time. The exact time in UTC appears on hover. `never` if the time is 0. */
export function Time({ ms, nowMs }: { ms: number; nowMs: number }) {
  if (ms === 0) return html`<span class="muted">never</span>`
  // <time> would contain the exact time twice: for programs, and for hovering.
  return html`<span class="time" title="${isoSeconds(ms)}">${relativeTime(ms, nowMs)}</span>`
}

/** `about 1,200`: a number of clients, which may be an estimate. */
export function aboutText({ clients, isEstimate }: { readonly clients: number; readonly isEstimate: boolean }): string {
  return `${isEstimate ? 'about ' : ''}${countText(clients)}`
}

/** `Try again in 1 minute` */
export function retryText(seconds: number): string {
  return `Try again in ${countOf(Math.ceil(seconds / 60), 'minute')}`
}
