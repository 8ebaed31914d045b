import type { StoredDay, StoredSensor } from '../store/coverage.ts'
import { UUID_BYTES } from '../store/keys.ts'
import { packed, type StoreWalk } from './walk.ts'

const INSTANCE_BYTES = 8
const DAY_BYTES = 4

/**
 * Checks the coverage reports of sensors and their daily sums. Inactive instances are removed from
 * the former, so the sums may include more instances.
 */
export function checkCoverage(walk: StoreWalk): void {
  const sensor = { keyBytes: UUID_BYTES + INSTANCE_BYTES, open: packed<StoredSensor>("sensor's coverage") }
  walk.table('coverage-sensors', sensor, ({ value, organizationId }) => {
    if (!areCounts(Object.values(value.counters))) wrong(walk, 'coverage-sensors', organizationId, value.counters)
  })
  const day = { keyBytes: UUID_BYTES + DAY_BYTES, open: packed<StoredDay>('coverage of a day') }
  walk.table('coverage-days', day, ({ value, organizationId }) => {
    const isRight = areCounts([value.sensors, ...Object.values(value.counters)])
    if (!isRight) wrong(walk, 'coverage-days', organizationId, value)
  })
}

function areCounts(values: readonly number[]): boolean {
  return values.every((value) => Number.isSafeInteger(value) && value >= 0)
}

function wrong(walk: StoreWalk, table: string, organizationId: string, found: object): void {
  walk.wrong(table, organizationId, JSON.stringify(found), 'whole numbers from 0')
}
