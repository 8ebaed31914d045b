import {
  ALERT_CHANNEL_KINDS,
  type AlertChannel,
  type AlertChannelState,
  type DeadLetter,
  type MessageOutcome,
} from '../store/alert-channels.ts'
import {
  ALERT_RULES,
  ALERT_SEVERITIES,
  type Alert,
  type AlertRules,
  type AlertState,
  type ReportedCondition,
} from '../store/alerts.ts'
import { UUID_BYTES, uuidBytes } from '../store/keys.ts'
import { REPORT_INTERVALS, type ReportSchedule } from '../store/report-schedules.ts'
import { checkQueue } from './queue.ts'
import { packed, type StoreWalk, shortKey } from './walk.ts'

const SEQUENCE_BYTES = 8
const CHANNEL_KEY_BYTES = 2 * UUID_BYTES
const MESSAGE_KEY_BYTES = CHANNEL_KEY_BYTES + SEQUENCE_BYTES
const TIME_BYTES = 8

/** Checks alerts, what was reported, channels and their messages. */
export function checkAlerts(walk: StoreWalk): void {
  checkRecords(walk)
  checkChannels(walk)
  checkQueue(walk, 'alert-queue', CHANNEL_KEY_BYTES, messageFault)
  checkMessages(walk)
  checkReportSchedules(walk)
}

function checkRecords(walk: StoreWalk): void {
  let last = { organizationId: '', sequence: 0 }
  const alertForm = { keyBytes: UUID_BYTES + SEQUENCE_BYTES, open: packed<Alert>('alert') }
  walk.table('alerts', alertForm, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void => walk.wrong('alerts', organizationId, found, expected)
    const sequence = Number(key.readBigUInt64BE(UUID_BYTES))
    if (value.organizationId !== organizationId || value.sequence !== sequence) {
      wrong(`alert ${value.sequence} of ${value.organizationId}`, `alert ${sequence} of the key`)
    }
    const isNext = last.organizationId !== organizationId || sequence === last.sequence + 1
    if (!isNext) wrong(`alert ${sequence} after ${last.sequence}`, 'no gap')
    last = { organizationId, sequence }
    if (!ALERT_RULES.includes(value.rule)) wrong(`the rule ${value.rule}`, ALERT_RULES.join(', '))
    if (!ALERT_SEVERITIES.includes(value.severity)) wrong(`the severity ${value.severity}`, ALERT_SEVERITIES.join(', '))
  })
  walk.table(
    'alert-rules',
    { keyBytes: UUID_BYTES, open: packed<AlertRules>('alert rules') },
    ({ value, organizationId }) => {
      for (const rule of Object.keys(value)) {
        const isKnown = ALERT_RULES.some((known) => known === rule)
        if (!isKnown) walk.wrong('alert-rules', organizationId, `the rule ${rule}`, ALERT_RULES.join(', '))
      }
    },
  )
  const stateForm = { keyBytes: UUID_BYTES, open: packed<AlertState>('state of alerts') }
  walk.table('alert-states', stateForm, ({ value: { generation }, organizationId }) => {
    if (Number.isSafeInteger(generation) && generation > 0) return
    walk.wrong('alert-states', organizationId, `the generation ${generation}`, 'a whole number from 1')
  })
  const reportForm = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<ReportedCondition>('reported condition') }
  walk.table('alert-reports', reportForm, ({ key, organizationId }) => {
    const rule = key.toString('utf8', UUID_BYTES, key.indexOf(0, UUID_BYTES))
    if (ALERT_RULES.some((known) => known === rule)) return
    walk.wrong('alert-reports', organizationId, `a report at ${shortKey(key)}`, `one of ${ALERT_RULES.join(', ')}`)
  })
}

function checkChannels(walk: StoreWalk): void {
  const form = { keyBytes: CHANNEL_KEY_BYTES, open: packed<AlertChannel>('alert channel') }
  walk.table('alert-channels', form, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('alert-channels', organizationId, found, expected)
    const own = Buffer.concat([uuidBytes(value.organizationId), uuidBytes(value.id)])
    if (!own.equals(key)) wrong(`the channel ${value.id} of ${value.organizationId}`, 'that of its key')
    if (!ALERT_CHANNEL_KINDS.includes(value.kind)) wrong(`the kind ${value.kind}`, ALERT_CHANNEL_KINDS.join(', '))
  })
}

/** An entry of a queue: a time, and a message in JSON. */
function messageFault(entry: Buffer): string | undefined {
  if (entry.length < TIME_BYTES) return `${entry.length} bytes`
  try {
    JSON.parse(entry.toString('utf8', TIME_BYTES))
    return undefined
  } catch {
    return 'text that is not JSON'
  }
}

/** Records of messages belong to a channel. A message has an outcome once it has left the queue. */
function checkMessages(walk: StoreWalk): void {
  const { environment } = walk.store
  const channels = environment.table('alert-channels')
  const ofChannel = (table: string, key: Buffer, organizationId: string): void => {
    if (channels.doesExist(Buffer.from(key.subarray(0, CHANNEL_KEY_BYTES)))) return
    walk.wrong(table, organizationId, `a record at ${shortKey(key)}`, 'an alert channel of that id')
  }
  const stateForm = { keyBytes: CHANNEL_KEY_BYTES, open: packed<AlertChannelState>('state of an alert channel') }
  walk.table('alert-channel-states', stateForm, ({ key, organizationId }) => {
    ofChannel('alert-channel-states', key, organizationId)
  })
  const outcomeForm = { keyBytes: MESSAGE_KEY_BYTES, open: packed<MessageOutcome>('outcome of an alert message') }
  walk.table('alert-outcomes', outcomeForm, ({ key, organizationId }) => {
    ofChannel('alert-outcomes', key, organizationId)
  })
  const letterForm = { keyBytes: MESSAGE_KEY_BYTES, open: packed<DeadLetter>('dead letter') }
  walk.table('alert-dead-letters', letterForm, ({ key, value, organizationId }) => {
    ofChannel('alert-dead-letters', key, organizationId)
    if (Number(key.readBigUInt64BE(CHANNEL_KEY_BYTES)) !== value.sequence) {
      walk.wrong('alert-dead-letters', organizationId, `the message ${value.sequence}`, 'that of its key')
    }
  })
}

/** Scheduled reports are sent by a mail channel. */
function checkReportSchedules(walk: StoreWalk): void {
  const { alertChannels } = walk.store
  const form = { keyBytes: 2 * UUID_BYTES, open: packed<ReportSchedule>('report schedule') }
  walk.table('report-schedules', form, ({ key, value, organizationId }) => {
    const wrong = (found: string, expected: string): void =>
      walk.wrong('report-schedules', organizationId, found, expected)
    if (!key.equals(Buffer.concat([uuidBytes(organizationId), uuidBytes(value.id)]))) {
      wrong(`the schedule ${value.id}`, 'the one of its key')
    }
    if (!REPORT_INTERVALS.includes(value.every)) wrong(`every ${value.every}`, REPORT_INTERVALS.join(' or '))
    walk.unlessUnreadable(() => {
      const channel = alertChannels.get(organizationId, value.channelId)
      if (channel?.kind !== 'smtp') wrong(`the channel ${value.channelId}`, 'an alert channel of mail')
    })
  })
}
