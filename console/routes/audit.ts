import { CSV_ROWS_MAX } from '../design/csv-link.tsx'
import { page, type Route } from '../http/router.ts'
import { Audit, auditColumns } from '../pages/audit.tsx'
import { AUDIT_ENTRIES_PER_PAGE, auditView } from '../views/audit.ts'
import { csvFile } from './csv.ts'

export const AUDIT_ROUTES: readonly Route[] = [
  page('/audit-log', 'audit.read', (visit) => {
    const { nowMs, request } = visit
    const view = auditView(visit, AUDIT_ENTRIES_PER_PAGE)
    return visit.page('Audit log', '/audit-log', Audit({ view, query: request.query, nowMs }))
  }),
  csvFile({
    path: '/audit-log',
    access: 'audit.read',
    columns: ({ nowMs }) => auditColumns(nowMs),
    rows: (visit) => auditView(visit, CSV_ROWS_MAX + 1).rows,
  }),
]
