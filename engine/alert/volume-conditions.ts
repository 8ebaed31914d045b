import { dayText } from '../kernel/process/clock.ts'
import { namableGroupsOf } from '../scan/group-use.ts'
import type { PublishedPlatform } from '../scan/listed-discovery.ts'
import type { ClientReader } from '../store/client-records.ts'
import { DAY_NUMBERS, numbersOf } from '../store/client-summaries.ts'
import type { StoredDay } from '../store/evidence.ts'
import { type Condition, type ConditionInput, lineOf, NAMED_PEOPLE_MAX } from './condition.ts'

const BYTES_PER_MB = 1_000_000

/** Days (UTC) on which a platform, a group or clients sent more than the threshold. */
export function bytesSent(
  input: ConditionInput,
  recent: readonly StoredDay[],
  found: readonly PublishedPlatform[],
  firstDay: number,
): Condition[] {
  const megabytes = input.threshold('bytes-sent')
  const max = megabytes * BYTES_PER_MB
  const all = [...platforms(input, recent, found, max), ...groupsAndClients(input, firstDay, max)]
  return all.map(({ who, day, bytes, isCovered = false, ...condition }) => {
    const { subject } = condition
    const date = dayText(day)
    return {
      ...condition,
      key: `${subject.kind} ${subject.id} ${date}`,
      period: date,
      title: lineOf(`${who} sent more than ${megabytes} MB on ${date}`),
      details: { day: date, bytes_sent: bytes, threshold: max },
      isCovered,
    }
  })
}

/** More bytes than the threshold on one day. */
interface Excess extends Pick<Condition, 'subject' | 'isCovered' | 'use' | 'groups' | 'people'> {
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
    const use = { platformId, day, isMeant: ({ bytesSent }: ClientReader) => bytesSent > 0 }
    return { subject, who: `Clients of ${name}`, day, bytes, isCovered: decision === 'approved', use }
  })
}

function groupsAndClients({ store, organization }: ConditionInput, firstDay: number, max: number): Excess[] {
  if (store.clientErasures.isErasing(organization.id)) return []
  const groupOf = namableGroupsOf(store, organization)
  const groups = new Map<string, Map<number, number>>()
  const clients = new Map<number, { readonly client: string; readonly bytes: number }[]>()
  for (const summary of store.clientSummaries.all(organization.id)) {
    const group = groupOf(summary)
    const days = group === undefined ? undefined : (groups.get(group) ?? new Map<number, number>())
    if (group !== undefined && days !== undefined) groups.set(group, days)
    const numbers = numbersOf(summary.days)
    for (let at = 0; at < numbers.length; at += DAY_NUMBERS) {
      const [day = 0, , , bytes = 0] = numbers.slice(at, at + DAY_NUMBERS)
      if (day < firstDay) continue
      days?.set(day, (days.get(day) ?? 0) + bytes)
      if (bytes > max) clients.set(day, [...(clients.get(day) ?? []), { client: summary.client, bytes }])
    }
  }
  const ofGroups = [...groups].flatMap(([name, days]) => {
    const subject = { kind: 'group', id: name, name: lineOf(name) } as const
    const high = [...days].filter(([, bytes]) => bytes > max)
    return high.map(([day, bytes]) => ({ subject, who: `The group ${name}`, day, bytes, groups: [name] }))
  })
  const subject = { kind: 'organization', id: organization.id, name: lineOf(organization.name) } as const
  const ofClients = [...clients].map(([day, all]) => {
    const most = all.sort((a, b) => b.bytes - a.bytes).slice(0, NAMED_PEOPLE_MAX)
    const who = all.length === 1 ? 'A client' : `${all.length} clients each`
    return { subject, who, day, bytes: most[0]?.bytes ?? 0, people: most.map(({ client }) => client) }
  })
  return [...ofGroups, ...ofClients]
}
