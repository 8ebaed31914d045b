import { dayText } from '../kernel/process/clock.ts'
import { platformGroups } from '../scan/platform-groups.ts'
import { clientModeOf, mayNamePeople } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { lineOf } from './condition.ts'
import type { CompletedMessage, ManagerMessage } from './message.ts'

/** People that a mail names. The others are counted. */
const NAMED_MAX = 50

/**
 * A message as the manager gets it: with the use of the group, as it is stored now. Queues and dead
 * letters contain neither people nor the manager, so that an erasure need not search them.
 * undefined: the group has no manager or no use any more, or must not be shown. Call it inside
 * Environment.read.
 */
export function completedManagerMessage(store: Store, message: ManagerMessage): CompletedMessage | undefined {
  const organization = store.organizations.get(message.organization.id)
  if (organization === undefined || clientModeOf(organization) === 'off') return undefined
  const { platform, group, first_day: firstDay, last_day: lastDay } = message
  const groups = platformGroups(store, organization, platform.id, { firstDay, lastDay })
  const { manager = '', people = [] } = groups.find(({ name }) => name === group) ?? {}
  if (manager === '' || people.length === 0) return undefined
  // A pseudonym says nothing to a manager.
  const mayName = mayNamePeople(organization) && clientModeOf(organization) === 'full'
  const named = mayName ? people.slice(0, NAMED_MAX) : []
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
