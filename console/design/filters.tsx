import type { ComponentChildren } from 'preact'
import { FieldFrame, Options } from './form.tsx'

export interface FiltersProps {
  /** The path of the page. */
  readonly action: string
  readonly children: ComponentChildren
  /** The number of rows that match, in words. */
  readonly found?: ComponentChildren
  /** The id of the output, for the browser script that filters the table `id` without `-count`. */
  readonly foundId?: string
}

/** The form above a table that selects its rows. Its fields become the query of the page. */
export function Filters({ action, children, found, foundId }: FiltersProps) {
  return (
    <form class="filters" method="get" action={action}>
      {children}
      <button type="submit">Filter</button>
      {found !== undefined && (
        <output id={foundId} class="muted small">
          {found}
        </output>
      )}
    </form>
  )
}

export interface FilterSearchProps {
  readonly value: string
  readonly label?: string
  /** The browser script filters the table with this id at each key. */
  readonly table?: string
}

/** Searches the rows for text: the parameter `q`. */
export function FilterSearch({ value, table, label = 'Search' }: FilterSearchProps) {
  return (
    <FieldFrame name="q" label={label}>
      <input id="q" name="q" type="search" value={value} maxLength={100} data-filters={table} />
    </FieldFrame>
  )
}

export interface FilterSelectProps {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, name: string])[]
}

/** Selects the rows by one of a few values. */
export function FilterSelect({ name, label, value, options }: FilterSelectProps) {
  return (
    <FieldFrame name={name} label={label}>
      <Options name={name} options={options} chosen={value} />
    </FieldFrame>
  )
}
