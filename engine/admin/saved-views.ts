import { Fault } from '../kernel/process/error-codes.ts'
import { SAVED_VIEW_NAME_BYTES_MAX, SAVED_VIEW_QUERY_BYTES_MAX, SAVED_VIEWS_MAX } from '../limits.ts'
import type { Organization } from '../store/organizations.ts'
import type { SavedView } from '../store/saved-views.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'

/** A path of the console: no other site, and no query. */
const PATH = /^\/[a-z][a-z-]{0,99}$/

/** Pages of the console with their filters, by name, for all members. */
export class SavedViewChanges extends AuditedChanges {
  /** @throws Fault USAGE; CONFLICT if the name is taken, or at the limit; NOT_ALLOWED */
  save({ id }: Organization, { name, path, query }: SavedView): void {
    checkText('name', name, SAVED_VIEW_NAME_BYTES_MAX)
    if (!PATH.test(path)) throw new Fault('USAGE', `path: expected a page such as /platforms, found ${path}`)
    // As a browser writes it: ASCII.
    const view = { name, path, query: new URLSearchParams(query).toString() }
    if (view.query === '' || view.query.length > SAVED_VIEW_QUERY_BYTES_MAX)
      throw new Fault('USAGE', `filters: expected 1 to ${SAVED_VIEW_QUERY_BYTES_MAX} bytes, found ${view.query.length}`)
    const { savedViews } = this.store
    this.audited('view.save', id, () => {
      const taken = savedViews.get(id, name)
      if (taken !== undefined) throw new Fault('CONFLICT', `a view named ${JSON.stringify(taken.name)} already exists`)
      if (savedViews.ofOrganization(id).length >= SAVED_VIEWS_MAX)
        throw new Fault('CONFLICT', `an organization has at most ${SAVED_VIEWS_MAX} saved views; remove one`)
      savedViews.put(id, view)
      return { organizationId: id, subject: name, details: { path }, result: undefined }
    })
  }

  /** @throws Fault NOT_FOUND, USAGE, NOT_ALLOWED */
  remove({ id }: Organization, name: string): void {
    // A longer one does not fit into a key of the store.
    checkText('name', name, SAVED_VIEW_NAME_BYTES_MAX)
    const { savedViews } = this.store
    this.audited('view.remove', id, () => {
      const view = savedViews.get(id, name)
      if (view === undefined) throw new Fault('NOT_FOUND', `no saved view ${JSON.stringify(name)}`)
      savedViews.remove(id, view)
      return { organizationId: id, subject: view.name, details: { path: view.path }, result: undefined }
    })
  }
}
