import { NO_CLIENT } from '../kernel/event/client.ts'
import { READ_METHODS } from '../kernel/event/event.ts'
import { DAY_MS, isoSeconds } from '../kernel/process/clock.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import type { ClientDay } from '../store/client-days.ts'
import type { NamesOf } from '../store/client-names.ts'
import { ClientReader, contactFields, kindsOf } from '../store/client-records.ts'
import { spanText } from '../store/name-spans.ts'
import { columns, type Export, type ExportedRow, type ExportSource, TIME } from './exported-row.ts'

const DATE_CHARACTERS = '2026-11-22'.length

/** Who used which platform on which day, as far as the organization keeps clients. */
export const CLIENTS_EXPORT: Export = {
  about: 'Who used which platform on which day, over the evidence window',
  columns: columns({
    day: 'The day (UTC)',
    platform_id: 'The id in the registry',
    platform_name: 'The name; the id if the registry no longer has the platform',
    client: 'The address, or its pseudonym; empty if only the user is known',
    client_name: 'The name of the address at the last use',
    earlier_names: 'Other names that the address had between first and last use',
    network: 'The name of its network',
    user: 'The user, or its pseudonym; empty if no log names one',
    methods: 'How the use was seen: `dns`, `tls`, `quic`, `log`',
    access: 'What was used: `web`, `app`, `api` or `tool`',
    used_matches: 'Those that used the platform; empty if that is not known, because an earlier release stored them',
    blocked_matches: 'Those that a device blocked',
    touched_matches: 'The others: widgets, pictures, telemetry, updates, documentation, sign-in',
    matches: 'Matched requests. A row without client and user is the sum of the clients that are not kept',
    first_seen: TIME,
    last_seen: TIME,
    bytes_sent: 'Bytes that the client sent, if a log counts them',
    bytes_received: 'Bytes that it received',
  }),
  rows: clientRows,
}

function* clientRows({ store, registry, organization, nowMs }: ExportSource): Generator<ExportedRow> {
  const { id } = organization
  // What is left to erase is not exported.
  if (store.clientErasures.isErasing(id)) return
  const platforms = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.id, platform.name]))
  const names = store.clientNames.names(id)
  for (const record of store.clientDays.since(id, firstDayOfWindow(organization, nowMs))) {
    const day = isoSeconds(record.day * DAY_MS).slice(0, DATE_CHARACTERS)
    const platform_name = platforms.get(record.platformId) ?? record.platformId
    yield* rowsOf(record, { day, platform_id: record.platformId, platform_name }, names)
  }
}

function* rowsOf(
  { day, platformId, bytes }: ClientDay,
  record: { readonly day: string; readonly platform_id: string; readonly platform_name: string },
  names: NamesOf,
): Generator<ExportedRow> {
  const group = `${day} ${platformId}`
  const reader = new ClientReader(bytes, day)
  while (reader.next()) {
    const { client, user, methods, access, matches, firstSeenMs, lastSeenMs, bytesSent, bytesReceived } = reader
    const address = client === NO_CLIENT ? null : client
    const { current, earlier, network } = names(client, firstSeenMs, lastSeenMs)
    const row = {
      ...record,
      client: address,
      client_name: current?.name ?? null,
      earlier_names: earlier.map(spanText),
      network,
      user: user === '' ? null : user,
      methods: READ_METHODS.filter((_, bit) => (methods & (1 << bit)) !== 0),
      access: kindsOf(access),
      matches,
      ...contactFields(reader),
      first_seen: isoSeconds(firstSeenMs),
      last_seen: isoSeconds(lastSeenMs),
      bytes_sent: bytesSent,
      bytes_received: bytesReceived,
    }
    yield { id: `${client} ${user}`, group, changedMs: lastSeenMs, row }
  }
  if (reader.otherMatches === 0) return
  const unknown = {
    client: null,
    client_name: null,
    earlier_names: [],
    network: null,
    user: null,
    methods: [],
    access: [],
  }
  const contacts = { used_matches: null, blocked_matches: null, touched_matches: null }
  const numbers = { matches: reader.otherMatches, first_seen: null, last_seen: null, bytes_sent: 0, bytes_received: 0 }
  yield { id: '', group, changedMs: (day + 1) * DAY_MS - 1, row: { ...record, ...unknown, ...contacts, ...numbers } }
}
