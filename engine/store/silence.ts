import { HOUR_MS } from '../kernel/process/clock.ts'
import type { StoredSensor } from './coverage.ts'

/** A sender or sensor without activity for this long is silent. */
export const SILENT_MS = HOUR_MS

export const SENSOR_STATES = ['reporting', 'silent', 'stopped'] as const
export type SensorState = (typeof SENSOR_STATES)[number]

export function isSilent(lastSeenMs: number, nowMs: number): boolean {
  return nowMs - lastSeenMs > SILENT_MS
}

/** A sensor that stopped normally has reported that, so it is not silent. */
export function sensorState({ ended, heardMs }: StoredSensor, nowMs: number): SensorState {
  if (ended) return 'stopped'
  return isSilent(heardMs, nowMs) ? 'silent' : 'reporting'
}
