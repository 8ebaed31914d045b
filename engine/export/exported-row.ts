import type { Organization } from '../store/organizations.ts'
import type { RegistryInForce } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import type { FindingEvent } from './finding-event.ts'

/** A value of a row. null: there is none. Lists have at most DOMAINS_SHOWN_MAX texts. */
export type RowValue = string | number | boolean | null | readonly string[]
export type Row = Readonly<Record<string, RowValue>>

/** A column, with its meaning for the documentation. */
export interface ExportColumn {
  readonly name: string
  readonly about: string
}

export interface ExportedRow {
  /** Names the row in all exports, so that a cursor knows it again. */
  readonly id: string
  /**
   * A part of the export with many rows, such as the clients of one platform and day. Its rows
   * follow each other, and their ids need to differ only within it.
   */
  readonly group?: string
  /** What --since compares: when the row was last changed. */
  readonly changedMs: number
  readonly row: Row
  /** For SIEM formats. Only platforms have it. */
  readonly finding?: FindingEvent
}

/** Reads rows one after the other. Call within Environment.read. */
type ReadRows = (source: ExportSource) => Generator<ExportedRow>

export interface ExportSource {
  readonly store: Store
  readonly registry: RegistryInForce
  readonly organization: Organization
  readonly nowMs: number
}

export interface Export {
  readonly about: string
  readonly columns: readonly ExportColumn[]
  readonly rows: ReadRows
}

/** The meaning of columns with a time. */
export const TIME = 'Time'

export function columns(about: Readonly<Record<string, string>>): readonly ExportColumn[] {
  return Object.entries(about).map(([name, text]) => ({ name, about: text }))
}
