import { SAVED_VIEW_NAME_BYTES_MAX } from '../../engine/limits.ts'
import type { SavedView } from '../../engine/store/saved-views.ts'
import { TwoStep } from './form.tsx'
import { filtersOf } from './table.tsx'

export const SAVED_VIEWS_PATH = '/saved-views'

/** The pages with filters that can be saved, and whether their search looks for people. */
const PAGES: ReadonlyMap<string, { readonly searchesPeople: boolean }> = new Map([
  ['/overview', { searchesPeople: false }],
  ['/report', { searchesPeople: false }],
  ['/platforms', { searchesPeople: false }],
  ['/compare', { searchesPeople: false }],
  ['/clients', { searchesPeople: true }],
  ['/client-groups', { searchesPeople: false }],
  ['/alerts', { searchesPeople: false }],
  ['/recommendations', { searchesPeople: false }],
])
export function addressOf({ path, query }: Pick<SavedView, 'path' | 'query'>): string {
  return `${path}?${query}`
}

/** The filters of a page. A search for people is left out: an erasure of a person would not find it. */
export function savedQuery(path: string, query: URLSearchParams): string {
  const kept = new URLSearchParams([...filtersOf(query, 'page')].filter(([, value]) => value !== ''))
  if (PAGES.get(path)?.searchesPeople) kept.delete('q')
  return kept.toString()
}

interface SavedViewsProps {
  readonly path: string
  readonly query: URLSearchParams
  /** All of the organization. */
  readonly views: readonly SavedView[]
  readonly maySave: boolean
}

/** Whether a page has saved views. */
export function hasSavedViews(path: string): boolean {
  return PAGES.has(path)
}

/** The saved views of a page, and the form that saves its filters. */
export function SavedViews({ path, query, views, maySave }: SavedViewsProps) {
  const now = savedQuery(path, query)
  const own = views.filter((view) => view.path === path)
  const isSavable = maySave && now !== '' && !own.some((view) => view.query === now)
  if (own.length === 0 && !isSavable) return null
  return (
    <nav class="views row small" aria-label="Saved views">
      {own.map((view) => (
        <a key={view.name} class="break" href={addressOf(view)} aria-current={view.query === now ? 'page' : undefined}>
          {view.name}
        </a>
      ))}
      {isSavable && <SaveView path={path} query={now} />}
      {maySave && own.length > 0 && (
        <details>
          <summary class="muted">Remove views</summary>
          <ul class="lines">
            {own.map(({ name }) => (
              <li key={name}>
                <span class="break">{name}</span>
                <TwoStep
                  action={`${SAVED_VIEWS_PATH}/remove`}
                  verb="Remove"
                  label={name}
                  fields={[
                    ['name', name],
                    ['path', path],
                  ]}
                />
              </li>
            ))}
          </ul>
        </details>
      )}
    </nav>
  )
}

function SaveView({ path, query }: { readonly path: string; readonly query: string }) {
  return (
    <details>
      <summary class="muted">Save this view</summary>
      <form class="inline" method="post" action={SAVED_VIEWS_PATH}>
        <input type="hidden" name="path" value={path} />
        <input type="hidden" name="query" value={query} />
        <label class="visually-hidden" for="view-name">
          Name of the view
        </label>
        <input
          id="view-name"
          name="name"
          placeholder="Name"
          required
          maxLength={SAVED_VIEW_NAME_BYTES_MAX}
          autoComplete="off"
        />
        <button type="submit">Save</button>
      </form>
    </details>
  )
}
