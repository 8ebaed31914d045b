import { paged } from '../design/paged.ts'
import { page, type Route } from '../http/router.ts'
import { COMPARISON_PATH, Comparison, DIFFERENCE_COLUMNS } from '../pages/comparison.tsx'
import { comparisonView } from '../views/comparison.ts'
import { csvFile } from './csv.ts'

export const COMPARISON_ROUTES: readonly Route[] = [
  page(COMPARISON_PATH, 'discovery.read', (visit) => {
    const { query } = visit.request
    const view = comparisonView(visit)
    return visit.page('Compare scans', '/platforms', Comparison({ view, rows: paged(view.rows, query), query }))
  }),
  csvFile({
    path: COMPARISON_PATH,
    access: 'discovery.read',
    columns: () => DIFFERENCE_COLUMNS,
    rows: (visit) => comparisonView(visit).rows,
  }),
]
