import type { ManagerMessage } from '../alert/message.ts'
import { HOUR_MS, isoSeconds } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { ALERT_MESSAGES_WAITING_MAX, MANAGER_TEXT_BYTES_MAX } from '../limits.ts'
import { type DayRange, lastDaysOf } from '../scan/periods.ts'
import { type PlatformGroup, platformGroups } from '../scan/platform-groups.ts'
import type { AlertChannel } from '../store/alert-channels.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import type { DecisionState } from '../store/decisions.ts'
import { newUuid } from '../store/keys.ts'
import { clientModeOf, type Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges } from './audited-changes.ts'

/** The managers of a platform get one mail in this time, however often somebody sends it. */
const NOTIFIED_AGAIN_MS = HOUR_MS
/** Last audit entries that are searched for an earlier mail. */
const ENTRIES_SEARCHED_MAX = 1000
/** Control and format characters, except for tab and line feed. */
const INVISIBLE = /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}]/u

/** A mail to the manager of each of these groups. */
export interface ManagerMails {
  readonly platform: { readonly id: string; readonly name: string }
  /** Names of groups with a manager. */
  readonly groups: readonly string[]
  /** Days of the use that the mails report. */
  readonly range: DayRange
  /** What each mail begins with. */
  readonly text: string
  /** By name or id. undefined: the only one of mail. */
  readonly channel: string | undefined
}

/** Who may get a mail about the use of a platform, and what it is about. */
export interface ManagerDraft {
  /** The evidence window. */
  readonly range: DayRange
  /** The groups with people who used the platform. */
  readonly groups: readonly PlatformGroup[]
  /** Those of them that have a manager. */
  readonly notified: readonly PlatformGroup[]
  /** What a mail says if nobody edits it. */
  readonly text: string
}

export function managerDraft(
  store: Store,
  organization: Organization,
  { id, name }: ManagerMails['platform'],
  nowMs: number,
): ManagerDraft {
  return store.environment.read(() => {
    const range = lastDaysOf(organization.evidenceWindowDays, nowMs)
    const groups = platformGroups(store, organization, id, range).filter(({ people }) => people.length > 0)
    const { states } = store.decisions.inForce(organization.id, nowMs)
    const text = managerText(organization, name, states.get(id) ?? 'waiting')
    return { range, groups, notified: groups.filter(({ manager }) => manager !== ''), text }
  })
}

/** What a mail says if nobody edits it. */
export function managerText({ name }: Organization, platform: string, decision: DecisionState): string {
  const state = {
    approved: `which ${name} has approved`,
    rejected: `which ${name} does not allow`,
    waiting: `which ${name} has not approved`,
    expired: `which ${name} no longer approves`,
  }[decision]
  return `Hello,

People in your group use ${platform}, an AI service ${state}. Please ask them what they use it for, and which data they enter. Send their answers to the security team.`
}

export class ManagerChanges extends AuditedChanges {
  /**
   * Queues one mail to the manager of each group.
   *
   * @throws Fault USAGE; NOT_FOUND without a channel of mail; CONFLICT in mode `off`, if the groups
   *   changed, or if the mails were sent in the last hour; NOT_ALLOWED
   */
  notifyManagers({ id: organizationId }: Organization, mails: ManagerMails): AlertChannel {
    const { store, clock } = this
    const text = checkedText(mails.text)
    const { platform, groups } = mails
    return this.audited('manager.notify', organizationId, () => {
      const organization = store.organizations.get(organizationId)
      if (organization === undefined || clientModeOf(organization) === 'off')
        throw new Fault('CONFLICT', 'the organization keeps no clients, so it has no groups')
      if (groups.length === 0) throw new Fault('CONFLICT', `no group that uses ${platform.name} has a manager`)
      const managed = new Set(
        store.clientGroups.ofOrganization(organizationId).map(({ name, manager }) => manager && name),
      )
      if (groups.some((group) => !managed.has(group)))
        throw new Fault('CONFLICT', 'the groups have changed meanwhile; look at them again')
      const nowMs = clock.nowMs()
      const notified = lastNotified(store, organizationId, platform.name)
      if (notified !== undefined && notified.timeMs > nowMs - NOTIFIED_AGAIN_MS)
        throw new Fault('CONFLICT', `the managers got a mail about ${platform.name} less than an hour ago`)
      const channel = mailChannel(store, organizationId, mails.channel)
      if (store.alertChannels.waiting(organizationId, channel.id) + groups.length > ALERT_MESSAGES_WAITING_MAX)
        throw new Fault('CONFLICT', `too many messages wait for ${channel.name}`)
      for (const group of groups) {
        const message = messageOf(organization, { ...mails, text }, group, nowMs)
        store.alertChannels.append(organizationId, channel.id, JSON.stringify(message), nowMs)
      }
      const details = { mails: groups.length, groups, channel: channel.name }
      return { organizationId, subject: platform.name, details, result: channel }
    })
  }
}

/** The audit entry of the last mails about a platform, of the last entries. */
export function lastNotified({ auditLog }: Store, organizationId: string, platform: string): AuditEntry | undefined {
  return auditLog
    .before(organizationId, auditLog.lastSequence(organizationId) + 1, ENTRIES_SEARCHED_MAX)
    .find(({ action, subject }) => action === 'manager.notify' && subject === platform)
}

/** The alert channels that send mail. */
export function mailChannels({ alertChannels }: Store, organizationId: string): AlertChannel[] {
  return alertChannels.ofOrganization(organizationId).filter(({ kind }) => kind === 'smtp')
}

function mailChannel(store: Store, organizationId: string, wanted: string | undefined): AlertChannel {
  const all = mailChannels(store, organizationId)
  const [first, ...others] = all
  if (first === undefined) throw new Fault('NOT_FOUND', 'no alert channel sends mail; add one of the kind smtp')
  const found =
    wanted === undefined
      ? others.length === 0 && first
      : all.find(({ id, name }) => id === wanted || name.toLowerCase() === wanted.toLowerCase())
  if (found) return found
  const names = all.map(({ name }) => name).join(', ')
  throw new Fault('USAGE', `name the alert channel that sends the mails: ${names}`)
}

/** @throws Fault USAGE */
function checkedText(given: string): string {
  const text = given.replace(/\r\n?/g, '\n').trim()
  const bytes = Buffer.byteLength(text)
  if (bytes === 0 || bytes > MANAGER_TEXT_BYTES_MAX || INVISIBLE.test(text)) {
    const most = `1 to ${MANAGER_TEXT_BYTES_MAX} bytes without control or invisible characters`
    throw new Fault('USAGE', `text: expected ${most}, found ${bytes} bytes`)
  }
  return text
}

function messageOf({ id, name }: Organization, mails: ManagerMails, group: string, nowMs: number): ManagerMessage {
  const { platform, range, text } = mails
  return {
    version: 1,
    type: 'manager',
    id: newUuid().replaceAll('-', ''),
    organization: { id, name },
    title: `Use of ${platform.name} in ${group}`,
    created_at: isoSeconds(nowMs),
    text,
    platform,
    group,
    first_day: range.firstDay,
    last_day: range.lastDay,
  }
}
