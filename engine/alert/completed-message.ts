import { dayText } from '../kernel/process/clock.ts'
import { platformGroups } from '../scan/platform-groups.ts'
import { clientModeOf, mayNamePeople, mayNameToManager } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { lineOf } from './condition.ts'
import type { AlertJson, ChannelMessage, CompletedMessage, ManagerMessage } from './message.ts'

/** People that a mail names. The others are counted. */
const NAMED_MAX = 50

/**
 * A message as the manager gets it: with the use of the group, as it is stored now. Queues and dead
 * letters contain neither people nor the manager, so that an erasure need not search them.
 * undefined: the group has no manager or no use any more, or must not be shown. Call it inside
 * Environment.read.
 */
function completedManagerMessage(store: Store, message: ManagerMessage): CompletedMessage | undefined {
  const organization = store.organizations.get(message.organization.id)
  if (organization === undefined || clientModeOf(organization) === 'off') return undefined
  const { platform, group, first_day: firstDay, last_day: lastDay } = message
  const groups = platformGroups(store, organization, platform.id, { firstDay, lastDay })
  const { manager = '', people = [] } = groups.find(({ name }) => name === group) ?? {}
  if (manager === '' || people.length === 0) return undefined
  const named = mayNameToManager(organization) ? people.slice(0, NAMED_MAX) : []
  const others = people.length - named.length
  const lines = [
    message.text,
    '',
    `Group: ${group}`,
    `People who used ${platform.name} from ${dayText(firstDay)} to ${dayText(lastDay)} (UTC): ${people.length}`,
    ...named.map((name) => `- ${lineOf(name)}`),
    ...(named.length > 0 && others > 0 ? [`and ${others} more`] : []),
    '',
  ]
  return { ...message, to: manager, text: lines.join('\n') }
}

/**
 * A message as its receiver gets it: with the people who may still be named, and with links to the
 * console. Without the origin of the console there are no links. undefined: nobody may get it any
 * more.
 */
export function completedMessage(store: Store, message: ChannelMessage, origin: string): CompletedMessage | undefined {
  if (message.type === 'manager') return completedManagerMessage(store, message)
  if (message.type !== 'alerts') return message
  const { organization, count, rule } = message
  const people = peopleOf(store, organization.id)
  const alerts = message.alerts.map((alert) => ({
    ...alert,
    ...people(alert),
    ...(origin !== '' && { url: origin + pathOf(alert) }),
  }))
  const url = count === 1 && alerts[0] ? pathOf(alerts[0]) : `/alerts?rule=${rule}`
  return { ...message, alerts, ...(origin !== '' && { url: origin + url }) }
}

function peopleOf(store: Store, organizationId: string): (alert: AlertJson) => Pick<AlertJson, 'people'> {
  const organization = store.organizations.get(organizationId)
  const isErasing = store.clientErasures.isErasing(organizationId)
  if (organization === undefined || isErasing || !mayNamePeople(organization)) return () => ({})
  return ({ id, number = 0 }) => {
    const stored = store.alerts.get(organizationId, number)
    return stored?.id === id && stored.people ? { people: stored.people } : {}
  }
}

/** The page of the console about the subject of an alert, and about its day if it has one. */
export function pathOf({ subject: { kind, id, name }, details }: Pick<AlertJson, 'subject' | 'details'>): string {
  const day = String(details['day'] ?? '')
  const range = day === '' ? '' : `from=${day}&to=${day}`
  switch (kind) {
    case 'platform':
    case 'approval':
      return `/platforms/${encodeURIComponent(name)}${range && `?${range}`}`
    case 'group':
      return `/clients?${new URLSearchParams({ group: id, sort: '-sent' })}${range && `&${range}`}`
    case 'organization':
      return `/clients?sort=-sent${range && `&${range}`}`
    case 'source':
      return '/sources'
    case 'sensor':
      return '/sensors'
    case 'api-key':
      return '/api-keys'
    case 'framework':
      return details['assessment'] === undefined
        ? `/recommendations?framework=${id}`
        : `/assessments/${details['assessment']}`
    case 'item':
      return `/assessments/${id.split('/')[0]}`
    case 'recommendation':
      return '/recommendations'
    default:
      return '/alerts'
  }
}
