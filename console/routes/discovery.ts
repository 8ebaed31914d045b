import { csvOf, sorted, sortingOf } from '../design/table.tsx'
import { csvAnswer } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import { PLATFORMS_SORTING, Platforms, platformColumns } from '../pages/platforms.tsx'
import { platformsView } from '../views/platforms.ts'

export const DISCOVERY_ROUTES: readonly Route[] = [
  page('/platforms', 'discovery.read', (visit) => {
    const { nowMs, request } = visit
    const sorting = sortingOf(platformColumns(nowMs), request.query, PLATFORMS_SORTING)
    const view = platformsView(visit)
    return visit.page('Platforms', '/platforms', Platforms({ view, sorting, query: request.query, nowMs }))
  }),
  page('/platforms.csv', 'discovery.read', (visit) => {
    const columns = platformColumns(visit.nowMs)
    const sorting = sortingOf(columns, visit.request.query, PLATFORMS_SORTING)
    return csvAnswer('platforms.csv', csvOf(columns, sorted(platformsView(visit).rows, columns, sorting)))
  }),
]
