import { isPseudonym, NO_CLIENT } from '../../engine/kernel/event/client.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import { countColumn, csvOnly, textColumn, timeColumn } from './columns.tsx'
import { html } from './html.ts'
import { countText } from './parts.tsx'
import type { Column } from './table.tsx'

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const

/** `12 MB`; '' of nothing. */
export function bytesText(bytes: number): string {
  if (bytes === 0) return ''
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** power
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[power]}`
}

/** A link to the page of a client or user. */
export function ClientLink({ client }: { readonly client: string }) {
  if (client === NO_CLIENT) return html`<span class="muted">unknown</span>`
  const href = `/clients/${encodeURIComponent(client)}`
  return isPseudonym(client)
    ? html`<a class="mono break" href="${href}">${client}</a>`
    : html`<a href="${href}">${client}</a>`
}

/** An address in a file; '' if no address is known. */
export function clientText({ client }: Pick<ClientUse, 'client'>): string {
  return client === NO_CLIENT ? '' : client
}

/** Matches of one contact. Not known of days before this was stored. */
function contactColumn<Row>(id: string, name: string, of: (row: Row) => number): Column<Row> {
  return {
    id,
    name,
    cell: (row) => (Number.isNaN(of(row)) ? html`<span class="muted">not known</span>` : countText(of(row))),
    csv: (row) => (Number.isNaN(of(row)) ? '' : of(row)),
    number: true,
  }
}

/** How much a client used a platform, and when. */
export function useColumns<Row extends ClientUse>(nowMs: number): readonly Column<Row>[] {
  return [
    contactColumn<Row>('used', 'Used', ({ used }) => used),
    { ...contactColumn<Row>('blocked', 'Blocked', ({ blocked }) => blocked), wide: true },
    { ...contactColumn<Row>('touched', 'Touched', ({ touched }) => touched), wide: true },
    csvOnly(countColumn<Row>('matches', 'Matches', ({ matches }) => matches)),
    {
      id: 'bytes',
      name: 'Sent / received',
      cell: ({ bytesSent, bytesReceived }) =>
        bytesSent + bytesReceived === 0 ? '' : `${bytesText(bytesSent) || '0'} / ${bytesText(bytesReceived) || '0'}`,
      number: true,
      wide: true,
    },
    { id: 'sent', name: 'Bytes sent', csv: ({ bytesSent }) => bytesSent },
    { id: 'received', name: 'Bytes received', csv: ({ bytesReceived }) => bytesReceived },
    { ...countColumn<Row>('days', 'Days', ({ days }) => days), wide: true },
    csvOnly(textColumn<Row>('methods', 'Methods', ({ methods }) => methods.join(' '))),
    csvOnly(textColumn<Row>('access', 'Access', ({ access }) => access.join(' '))),
    { ...timeColumn<Row>('first', 'First seen', nowMs, ({ firstSeenMs }) => firstSeenMs), number: true, wide: true },
    { ...timeColumn<Row>('last', 'Last seen', nowMs, ({ lastSeenMs }) => lastSeenMs), number: true },
  ]
}
