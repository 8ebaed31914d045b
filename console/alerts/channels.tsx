import { type AlertMessage, wordsOf } from '../../engine/alert/message.ts'
import { ALERT_CHANNELS_MAX } from '../../engine/limits.ts'
import {
  ALERT_CHANNEL_KINDS,
  type AlertChannel,
  type AlertChannelKind,
  type AlertChannelState,
  type DeadLetter,
} from '../../engine/store/alert-channels.ts'
import { TwoStep } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
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
import { type Column, csvOnly, Table, textColumn, timeColumn } from '../design/table.tsx'
import type { Visit } from '../http/visit.ts'
import { AlertTabs, CHANNELS_PATH, DEAD_LETTERS_PATH } from './alerts.tsx'

interface ChannelRow extends AlertChannel {
  readonly state: AlertChannelState
  /** Messages in its queue. */
  readonly waiting: number
  readonly deadLetters: number
  /** Why its settings cannot be decrypted; '' if they can. */
  readonly keyProblem: string
}

/** The alert channels of the organization, oldest first. */
export function channelRows({ site, organization }: Visit): ChannelRow[] {
  const { alertChannels } = site.store
  return alertChannels.ofOrganization(organization.id).map((channel) => ({
    ...channel,
    state: alertChannels.state(organization.id, channel.id),
    waiting: alertChannels.waiting(organization.id, channel.id),
    deadLetters: alertChannels.deadLetterCount(organization.id, channel.id),
    keyProblem: site.secrets.problem(channel.settings.keyId),
  }))
}

export interface DeadLetterRow extends Omit<DeadLetter, 'json'> {
  readonly channelId: string
  readonly channel: string
  readonly title: string
}

/** The dead letters of all channels, newest first. */
export function deadLetterRows({ site, organization }: Visit): DeadLetterRow[] {
  const { alertChannels } = site.store
  return alertChannels
    .ofOrganization(organization.id)
    .flatMap(({ id, name }) =>
      alertChannels.deadLetters(organization.id, id).map(({ json, ...letter }) => {
        return { ...letter, channelId: id, channel: name, title: (JSON.parse(json) as AlertMessage).title }
      }),
    )
    .sort((a, b) => b.failedAtMs - a.failedAtMs)
}

/** What a receiver answered to a test message, or why something failed. */
interface ChannelResult {
  readonly tone: 'good' | 'bad'
  readonly title: string
  readonly about: string
}

export interface AlertChannelsProps {
  readonly rows: readonly ChannelRow[]
  readonly nowMs: number
  readonly mayAdd: boolean
  readonly mayRemove: boolean
  readonly mayTest: boolean
  readonly mayRetry: boolean
  readonly result: ChannelResult | undefined
  /** A webhook that was just added. Only the answer to its form shows its secret. */
  readonly created: { readonly name: string; readonly secret: string } | undefined
  readonly done: string
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

/** Where alerts are sent. */
export function AlertChannels(props: AlertChannelsProps) {
  const { rows, mayAdd, result, created, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead title="Alert channels" about="Where alerts of this organization are sent">
        {rows.length > 0 && <CsvLink path={CHANNELS_PATH} />}
      </PageHead>
      <AlertTabs here={CHANNELS_PATH} />
      {title !== undefined && result === undefined && created === undefined && <Notice title={title} />}
      <KeyProblem problem={rows.find(({ keyProblem }) => keyProblem !== '')?.keyProblem ?? ''} />
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
            <Table id="channels" label="Channels" columns={columns(props)} rows={rows} />
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

export function channelColumns(nowMs: number): readonly Column<ChannelRow>[] {
  return [
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
              <Tag tone={state.delivered > 0 ? 'good' : 'plain'}>
                {state.delivered > 0 ? 'delivers' : 'not used yet'}
              </Tag>
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
      cell: ({ state }) => (
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
    csvOnly(timeColumn('delivered-at', 'Last delivered', nowMs, ({ state }) => state.deliveredAtMs)),
    { id: 'waiting', name: 'Waiting', csv: ({ waiting }) => waiting },
    { id: 'dead', name: 'Dead letters', csv: ({ deadLetters }) => deadLetters },
    { id: 'failure', name: 'Last failure', csv: ({ state }) => state.failure },
    csvOnly(timeColumn('created', 'Created', nowMs, ({ createdAtMs }) => createdAtMs)),
  ]
}

function columns({ nowMs, mayTest, mayRemove, mayRetry }: AlertChannelsProps): readonly Column<ChannelRow>[] {
  const change: Column<ChannelRow> = {
    id: 'change',
    name: 'Change',
    cell: ({ id, name, deadLetters }) => (
      <div class="row end">
        {mayTest && (
          <form method="post" action={`${CHANNELS_PATH}/${id}/test`}>
            <button type="submit" aria-label={`Send test to ${name}`}>
              Send test
            </button>
          </form>
        )}
        {mayRetry && deadLetters > 0 && (
          <form method="post" action={`${CHANNELS_PATH}/${id}/retry`}>
            <button type="submit" aria-label={`Send again: the dead letters of ${name}`}>
              Send again
            </button>
          </form>
        )}
        {mayRemove && <TwoStep action={`${CHANNELS_PATH}/${id}/remove`} verb="Remove" label={name} />}
      </div>
    ),
    quiet: true,
  }
  return mayTest || mayRemove || mayRetry ? [...channelColumns(nowMs), change] : channelColumns(nowMs)
}
