import { createRequire } from 'node:module'
import { getEnvironmentData, isMainThread, setEnvironmentData, threadId } from 'node:worker_threads'
import type { Logger } from 'pino'

export type { Logger }

const require = createRequire(import.meta.url)

export const LOG_LEVELS = ['DEBUG', 'INFO', 'WARNING', 'ERROR'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const PINO_LEVEL: Record<LogLevel, string> = { DEBUG: 'debug', INFO: 'info', WARNING: 'warn', ERROR: 'error' }
const STDERR_FD = 2
const NODE_NAME = 'posture node'

/** Entries of loggers that are created from now on, also in new threads, name this node. */
export function nameNode(name: string): void {
  setEnvironmentData(NODE_NAME, name)
}

/** Suppresses entries below this level. */
export function setLogLevel(log: Logger, level: LogLevel): void {
  log.level = PINO_LEVEL[level]
}

/**
 * Creates a logger on standard error, so that standard output contains only data. Writes one
 * readable line per entry on a terminal, else one JSON object. Writes are synchronous, so that the
 * last line before a crash is written.
 */
export function createLogger(program: string, level: LogLevel): Logger {
  // Loaded on demand: it takes 20 ms, which commands that log nothing need not spend.
  const { pino } = require('pino') as typeof import('pino')
  const options = {
    name: program,
    level: PINO_LEVEL[level],
    base: baseOf(getEnvironmentData(NODE_NAME)),
    timestamp: pino.stdTimeFunctions.isoTime,
    // Masks fields that contain a token or key by mistake.
    redact: { paths: ['token', 'key', 'authorization', '*.token', '*.key', '*.authorization'], censor: '[secret]' },
  }
  if (process.stderr.isTTY) {
    const pretty = require('pino-pretty') as typeof import('pino-pretty')
    const readable = pretty({
      destination: STDERR_FD,
      sync: true,
      colorize: process.env['NO_COLOR'] === undefined,
      translateTime: 'SYS:HH:MM:ss',
      singleLine: true,
      ignore: 'pid,hostname,name,thread',
    })
    return pino(options, readable)
  }
  return pino(options, pino.destination({ dest: STDERR_FD, sync: true }))
}

/** Fields of each entry. null: also not the name of the program. */
function baseOf(node: unknown): Record<string, unknown> | null {
  if (isMainThread && node === undefined) return null
  return { ...(node === undefined ? {} : { node }), ...(isMainThread ? {} : { thread: threadId }) }
}
