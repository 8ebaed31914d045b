import { createHash } from 'node:crypto'
import { isoDay, isoSeconds } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Answer, Assessment, AssessmentItem, ItemReview, ItemWork, WorkChange } from '../store/assessments.ts'
import type { Store } from '../store/store.ts'
import { pointsOf } from './score.ts'

/** Kept changes of one item. Beyond them, the oldest are removed; the audit log has all. */
export const ITEM_CHANGES_MAX = 20
/** Comments on one item. Beyond them, a comment is rejected, because nothing else has its text. */
export const ITEM_COMMENTS_MAX = 50

/** Characters of a note that its change keeps, so that 20 changes stay small. */
const NOTE_KEPT_CHARACTERS = 500

const NO_WORK: ItemWork = { owner: '', dueOn: '', links: [], history: [] }

/** What a person may change of an item. Absent fields stay as they are. */
export interface ItemEdit {
  readonly answer?: Answer
  readonly note?: string
  readonly owner?: string
  readonly dueOn?: string
  readonly links?: readonly string[]
}

export function workOf({ work }: AssessmentItem): ItemWork {
  return work ?? NO_WORK
}

/** The field of an item; without it if there is no work. */
export function storedWork(work: Partial<ItemWork>): { readonly work?: ItemWork } {
  const { owner = '', dueOn = '', links = [], review, history = [] } = work
  const isEmpty = owner === '' && dueOn === '' && links.length + history.length === 0 && review === undefined
  return isEmpty ? {} : { work: { owner, dueOn, links, ...(review === undefined ? {} : { review }), history } }
}

/** The field of an item from a file, which has a review as text. */
export function importedWork({
  review,
  ...work
}: Pick<ItemWork, 'owner' | 'dueOn' | 'links'> & { readonly review: string }): { readonly work?: ItemWork } {
  const read = readReview(review)
  return storedWork({ ...work, ...(read === undefined ? {} : { review: read }) })
}

/** @param dueOn undefined or '': no due date. @throws Fault USAGE */
export function checkNotPast(dueOn: string | undefined, nowMs: number): void {
  if (dueOn === undefined || dueOn === '' || dueOn >= isoDay(nowMs)) return
  throw new Fault('USAGE', `due date: ${dueOn} is in the past`)
}

/** An item of an assessment in progress. */
export interface OpenItem {
  readonly assessment: Assessment
  readonly item: AssessmentItem
  /** The places of its category, and of the item in it. */
  readonly at: number
  readonly place: number
}

/** The items of all assessments in progress. */
export function openItems({ assessments }: Store, organizationId: string): OpenItem[] {
  return assessments
    .ofOrganization(organizationId)
    .filter(({ status }) => status !== 'completed')
    .flatMap((assessment) =>
      assessments
        .categories(assessment)
        .flatMap(({ items }, at) => items.map((item, place) => ({ assessment, item, at, place }))),
    )
}

/** Those that are due first, those without a date last. */
export function byDueDate(items: readonly OpenItem[]): OpenItem[] {
  const keyed = items.map((open) => ({ open, key: `${workOf(open.item).dueOn || 'z'} ${open.assessment.id}` }))
  return keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ open }) => open)
}

/** Whether an item of an open assessment is past its due date, and not met. */
export function isOverdue({ status }: Pick<Assessment, 'status'>, item: AssessmentItem, today: string): boolean {
  const { dueOn } = workOf(item)
  return status !== 'completed' && dueOn !== '' && dueOn < today && !isMet(item)
}

/** Nothing is left to do. */
function isMet({ answer }: AssessmentItem): boolean {
  return answer !== 'unanswered' && (pointsOf(answer) ?? 100) === 100
}

/** The address of a link, and the day on which its evidence expires; '' if it does not. */
export function linkParts(link: string): { readonly address: string; readonly expiresOn: string } {
  const [address = '', expiresOn = ''] = link.split(' ')
  return { address, expiresOn }
}

/** The links of an item that have expired. */
export function expiredLinks(item: AssessmentItem, today: string): readonly string[] {
  return workOf(item).links.filter((link) => {
    const { expiresOn } = linkParts(link)
    return expiresOn !== '' && expiresOn < today
  })
}

/** A review in files and for people: `approved 2026-11-29T08:00:00Z member alice`; '' for none. */
export function reviewText(review: ItemReview | undefined): string {
  return review === undefined ? '' : `${review.state} ${isoSeconds(review.atMs)} ${review.by}`
}

/** undefined: none. The text follows the rule `review`. */
function readReview(text: string): ItemReview | undefined {
  const [, state, at = '', by = ''] = /^(submitted|approved) (\S+) (.+)$/.exec(text) ?? []
  return state === 'submitted' || state === 'approved' ? { state, by, atMs: Date.parse(at) } : undefined
}

/*
 * The review of an item:
 *
 *   state      submit     approve             reopen  change of answer, note or links
 *   none       submitted  -                   -       none
 *   submitted  -          approved, by        none    none
 *                         somebody else
 *   approved   -          -                   none    refused, and so are owner and due date
 */
export const REVIEW_STEPS = ['submit', 'approve', 'reopen'] as const
export type ReviewStep = (typeof REVIEW_STEPS)[number]

/** The item after a step of its review. @throws Fault CONFLICT */
export function reviewedItem(item: AssessmentItem, step: ReviewStep, by: string, atMs: number): AssessmentItem {
  const before = workOf(item)
  const { review, ...work } = before
  const refused = refusalOf(item, step, by)
  if (refused !== undefined) throw new Fault('CONFLICT', `${item.id}: ${refused}`)
  const state = step === 'submit' ? 'submitted' : step === 'approve' ? 'approved' : undefined
  const change: WorkChange = { atMs, by, field: 'review', to: state ?? 'reopened' }
  const history = withChanges(before, [change])
  return { ...item, work: { ...work, ...(state === undefined ? {} : { review: { state, by, atMs } }), history } }
}

function refusalOf(item: AssessmentItem, step: ReviewStep, by: string): string | undefined {
  const { review } = workOf(item)
  if (step === 'submit') {
    if (item.answer === 'unanswered') return 'it has no answer to review'
    return review === undefined ? undefined : `it is ${review.state} already`
  }
  if (review === undefined) return 'it was not submitted for review'
  if (step === 'reopen') return undefined
  if (review.state === 'approved') return 'it is approved already'
  return review.by === by ? `${by} submitted it, so somebody else approves it` : undefined
}

/** The item after a change, with its history. @throws Fault CONFLICT if it is approved */
export function editedItem(item: AssessmentItem, edit: ItemEdit, by: string, atMs: number): AssessmentItem {
  const before = workOf(item)
  const { answer = item.answer, note = item.note } = edit
  const { owner = before.owner, dueOn = before.dueOn, links = before.links } = edit
  const fields = [
    ['answer', String(item.answer), String(answer)],
    ['note', item.note, note],
    ['owner', before.owner, owner],
    ['due', before.dueOn, dueOn],
    ['links', before.links.join(' '), links.join(' ')],
  ] as const
  const changes = fields.flatMap(([field, was, is]): WorkChange[] =>
    was === is
      ? []
      : [{ atMs, by, field, to: field === 'links' ? String(links.length) : is.slice(0, NOTE_KEPT_CHARACTERS) }],
  )
  if (changes.length === 0) return item
  const { review } = before
  if (review?.state === 'approved') {
    throw new Fault('CONFLICT', `${item.id}: ${review.by} has approved it. Reopen it before you change it`)
  }
  const history = withChanges(before, changes)
  // A reviewer has to see what changed.
  const isKept = review !== undefined && changes.every(({ field }) => field === 'owner' || field === 'due')
  return { ...item, answer, note, work: { owner, dueOn, links, ...(isKept ? { review } : {}), history } }
}

/** The history with more changes. Comments stay. */
function withChanges({ history }: ItemWork, changes: readonly WorkChange[]): readonly WorkChange[] {
  const all = [...history, ...changes]
  let excess = all.filter(({ field }) => field !== 'comment').length - ITEM_CHANGES_MAX
  return all.filter(({ field }) => field === 'comment' || excess-- <= 0)
}

/** The item with one more comment, also if it is approved. @throws Fault CONFLICT at the limit */
export function commentedItem(item: AssessmentItem, text: string, by: string, atMs: number): AssessmentItem {
  const work = workOf(item)
  if (work.history.filter(({ field }) => field === 'comment').length >= ITEM_COMMENTS_MAX) {
    throw new Fault('CONFLICT', `${item.id}: it has ${ITEM_COMMENTS_MAX} comments already`)
  }
  return { ...item, work: { ...work, history: [...work.history, { atMs, by, field: 'comment', to: text }] } }
}

/** The answer and the note of an item that a person saw before changing them. */
export interface SeenItem {
  readonly answer: Answer
  /** noteMark. */
  readonly note: string
}

/** Stands for a note: notes may be long. */
export function noteMark(note: string): string {
  return createHash('sha256').update(note).digest('hex').slice(0, 16)
}

/**
 * @throws Fault CONFLICT if the edit replaces an answer or a note that somebody else has written
 *   since the person saw the item
 */
export function assertSeen(item: AssessmentItem, { answer, note }: ItemEdit, seen: SeenItem): void {
  const losesAnswer = answer !== undefined && answer !== item.answer && item.answer !== seen.answer
  const losesNote = note !== undefined && note !== item.note && noteMark(item.note) !== seen.note
  if (losesAnswer || losesNote) throw changedMeanwhile(item, losesAnswer ? item.answer : item.note)
}

/** Who works on an item, until when, and its links, as a person saw them before changing them. */
export type SeenWork = Pick<ItemWork, 'owner' | 'dueOn' | 'links'>

/**
 * @throws Fault CONFLICT if the edit replaces an owner, a due date or links that somebody else has
 *   set since the person saw the item
 */
export function assertSeenWork(item: AssessmentItem, edit: ItemEdit, seen: SeenWork): void {
  const stored = workOf(item)
  for (const field of ['owner', 'dueOn', 'links'] as const) {
    const [now, was, to] = [stored, seen, edit].map((each) => each[field]?.toString())
    if (to !== undefined && to !== now && now !== was) throw changedMeanwhile(item, now)
  }
}

function changedMeanwhile({ id }: AssessmentItem, now: string | number | undefined): Fault {
  return new Fault('CONFLICT', `${id} was changed in the meantime: ${now}`)
}
