import { isPseudonym, NO_CLIENT } from '../../engine/kernel/event/client.ts'
import type { AddressNames } from '../../engine/store/client-names.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import { spanText } from '../../engine/store/name-spans.ts'
import { html } from './html.ts'
import { bytesText, countText, platformPath } from './parts.tsx'
import { type Column, countColumn, csvOnly, textColumn, timeColumn } from './table.tsx'

/** The page with the clients of a platform. */
export function platformClientsPath(platform: string): string {
  return `${platformPath(platform)}/clients`
}

const LONG_NAME_CHARS = 40

/** A link to the page of a client or user. */
export function ClientLink({ client }: { readonly client: string }) {
  if (client === NO_CLIENT) return html`<span class="muted">unknown</span>`
  const href = `/clients/${encodeURIComponent(client)}`
  if (isPseudonym(client)) return html`<a class="mono break" href="${href}">${client}</a>`
  // A column is as wide as its longest word, unless that can break.
  return client.length > LONG_NAME_CHARS
    ? html`<a class="long" href="${href}">${client}</a>`
    : html`<a href="${href}">${client}</a>`
}

/** An address in a file; '' if no address is known. */
export function clientText({ client }: Pick<ClientUse, 'client'>): string {
  return client === NO_CLIENT ? '' : client
}

/** The names of an address in a file. */
export function namesColumns<Row>(of: (row: Row) => AddressNames | undefined): readonly Column<Row>[] {
  return [
    { id: 'name', name: 'Name', csv: (row) => of(row)?.current?.name ?? '' },
    { id: 'earlier', name: 'Earlier names', csv: (row) => (of(row)?.earlier ?? []).map(spanText).join(', ') },
    { id: 'network', name: 'Network', csv: (row) => of(row)?.network ?? '' },
  ]
}

/** A column of bytes. 0: no log has the byte counts, so the cell is empty. */
export function bytesColumn<Row>(id: string, name: string, of: (row: Row) => number): Column<Row> {
  return { id, name, cell: (row) => bytesText(of(row)), sort: of, csv: (row) => of(row) || '', number: true }
}

/** Matches of one contact. Not known of days before this was stored. */
function contactColumn<Row>(id: string, name: string, of: (row: Row) => number): Column<Row> {
  return {
    id,
    name,
    cell: (row) => (Number.isNaN(of(row)) ? html`<span class="muted">not known</span>` : countText(of(row))),
    sort: (row) => (Number.isNaN(of(row)) ? -1 : of(row)),
    csv: (row) => (Number.isNaN(of(row)) ? '' : of(row)),
    number: true,
  }
}

/** How much a client used a platform, and when. */
export function useColumns<Row extends ClientUse>(): readonly Column<Row>[] {
  return [
    contactColumn<Row>('used', 'Used', ({ used }) => used),
    { ...contactColumn<Row>('blocked', 'Blocked', ({ blocked }) => blocked), wide: true },
    { ...contactColumn<Row>('touched', 'Touched', ({ touched }) => touched), wide: true },
    csvOnly(countColumn<Row>('matches', 'Matches', ({ matches }) => matches)),
    bytesColumn<Row>('sent', 'Sent', ({ bytesSent }) => bytesSent),
    { ...bytesColumn<Row>('received', 'Received', ({ bytesReceived }) => bytesReceived), wide: true },
    { ...countColumn<Row>('days', 'Days', ({ days }) => days), wide: true },
    csvOnly(textColumn<Row>('methods', 'Methods', ({ methods }) => methods.join(' '))),
    csvOnly(textColumn<Row>('access', 'Access', ({ access }) => access.join(' '))),
    { ...timeColumn<Row>('first', 'First seen', ({ firstSeenMs }) => firstSeenMs), number: true, wide: true },
    { ...timeColumn<Row>('last', 'Last seen', ({ lastSeenMs }) => lastSeenMs), number: true },
  ]
}
