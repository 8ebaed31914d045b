import { CLAIMS } from '../../engine/assess/discovery-facts.ts'
import { lawFrom } from '../../engine/assess/grade.ts'
import { answer as answerRule, itemKey, readAnswer } from '../../engine/assess/rules.ts'
import { evidenceText, type Suggestion } from '../../engine/assess/suggestions.ts'
import { linkParts, noteMark, type SeenItem, workOf } from '../../engine/assess/work.ts'
import type { Answer, AssessmentItem, WORD_ANSWERS, WorkChange } from '../../engine/store/assessments.ts'
import { type LegalDuty, profileText } from '../../engine/store/framework.ts'
import { Bar } from '../design/chart.tsx'
import { Field, Form, TextArea } from '../design/form.tsx'
import { NumberedPages } from '../design/list.tsx'
import { Card, countText, Facts, Notice, PageHead, Tag, Time, type Tone } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { Visit } from '../http/visit.ts'
import { ITEM_FILTERS, type ItemFilter, type ItemView, type ListedItem, progressOf } from './read.ts'

const ANSWER_NAMES: Readonly<Record<(typeof WORD_ANSWERS)[number], string>> = {
  yes: 'Yes',
  partial: 'Partial',
  no: 'No',
  not_applicable: 'Not applicable',
  unanswered: 'Not answered',
}

const FILTER_NAMES: Readonly<Record<ItemFilter, string>> = {
  all: 'All',
  mine: 'Mine',
  unanswered: 'Unanswered',
  unsupported: 'No longer supported',
  'must-pass': 'Must pass',
}

interface ItemPageProps {
  readonly visit: Visit
  readonly view: ItemView
  /** What the person typed, and why it is not saved. */
  readonly form: FormState
}

/**
 * One item to work on, beside the list of items. The browser script saves each change, and replaces
 * the elements with `data-part`. Fields are in none of them, so that typed text stays.
 */
export function ItemPage(props: ItemPageProps) {
  const { visit, view } = props
  const { assessment, category, item, next, show } = view
  const { history, review } = workOf(item)
  const mayChange = assessment.status !== 'completed' && visit.may('assessment.change')
  const isOpen = mayChange && review?.state !== 'approved'
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href="/assessments">Assessments</a> / <a href={`/assessments/${assessment.id}`}>{assessment.title}</a>
          </>
        }
        title={category.name}
      >
        <div id="next" data-part>
          {next !== undefined && (
            <a class="button" data-key="n" href={pathOf(assessment.id, next, show)}>
              Next unanswered
            </a>
          )}
        </div>
      </PageHead>
      <div class="wide">
        <div class="column">
          <Item {...props} isOpen={isOpen} />
          {mayChange && !isOpen && visit.may('assessment.approve') && (
            <form class="row" method="post" action={pathOf(assessment.id, view)}>
              <input type="hidden" name="show" value={show} />
              <button type="submit" name="review" value="reopen">
                Reopen the item
              </button>
            </form>
          )}
          {mayChange && <CommentForm {...props} />}
          <div id="history" data-part>
            {history.length > 0 && (
              <Card title="Changes and comments" note={countText(history.length)} bare>
                <Table
                  {...{ visit, id: 'changes', label: 'Changes', columns: CHANGE_COLUMNS }}
                  rows={history.toReversed()}
                />
              </Card>
            )}
          </div>
        </div>
        <div class="column">
          <Items {...props} />
          <Categories view={view} />
        </div>
      </div>
    </>
  )
}

/** A comment changes neither the answer nor its review, so an approved item has the form as well. */
function CommentForm({ view, form }: ItemPageProps) {
  return (
    <Card title="Comment">
      <Form action={pathOf(view.assessment.id, view)} submit="Add the comment" look="plain">
        <input type="hidden" name="show" value={view.show} />
        <TextArea name="comment" label="Text" form={form} rows={2} required />
      </Form>
    </Card>
  )
}

function Item(props: ItemPageProps & { readonly isOpen: boolean }) {
  const { visit, view, form, isOpen } = props
  const { nowMs } = visit
  const { assessment, item, guidance, reasons } = view
  const error = form.errors['']
  const change = changeOf(view)
  const from = lawFrom(assessment.frameworkId, item.id, nowMs)
  const title = (
    <>
      <span class="mono">{item.id}</span>
      {guidance?.mustPass && <Tag>Must pass</Tag>}
      {from !== undefined && <Tag>Not in force until {from}</Tag>}
      {change !== undefined && <Tag>{change}</Tag>}
    </>
  )
  const before = view.previous?.items.get(itemKey(item.id))?.answer
  const answers = <Answers view={view} isOpen={isOpen} />
  const known = (
    <div id="known" class="column" data-part>
      {reasons.map((reason) => (
        <p key={reason}>
          <Tag tone="bad">no longer supported</Tag> {reason}
        </p>
      ))}
      {item.facts !== undefined && <p class="small muted">Discovery at completion: {item.facts.text}</p>}
      {isOpen && <Suggested suggestion={view.suggestions.get(itemKey(item.id))} />}
    </div>
  )
  return (
    <Card title={item.title} note={<span class="facts">{title}</span>}>
      {item.question !== undefined && <p class="lead">{item.question}</p>}
      {before !== undefined && before !== item.answer && (
        <p class="small muted">was: {answerName(before)} in the last assessment</p>
      )}
      <div id="rejected" data-part>
        {error !== undefined && (
          <Notice tone="bad" title={error}>
            <p class="small">
              Not saved. Stored now: {answerName(item.answer)}
              {item.note !== '' && `, “${item.note}”`}. {isOpen && 'Save again to replace it with yours.'}
            </p>
            {!isOpen && <Typed form={form} />}
          </Notice>
        )}
      </div>
      {isOpen ? (
        <form id="item" class="stack work" method="post" action={pathOf(assessment.id, view)} data-saves>
          <input type="hidden" name="show" value={view.show} />
          {/* The first button is the one that Enter presses in a field. */}
          <div class="row">
            <button class="first" type="submit">
              Save
            </button>
            <output id="saved" class="small muted" data-part>
              {visit.request.query.get('done') === 'saved' && 'Saved'}
            </output>
            <output class="error" data-unsaved="Not saved: the console does not answer. Your text stays here." />
          </div>
          {answers}
          <label class="check small muted" data-keys hidden>
            <input type="checkbox" checked />
            <span>
              Keys: <kbd>1</kbd> Yes, <kbd>2</kbd> Partial, <kbd>3</kbd> No, <kbd>n</kbd> next unanswered
            </span>
          </label>
          {known}
          <Fields {...props} />
          <div id="review" class="row" data-part>
            <Review item={item} nowMs={nowMs} />
            {item.answer !== 'unanswered' && <ReviewButtons item={item} mayApprove={visit.may('assessment.approve')} />}
          </div>
        </form>
      ) : (
        <div class="stack work">
          <p>
            <Review item={item} nowMs={nowMs} />
          </p>
          {answers}
          {known}
          <Work item={item} />
        </div>
      )}
      <About view={view} isOpen={isOpen} />
    </Card>
  )
}

/** What was sent, where the page has no fields that keep it. */
function Typed({ form }: Pick<ItemPageProps, 'form'>) {
  const sent = Object.entries(FIELD_NAMES).map(([field, name]) => {
    return [`You sent: ${name}`, form.values.text(`typed-${field}`) || undefined] as const
  })
  return <Facts rows={sent} />
}

/** The three answers, with what each one means. */
function Answers({ view: { item, guidance }, isOpen }: { readonly view: ItemView; readonly isOpen: boolean }) {
  const { answer } = item
  return (
    <div id="answers" data-part>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would need a legend above the buttons */}
      <div class="choices" role="group" aria-label={`Answer of ${item.id}`}>
        {(['yes', 'partial', 'no'] as const).map((each, at) => (
          <div key={each} class="choice">
            <AnswerButton answer={each} chosen={answer} isOpen={isOpen} keyName={String(at + 1)} />
            <p>{guidance?.guidance?.[each]}</p>
          </div>
        ))}
        <div class="row">
          <AnswerButton answer="not_applicable" chosen={answer} isOpen={isOpen} />
          {isOpen && <span class="small muted">needs the reason as evidence</span>}
          {isOpen && answer !== 'unanswered' && <AnswerButton answer="unanswered" chosen={answer} isOpen />}
          {typeof answer === 'number' && <Tag>{answerName(answer)}</Tag>}
        </div>
      </div>
    </div>
  )
}

interface AnswerButtonProps {
  readonly answer: (typeof WORD_ANSWERS)[number]
  readonly chosen: Answer
  readonly isOpen: boolean
  readonly keyName?: string
}

function AnswerButton({ answer, chosen, isOpen, keyName }: AnswerButtonProps) {
  const isChosen = answer === chosen
  const name = answer === 'unanswered' ? 'Remove the answer' : ANSWER_NAMES[answer]
  if (!isOpen) return isChosen ? <Tag tone={toneOf(answer)}>Answer: {name}</Tag> : <span class="muted">{name}</span>
  return (
    <button
      id={`answer-${answer}`}
      type="submit"
      name="answer"
      value={answer}
      aria-pressed={isChosen}
      data-key={keyName}
      aria-keyshortcuts={keyName}
    >
      {name}
    </button>
  )
}

/** A suggested answer, which counts only if somebody accepts it, or what is known without one. */
function Suggested({ suggestion }: { readonly suggestion: Suggestion | undefined }) {
  if (suggestion === undefined) return null
  const { answer, facts } = suggestion
  const from = `${evidenceText(suggestion)}${facts === undefined ? '' : `. Discovery shows if ${CLAIMS[facts.topic]}`}`
  if (answer === undefined) return <p class="small muted">Related, without an answer: {from}</p>
  return (
    <div class="notice">
      <p>
        <button id="accept" type="submit" name="accept" value={answer}>
          Accept: {answerName(answer)}
        </button>
      </p>
      <p class="small">Suggested from {from}</p>
    </div>
  )
}

function Fields({ view, form }: ItemPageProps) {
  const { owner, dueOn, links } = workOf(view.item)
  return (
    <>
      <div id="seen" data-part>
        <input type="hidden" name="was" value={markOf(view.item)} />
        <input type="hidden" name="was-owner" value={owner} />
        <input type="hidden" name="was-due" value={dueOn} />
        <input type="hidden" name="was-links" value={links.join('\r\n')} />
      </div>
      <TextArea name="note" label="Evidence" form={form} rows={4} hint={view.guidance?.guidance?.evidence} />
      <div class="two">
        <Field name="owner" label="Owner" form={form} maxLength={255} suggestions={view.members} />
        <Field name="due" label="Due date" type="date" form={form} />
      </div>
      <TextArea
        name="links"
        label="Links"
        form={form}
        rows={2}
        hint="One address in each line, at most 5. If the evidence expires, add a blank and the day: 2027-01-31."
      />
      <div id="links-now" data-part>
        {links.length > 0 && <Links links={links} />}
      </div>
    </>
  )
}

/** Who submitted or approved the answer, and when. */
function Review({ item, nowMs }: { readonly item: AssessmentItem; readonly nowMs: number }) {
  const { review } = workOf(item)
  if (review === undefined) return null
  return (
    <span class="facts">
      <Tag tone={review.state === 'approved' ? 'good' : 'plain'}>{review.state}</Tag>
      <span class="small muted">
        by {review.by}, <Time ms={review.atMs} nowMs={nowMs} />
      </span>
    </span>
  )
}

function ReviewButtons({ item, mayApprove }: { readonly item: AssessmentItem; readonly mayApprove: boolean }) {
  if (workOf(item).review === undefined) {
    return (
      <button type="submit" name="review" value="submit">
        Submit for review
      </button>
    )
  }
  if (!mayApprove) return null
  return (
    <>
      <button type="submit" name="review" value="approve">
        Approve
      </button>
      <button type="submit" name="review" value="reopen">
        Return
      </button>
    </>
  )
}

/** The work on an item that nobody can change. */
function Work({ item }: { readonly item: AssessmentItem }) {
  const { owner, dueOn, links } = workOf(item)
  return (
    <Facts
      rows={[
        ['Evidence', item.note || 'None'],
        ['Owner', `${owner || 'Nobody is assigned'}${dueOn === '' ? '' : `, due ${dueOn}`}`],
        ['Links', links.length > 0 ? <Links links={links} /> : undefined],
      ]}
    />
  )
}

function Links({ links }: { readonly links: readonly string[] }) {
  return (
    <ul class="links break">
      {links.map((link) => {
        const { address, expiresOn } = linkParts(link)
        return (
          <li key={link}>
            <a href={address} rel="noreferrer">
              {address}
            </a>
            {expiresOn !== '' && `, expires on ${expiresOn}`}
          </li>
        )
      })}
    </ul>
  )
}

/** What to show, unless the field says it, what to do if the answer is no, and where the item is from. */
function About({ view: { item, guidance }, isOpen }: { readonly view: ItemView; readonly isOpen: boolean }) {
  return (
    <Facts
      rows={[
        ['What to show', isOpen ? undefined : guidance?.guidance?.evidence],
        ['If not', item.recommendation],
        ['From', guidance?.references?.join(', ')],
        ['Law', guidance?.law && <Law law={guidance.law} />],
      ]}
    />
  )
}

function Law({ law }: { readonly law: readonly LegalDuty[] }) {
  return law.map(({ reference, appliesFrom, source }) => (
    <p key={reference}>
      <a href={source} rel="noreferrer">
        {reference}
      </a>{' '}
      applies from {appliesFrom}
    </p>
  ))
}

/** The items of the category, or those of the assessment that a filter finds. */
function Items({ visit, view }: ItemPageProps) {
  const { assessment, category, at, show, found, listed } = view
  const { answered, items } = progressOf([category])
  return (
    <section id="items" class="card" data-part>
      <header>
        <h2>Items</h2>
        <p>{`${answered} of ${items} answered`}</p>
      </header>
      <div class="body column">
        <Bar share={items === 0 ? 0 : answered / items} label={`${answered} of ${items} answered`} />
        <nav class="tabs" aria-label="Filter">
          {ITEM_FILTERS.map((each) => (
            <a
              key={each}
              href={`/assessments/${assessment.id}/categories/${at}${each === 'all' ? '' : `?show=${each}`}`}
              aria-current={each === show ? 'true' : undefined}
            >
              {FILTER_NAMES[each]} {found.get(each)?.length}
            </a>
          ))}
        </nav>
        {listed.total === 0 && <p class="muted">No item of the assessment matches</p>}
        <nav class="items" aria-label="Items">
          <ol>
            {listed.rows.map((row) => (
              <li key={row.item.id}>
                <a
                  href={pathOf(assessment.id, row, show)}
                  aria-current={row.item.id === view.item.id ? 'page' : undefined}
                >
                  <span>
                    <span class="mono">{row.item.id}</span> {row.item.title}
                  </span>
                  <State row={row} />
                </a>
              </li>
            ))}
          </ol>
        </nav>
        <NumberedPages visit={visit} of={listed} />
      </div>
    </section>
  )
}

function State({ row: { item, isUnsupported, isOverdue } }: { readonly row: ListedItem }) {
  if (isUnsupported) return <Tag tone="bad">{answerName(item.answer)}, not supported</Tag>
  if (isOverdue) return <Tag tone="warn">Overdue</Tag>
  if (item.answer === 'unanswered') return <span>–</span>
  const { review } = workOf(item)
  return (
    <Tag tone={toneOf(item.answer)}>
      {answerName(item.answer)}
      {review !== undefined && `, ${review.state}`}
    </Tag>
  )
}

function Categories({ view: { assessment, categories, at } }: { readonly view: ItemView }) {
  return (
    <section id="categories" class="card" data-part>
      <header>
        <h2>Categories</h2>
      </header>
      <nav class="body items" aria-label="Categories">
        <ol>
          {categories.map((each, index) => {
            const { answered, items } = progressOf([each])
            return (
              <li key={each.name}>
                <a
                  href={`/assessments/${assessment.id}/categories/${index}`}
                  aria-current={index === at ? 'true' : undefined}
                >
                  <span>{each.name}</span>
                  <span>{`${answered} of ${items}`}</span>
                </a>
              </li>
            )
          })}
        </ol>
      </nav>
    </section>
  )
}

/** What the previous assessment with the same profile did not ask. */
function changeOf({ assessment, previous, item }: ItemView): 'New' | 'Question changed' | undefined {
  if (previous === undefined || profileText(previous.assessment.profile) !== profileText(assessment.profile)) return
  const known = previous.items.get(itemKey(item.id))
  if (known === undefined) return 'New'
  return known.question === item.question ? undefined : 'Question changed'
}

const FIELD_NAMES: Readonly<Record<WorkChange['field'], string>> = {
  answer: 'Answer',
  note: 'Evidence',
  owner: 'Owner',
  due: 'Due date',
  links: 'Number of links',
  review: 'Review',
  comment: 'Comment',
}

const CHANGE_COLUMNS: readonly Column<WorkChange>[] = [
  {
    id: 'time',
    name: 'Time',
    cell: ({ atMs, by }, { nowMs }) => (
      <>
        <Time ms={atMs} nowMs={nowMs} />
        <p class="small muted">{by}</p>
      </>
    ),
  },
  { id: 'field', name: 'Changed', cell: ({ field }) => FIELD_NAMES[field] },
  { id: 'to', name: 'To', cell: ({ to }) => to || 'none' },
]

/** The page of an item, within the items that a filter finds. */
export function pathOf(
  id: string,
  { at, place }: Pick<ListedItem, 'at' | 'place'>,
  show: ItemFilter = 'all',
  done = '',
): string {
  const query = new URLSearchParams({ ...(show === 'all' ? {} : { show }), ...(done === '' ? {} : { done }) })
  return `/assessments/${id}/categories/${at}/items/${place}${query.size === 0 ? '' : `?${query}`}`
}

/** What the page shows of an item, so that a change of somebody else is noticed. */
function markOf({ answer, note }: AssessmentItem): string {
  return `${answer}_${noteMark(note)}`
}

/** undefined: not a mark. */
export function readMark(text: string): SeenItem | undefined {
  const [, written = '', note = ''] = /^(\w+)_([0-9a-f]{16})$/.exec(text) ?? []
  const read = answerRule.safeParse(readAnswer(written))
  return note === '' || !read.success ? undefined : { answer: read.data, note }
}

export function answerName(answer: Answer): string {
  return typeof answer === 'number' ? `${answer} %` : ANSWER_NAMES[answer]
}

function toneOf(answer: Answer): Tone {
  return answer === 'yes' ? 'good' : answer === 'partial' ? 'warn' : answer === 'no' ? 'bad' : 'plain'
}
