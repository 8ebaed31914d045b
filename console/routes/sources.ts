import { page, type Route } from '../http/router.ts'
import { Sensors, sensorColumns } from '../pages/sensors.tsx'
import { Sources, sourceColumns } from '../pages/sources.tsx'
import { allSources, sensorsView, sourcesView } from '../views/sources.ts'
import { csvFile } from './csv.ts'

/** Sources and sensors: what arrives, and from where. */
export const SOURCES_ROUTES: readonly Route[] = [
  page('/sources', 'source.read', (visit) => {
    const content = Sources({
      sources: sourcesView(visit),
      query: visit.request.query,
      nowMs: visit.nowMs,
      mayReadTokens: visit.may('token.read'),
    })
    return visit.page('Sources', '/sources', content)
  }),
  csvFile({ path: '/sources', access: 'source.read', columns: ({ nowMs }) => sourceColumns(nowMs), rows: allSources }),
  page('/sensors', 'source.read', (visit) => {
    const content = Sensors({
      view: sensorsView(visit),
      nowMs: visit.nowMs,
      mayReadTokens: visit.may('token.read'),
    })
    return visit.page('Sensors', '/sensors', content)
  }),
  csvFile({
    path: '/sensors',
    access: 'source.read',
    columns: ({ nowMs }) => sensorColumns(nowMs),
    rows: (visit) => sensorsView(visit).rows,
  }),
]
