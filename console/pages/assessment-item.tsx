import { workOf } from '../../engine/assess/work.ts'
import type { AssessmentCategory, AssessmentItem, WorkChange } from '../../engine/store/assessments.ts'
import { Field, FormError, TextArea } from '../design/form.tsx'
import { Card, countText, Notice, PageHead, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { AssessmentView } from '../views/assessments.ts'
import { answerName } from './assessment-category.tsx'

export interface ItemPageProps {
  readonly view: AssessmentView
  readonly category: AssessmentCategory
  /** The place of the category in the assessment. */
  readonly at: number
  readonly item: AssessmentItem
  /** Its place in the category. */
  readonly place: number
  readonly form: FormState
  readonly nowMs: number
  readonly mayAssign: boolean
  readonly done: string
}

/** Who works on an item, until when, its links and what changed. */
export function ItemPage({ view, category, at, item, place, form, nowMs, mayAssign, done }: ItemPageProps) {
  const { id, title } = view.assessment
  const path = `/assessments/${id}/categories/${at}`
  const { owner, dueOn, links, history } = workOf(item)
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/assessments">Assessments</a> / <a href={`/assessments/${id}`}>{title}</a> /{' '}
          <a href={`${path}#item-${place}`}>{category.name}</a>
        </p>
        <PageHead title={item.title} about={`${item.id} · ${answerName(item.answer)}`} />
      </div>
      {done === 'saved' && <Notice title="The item is saved" />}
      {item.note !== '' && (
        <Card title="Evidence">
          <p>{item.note}</p>
        </Card>
      )}
      <Card title="Work">
        {mayAssign && view.assessment.status !== 'completed' ? (
          <form class="stack" method="post" action={`${path}/items/${place}`}>
            <FormError form={form} />
            <input type="hidden" name="was-owner" value={owner} />
            <input type="hidden" name="was-due" value={dueOn} />
            <input type="hidden" name="was-links" value={links.join('\r\n')} />
            <Field
              name="owner"
              label="Owner"
              form={form}
              maxLength={255}
              hint="A name or an e-mail address. The recommendation gets it, too."
            />
            <Field name="due" label="Due date" type="date" form={form} />
            <TextArea name="links" label="Links" form={form} rows={3} hint="One address in each line, at most 5." />
            <button class="first" type="submit">
              Save
            </button>
          </form>
        ) : (
          <p>
            {owner === '' ? 'Nobody is assigned' : owner}
            {dueOn !== '' && `, due ${dueOn}`}.
          </p>
        )}
        {links.length > 0 && (
          <ul>
            {links.map((link) => (
              <li key={link}>
                <a href={link} rel="noreferrer">
                  {link}
                </a>
              </li>
            ))}
          </ul>
        )}
      </Card>
      {history.length > 0 && (
        <Card title="Changes" note={countText(history.length)} bare>
          <Table id="changes" label="Changes" columns={changeColumns(nowMs)} rows={history.toReversed()} />
        </Card>
      )}
    </>
  )
}

const FIELD_NAMES: Readonly<Record<WorkChange['field'], string>> = {
  answer: 'Answer',
  note: 'Evidence',
  owner: 'Owner',
  due: 'Due date',
  links: 'Number of links',
}

function changeColumns(nowMs: number): readonly Column<WorkChange>[] {
  return [
    { id: 'time', name: 'Time', cell: ({ atMs }) => <Time ms={atMs} nowMs={nowMs} /> },
    { id: 'field', name: 'Changed', cell: ({ field }) => FIELD_NAMES[field] },
    { id: 'to', name: 'To', cell: ({ to }) => (to === '' ? 'none' : to) },
    { id: 'by', name: 'By', cell: ({ by }) => by, wide: true },
  ]
}
