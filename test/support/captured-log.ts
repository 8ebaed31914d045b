import { pino } from 'pino'
import type { Logger } from '../../engine/kernel/process/log.ts'

/** The fields of a log entry that tests read. */
export interface LogEntry {
  /** Pino level: 40 is a warning, 50 an error. */
  readonly level: number
  readonly msg: string
  readonly reason?: string
  readonly err?: { readonly type: string; readonly message: string; readonly stack: string }
  readonly [field: string]: unknown
}

/** A logger whose entries tests can read. The entries have passed through the real serializers. */
export function capturedLog(): { readonly log: Logger; readonly entries: readonly LogEntry[] } {
  const entries: LogEntry[] = []
  const log = pino(
    { level: 'warn', base: null, timestamp: false },
    { write: (line: string) => void entries.push(JSON.parse(line)) },
  )
  return { log, entries }
}
