import type { Clock } from '../process/clock.ts'
import type { AuditDetails } from '../store/audit-log.ts'
import type { Store } from '../store/store.ts'
import type { User } from '../store/users.ts'
import type { Action } from './actions.ts'

/**
 * Appends an entry about a user's own change to the audit log of each organization of the user,
 * inside a transaction of the caller.
 */
export function noteEverywhere(store: Store, clock: Clock, action: Action, user: User, details: AuditDetails): void {
  for (const { organizationId, name } of store.members.ofUser(user.id)) {
    const actor = `member ${name}`
    store.auditLog.append({ organizationId, timeMs: clock.nowMs(), actor, action, subject: name, details })
  }
}
