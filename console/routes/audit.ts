import { csvOf } from '../design/table.tsx'
import { csvAnswer } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import { Audit, auditColumns } from '../pages/audit.tsx'
import { AUDIT_CSV_MAX, AUDIT_ENTRIES_PER_PAGE, auditView } from '../views/audit.ts'

export const AUDIT_ROUTES: readonly Route[] = [
  page('/audit-log', 'audit.read', (visit) => {
    const { nowMs, request } = visit
    const view = auditView(visit, AUDIT_ENTRIES_PER_PAGE)
    return visit.page('Audit log', '/audit-log', Audit({ view, query: request.query, nowMs }))
  }),
  page('/audit-log.csv', 'audit.read', (visit) => {
    return csvAnswer('audit-log.csv', csvOf(auditColumns(visit.nowMs), auditView(visit, AUDIT_CSV_MAX).rows))
  }),
]
