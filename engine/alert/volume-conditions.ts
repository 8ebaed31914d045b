import { dayText } from '../kernel/process/clock.ts'
import { namableGroupsOf } from '../scan/group-use.ts'
import type { PublishedPlatform } from '../scan/listed-discovery.ts'
import { clientHash, clientsOf, type ReportedCondition, reportedClients, subjectHash } from '../store/alerts.ts'
import type { ClientReader } from '../store/client-records.ts'
import { type ClientSummary, DAY_NUMBERS, numbersOf } from '../store/client-summaries.ts'
import { type Condition, type ConditionInput, lineOf, NAMED_PEOPLE_MAX } from './condition.ts'

const BYTES_PER_MB = 1_000_000
/**
 * The usual day of a sender: the median of its days with bytes among so many days before. With
 * fewer such days, nothing is usual.
 */
const USUAL_DAYS = 28
const USUAL_DAYS_MIN = 5
/** Less is not reported, however unusual it is. */
const UNUSUAL_BYTES_MIN = 10 * BYTES_PER_MB

type Days = Map<number, number>

/** The bytes that a platform got, or that a group or client sent, by day. */
interface Series {
  readonly days: Days
  readonly who: string
  condition(day: number): Pick<Condition, 'subject' | 'isCovered' | 'use' | 'groups'>
}

/** One day of a series with more bytes than a rule allows. */
interface Excess {
  readonly day: number
  readonly bytes: number
  /** The usual day, for the rule that compares with it. */
  readonly usual?: number
}

export const VOLUME_RULES = ['bytes-sent', 'bytes-unusual'] as const
type VolumeRule = (typeof VOLUME_RULES)[number]

/** A client with more bytes than a rule allows. */
type ExcessOfClient = Excess & { readonly client: string }

/**
 * Days (UTC) from `firstDay` on, on which a platform, a group or clients sent more than the
 * threshold of `bytes-sent`, or than so many times their usual day.
 */
export function sentVolumes(
  input: ConditionInput,
  found: readonly PublishedPlatform[],
  firstDay: number,
): Record<VolumeRule, Condition[]> {
  const { groups, clients } = ofClients(input, firstDay)
  const named = [...platforms(input, found, firstDay), ...groups]
  const hashes = new Map<string, string>()
  const hashOf = (client: string): string => {
    const hash = hashes.get(client) ?? clientHash(input.organization.id, client)
    hashes.set(client, hash)
    return hash
  }
  const conditions = (rule: VolumeRule): Condition[] => {
    const find = finderOf(input, rule, firstDay)
    const reported = input.store.alerts.reported(input.organization.id, rule)
    return [
      ...named.flatMap((series) => find(series.days).map((excess) => conditionOf(input, rule, series, excess))),
      ...[...clients[rule].values()].flatMap((all) => clientCondition(input, rule, all, reported, hashOf)),
    ]
  }
  return { 'bytes-sent': conditions('bytes-sent'), 'bytes-unusual': conditions('bytes-unusual') }
}

type Finder = (days: Days) => Excess[]

function finderOf(input: ConditionInput, rule: VolumeRule, firstDay: number): Finder {
  const max = input.threshold('bytes-sent') * BYTES_PER_MB
  const recent = (days: Days): Excess[] =>
    [...days].filter(([day]) => day >= firstDay).map(([day, bytes]) => ({ day, bytes }))
  if (rule === 'bytes-sent') return (days) => recent(days).filter(({ bytes }) => bytes > max)
  const times = input.threshold('bytes-unusual')
  // The other rule reports what is above its threshold.
  const most = input.isMuted('bytes-sent') ? Number.POSITIVE_INFINITY : max
  return (days) =>
    recent(days).flatMap((excess) => {
      if (excess.bytes < UNUSUAL_BYTES_MIN || excess.bytes > most) return []
      const usual = usualOf(days, excess.day)
      return usual !== undefined && excess.bytes > times * usual ? { ...excess, usual } : []
    })
}

/** The median of the days with bytes before a day; the higher one of two. undefined: there are too few. */
function usualOf(days: Days, day: number): number | undefined {
  const before = [...days].filter(([at, bytes]) => at < day && at >= day - USUAL_DAYS && bytes > 0)
  if (before.length < USUAL_DAYS_MIN) return undefined
  return before.map(([, bytes]) => bytes).sort((a, b) => a - b)[before.length >> 1]
}

function conditionOf(input: ConditionInput, rule: VolumeRule, { who, condition }: Series, excess: Excess): Condition {
  const { day, bytes, usual } = excess
  const about = condition(day)
  const date = dayText(day)
  const threshold = input.threshold(rule)
  const title =
    usual === undefined
      ? `${who} sent more than ${threshold} MB on ${date}`
      : `${who} sent ${megabytes(bytes)} on ${date}, ${Math.floor(bytes / usual)} times the usual ${megabytes(usual)}`
  return {
    ...about,
    key: `${about.subject.kind} ${about.subject.id} ${date}`,
    period: date,
    title: lineOf(title),
    details: {
      day: date,
      bytes_sent: bytes,
      ...(usual === undefined
        ? { threshold: threshold * BYTES_PER_MB }
        : { usual_bytes_sent: usual, usual_day: `median of the days with bytes in the ${USUAL_DAYS} days before` }),
    },
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / BYTES_PER_MB).toFixed(bytes < BYTES_PER_MB ? 2 : 0)} MB`
}

/**
 * Clients of one day are one condition: those that were not reported yet are counted, and named only
 * if the organization allows it. One report remembers all clients of a day, because a condition for
 * each of thousands takes seconds.
 */
function clientCondition(
  input: ConditionInput,
  rule: VolumeRule,
  all: readonly ExcessOfClient[],
  reported: ReadonlyMap<string, ReportedCondition>,
  hashOf: (client: string) => string,
): Condition[] {
  const { store, organization } = input
  const subject = { kind: 'organization', id: organization.id, name: lineOf(organization.name) } as const
  const conditionOfDay = (excess: Excess, who: string): Condition =>
    conditionOf(input, rule, { who, days: new Map(), condition: () => ({ subject }) }, excess)
  const [any] = all
  if (any === undefined) return []
  const day = conditionOfDay(any, 'A client')
  const report = reported.get(subjectHash(day.key ?? ''))
  const known = new Set(clientsOf(report))
  const found = all.filter(({ client }) => !known.has(hashOf(client)))
  const most = found.sort((a, b) => b.bytes - a.bytes).slice(0, NAMED_PEOPLE_MAX)
  const [first] = most
  if (first === undefined || day.period === undefined) return [{ ...day, ...(report && { period: report.period }) }]
  const who = found.length === 1 ? 'A client' : `${found.length} clients each`
  const one = conditionOfDay(first, who)
  const isSum = rule === 'bytes-unusual' && found.length > 1
  const title = `${who} sent more than ${input.threshold(rule)} times their usual day on ${day.period}`
  const { generation } = store.scanStates.get(organization.id)
  return [
    {
      ...one,
      ...(isSum && { title }),
      people: most.map(({ client }) => client),
      period: `${day.period} ${generation} ${known.size}`,
      clients: reportedClients([...known, ...found.map(({ client }) => hashOf(client))]),
    },
  ]
}

/** An approved platform is covered: its day is not reported again if the approval ends. */
function platforms(
  { store, organization, nameOf }: ConditionInput,
  found: readonly PublishedPlatform[],
  firstDay: number,
): Series[] {
  const series = new Map<string, Days>()
  store.evidence.addSince(organization.id, firstDay - USUAL_DAYS, (day, platformId) => {
    const days = series.get(platformId) ?? new Map<number, number>()
    series.set(platformId, days)
    const add = ({ bytesSent = 0 }: { readonly bytesSent?: number | undefined }): void => void days.set(day, bytesSent)
    return { addDay: add, addReadDay: add }
  })
  const decisions = new Map(found.map(({ id, metadata }) => [id, metadata.decision]))
  return [...series].flatMap(([platformId, days]) => {
    const detection = store.evidence.detection(organization.id, platformId)
    const decision = detection && decisions.get(detection.id)
    if (decision === undefined) return []
    const name = lineOf(nameOf(platformId))
    const isMeant = ({ bytesSent }: ClientReader): boolean => bytesSent > 0
    const condition = (day: number) => ({
      subject: { kind: 'platform', id: platformId, name },
      use: { platformId, day, isMeant, isByBytes: true },
      isCovered: decision === 'approved',
    })
    return { days, who: `Clients of ${name}`, condition }
  })
}

/** The bytes that each group sent, and by day and rule the clients that sent much. */
function ofClients(input: ConditionInput, firstDay: number) {
  const { store, organization } = input
  const sums = new Map<string, Days>()
  const clients: Record<VolumeRule, Map<number, ExcessOfClient[]>> = {
    'bytes-sent': new Map(),
    'bytes-unusual': new Map(),
  }
  const finders = VOLUME_RULES.map((rule) => [clients[rule], finderOf(input, rule, firstDay)] as const)
  const groupOf = namableGroupsOf(store, organization)
  for (const summary of isClientListMade(input) ? store.clientSummaries.all(organization.id) : []) {
    const days = daysOf(summary)
    for (const [byDay, find] of finders) {
      for (const excess of find(days)) {
        const ofDay = byDay.get(excess.day) ?? []
        byDay.set(excess.day, ofDay)
        ofDay.push({ ...excess, client: summary.client })
      }
    }
    const group = groupOf(summary)
    if (group === undefined) continue
    const sum: Days = sums.get(group) ?? new Map()
    sums.set(group, sum)
    for (const [day, bytes] of days) sum.set(day, (sum.get(day) ?? 0) + bytes)
  }
  const groups = [...sums].map(([name, days]): Series => {
    const subject = { kind: 'group', id: name, name: lineOf(name) } as const
    return { days, who: `The group ${name}`, condition: () => ({ subject, groups: [name] }) }
  })
  return { groups, clients }
}

/** An erasure removes the list, and the next scan makes it again. */
export function isClientListMade({ store, organization: { id } }: ConditionInput): boolean {
  return !store.clientErasures.isErasing(id) && store.clientSummaries.totals(id) !== undefined
}

/** The bytes that a client sent by day. */
function daysOf(summary: ClientSummary): Days {
  const numbers = numbersOf(summary.days)
  const days: Days = new Map()
  for (let at = 0; at < numbers.length; at += DAY_NUMBERS) days.set(numbers[at] ?? 0, numbers[at + 3] ?? 0)
  return days
}
