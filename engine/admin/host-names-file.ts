import { parse } from 'csv-parse/sync'
import { Fault } from '../kernel/process/error-codes.ts'
import { addressBytes, canonicalAddress } from '../kernel/process/network.ts'
import { CLIENT_NAMES_MAX } from '../limits.ts'

/*
 * Files with the names of addresses, recognized by their content:
 *
 *   ISC dhcpd   lease 10.0.0.5 { ... client-hostname "laptop"; } (dhcpd.leases(5))
 *   Kea         CSV whose header has address and hostname (memfile lease file)
 *   dnsmasq     expiry, hardware address, address, name or *, client id
 *   CSV         address,name, with or without a header
 *
 * Later lines replace earlier ones, as in lease files.
 */
export const HOST_NAME_FORMATS = ['dhcpd', 'kea', 'dnsmasq', 'csv'] as const
export type HostNameFormat = (typeof HOST_NAME_FORMATS)[number]

export interface HostNames {
  readonly format: HostNameFormat
  /** Names by canonical address. */
  readonly names: ReadonlyMap<string, string>
}

/** Lines of dhcpd.leases. Each is read alone, so the time is linear in the size of the file. */
const DHCPD = /^[ \t]*(?:lease[ \t]+\S+[ \t]*\{|authoring-byte-order\s|server-duid\s)/
const DHCPD_LEASE = /^[ \t]*lease[ \t]+([^\s{]+)[ \t]*\{(.*)$/
const DHCPD_NAME = /(?:^|[\s;])client-hostname[ \t]+"([^"]*)"[ \t]*;/
const DNSMASQ = /^\d+ [0-9a-f:-]+ \S+ \S+ \S+\s*$/i
/** A host name, or a name that people gave to a device: one line without control characters. */
const NAME = /^[^\p{Cc}\p{Cf}\u2028\u2029]{1,255}$/u
const LINE_SHOWN_CHARS = 60

/** @throws Fault USAGE with the line that is wrong */
export function readHostNames(text: string, where: string): HostNames {
  const lines = text.split(/\r?\n/)
  const first = lines.find((line) => line.trim() !== '' && !line.startsWith('#')) ?? ''
  const names = new Map<string, string>()
  const add = (address: string, name: string): void => {
    if (addressBytes(address) !== undefined && NAME.test(name)) names.set(canonicalAddress(address), name)
    if (names.size > CLIENT_NAMES_MAX) {
      throw new Fault('USAGE', `${where}: more than ${CLIENT_NAMES_MAX} addresses with a name`)
    }
  }
  const format = formatOf(lines, first)
  if (format === 'dhcpd') readDhcpd(lines, add)
  else if (format === 'dnsmasq') readDnsmasq(lines, add)
  else readCsv(text, where, format, add)
  return { format, names }
}

type Add = (address: string, name: string) => void

function formatOf(lines: readonly string[], first: string): HostNameFormat {
  if (lines.some((line) => DHCPD.test(line))) return 'dhcpd'
  if (DNSMASQ.test(first)) return 'dnsmasq'
  const header = first.toLowerCase().split(',')
  return header.includes('address') && header.includes('hostname') ? 'kea' : 'csv'
}

function readDhcpd(lines: readonly string[], add: Add): void {
  // Outside a lease, the address is ''.
  let address = ''
  let name = ''
  for (const line of lines) {
    const [, opened, rest] = DHCPD_LEASE.exec(line) ?? []
    if (opened !== undefined) [address, name] = [opened, '']
    if (address === '') continue
    const body = rest ?? line
    name = DHCPD_NAME.exec(body)?.[1] ?? name
    if (!body.includes('}')) continue
    if (name !== '') add(address, name)
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
  const hasHeader = isKea || addressBytes(rows[0]?.[0] ?? '') === undefined
  for (const [index, row] of rows.entries()) {
    if (index === 0 && hasHeader) continue
    const [address = '', name = ''] = [row[addressAt], row[nameAt]]
    if (isKea && name === '') continue
    if (addressBytes(address) === undefined || !NAME.test(name)) {
      const found = JSON.stringify(row.join(',').slice(0, LINE_SHOWN_CHARS))
      throw new Fault(
        'USAGE',
        `${where}: row ${index + 1}: expected address,name such as 10.2.0.7,laptop; found ${found}`,
      )
    }
    add(address, name)
  }
}
