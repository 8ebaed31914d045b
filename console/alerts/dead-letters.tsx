import { TwoStep } from '../design/form.tsx'
import type { Paged } from '../design/list.tsx'
import { CsvLink, NumberedPages } from '../design/list.tsx'
import { Empty, Notice, PageHead } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn, timeColumn } from '../design/table.tsx'
import { AlertTabs, CHANNELS_PATH, DEAD_LETTERS_PATH } from './alerts.tsx'
import type { DeadLetterRow } from './channels.tsx'

interface DeadLettersProps {
  readonly rows: Paged<DeadLetterRow>
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly mayRetry: boolean
  readonly mayDiscard: boolean
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  queued: 'Queued again, after the messages that wait',
  deleted: 'Deleted',
}

/** Messages that were not delivered. */
export function DeadLetters(props: DeadLettersProps) {
  const { rows, query, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead
        title="Dead letters"
        about="Messages that were not delivered within 24 hours, or that the receiver refused"
      >
        {rows.total > 0 && <CsvLink path={DEAD_LETTERS_PATH} />}
      </PageHead>
      <AlertTabs here={DEAD_LETTERS_PATH} />
      {title !== undefined && <Notice title={title} />}
      {rows.total === 0 ? (
        <Empty title="No dead letter">
          <p class="muted">
            Every message was delivered, or still waits. <a href={CHANNELS_PATH}>Channels</a> show how many wait.
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table id="dead-letters" label="Dead letters" columns={columns(props)} rows={rows.rows} />
        </div>
      )}
      <NumberedPages of={rows} query={query} />
    </>
  )
}

export function deadLetterColumns(nowMs: number): readonly Column<DeadLetterRow>[] {
  return [
    {
      ...textColumn('title', 'Message', ({ title }: DeadLetterRow) => title),
      cell: ({ title, channel, failure }) => (
        <>
          <span class="break">{title}</span>
          <p class="small muted break">
            {channel}: {failure}
          </p>
        </>
      ),
    },
    { id: 'channel', name: 'Channel', csv: ({ channel }) => channel },
    { id: 'failure', name: 'Reason', csv: ({ failure }) => failure },
    { ...timeColumn('queued', 'Queued', nowMs, ({ queuedAtMs }: DeadLetterRow) => queuedAtMs), wide: true },
    timeColumn('failed', 'Failed', nowMs, ({ failedAtMs }) => failedAtMs),
    { ...countColumn('attempts', 'Attempts', ({ attempts }: DeadLetterRow) => attempts), wide: true },
  ]
}

function columns({ nowMs, mayRetry, mayDiscard }: DeadLettersProps): readonly Column<DeadLetterRow>[] {
  return [...deadLetterColumns(nowMs), ...(mayRetry ? [RETRY] : []), ...(mayDiscard ? [DISCARD] : [])]
}

const RETRY: Column<DeadLetterRow> = {
  id: 'retry',
  name: 'Send again',
  cell: ({ channelId, sequence, title }) => (
    <form method="post" action={`${CHANNELS_PATH}/${channelId}/retry`}>
      <input type="hidden" name="number" value={String(sequence)} />
      <button class="quiet" type="submit" aria-label={`Send again: ${title}`}>
        Send again
      </button>
    </form>
  ),
  quiet: true,
}

const DISCARD: Column<DeadLetterRow> = {
  id: 'discard',
  name: 'Delete',
  cell: ({ channelId, sequence, title }) => (
    <TwoStep
      action={`${CHANNELS_PATH}/${channelId}/discard`}
      verb="Delete"
      label={title}
      fields={{ number: String(sequence) }}
    />
  ),
  quiet: true,
}
