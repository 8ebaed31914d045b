import { NO_CLIENT } from '../kernel/event/client.ts'
import { CLIENTS_PER_DAY_MAX } from '../limits.ts'
import { ACCESS_SHIFT, ClientReader, ClientWriter } from '../store/client-records.ts'
import { type ClientTable, NO_ROW } from './client-table.ts'

const writer = new ClientWriter()
const NO_CLIENT_BYTES = Buffer.from(NO_CLIENT)

/**
 * Adds the rows of a cell to the stored clients of its platform and day: keeps the clients with the
 * most matches, those that used the platform before those that did not, and sums the matches of the
 * others. Among equal clients, those of the new events are kept. A client that leaves the record
 * begins with 0 matches if it returns.
 *
 * Returns the new record, or undefined if no client of the rows is known. Changes the rows.
 */
export function mergeClients(
  table: ClientTable,
  cell: number,
  rows: readonly number[],
  day: number,
  stored: Uint8Array | undefined,
): Buffer | undefined {
  const known = rows.every((row) => isKnown(table, row)) ? rows : rows.filter((row) => isKnown(table, row))
  if (known.length === 0) return undefined
  const onlyStored = stored === undefined ? [] : addStored(table, cell, day, stored)
  const limit =
    known.length + onlyStored.length <= CLIENTS_PER_DAY_MAX
      ? NO_LIMIT
      : new ClientLimit([...known.map((row) => rankOfRow(table, row)), ...onlyStored.filter((rank) => rank > 0)])
  writer.begin(day)
  for (const row of known) {
    if (!limit.keeps(rankOfRow(table, row), table.matchesOf(row))) continue
    writer.add(table.text, table.textStart(row), table.clientEnd(row), table.userEnd(row), table.numbersOf(row))
  }
  if (stored === undefined) return writer.end(limit.otherMatches)
  const reader = new ClientReader(stored, day)
  for (const rank of onlyStored) {
    reader.next()
    if (rank === 0 || !limit.keeps(rank, reader.matches)) continue
    writer.add(reader.bytes, reader.clientStart, reader.clientEnd, reader.userEnd, reader)
  }
  return writer.end(reader.otherMatches + limit.otherMatches)
}

/**
 * Adds the stored clients that have a row to their rows. Returns the rank of each stored client
 * without one, and 0 for the others.
 */
function addStored(table: ClientTable, cell: number, day: number, stored: Uint8Array): number[] {
  const onlyStored: number[] = []
  const reader = new ClientReader(stored, day)
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength)
  while (reader.next()) {
    const { clientStart, clientEnd, userEnd, methods, access, matches, firstSeenMs, lastSeenMs } = reader
    const row = table.find(cell, view, clientStart, clientEnd, clientEnd, userEnd)
    onlyStored.push(row === NO_ROW ? rankOf(access, matches) : 0)
    if (row === NO_ROW) continue
    table.add(row, methods | (access << ACCESS_SHIFT), matches, firstSeenMs, lastSeenMs)
    table.addOther(row, reader.blocked, reader.touched)
    table.addBytes(row, reader.bytesSent, reader.bytesReceived)
  }
  return onlyStored
}

/** Whether the row has an address or a user. */
function isKnown(table: ClientTable, row: number): boolean {
  const [start, clientEnd] = [table.textStart(row), table.clientEnd(row)]
  if (table.userEnd(row) > clientEnd || clientEnd - start !== NO_CLIENT_BYTES.length) return true
  return NO_CLIENT_BYTES.some((byte, at) => table.text[start + at] !== byte)
}

/** Greater for the clients to keep. Clients with access used the platform. */
function rankOf(access: number, matches: number): number {
  return access === 0 ? matches / 2 ** 53 : matches
}

function rankOfRow(table: ClientTable, row: number): number {
  return rankOf(table.accessOf(row), table.matchesOf(row))
}

/** Keeps all clients. */
const NO_LIMIT: Pick<ClientLimit, 'keeps' | 'otherMatches'> = { keeps: () => true, otherMatches: 0 }

/** Decides which clients are among the CLIENTS_PER_DAY_MAX with the highest ranks. */
class ClientLimit {
  /** Sum of the matches of clients that are not kept. */
  otherMatches = 0
  readonly #threshold: number
  /** Clients of exactly this rank that are still kept. */
  #atThreshold: number

  constructor(ranks: readonly number[]) {
    const excess = ranks.length - CLIENTS_PER_DAY_MAX
    const threshold = excess > 0 ? (Float64Array.from(ranks).sort()[excess] ?? 0) : 0
    this.#threshold = threshold
    this.#atThreshold = CLIENTS_PER_DAY_MAX - ranks.filter((rank) => rank > threshold).length
  }

  keeps(rank: number, matches: number): boolean {
    if (rank > this.#threshold || (rank === this.#threshold && this.#atThreshold-- > 0)) return true
    this.otherMatches += matches
    return false
  }
}
