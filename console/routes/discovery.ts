import { sorted, sortingOf } from '../design/table.tsx'
import { page, type Route } from '../http/router.ts'
import { PLATFORMS_SORTING, Platforms, platformColumns } from '../pages/platforms.tsx'
import { platformsView } from '../views/platforms.ts'
import { csvFile } from './csv.ts'

export const DISCOVERY_ROUTES: readonly Route[] = [
  page('/platforms', 'discovery.read', (visit) => {
    const { nowMs, request } = visit
    const sorting = sortingOf(platformColumns(nowMs), request.query, PLATFORMS_SORTING)
    const view = platformsView(visit)
    return visit.page('Platforms', '/platforms', Platforms({ view, sorting, query: request.query, nowMs }))
  }),
  csvFile({
    path: '/platforms',
    access: 'discovery.read',
    columns: ({ nowMs }) => platformColumns(nowMs),
    rows: (visit) => {
      const columns = platformColumns(visit.nowMs)
      return sorted(platformsView(visit).rows, columns, sortingOf(columns, visit.request.query, PLATFORMS_SORTING))
    },
  }),
]
