import { csvOf } from '../design/table.tsx'
import { csvAnswer } from '../http/answer.ts'
import { page, type Route } from '../http/router.ts'
import { Sensors, sensorColumns } from '../pages/sensors.tsx'
import { Sources, sourceColumns } from '../pages/sources.tsx'
import { sensorsView, sourcesView } from '../views/intake.ts'

/** Sources and sensors: what arrives, and from where. */
export const INTAKE_ROUTES: readonly Route[] = [
  page('/sources', 'source.read', (visit) => {
    const content = Sources({
      rows: sourcesView(visit),
      nowMs: visit.nowMs,
      mayReadTokens: visit.may('token.read'),
    })
    return visit.page('Sources', '/sources', content)
  }),
  page('/sources.csv', 'source.read', (visit) =>
    csvAnswer('sources.csv', csvOf(sourceColumns(visit.nowMs), sourcesView(visit))),
  ),
  page('/sensors', 'source.read', (visit) => {
    const content = Sensors({
      view: sensorsView(visit),
      nowMs: visit.nowMs,
      mayReadTokens: visit.may('token.read'),
    })
    return visit.page('Sensors', '/sensors', content)
  }),
  page('/sensors.csv', 'source.read', (visit) =>
    csvAnswer('sensors.csv', csvOf(sensorColumns(visit.nowMs), sensorsView(visit).rows)),
  ),
]
