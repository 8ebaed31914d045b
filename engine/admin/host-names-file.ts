import { parse } from 'csv-parse/sync'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { utcTimeMs } from '../kernel/process/duration.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { addressBytes, canonicalAddress } from '../kernel/process/network.ts'
import { CLIENT_NAMES_MAX } from '../limits.ts'
import { endedAt, type NameSpan, withGiven } from '../store/name-spans.ts'
import type { SpansByAddress } from './client-names.ts'

/*
 * Files with the names of addresses, recognized by their content:
 *
 *   ISC dhcpd   lease 10.0.0.5 { starts ...; ends ...; client-hostname "laptop"; } (dhcpd.leases(5))
 *   Kea         CSV whose header has address and hostname (memfile lease file)
 *   dnsmasq     expiry, hardware address, address, name or *, client id
 *   CSV         address,name or address,name,from,to; a header may have more columns
 *
 * Later lines replace earlier ones in their time, as in lease files. The expiry of dnsmasq is not
 * used, because devices renew a lease before it expires.
 */
type HostNameFormat = 'dhcpd' | 'kea' | 'dnsmasq' | 'csv'

export interface HostNames {
  readonly format: HostNameFormat
  /** By canonical address. */
  readonly names: SpansByAddress
}

/** Lines of dhcpd.leases. Each is read alone, so the time is linear in the size of the file. */
const DHCPD = /^[ \t]*(?:lease[ \t]+\S+[ \t]*\{|authoring-byte-order\s|server-duid\s)/
const DHCPD_LEASE = /^[ \t]*lease[ \t]+([^\s{]+)[ \t]*\{(.*)$/
/** The times are in UTC. With `db-time-format local`, they are seconds since 1970. */
const DHCPD_TIME =
  /(?:^|[\s;])(starts|ends)[ \t]+(?:never|epoch[ \t]+(\d{1,12})|\d[ \t]+(\d{4})\/(\d\d)\/(\d\d)[ \t]+(\d\d:\d\d:\d\d))[ \t]*;/g
const DHCPD_STATE = /(?:^|;)[ \t]*binding[ \t]+state[ \t]+(\w+)[ \t]*;/g
/** Clients choose these texts, so no other word may come from them. Escapes are removed before. */
const DHCPD_TEXT = /"[^"]*"/g
/** Nobody has the address, or the server does not know who. */
const DHCPD_UNUSED = /^(?:abandoned|backup|reset)$/
const DHCPD_NAME = /(?:^|[\s;])client-hostname[ \t]+"([^"]*)"[ \t]*;/
const DNSMASQ = /^\d+ [0-9a-f:-]+ \S+ \S+ \S+\s*$/i
/** A host name, or a name that people gave to a device: one line without control characters. */
const NAME = /^[^\p{Cc}\p{Cf}\u2028\u2029]{1,255}$/u
const LINE_SHOWN_CHARS = 60
/** Headers of the first and the last time. */
const TIME_COLUMNS = [/^(?:valid[ _])?(?:from|starts?|begin)$/, /^(?:valid[ _])?(?:to|until|ends?|expires?)$/]
/** A lease in use, or in Kea `default`: others are declined, expired or released. */
const KEA_DEFAULT_STATE = '0'
/** Of a time that can be printed. */
const SECONDS = /^\d{1,12}$/

/** Until the next import, from a time that the import knows. */
const UNDATED: Times = { fromMs: 0, toMs: Number.POSITIVE_INFINITY }
type Times = Omit<NameSpan, 'name'>

/** @throws Fault USAGE with the line that is wrong */
export function readHostNames(text: string, where: string): HostNames {
  const lines = text.split(/\r?\n/)
  const first = lines.find((line) => line.trim() !== '' && !line.startsWith('#')) ?? ''
  const names = new Map<string, NameSpan[]>()
  const add = (address: string, name: string, times: Times = UNDATED): void => {
    if (addressBytes(address) === undefined || !NAME.test(name)) return
    const canonical = canonicalAddress(address)
    names.set(canonical, withGiven(names.get(canonical) ?? [], { name, ...times }))
    if (names.size > CLIENT_NAMES_MAX) {
      throw new Fault('USAGE', `${where}: more than ${CLIENT_NAMES_MAX} addresses with a name`)
    }
  }
  const format = formatOf(lines, first)
  if (format === 'dhcpd') readDhcpd(lines, names, add)
  else if (format === 'dnsmasq') readDnsmasq(lines, add)
  else readCsv(text, where, format, add)
  for (const [address, spans] of names) if (spans.length === 0) names.delete(address)
  return { format, names }
}

type Add = (address: string, name: string, times?: Times) => void

function formatOf(lines: readonly string[], first: string): HostNameFormat {
  if (lines.some((line) => DHCPD.test(line))) return 'dhcpd'
  if (DNSMASQ.test(first)) return 'dnsmasq'
  const header = first.toLowerCase().split(',')
  return header.includes('address') && header.includes('hostname') ? 'kea' : 'csv'
}

function readDhcpd(lines: readonly string[], names: Map<string, NameSpan[]>, add: Add): void {
  // Outside a lease, the address is ''.
  let address = ''
  let name = ''
  let state = ''
  let times = UNDATED
  for (const line of lines) {
    const [, opened, rest] = DHCPD_LEASE.exec(line) ?? []
    if (opened !== undefined) [address, name, state, times] = [opened, '', 'active', UNDATED]
    if (address === '') continue
    const body = rest ?? line
    name = DHCPD_NAME.exec(body)?.[1] ?? name
    const words = body.replace(/\\./g, '').replace(DHCPD_TEXT, '""')
    for (const [, found = ''] of words.matchAll(DHCPD_STATE)) state = found
    for (const [, end, epoch, year, month, day, time] of words.matchAll(DHCPD_TIME)) {
      const ms = epoch === undefined ? utcTimeMs(`${year}-${month}-${day}T${time}Z`) : Number(epoch) * SECOND_MS
      const isNever = epoch === undefined && year === undefined
      // NaN: a time that does not exist, so the lease is no span.
      if (!isNever) times = { ...times, [end === 'starts' ? 'fromMs' : 'toMs']: ms ?? Number.NaN }
    }
    if (!words.includes('}')) continue
    if (state !== 'active') {
      // A lease that its client released ends earlier than the declaration before says.
      const canonical = canonicalAddress(address)
      names.set(canonical, endedAt(names.get(canonical) ?? [], times.toMs))
    }
    const isUse = state === 'active' || (times.toMs !== UNDATED.toMs && !DHCPD_UNUSED.test(state))
    if (name !== '' && isUse) add(address, name, times)
    address = ''
  }
}

function readDnsmasq(lines: readonly string[], add: Add): void {
  for (const line of lines) {
    const [, , address = '', name = '*'] = line.split(' ')
    if (name !== '*') add(address, name)
  }
}

function readCsv(text: string, where: string, format: HostNameFormat, add: Add): void {
  let rows: string[][]
  try {
    rows = parse(text, { bom: true, relax_column_count: true, skip_empty_lines: true, trim: true, comment: '#' })
  } catch (error) {
    throw new Fault('USAGE', `${where}: ${(error as Error).message}`)
  }
  const header = (rows[0] ?? []).map((cell) => cell.toLowerCase())
  const isKea = format === 'kea'
  const [addressAt, nameAt] = isKea ? [header.indexOf('address'), header.indexOf('hostname')] : [0, 1]
  const keaAt = ['expire', 'valid_lifetime', 'state'].map((column) => header.indexOf(column))
  const hasHeader = isKea || addressBytes(rows[0]?.[0] ?? '') === undefined
  const hasTimes = rows.some((row) => row.slice(2, 4).some((cell) => utcTimeMs(cell) !== undefined))
  const timesAt = hasHeader
    ? TIME_COLUMNS.map((names) => header.findIndex((column) => names.test(column)))
    : hasTimes
      ? [2, 3]
      : []
  for (const [index, row] of rows.entries()) {
    if (index === 0 && hasHeader) continue
    const [address = '', name = ''] = [row[addressAt], row[nameAt]]
    if (isKea && name === '') continue
    const wrong = (expected: string): Fault => {
      const found = JSON.stringify(row.join(',').slice(0, LINE_SHOWN_CHARS))
      return new Fault('USAGE', `${where}: row ${index + 1}: expected ${expected}; found ${found}`)
    }
    if (addressBytes(address) === undefined || !NAME.test(name)) throw wrong('address,name such as 10.2.0.7,laptop')
    if (isKea) {
      const times = keaTimes(keaAt.map((at) => row[at] ?? ''))
      if (times !== undefined) add(address, name, times)
      continue
    }
    const [fromText = '', toText = ''] = timesAt.map((at) => row[at])
    const times = { fromMs: csvTime(fromText, UNDATED.fromMs), toMs: csvTime(toText, UNDATED.toMs) }
    if (!(times.fromMs < times.toMs)) {
      throw wrong('a time from, and a later time to, such as 2026-03-31 or 2026-03-31T12:00:00Z')
    }
    add(address, name, times)
  }
}

/** NaN if the text is not a time. */
function csvTime(text: string, unknown: number): number {
  return text === '' ? unknown : (utcTimeMs(text) ?? Number.NaN)
}

/** The times of a lease in use, from its last renewal on. A file without these columns has no times. */
function keaTimes([expire = '', lifetime = '', state = '']: readonly string[]): Times | undefined {
  if (state !== '' && state !== KEA_DEFAULT_STATE) return undefined
  if (expire === '') return UNDATED
  if (!SECONDS.test(expire)) return undefined
  const toMs = Number(expire) * SECOND_MS
  return { fromMs: toMs - Number(lifetime) * SECOND_MS, toMs }
}
