import { dayText } from '../kernel/process/clock.ts'
import { GROUP_PEOPLE_MIN } from '../limits.ts'
import { groupsOf, personKey } from '../scan/group-use.ts'
import type { PublishedPlatform } from '../scan/listed-discovery.ts'
import { DAY_NUMBERS, numbersOf } from '../store/client-summaries.ts'
import type { StoredDay } from '../store/evidence.ts'
import { type Condition, type ConditionInput, lineOf } from './condition.ts'

const BYTES_PER_MB = 1_000_000

/**
 * Days (UTC) on which a platform, a group or clients sent more than the threshold. Clients are
 * counted, and not named: a message may leave the organization. Neither is a group that is so small
 * that it names its people.
 */
export function bytesSent(
  input: ConditionInput,
  recent: readonly StoredDay[],
  found: readonly PublishedPlatform[],
  firstDay: number,
): Condition[] {
  const megabytes = input.threshold('bytes-sent')
  const max = megabytes * BYTES_PER_MB
  const all = [...platforms(input, recent, found, max), ...groupsAndClients(input, firstDay, max)]
  return all.map(({ subject, who, day, bytes, isCovered = false }) => {
    const date = dayText(day)
    return {
      subject,
      key: `${subject.kind} ${subject.id} ${date}`,
      period: date,
      title: lineOf(`${who} sent more than ${megabytes} MB on ${date}`),
      details: { day: date, bytes_sent: bytes, threshold: max },
      isCovered,
    }
  })
}

/** More bytes than the threshold on one day. */
interface Excess extends Pick<Condition, 'subject' | 'isCovered'> {
  readonly who: string
  readonly day: number
  readonly bytes: number
}

/** An approved platform is covered: its day is not reported again if the approval ends. */
function platforms(
  { store, organization, nameOf }: ConditionInput,
  recent: readonly StoredDay[],
  found: readonly PublishedPlatform[],
  max: number,
): Excess[] {
  const decisions = new Map(found.map(({ id, metadata }) => [id, metadata.decision]))
  return recent.flatMap(({ day, platformId, evidence: { bytesSent: bytes = 0 } }) => {
    const detection = bytes > max ? store.evidence.detection(organization.id, platformId) : undefined
    const decision = detection && decisions.get(detection.id)
    if (decision === undefined) return []
    const name = lineOf(nameOf(platformId))
    const subject = { kind: 'platform', id: platformId, name } as const
    return { subject, who: `Clients of ${name}`, day, bytes, isCovered: decision === 'approved' }
  })
}

function groupsAndClients({ store, organization }: ConditionInput, firstDay: number, max: number): Excess[] {
  if (store.clientErasures.isErasing(organization.id)) return []
  const { all, groupOf } = groupsOf(store, organization)
  const groups = new Map(
    all.map(({ name, members }) => [name, { days: new Map<number, number>(), people: new Set<string>(), members }]),
  )
  const clients = new Map<number, { count: number; bytes: number }>()
  for (const summary of store.clientSummaries.all(organization.id)) {
    const group = all.length === 0 ? undefined : groups.get(groupOf(summary) ?? '')
    if (group !== undefined && group.people.size < GROUP_PEOPLE_MIN) group.people.add(personKey(summary.client))
    const numbers = numbersOf(summary.days)
    for (let at = 0; at < numbers.length; at += DAY_NUMBERS) {
      const [day = 0, , , bytes = 0] = numbers.slice(at, at + DAY_NUMBERS)
      if (day < firstDay) continue
      group?.days.set(day, (group.days.get(day) ?? 0) + bytes)
      if (bytes <= max) continue
      const sum = clients.get(day) ?? { count: 0, bytes: 0 }
      clients.set(day, { count: sum.count + 1, bytes: Math.max(sum.bytes, bytes) })
    }
  }
  const ofGroups = [...groups].flatMap(([name, { days, people, members }]) => {
    if (Math.max(members, people.size) < GROUP_PEOPLE_MIN) return []
    const subject = { kind: 'group', id: name, name: lineOf(name) } as const
    const high = [...days].filter(([, bytes]) => bytes > max)
    return high.map(([day, bytes]) => ({ subject, who: `The group ${name}`, day, bytes }))
  })
  const subject = { kind: 'organization', id: organization.id, name: lineOf(organization.name) } as const
  const ofClients = [...clients].map(([day, { count, bytes }]) => {
    return { subject, who: count === 1 ? 'A client' : `${count} clients each`, day, bytes }
  })
  return [...ofGroups, ...ofClients]
}
