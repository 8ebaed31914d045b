import type { Answer, AssessmentItem, ItemWork, WorkChange } from '../store/assessments.ts'

/** Kept changes of one item. Beyond them, the oldest are removed; the audit log has all. */
export const ITEM_CHANGES_MAX = 20

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

/** The item after a change, with its history. */
export function editedItem(item: AssessmentItem, edit: ItemEdit, by: string, atMs: number): AssessmentItem {
  const before = workOf(item)
  const { answer = item.answer, note = item.note } = edit
  const { owner = before.owner, dueOn = before.dueOn, links = before.links } = edit
  const fields = [
    ['answer', String(item.answer), String(answer)],
    ['owner', before.owner, owner],
    ['due', before.dueOn, dueOn],
    ['links', before.links.join(' '), links.join(' ')],
  ] as const
  const changes = fields.flatMap(([field, was, is]): WorkChange[] =>
    was === is ? [] : [{ atMs, by, field, to: field === 'links' ? String(links.length) : is }],
  )
  if (changes.length === 0) return { ...item, note }
  const history = [...before.history, ...changes].slice(-ITEM_CHANGES_MAX)
  return { ...item, answer, note, work: { owner, dueOn, links, history } }
}
