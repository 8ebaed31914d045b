import { pino } from 'pino'
import type { Logger } from '../../engine/process/log.ts'

/** What tests read of a log entry, as it is written. */
export interface LogEntry {
  /** 40 is a warning, 50 an error. */
  readonly level: number
  readonly msg: string
  readonly reason?: string
  readonly err?: { readonly type: string; readonly message: string; readonly stack: string }
  readonly [field: string]: unknown
}

/** A logger whose entries can be read, after the serializers of the real one. */
export function capturedLog(): { readonly log: Logger; readonly entries: readonly LogEntry[] } {
  const entries: LogEntry[] = []
  const log = pino(
    { level: 'warn', base: null, timestamp: false },
    { write: (line: string) => void entries.push(JSON.parse(line)) },
  )
  return { log, entries }
}
