import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { textKey, uuidBytes } from './keys.ts'

/** A page of the console with its filters, which members saved for their organization. */
export interface SavedView {
  /** Unique regardless of case. */
  readonly name: string
  /** Such as `/platforms`. */
  readonly path: string
  /** Such as `state=waiting&sort=-risk`. Contains no search for people. */
  readonly query: string
}

/** The saved views of each organization. */
export class SavedViews {
  readonly #views: Family<SavedView>

  constructor(environment: Environment) {
    this.#views = new Family(environment.table('saved-views'), 'saved view')
  }

  /** By name. */
  ofOrganization(organizationId: string): SavedView[] {
    return Array.from(this.#views.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  get(organizationId: string, name: string): SavedView | undefined {
    return this.#views.get(viewKey(organizationId, { name }))
  }

  put(organizationId: string, view: SavedView): void {
    this.#views.put(viewKey(organizationId, view), view)
  }

  remove(organizationId: string, view: SavedView): void {
    this.#views.remove(viewKey(organizationId, view))
  }
}

export function viewKey(organizationId: string, { name }: Pick<SavedView, 'name'>): Buffer {
  return textKey(organizationId, name.toLowerCase())
}
