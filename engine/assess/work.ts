import { createHash } from 'node:crypto'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Answer, Assessment, AssessmentItem, ItemWork, WorkChange } from '../store/assessments.ts'
import { pointsOf } from './score.ts'

/** Kept changes of one item. Beyond them, the oldest are removed; the audit log has all. */
export const ITEM_CHANGES_MAX = 20

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
  const { owner = '', dueOn = '', links = [], history = [] } = work
  const isEmpty = owner === '' && dueOn === '' && links.length + history.length === 0
  return isEmpty ? {} : { work: { owner, dueOn, links, history } }
}

/** A day in UTC, as in due dates. */
export function dayText(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
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

/** The item after a change, with its history. */
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
  const history = [...before.history, ...changes].slice(-ITEM_CHANGES_MAX)
  return { ...item, answer, note, work: { owner, dueOn, links, history } }
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
