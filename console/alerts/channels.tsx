import { type AlertMessage, wordsOf } from '../../engine/alert/message.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { ALERT_CHANNELS_MAX } from '../../engine/limits.ts'
import {
  ALERT_CHANNEL_KINDS,
  type AlertChannel,
  type AlertChannelKind,
  type AlertChannelState,
  type DeadLetter,
} from '../../engine/store/alert-channels.ts'
import { ActionButton, FormError, TwoStep } from '../design/form.tsx'
import { CsvLink, PagedTable, paged } from '../design/list.tsx'
import {
  Card,
  countOf,
  countText,
  Empty,
  KeyProblem,
  Notice,
  PageHead,
  SecretText,
  Tag,
  Time,
} from '../design/parts.tsx'
import { type Column, countColumn, csvOnly, Table, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ALERTS_PATH, AlertTabs, CHANNELS_PATH, DEAD_LETTERS_PATH } from './alerts.tsx'

interface ChannelRow extends AlertChannel {
  readonly state: AlertChannelState
  /** Messages in its queue. */
  readonly waiting: number
  readonly deadLetters: number
}

/** The alert channels of the organization, oldest first. */
function channelRows({ site, organization }: Visit): ChannelRow[] {
  const { alertChannels } = site.store
  return alertChannels.ofOrganization(organization.id).map((channel) => ({
    ...channel,
    state: alertChannels.state(organization.id, channel.id),
    waiting: alertChannels.waiting(organization.id, channel.id),
    deadLetters: alertChannels.deadLetterCount(organization.id, channel.id),
  }))
}

interface DeadLetterRow extends DeadLetter {
  readonly channelId: string
  readonly channel: string
  readonly title: string
}

/** The dead letters of all channels, newest first. */
function deadLetterRows({ site, organization }: Visit): DeadLetterRow[] {
  const { alertChannels } = site.store
  return alertChannels
    .ofOrganization(organization.id)
    .flatMap(({ id, name }) =>
      alertChannels.deadLetters(organization.id, id).map((letter) => {
        return { ...letter, channelId: id, channel: name, title: (JSON.parse(letter.json) as AlertMessage).title }
      }),
    )
    .sort((a, b) => b.failedAtMs - a.failedAtMs)
}

/** What one page shows after a form, once. */
export interface ShownChannel {
  /** What the receiver answered to a test message. */
  readonly result?: { readonly tone: 'good' | 'bad'; readonly title: string; readonly about: string }
  /** A webhook that was just added, and its secret. */
  readonly created?: { readonly name: string; readonly secret: string }
}

export const KIND_NAMES: Readonly<Record<AlertChannelKind, string>> = {
  webhook: 'Webhook',
  slack: 'Slack',
  teams: 'Teams',
  smtp: 'Mail',
  syslog: 'Syslog for a SIEM',
}

const KIND_HINTS: Readonly<Record<AlertChannelKind, string>> = {
  webhook: 'JSON by HTTPS, signed.',
  slack: 'A message in a channel.',
  teams: 'A card in a channel.',
  smtp: 'By your mail server.',
  syslog: 'CEF, LEEF or OCSF.',
}

const DONE: Readonly<Record<string, string>> = {
  added: 'The channel is added. Send a test to see whether it works',
  removed: 'The channel is removed, with the messages that waited for it',
}

interface AlertChannelsProps {
  readonly visit: Visit
  readonly form: FormState
  readonly shown: ShownChannel
}

/** Where alerts are sent. */
function AlertChannels({ visit, form, shown: { result, created } }: AlertChannelsProps) {
  const rows = channelRows(visit)
  const mayAdd = visit.may('alert-channel.add')
  const problems = rows.map(({ settings }) => visit.site.secrets.problem(settings.keyId))
  return (
    <>
      <PageHead title="Alert channels" about="Where alerts of this organization are sent">
        {rows.length > 0 && <CsvLink path={CHANNELS_PATH} />}
      </PageHead>
      <AlertTabs here={CHANNELS_PATH} />
      <FormError form={form} />
      <KeyProblem problem={problems.find((problem) => problem !== '') ?? ''} />
      {result !== undefined && (
        <Notice tone={result.tone} title={result.title}>
          <p class="break">{result.about}</p>
        </Notice>
      )}
      {created !== undefined && (
        <Notice title={`Copy the signing secret of “${created.name}” now. It will not be shown again`}>
          <SecretText id="secret" value={created.secret} />
          <p class="small">The receiver verifies the signature of each message with it.</p>
        </Notice>
      )}
      <div class={mayAdd ? 'wide' : undefined}>
        {rows.length === 0 ? (
          <Empty title="No channel">
            <p class="muted">
              {mayAdd
                ? 'Choose a kind of receiver. Alerts from then on are sent to it.'
                : 'An admin of the organization can add one: a webhook, Slack, Teams, mail or a SIEM.'}
            </p>
          </Empty>
        ) : (
          <Card title="Channels" note={`${rows.length} of ${ALERT_CHANNELS_MAX}`} bare>
            <Table visit={visit} id="channels" label="Channels" columns={COLUMNS} rows={rows} />
          </Card>
        )}
        {mayAdd && <AddChannel isFull={rows.length >= ALERT_CHANNELS_MAX} />}
      </div>
    </>
  )
}

function AddChannel({ isFull }: { readonly isFull: boolean }) {
  return (
    <Card title="Add channel">
      {isFull ? (
        <p class="muted">{ALERT_CHANNELS_MAX} channels are the limit. Remove one first.</p>
      ) : (
        <ul class="lines">
          {ALERT_CHANNEL_KINDS.map((kind) => (
            <li key={kind}>
              <span>
                <strong>{KIND_NAMES[kind]}</strong>
                <p class="small muted">{KIND_HINTS[kind]}</p>
              </span>
              <a class="button" href={`${CHANNELS_PATH}/new?kind=${kind}`} aria-label={`Add ${KIND_NAMES[kind]}`}>
                Add
              </a>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

const COLUMNS: readonly Column<ChannelRow>[] = [
  {
    ...textColumn('name', 'Channel', ({ name }: ChannelRow) => name),
    cell: ({ name, kind, target, severityMin, rules = [], groups = [] }) => (
      <>
        <strong>{name}</strong>
        <p class="small muted break">
          {KIND_NAMES[kind]}: {target}, from severity {severityMin}
        </p>
        {rules.length + groups.length > 0 && (
          <p class="small muted break">Only {[...rules.map(wordsOf), ...groups].join(', ')}</p>
        )}
      </>
    ),
  },
  { id: 'kind', name: 'Kind', csv: ({ kind }) => kind },
  { id: 'target', name: 'Receiver', csv: ({ target }) => target },
  { id: 'rules', name: 'Rules', csv: ({ rules = [] }) => rules.join(' ') },
  { id: 'groups', name: 'Groups', csv: ({ groups = [] }) => groups.join(', ') },
  { id: 'severity', name: 'Severity from', csv: ({ severityMin }) => severityMin },
  {
    id: 'state',
    name: 'State',
    cell: ({ state, waiting, deadLetters }) => (
      <>
        <span class="facts">
          {state.failure === '' ? (
            <Tag tone={state.delivered > 0 ? 'good' : 'plain'}>{state.delivered > 0 ? 'delivers' : 'not used yet'}</Tag>
          ) : (
            <Tag tone="bad">failing</Tag>
          )}
          {waiting > 0 && <span>{countText(waiting)} waiting</span>}
          {deadLetters > 0 && <a href={DEAD_LETTERS_PATH}>{countOf(deadLetters, 'dead letter')}</a>}
        </span>
        {state.failure !== '' && <p class="small muted break">{state.failure}</p>}
      </>
    ),
  },
  {
    id: 'delivered',
    name: 'Delivered',
    cell: ({ state }, { nowMs }) => (
      <>
        {countText(state.delivered)}
        <p class="small muted">
          <Time ms={state.deliveredAtMs} nowMs={nowMs} />
        </p>
      </>
    ),
    csv: ({ state }) => state.delivered,
    number: true,
    wide: true,
  },
  csvOnly(timeColumn('delivered-at', 'Last delivered', ({ state }) => state.deliveredAtMs)),
  { id: 'waiting', name: 'Waiting', csv: ({ waiting }) => waiting },
  { id: 'dead', name: 'Dead letters', csv: ({ deadLetters }) => deadLetters },
  { id: 'failure', name: 'Last failure', csv: ({ state }) => state.failure },
  csvOnly(timeColumn('created', 'Created', ({ createdAtMs }) => createdAtMs)),
  {
    id: 'change',
    name: 'Change',
    action: 'alert-channel.test',
    quiet: true,
    cell: ({ id, name, deadLetters }, visit) => (
      <div class="row end">
        <ActionButton action={`${CHANNELS_PATH}/${id}/test`} label={`Send test to ${name}`}>
          Send test
        </ActionButton>
        {visit.may('alert.retry') && deadLetters > 0 && (
          <ActionButton action={`${CHANNELS_PATH}/${id}/retry`} label={`Send again: the dead letters of ${name}`}>
            Send again
          </ActionButton>
        )}
        {visit.may('alert-channel.remove') && (
          <TwoStep action={`${CHANNELS_PATH}/${id}/remove`} verb="Remove" label={name} />
        )}
      </div>
    ),
  },
]

/** Messages that were not delivered. */
function DeadLetters({ visit }: { readonly visit: Visit }) {
  const rows = paged(deadLetterRows(visit), visit.request.query)
  return (
    <>
      <PageHead
        title="Dead letters"
        about="Messages that were not delivered within 24 hours, or that the receiver refused"
      >
        {rows.total > 0 && <CsvLink path={DEAD_LETTERS_PATH} />}
      </PageHead>
      <AlertTabs here={DEAD_LETTERS_PATH} />
      <PagedTable
        {...{ visit, id: 'dead-letters', label: 'Dead letters', columns: DEAD_LETTER_COLUMNS, rows }}
        empty={
          <Empty title="No dead letter">
            <p class="muted">
              Every message was delivered, or still waits. <a href={CHANNELS_PATH}>Channels</a> show how many wait.
            </p>
          </Empty>
        }
      />
    </>
  )
}

const DEAD_LETTER_COLUMNS: readonly Column<DeadLetterRow>[] = [
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
  { ...timeColumn('queued', 'Queued', ({ queuedAtMs }: DeadLetterRow) => queuedAtMs), wide: true },
  timeColumn('failed', 'Failed', ({ failedAtMs }) => failedAtMs),
  { ...countColumn('attempts', 'Attempts', ({ attempts }: DeadLetterRow) => attempts), wide: true },
  {
    id: 'retry',
    name: 'Send again',
    action: 'alert.retry',
    quiet: true,
    cell: ({ channelId, sequence, title }) => (
      <ActionButton
        action={`${CHANNELS_PATH}/${channelId}/retry`}
        look="quiet"
        label={`Send again: ${title}`}
        fields={[['number', String(sequence)]]}
      >
        Send again
      </ActionButton>
    ),
  },
  {
    id: 'discard',
    name: 'Delete',
    action: 'alert.discard',
    quiet: true,
    cell: ({ channelId, sequence, title }) => (
      <TwoStep
        action={`${CHANNELS_PATH}/${channelId}/discard`}
        verb="Delete"
        label={title}
        fields={[['number', String(sequence)]]}
      />
    ),
  },
]

export const CHANNEL_ROUTES: readonly Route[] = [
  page(CHANNELS_PATH, 'alert.read', (visit) => channelsPage(visit, EMPTY_FORM)),
  csvFile(CHANNELS_PATH, 'alert.read', COLUMNS, channelRows),
  form(`${CHANNELS_PATH}/:id/test`, 'alert-channel.test', test),
  changeForm(`${CHANNELS_PATH}/:id/remove`, 'alert-channel.remove', (given) => given, `${CHANNELS_PATH}?done=removed`, {
    confirmed: true,
    again: (visit, state) => channelsPage(visit, state),
  }),
  page(DEAD_LETTERS_PATH, 'alert.read', (visit) => {
    const done = { queued: 'Queued again, after the messages that wait', deleted: 'Deleted' }
    return visit.page('Dead letters', ALERTS_PATH, DeadLetters({ visit }), { done })
  }),
  csvFile(DEAD_LETTERS_PATH, 'alert.read', DEAD_LETTER_COLUMNS, deadLetterRows),
  changeForm(`${CHANNELS_PATH}/:id/retry`, 'alert.retry', deadLetters, `${DEAD_LETTERS_PATH}?done=queued`),
  changeForm(`${CHANNELS_PATH}/:id/discard`, 'alert.discard', deadLetters, `${DEAD_LETTERS_PATH}?done=deleted`),
]

/** The dead letter of the form's number, or all of the channel. @throws Fault USAGE. */
function deadLetters({ id }: { readonly id: string }, { request }: Visit) {
  const text = request.fields.text('number')
  if (!/^\d{0,15}$/.test(text)) throw new Fault('USAGE', 'Expected the number of a dead letter')
  return { channelId: id, sequence: text === '' ? undefined : Number(text) }
}

async function test(visit: Visit, { id }: { readonly id: string }): Promise<Answer> {
  const { site, organization } = visit
  // Counted before the change, so that what is refused is not in the audit log.
  const { channel, sent } = await site.channelTests.run(organization, () => visit.change('alert-channel.test', { id }))
  const result: ShownChannel['result'] =
    sent.kind === 'delivered'
      ? { tone: 'good', title: `Test message delivered to ${channel}`, about: `Answer: ${sent.answer || 'none'}` }
      : { tone: 'bad', title: `${channel} did not get the test message`, about: sent.why }
  return visit.redirectToShow(CHANNELS_PATH, { result } satisfies ShownChannel)
}

function channelsPage(visit: Visit, form: FormState): Answer {
  const shown = visit.shownOnce<ShownChannel>() ?? {}
  const showsSecret = shown.created !== undefined
  return visit.page('Alert channels', ALERTS_PATH, AlertChannels({ visit, form, shown }), {
    ...{ form, done: DONE, showsSecret },
  })
}
