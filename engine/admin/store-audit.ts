import type { Store } from '../store/store.ts'
import type { Action } from './actions.ts'
import type { Actor } from './changes.ts'

/** What was done with the store of all organizations at once. */
export interface StoreAction {
  readonly action: Action
  readonly actor: Actor
  readonly timeMs: number
  /** The file that it was done with. */
  readonly subject: string
}

/** Writes an entry into the audit log of every organization. Inside a transaction of the caller. */
export function auditForAll(store: Store, { action, actor, timeMs, subject }: StoreAction): void {
  for (const organizationId of store.organizations.ids()) {
    store.auditLog.append({ organizationId, timeMs, actor: nameOf(actor), action, subject, details: {} })
  }
}

/** As the audit log names the operator or a member. */
export function nameOf({ kind, name }: Actor): string {
  return `${kind} ${name}`
}
